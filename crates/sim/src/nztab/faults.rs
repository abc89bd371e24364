//! The faults of this upstream: drawn from a seed and the request's number, so that a run can be repeated.

use stakeout_core::Span;

use crate::rng::{SplitMix64, mix};

/// One way an answer goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 429, with `Retry-After` in seconds, as a date, or without.
    TooMany,
    /// 500 with the upstream's error envelope.
    ServerError,
    /// 503, not JSON.
    Unavailable,
    /// No answer ever.
    Timeout,
    /// The connection is reset.
    Reset,
    /// The body ends early.
    Truncated,
    /// A race status nobody has heard of.
    UnknownStatus,
    /// A field that is usually there is not.
    MissingFields,
    /// The state of some time ago, stamped so: it may come after a newer answer.
    Older,
    /// An envelope with nothing in it.
    Empty,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 10] = [
        Fault::TooMany,
        Fault::ServerError,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::Reset,
        Fault::Truncated,
        Fault::UnknownStatus,
        Fault::MissingFields,
        Fault::Older,
        Fault::Empty,
    ];
}

/// How often each fault happens. At most one per request.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    seed: u64,
    /// In the order of [`Fault::ALL`].
    chances: [f64; Fault::ALL.len()],
}

impl Faults {
    /// No faults, yet.
    pub const fn none(seed: u64) -> Faults {
        Faults { seed, chances: [0.0; Fault::ALL.len()] }
    }

    /// Every fault with that chance per request.
    pub const fn each(seed: u64, chance: f64) -> Faults {
        Faults { seed, chances: [chance; Fault::ALL.len()] }
    }

    /// The same, but `fault` with that chance per request.
    #[must_use]
    pub fn with(mut self, fault: Fault, chance: f64) -> Faults {
        self.chances[fault as usize] = chance;
        self
    }

    /// What goes wrong with request number `n`.
    pub fn pick(&self, n: u64) -> Option<Fault> {
        let mut left = self.draws(n).unit();
        Fault::ALL.into_iter().find(|fault| {
            let chance = self.chances[*fault as usize];
            let hit = left < chance;
            left -= chance;
            hit
        })
    }

    /// The randomness of request number `n`: the first draw decides the fault, the others its details.
    fn draws(&self, n: u64) -> SplitMix64 {
        SplitMix64::new(mix(self.seed) ^ mix(n.wrapping_add(0x0066_6175_6c74)))
    }

    /// The details of the fault that [`pick`](Self::pick) chose.
    pub(crate) fn details(&self, n: u64) -> SplitMix64 {
        let mut draws = self.draws(n);
        draws.next_u64();
        draws
    }
}

/// A field, or family of fields, that an answer can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Status,
    AdvertisedStart,
    ActualStart,
    Odds,
    Flucs,
    Money,
    Pools,
}

const CAN_MISS: [Missing; 7] = [
    Missing::Status,
    Missing::AdvertisedStart,
    Missing::ActualStart,
    Missing::Odds,
    Missing::Flucs,
    Missing::Money,
    Missing::Pools,
];
const UNKNOWN: [&str; 4] = ["Suspended", "Resulting", "PHOTO", "Void Pending"];

/// How a rendered answer departs from the truth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Twist {
    pub(crate) status: Option<&'static str>,
    pub(crate) missing: Option<Missing>,
}

impl Twist {
    pub(crate) fn lacks(&self, what: Missing) -> bool {
        self.missing == Some(what)
    }

    pub(crate) fn unknown_status(draws: &mut SplitMix64) -> Twist {
        Twist { status: Some(UNKNOWN[draws.between(0, 3) as usize]), missing: None }
    }

    pub(crate) fn missing(draws: &mut SplitMix64) -> Twist {
        Twist { status: None, missing: Some(CAN_MISS[draws.between(0, 6) as usize]) }
    }
}

/// How much older an old answer is.
pub(crate) fn older_by(draws: &mut SplitMix64) -> Span {
    Span::secs(draws.between(20, 240) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_fails_the_same_way_every_time_and_as_often_as_asked() {
        let faults = Faults::none(7).with(Fault::Reset, 0.1).with(Fault::Empty, 0.2);
        let told: Vec<_> = (0..10_000).map(|n| faults.pick(n)).collect();
        assert_eq!(told, (0..10_000).map(|n| faults.pick(n)).collect::<Vec<_>>());
        let count = |what| told.iter().filter(|f| **f == what).count();
        assert!((900..1_100).contains(&count(Some(Fault::Reset))), "{}", count(Some(Fault::Reset)));
        assert!((1_880..2_120).contains(&count(Some(Fault::Empty))), "{}", count(Some(Fault::Empty)));
        assert_eq!(count(Some(Fault::Timeout)), 0);
        assert_ne!(
            told,
            (0..10_000).map(|n| Faults { seed: 8, ..faults.clone() }.pick(n)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_order_of_all_is_the_order_of_chances() {
        for (n, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, n);
            assert_eq!(Faults::none(1).with(fault, 1.0).pick(5), Some(fault));
        }
        assert_eq!(Faults::none(1).pick(5), None);
    }
}
