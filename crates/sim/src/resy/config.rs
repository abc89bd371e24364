//! What a market is made from.

use stakeout_core::{Span, Time};

/// How big a venue is in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Only what matters, about 600 bytes.
    Lean,
    /// With all that the real one adds, about 2 KB.
    Full,
}

/// What a market is made from.
#[derive(Clone, Debug)]
pub struct MarketConfig {
    /// Decides everything that is not given here.
    pub seed: u64,
    /// The market's time zone, by its IANA name.
    pub zone: String,
    /// From when tables move; before it all is as it was then.
    pub start: Time,
    /// How long tables move; after it all stays as it is.
    pub span: Span,
    /// Dates that have tables, from the local date at `start` on.
    pub dates: u32,
    /// Venues in the market.
    pub venues: u32,
    /// Where they are: south, west, north, east.
    pub area: [f64; 4],
    /// The share of venues that nearly always have tables.
    pub roomy: f64,
    /// The share of venues that are booked out but for cancellations. The rest never have a table.
    pub sought: f64,
    /// Cancellations at sought-after venues per day, about, over the first 14 dates.
    pub cancellations: f64,
    /// How unevenly cancellations fall on the dates: the σ of a log-normal factor that each date draws. By the day of the
    /// week unless given.
    pub skew: Option<f64>,
    /// How often the roomy venues' tables change hands: at 1 a table is taken after 40 hours on average.
    pub churn: f64,
    /// Tables a venue shows at most in one answer, those nearest to the time asked for.
    pub slot_cap: Option<u32>,
    /// How far from the time asked for a table may be, in minutes.
    pub reach_minutes: u16,
    /// One in so many venues leaves the list while it has nothing; the others stay with nothing. 0 is none.
    pub absent_one_in: u64,
    /// How big answers are.
    pub body: Body,
}

impl MarketConfig {
    /// A small market over three days: 150 venues, two pages, two weeks of dates ahead at any time.
    pub fn new(seed: u64) -> MarketConfig {
        MarketConfig {
            seed,
            zone: "America/New_York".to_owned(),
            // Midnight in New York on Wednesday 2026-02-25.
            start: Time::from_secs(1_771_995_600),
            span: Span::hours(72),
            dates: 17,
            venues: 150,
            area: [40.69, -74.03, 40.77, -73.97],
            roomy: 0.6,
            sought: 0.3,
            cancellations: 120.0,
            skew: None,
            churn: 1.0,
            slot_cap: Some(3),
            reach_minutes: 180,
            absent_one_in: 5,
            body: Body::Lean,
        }
    }

    /// A market of the real one's size: 2,722 venues, about 4,700 tables shown per bucket and party size.
    pub fn city(seed: u64) -> MarketConfig {
        MarketConfig { venues: 2_722, cancellations: 1_500.0, body: Body::Full, ..MarketConfig::new(seed) }
    }

    /// A market in which nothing happens but what is added to it.
    pub fn still(seed: u64, venues: u32) -> MarketConfig {
        MarketConfig { venues, roomy: 0.0, sought: 0.0, ..MarketConfig::new(seed) }
    }

    /// The same from that moment on and for so long, with two weeks of dates ahead until the end.
    #[must_use]
    pub fn during(mut self, start: Time, span: Span) -> MarketConfig {
        (self.start, self.span) = (start, span);
        self.dates = 15 + (span.as_us().max(0) / Span::hours(24).as_us()) as u32;
        self
    }
}
