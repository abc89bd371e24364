//! The faults of this upstream: drawn from a seed and the request's number, so that a run can be repeated.

use crate::rng::{SplitMix64, mix};

/// One way an answer goes wrong. There are no error statuses among them: the real one has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 200 with no bytes.
    Empty,
    /// 200 with `[]`.
    EmptyList,
    /// 200 with the page.
    Html,
    /// 200 with the first part of the file: it was read while it was written.
    Torn,
    /// The connection is reset.
    Reset,
    /// No answer ever.
    Timeout,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 6] =
        [Fault::Empty, Fault::EmptyList, Fault::Html, Fault::Torn, Fault::Reset, Fault::Timeout];
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

    /// How much of a torn file of that size comes: some of it, never all.
    pub(crate) fn torn_at(&self, n: u64, size: usize) -> usize {
        let mut draws = self.draws(n);
        draws.next_u64();
        size * draws.between(1, 9) as usize / 10
    }

    /// The randomness of request number `n`: the first draw decides the fault, the next its details.
    fn draws(&self, n: u64) -> SplitMix64 {
        SplitMix64::new(mix(self.seed) ^ mix(n.wrapping_add(0x0066_6175_6c74)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_fails_the_same_way_every_time_and_as_often_as_asked() {
        let faults = Faults::none(7).with(Fault::Reset, 0.1).with(Fault::Empty, 0.2);
        let told: Vec<_> = (0..10_000).map(|n| faults.pick(n)).collect();
        assert_eq!(told, (0..10_000).map(|n| faults.pick(n)).collect::<Vec<_>>());
        let count = |what| told.iter().filter(|fault| **fault == what).count();
        assert!((900..1_100).contains(&count(Some(Fault::Reset))), "{}", count(Some(Fault::Reset)));
        assert!((1_880..2_120).contains(&count(Some(Fault::Empty))), "{}", count(Some(Fault::Empty)));
        assert_eq!(count(Some(Fault::Timeout)), 0);
        for (n, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, n);
            assert_eq!(Faults::none(1).with(fault, 1.0).pick(5), Some(fault));
        }
    }
}
