//! A value that changes at known times.

use stakeout_core::Time;

/// Before everything: what holds from here has always been so.
pub(crate) const ALWAYS: Time = Time(i64::MIN);

/// What held from when, in order of time, each value until the next one.
#[derive(Clone, Debug)]
pub(crate) struct Line<T>(Vec<(Time, T)>);

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        Line(Vec::new())
    }
}

impl<T> Line<T> {
    /// From `at` on, `value`; it may not be before the last change. Of two at the same time the later wins.
    pub(crate) fn push(&mut self, at: Time, value: T) {
        debug_assert!(self.0.last().is_none_or(|(last, _)| *last <= at), "changes come in order of time");
        if self.0.last().is_some_and(|(last, _)| *last == at) {
            self.0.pop();
        }
        self.0.push((at, value));
    }

    /// What held at `at`; nothing before the first change.
    pub(crate) fn at(&self, at: Time) -> Option<&T> {
        self.index(at).map(|n| &self.0[n].1)
    }

    /// What held just before `at`.
    pub(crate) fn before(&self, at: Time) -> Option<&T> {
        self.at(Time(at.us().saturating_sub(1)))
    }

    /// The number of the change that held at `at`.
    pub(crate) fn index(&self, at: Time) -> Option<usize> {
        self.0.partition_point(|(from, _)| *from <= at).checked_sub(1)
    }

    /// When it changed.
    pub(crate) fn times(&self) -> impl Iterator<Item = Time> + '_ {
        self.0.iter().map(|(at, _)| *at)
    }

    /// Every change with its time.
    pub(crate) fn changes(self) -> impl Iterator<Item = (Time, T)> {
        self.0.into_iter()
    }
}
