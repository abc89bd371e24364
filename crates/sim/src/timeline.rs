//! A value that changes at known times.

use stakeout_core::Time;

/// What held from when: sorted by time, each value until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timeline<T>(Vec<(Time, T)>);

impl<T: Clone + PartialEq> Timeline<T> {
    /// The timeline of these changes, in any order. A change to the value already held is none and is left out; of
    /// two at the same time the later given wins.
    pub(crate) fn new(mut changes: Vec<(Time, T)>) -> Timeline<T> {
        changes.sort_by_key(|(at, _)| *at);
        let mut kept: Vec<(Time, T)> = Vec::with_capacity(changes.len());
        for (at, value) in changes {
            if kept.last().is_some_and(|(last, _)| *last == at) {
                kept.pop();
            }
            if kept.last().is_none_or(|(_, last)| *last != value) {
                kept.push((at, value));
            }
        }
        Timeline(kept)
    }

    /// What held at `at`; nothing before the first change.
    pub(crate) fn at(&self, at: Time) -> Option<&T> {
        self.until(at).last().map(|(_, value)| value)
    }

    /// The changes up to and including `at`.
    pub(crate) fn until(&self, at: Time) -> &[(Time, T)] {
        &self.0[..self.0.partition_point(|(from, _)| *from <= at)]
    }

    /// Every change.
    pub(crate) fn changes(&self) -> &[(Time, T)] {
        &self.0
    }

    /// The last value; `None` only for an empty timeline.
    pub(crate) fn last(&self) -> Option<&T> {
        self.0.last().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_next_change() {
        let t = Time::from_secs;
        let line = Timeline::new(vec![(t(30), 'c'), (t(10), 'a'), (t(20), 'a'), (t(30), 'b')]);
        assert_eq!(
            line.changes(),
            [(t(10), 'a'), (t(30), 'b')],
            "no change to the same, the later wins a tie"
        );
        assert_eq!(
            [9, 10, 29, 30, 99].map(|s| line.at(t(s)).copied()),
            [None, Some('a'), Some('a'), Some('b'), Some('b')]
        );
    }
}
