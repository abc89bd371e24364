//! What a budget buys: how long a sweep over all buckets takes, and how long a drop waits to be seen.

use serde::Serialize;
use stakeout_core::Span;

use super::{PLANNED_SHARE, Rate, TablesConfig};

/// What there is to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Where is looked.
    pub markets: Vec<MarketLoad>,
    /// Venues per page.
    pub per_page: u32,
    /// How many party sizes are asked for.
    pub party_sizes: u32,
    /// How often the provider may be asked.
    pub budget: Rate,
    /// The shortest time between two polls of a bucket.
    pub min_interval: Span,
    /// The longest.
    pub max_interval: Span,
}

/// A market's part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MarketLoad {
    /// Its name; the first market may have none.
    pub name: Option<String>,
    /// Venues in its box.
    pub venues: u64,
    /// Buckets: days × time slots.
    pub buckets: u32,
}

impl MarketLoad {
    /// Requests that one poll of a bucket takes.
    fn requests(&self, load: &Load) -> u64 {
        let pages = self.venues.div_ceil(u64::from(load.per_page.max(1))).max(1);
        pages * u64::from(load.party_sizes.max(1))
    }
}

/// What comes of it, if nothing is hotter than the rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Requests that one poll of a bucket takes; where most venues are, if there are several markets.
    pub requests_per_poll: u64,
    /// Requests that one sweep over all buckets takes.
    pub requests_per_sweep: u64,
    /// How long a sweep takes, and so how often a bucket is polled: a part of the budget is kept for retries and new
    /// buckets, and nobody is polled more often than the shortest interval.
    pub sweep_ms: i64,
    /// How long a drop waits on average until it is seen: half a sweep, and half the time that a bucket is read in;
    /// where that takes longest, if there are several markets.
    pub expected_delay_ms: i64,
    /// What a user should know about it.
    pub warning: Option<String>,
    /// The same by market.
    pub markets: Vec<MarketForecast>,
}

/// What comes of it in one market.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarketForecast {
    /// Its name; the first market may have none.
    pub name: Option<String>,
    /// Venues in its box.
    pub venues: u64,
    /// Its buckets.
    pub buckets: u32,
    /// Requests that one poll of a bucket takes.
    pub requests_per_poll: u64,
    /// Its part of a sweep.
    pub requests_per_sweep: u64,
    /// How long a drop waits on average until it is seen.
    pub expected_delay_ms: i64,
}

/// A drop that is seen later than this on average is worth a warning.
const SOON: Span = Span::secs(60);

/// What this load comes to.
pub fn forecast(load: &Load) -> Forecast {
    let sweep_of = |market: &MarketLoad| market.requests(load) * u64::from(market.buckets);
    let requests_per_sweep = load.markets.iter().map(sweep_of).sum();
    let seconds = |requests: u64| requests as f64 / load.budget.per_second();
    let planned = Span::from_secs_f64(seconds(requests_per_sweep) / PLANNED_SHARE).max(load.min_interval);
    // At the longest interval the kept part is used, too, and then there is no more.
    let sweep = planned.min(load.max_interval.max(Span::from_secs_f64(seconds(requests_per_sweep))));
    let delay = |requests: u64| (sweep + Span::from_secs_f64(seconds(requests))).over(2);
    let requests_per_poll = load.markets.iter().map(|market| market.requests(load)).max().unwrap_or(0);
    let longest = delay(requests_per_poll);
    let warning = (longest > SOON).then(|| {
        format!(
            "a drop waits {longest} on average: raise the budget, or look at a smaller box, fewer days, times or party sizes"
        )
    });
    let market = |market: &MarketLoad| MarketForecast {
        name: market.name.clone(),
        venues: market.venues,
        buckets: market.buckets,
        requests_per_poll: market.requests(load),
        requests_per_sweep: sweep_of(market),
        expected_delay_ms: delay(market.requests(load)).as_ms(),
    };
    Forecast {
        requests_per_poll,
        requests_per_sweep,
        sweep_ms: sweep.as_ms(),
        expected_delay_ms: longest.as_ms(),
        warning,
        markets: load.markets.iter().map(market).collect(),
    }
}

/// The same for people: what a sweep takes, how long a drop waits, and the warning if there is one.
pub fn words(load: &Load) -> Vec<String> {
    let Forecast { requests_per_poll, requests_per_sweep, sweep_ms, expected_delay_ms, warning, .. } =
        forecast(load);
    let (sweep, delay) = (Span::ms(sweep_ms), Span::ms(expected_delay_ms));
    let venues = load.markets.iter().map(|market| market.venues).max().unwrap_or(0);
    let buckets: u32 = load.markets.iter().map(|market| market.buckets).sum();
    let sum = format!(
        "{venues} venues: {requests_per_poll} requests per poll, {requests_per_sweep} for a sweep of {buckets} buckets, which takes {sweep} at {}; a drop waits {delay} on average",
        load.budget
    );
    std::iter::once(sum).chain(warning.map(|warning| format!("warning: {warning}"))).collect()
}

impl TablesConfig {
    /// What there is to be read by this configuration, if `venues` are in the box of the market of that name. The first
    /// market whose venues nobody knows is the error.
    pub fn load(&self, venues: impl Fn(Option<&str>) -> Option<u64>) -> Result<Load, Option<String>> {
        let buckets = self.days * self.time_slots.len() as u32;
        let markets = std::iter::once(&self.market).chain(&self.more_markets).map(|market| {
            let venues = venues(market.name.as_deref()).ok_or_else(|| market.name.clone())?;
            Ok(MarketLoad { name: market.name.clone(), venues, buckets })
        });
        Ok(Load {
            markets: markets.collect::<Result<_, Option<String>>>()?,
            per_page: self.per_page,
            party_sizes: self.party_sizes.len() as u32,
            budget: self.budget,
            min_interval: self.min_interval.0,
            max_interval: self.max_interval.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn box_of(venues: u64) -> MarketLoad {
        MarketLoad { name: None, venues, buckets: 28 }
    }

    fn large() -> Load {
        Load {
            markets: vec![box_of(2_722)],
            per_page: 75,
            party_sizes: 2,
            budget: Rate::per_minute(60.0),
            min_interval: Span::secs(10),
            max_interval: Span::hours(2),
        }
    }

    #[test]
    fn a_large_box_is_warned_about_and_a_small_one_is_not() {
        let seen = forecast(&large());
        assert_eq!((seen.requests_per_poll, seen.requests_per_sweep, seen.sweep_ms), (74, 2_072, 2_302_222));
        assert!(seen.warning.is_some_and(|words| words.contains("19 min")));
        let small = Load { markets: vec![box_of(60)], party_sizes: 1, ..large() };
        assert_eq!(forecast(&small).sweep_ms, 31_111);
        assert_eq!(forecast(&small).warning, None);
        assert!(words(&small)[0].ends_with("a drop waits 16.1 s on average"), "{:?}", words(&small));
        let rich = Load { budget: Rate::per_minute(6_000.0), ..small };
        assert_eq!(
            forecast(&rich).sweep_ms,
            10_000,
            "nobody is polled more often than the shortest interval"
        );
        let hurried = Load { max_interval: Span::mins(1), ..large() };
        assert_eq!(forecast(&hurried).sweep_ms, 2_072_000, "more than the budget there is not");
    }

    #[test]
    fn markets_share_a_sweep_and_each_is_read_in_its_own_time() {
        let boston = MarketLoad { name: Some("boston".to_owned()), venues: 700, buckets: 14 };
        let seen = forecast(&Load { markets: vec![box_of(2_722), boston], ..large() });
        let polls: Vec<u64> = seen.markets.iter().map(|market| market.requests_per_poll).collect();
        let sweeps: Vec<u64> = seen.markets.iter().map(|market| market.requests_per_sweep).collect();
        assert_eq!((polls, sweeps), (vec![74, 20], vec![2_072, 280]));
        assert_eq!((seen.requests_per_poll, seen.requests_per_sweep), (74, 2_352));
        // 2,352 requests at nine tenths of one a second; a bucket is read in 74 and in 20 seconds.
        assert_eq!(seen.sweep_ms, 2_613_333);
        let delays: Vec<i64> = seen.markets.iter().map(|market| market.expected_delay_ms).collect();
        assert_eq!(delays, [1_343_666, 1_316_666]);
        assert_eq!(seen.expected_delay_ms, 1_343_666);
    }
}
