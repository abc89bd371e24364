//! A venue and what sort of place it is.

use super::config::MarketConfig;
use super::names;
use crate::rng::{SplitMix64, mix};

/// A venue of the market.
#[derive(Clone, Debug)]
pub struct Venue {
    /// The upstream's id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Where it is, by name; may be empty.
    pub neighborhood: &'static str,
    /// Where it is: latitude and longitude.
    pub place: (f64, f64),
    /// Whether it leaves the list while it has no table; otherwise it stays, with none.
    pub absent_when_full: bool,
    pub(crate) cuisine: &'static str,
    pub(crate) price: u64,
    /// In hundredths of a star.
    pub(crate) rating: u64,
    pub(crate) ratings: u64,
    pub(crate) id_form: IdForm,
    /// Tables of another system: their config has no id, type or token.
    pub(crate) foreign: bool,
    pub(crate) habit: Habit,
    pub(crate) service: Service,
    pub(crate) seed: u64,
}

/// How the upstream writes an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdForm {
    Number,
    Object,
}

impl IdForm {
    pub(crate) fn other(self) -> IdForm {
        match self {
            IdForm::Number => IdForm::Object,
            IdForm::Object => IdForm::Number,
        }
    }
}

/// How a venue's tables come and go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Habit {
    /// Nearly always has some; they change hands.
    Roomy { churn: f64 },
    /// Booked out but for cancellations, of which it has its share of the market's.
    Sought { weight: f64, release: Option<Release> },
    /// Never has one.
    Full,
}

/// Some venues put a whole evening on sale at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Release {
    pub(crate) days_ahead: i64,
    pub(crate) minute: u16,
}

/// When it serves, in minutes since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) step: u16,
}

/// The market's venues from the centre outwards, which is the order the upstream lists them in.
pub(crate) fn venues(config: &MarketConfig) -> Vec<Venue> {
    let [south, west, north, east] = config.area;
    let centre = ((south + north) / 2.0, (west + east) / 2.0);
    let mut all: Vec<Venue> = (0..config.venues).map(|n| venue(config, n)).collect();
    let far = |venue: &Venue| (venue.place.0 - centre.0).powi(2) + (venue.place.1 - centre.1).powi(2);
    all.sort_by(|a, b| far(a).total_cmp(&far(b)).then(a.id.cmp(&b.id)));
    all
}

fn venue(config: &MarketConfig, n: u32) -> Venue {
    let seed = mix(config.seed ^ mix(0x7665_6e75_6500 + u64::from(n)));
    let mut rng = SplitMix64::new(seed);
    let [south, west, north, east] = config.area;
    let place = (south + (north - south) * rng.unit(), west + (east - west) * rng.unit());
    let draw = rng.unit();
    let habit = if draw < config.roomy {
        Habit::Roomy { churn: config.churn * log_normal(&mut rng, 0.8) }
    } else if draw < config.roomy + config.sought {
        let release = rng.one_in(12).then(|| Release {
            days_ahead: rng.between(3, 10) as i64,
            minute: 60 * rng.between(9, 12) as u16,
        });
        Habit::Sought { weight: log_normal(&mut rng, 1.5), release }
    } else {
        Habit::Full
    };
    let evening_only = rng.one_in(3) || matches!(habit, Habit::Sought { .. }) && !rng.one_in(4);
    Venue {
        // Never two alike, and as long as the real ones.
        id: 1_000 + u64::from(n) * 31 + rng.between(0, 30),
        name: names::venue(&mut rng, n),
        neighborhood: names::neighborhood(&mut rng),
        place,
        absent_when_full: config.absent_one_in > 0 && rng.one_in(config.absent_one_in),
        cuisine: names::cuisine(&mut rng),
        price: rng.between(1, 4),
        rating: rng.between(380, 495),
        ratings: rng.between(0, 8_000),
        id_form: if rng.one_in(8) { IdForm::Number } else { IdForm::Object },
        foreign: rng.one_in(15),
        habit,
        service: Service {
            first: if evening_only { 17 * 60 } else { 11 * 60 + 30 },
            last: 21 * 60 + 30 + 30 * rng.between(0, 3) as u16,
            step: if rng.one_in(4) { 15 } else { 30 },
        },
        seed,
    }
}

/// A factor with mean 1 whose logarithm is about normal: the greater `sigma`, the fewer venues have most of it.
pub(crate) fn log_normal(rng: &mut SplitMix64, sigma: f64) -> f64 {
    // Twelve uniform numbers less six are as normal as a simulation needs.
    let normal = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
    (sigma * normal - sigma * sigma / 2.0).exp()
}
