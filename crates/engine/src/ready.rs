//! Targets whose time has come, the most urgent first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use stakeout_core::{Span, Time};

use crate::poll::Departure;

/// The ready polls of one source, earliest deadline first.
///
/// The deadline is due + slack, and the slack grows as the priority falls: a due current race goes before idle
/// targets, and nothing starves, because deadlines stand still while time passes.
#[derive(Default)]
pub(crate) struct ReadyQueue(BinaryHeap<Ready>);

struct Ready {
    deadline: Time,
    departure: Departure,
}

impl ReadyQueue {
    pub(crate) fn push(&mut self, departure: Departure, slack: Span) {
        self.0.push(Ready { deadline: departure.timing.due + slack, departure });
    }

    /// The most urgent one and its deadline.
    pub(crate) fn peek(&self) -> Option<(&Departure, Time)> {
        self.0.peek().map(|ready| (&ready.departure, ready.deadline))
    }

    pub(crate) fn pop(&mut self) -> Option<Departure> {
        self.0.pop().map(|ready| ready.departure)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Departure> {
        self.0.iter().map(|ready| &ready.departure)
    }

    /// When the longest waiting one was due.
    pub(crate) fn earliest_due(&self) -> Option<Time> {
        self.0.iter().map(|ready| ready.departure.timing.due).min()
    }

    /// Takes out everything, in no particular order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Departure> + '_ {
        self.0.drain().map(|ready| ready.departure)
    }

    /// Takes out one target, if it waits here.
    pub(crate) fn remove(&mut self, target: stakeout_store::TargetId) -> Option<Departure> {
        let mut rest = std::mem::take(&mut self.0).into_vec();
        let found = rest.iter().position(|r| r.departure.claim.target == target).map(|i| rest.swap_remove(i));
        self.0 = rest.into();
        found.map(|ready| ready.departure)
    }
}

impl Ready {
    fn order(&self) -> (Time, Time, stakeout_store::TargetId) {
        (self.deadline, self.departure.timing.due, self.departure.claim.target)
    }
}
impl PartialEq for Ready {
    fn eq(&self, other: &Ready) -> bool {
        self.order() == other.order()
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Ready) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
/// Reversed: the heap's greatest is the earliest deadline.
impl Ord for Ready {
    fn cmp(&self, other: &Ready) -> Ordering {
        other.order().cmp(&self.order())
    }
}
