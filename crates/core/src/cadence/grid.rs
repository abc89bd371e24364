//! Grids of due times, and the stretches of time in which one grid holds.

use std::borrow::Cow;

use crate::{Span, Time};

/// A part of the time line with its own interval. Where it ends the next one begins, and a poll is due there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) phase: Cow<'static, str>,
    pub(super) every: Span,
    /// Any point of the grid; the others lie whole intervals before and after it.
    pub(super) anchor: Time,
    pub(super) end: Option<Time>,
}

impl Stretch {
    /// A stretch without an end on a grid pinned to absolute time: the target's place in the interval comes
    /// from its own number, so a restart keeps it and a herd spreads over the whole interval.
    pub(super) fn pinned(phase: &'static str, every: Span, spread: u64) -> Stretch {
        let every = positive(every);
        let place = spread % every.0.unsigned_abs();
        Stretch { phase: Cow::Borrowed(phase), every, anchor: Time(place as i64), end: None }
    }

    /// A stretch without an end on a grid that counts from `anchor`.
    pub(super) fn from(phase: &'static str, every: Span, anchor: Time) -> Stretch {
        Stretch { phase: Cow::Borrowed(phase), every: positive(every), anchor, end: None }
    }

    /// The first grid point strictly after `reference`, as if the stretch had no end.
    pub(super) fn step(&self, reference: Time) -> Time {
        self.point(self.index(reference) + 1)
    }

    /// The first due time strictly after `reference`: a grid point, or the stretch's end if that comes first.
    pub(super) fn after(&self, reference: Time) -> Time {
        let step = self.step(reference);
        self.end.map_or(step, |end| step.min(end))
    }

    /// How many grid points lie in `(after, until]`, as if the stretch had no end.
    pub(super) fn count(&self, after: Time, until: Time) -> u64 {
        u64::try_from(self.index(until) - self.index(after)).unwrap_or(0)
    }

    /// The number of the last grid point at or before `time`. In 128 bits, so that no time overflows it.
    fn index(&self, time: Time) -> i128 {
        (i128::from(time.0) - i128::from(self.anchor.0)).div_euclid(i128::from(self.every.0))
    }

    fn point(&self, index: i128) -> Time {
        let us = i128::from(self.anchor.0) + index * i128::from(self.every.0);
        Time(i64::try_from(us).unwrap_or(if us < 0 { i64::MIN } else { i64::MAX }))
    }
}

/// An interval that can be divided by: configuration refuses others, a wrong one must still not stop anything.
pub(super) fn positive(every: Span) -> Span {
    every.max(Span::us(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_counts_both_ways_from_its_anchor() {
        let grid = Stretch::from("x", Span::secs(10), Time::from_secs(1_003));
        for (reference, due) in [(1_003, 1_013), (1_004, 1_013), (1_012, 1_013), (1_013, 1_023), (-8, -7)] {
            assert_eq!(grid.after(Time::from_secs(reference)), Time::from_secs(due), "after {reference}");
        }
        assert_eq!(grid.count(Time::from_secs(1_003), Time::from_secs(1_033)), 3);
        assert_eq!(grid.count(Time::from_secs(1_004), Time::from_secs(1_012)), 0);
        assert_eq!(grid.count(Time::from_secs(1_033), Time::from_secs(1_003)), 0);
    }

    #[test]
    fn the_end_comes_before_the_step_that_would_jump_over_it() {
        let grid = Stretch { end: Some(Time::from_secs(25)), ..Stretch::from("x", Span::secs(10), Time(0)) };
        assert_eq!(grid.after(Time::from_secs(11)), Time::from_secs(20));
        assert_eq!(grid.after(Time::from_secs(20)), Time::from_secs(25));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let grid = Stretch::from("x", Span(i64::MAX), Time(i64::MAX));
        assert_eq!(grid.after(Time(i64::MAX)), Time(i64::MAX));
        assert_eq!(grid.after(Time(i64::MIN)), Time(-i64::MAX));
        assert_eq!(Stretch::pinned("x", Span(0), 7).after(Time(5)), Time(6));
    }
}
