//! Money and shares in whole units, so that sums are exact: cents, and millionths of a percent.

use stakeout_core::Value;

/// Beyond this no pool of any race reaches; what claims to is refused.
const DOLLARS_MAX: f64 = 1e12;
const MICROS_PER_PERCENT: f64 = 1e6;

/// An amount of money.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cents(pub i64);

impl Cents {
    /// The nearest cent; `None` below zero or beyond any pool.
    pub fn from_dollars(dollars: f64) -> Option<Cents> {
        (0.0..=DOLLARS_MAX).contains(&dollars).then(|| Cents((dollars * 100.0).round() as i64))
    }

    /// As dollars, the unit the upstream writes.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

impl From<Cents> for Value {
    fn from(cents: Cents) -> Value {
        Value::number(cents.dollars())
    }
}

/// A percentage, in millionths of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Percent(i64);

impl Percent {
    const HUNDRED: Percent = Percent(100_000_000);

    /// `None` below zero and beyond what a sum of slices can reach.
    pub(super) fn new(percent: f64) -> Option<Percent> {
        (0.0..=1e6).contains(&percent).then(|| Percent((percent * MICROS_PER_PERCENT).round() as i64))
    }

    pub(super) fn plus(self, other: Percent) -> Percent {
        Percent(self.0.saturating_add(other.0))
    }

    /// Whether it can be the part that one entrant has of the whole.
    pub(super) fn is_share(self) -> bool {
        self <= Percent::HUNDRED
    }

    /// This share of an amount, to the nearest cent.
    pub(super) fn of(self, whole: Cents) -> Cents {
        let hundred = i128::from(Percent::HUNDRED.0);
        let exact = i128::from(whole.0) * i128::from(self.0);
        Cents(i64::try_from((exact + hundred / 2) / hundred).unwrap_or(i64::MAX))
    }
}

impl From<Percent> for Value {
    fn from(percent: Percent) -> Value {
        Value::number(percent.0 as f64 / MICROS_PER_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_pool_is_exact_to_the_cent() {
        for (dollars, percent, expected) in [
            (9_151.38, 19.0, 173_876),
            (3_923.51, 12.5, 49_044),
            (100.0, 33.333333, 3_333),
            (0.1, 50.0, 5),
            (1e12, 100.0, 100_000_000_000_000),
        ] {
            let whole = Cents::from_dollars(dollars).expect("an amount");
            let share = Percent::new(percent).expect("a percentage");
            assert_eq!(share.of(whole), Cents(expected), "{percent} % of {dollars}");
        }
    }

    #[test]
    fn slices_add_up_without_drift() {
        let slice = Percent::new(0.1).expect("a percentage");
        let sum = (0..1_000).fold(Percent::default(), |sum, _| sum.plus(slice));
        assert_eq!(Value::from(sum), Value::Int(100));
        assert!(sum.is_share() && !sum.plus(slice).is_share());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(Percent::new(-0.1), None);
        assert_eq!(Percent::new(f64::NAN), None);
        assert_eq!(Cents::from_dollars(-0.01), None);
        assert_eq!(Cents::from_dollars(1e30), None);
        assert_eq!(Value::from(Cents(173_876)), Value::Float(1_738.76));
    }
}
