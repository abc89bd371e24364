//! How long to wait after a failure.

use crate::{Span, Time};

use super::jitter::{below, draw};

/// The longest backoff, in intervals.
const MOST_INTERVALS: i64 = 4;

/// The wait after the `failures`th failure in a row: a quarter of the interval (at least a second, at most the
/// interval), doubled with every further failure up to four intervals.
///
/// The jitter takes away up to half, so that what failed together does not come back together and no bound is
/// exceeded. It is drawn from the slot: asking again gives the same answer.
pub(super) fn backoff(interval: Span, failures: u32, spread: u64, slot: Time) -> Span {
    let first = interval.over(4).max(Span::secs(1)).min(interval);
    // The first step is at least a quarter of the interval: four doublings reach the cap from anywhere.
    let doublings = failures.saturating_sub(1).min(4);
    let step = first.times(1 << doublings).min(interval.times(MOST_INTERVALS));
    step - Span(below(draw(spread, slot, failures.max(1)), step.0 / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(interval: Span, failures: u32) -> (Span, Span) {
        let all = (0..500).map(|spread| backoff(interval, failures, spread, Time(0)));
        all.fold((Span(i64::MAX), Span::ZERO), |(low, high), step| (low.min(step), high.max(step)))
    }

    #[test]
    fn the_steps_double_from_a_quarter_of_the_interval_to_four() {
        for (failures, secs) in [(1, 15), (2, 30), (3, 60), (4, 120), (5, 240), (6, 240), (u32::MAX, 240)] {
            let (low, high) = range(Span::mins(1), failures);
            assert!(high <= Span::secs(secs) && high > Span::secs(secs).times(95).over(100), "{high}");
            assert!(low >= Span::secs(secs).over(2), "{low}");
        }
    }

    #[test]
    fn a_fast_target_waits_no_longer_than_its_interval_at_first() {
        let (_, high) = range(Span::ms(200), 1);
        assert!(high <= Span::ms(200));
        let (_, high) = range(Span::ms(200), 9);
        assert!(high <= Span::ms(800));
    }
}
