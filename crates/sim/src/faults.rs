//! Faults drawn from a seed and the request's number, so that a run can be repeated.

use crate::rng::{SplitMix64, mix};

/// The ways in which one upstream's answers go wrong.
pub trait FaultKind: Copy + PartialEq + 'static {
    /// All of them, in the order they are drawn.
    const KINDS: &'static [Self];
}

/// How often each fault happens. At most one per request.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults<F> {
    seed: u64,
    /// In the order of [`FaultKind::KINDS`].
    chances: Vec<(F, f64)>,
}

impl<F: FaultKind> Faults<F> {
    /// No faults, yet.
    pub fn none(seed: u64) -> Faults<F> {
        Faults::each(seed, 0.0)
    }

    /// Every fault with that chance per request.
    pub fn each(seed: u64, chance: f64) -> Faults<F> {
        Faults { seed, chances: F::KINDS.iter().map(|fault| (*fault, chance)).collect() }
    }

    /// The same, but `fault` with that chance per request.
    #[must_use]
    pub fn with(mut self, fault: F, chance: f64) -> Faults<F> {
        let own = self.chances.iter_mut().filter(|(other, _)| *other == fault);
        own.for_each(|(_, old)| *old = chance);
        self
    }

    /// What goes wrong with request number `n`.
    pub fn pick(&self, n: u64) -> Option<F> {
        let mut left = self.draws(n).unit();
        let hit = self.chances.iter().find(|(_, chance)| {
            let hit = left < *chance;
            left -= chance;
            hit
        });
        hit.map(|(fault, _)| *fault)
    }

    /// The details of the fault that befalls request number `n`.
    pub(crate) fn details(&self, n: u64) -> SplitMix64 {
        let mut draws = self.draws(n);
        draws.next_u64();
        draws
    }

    /// The randomness of request number `n`: the first draw decides the fault, the others its details.
    fn draws(&self, n: u64) -> SplitMix64 {
        SplitMix64::new(mix(self.seed) ^ mix(n.wrapping_add(0x0066_6175_6c74)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        Reset,
        Empty,
        Timeout,
    }

    impl FaultKind for Fault {
        const KINDS: &'static [Fault] = &[Fault::Reset, Fault::Empty, Fault::Timeout];
    }

    #[test]
    fn a_request_fails_the_same_way_every_time_and_as_often_as_asked() {
        let faults = |seed| Faults::none(seed).with(Fault::Reset, 0.1).with(Fault::Empty, 0.2);
        let told = |faults: Faults<Fault>| (0..10_000).map(|n| faults.pick(n)).collect::<Vec<_>>();
        let seven = told(faults(7));
        assert_eq!(seven, told(faults(7)));
        assert_ne!(seven, told(faults(8)));
        let count = |what| seven.iter().filter(|fault| **fault == Some(what)).count();
        assert!((900..1_100).contains(&count(Fault::Reset)), "{}", count(Fault::Reset));
        assert!((1_880..2_120).contains(&count(Fault::Empty)), "{}", count(Fault::Empty));
        assert_eq!(count(Fault::Timeout), 0);
    }

    #[test]
    fn each_can_be_asked_for_alone() {
        for fault in Fault::KINDS {
            assert_eq!(Faults::none(1).with(*fault, 1.0).pick(5), Some(*fault));
        }
        assert_eq!(Faults::<Fault>::none(1).pick(5), None);
    }
}
