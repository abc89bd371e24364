//! What waits for one source's upstream, and who goes next.

use stakeout_core::Time;
use stakeout_core::adherence::Cause;
use stakeout_store::TargetId;

use crate::lane::Lane;
use crate::poll::Departure;
use crate::ready::ReadyQueue;

/// The ready polls of a source and what holds them back.
#[derive(Default)]
pub(super) struct LaneState {
    pub(super) ready: ReadyQueue,
    /// When the limits let the next one pass, if they hold it back now.
    pub(super) blocked_until: Option<Time>,
    /// What holds ready polls back at the moment: the rate, or answers that are slow to come.
    pub(super) held_back_by: Option<Cause>,
    /// The target that has the focus, and when it goes next, as far as is known.
    pub(super) focus: Option<(TargetId, Time)>,
    /// Whether the last one that went had the focus.
    pub(super) focus_went: bool,
    /// Targets in the timer.
    pub(super) held: usize,
}

impl LaneState {
    /// Until when the upstream is kept free for the target that has the focus: the most urgent of the others would not
    /// be back in time, and can wait so long. One that cannot wait delays the focus by one request at most.
    pub(super) fn keeps_free_until(&self, limits: &Lane, now: Time) -> Option<Time> {
        let (_, next) = self.focus.filter(|(_, next)| *next > now)?;
        if self.focus_is_ready() {
            return None;
        }
        let (departure, deadline) = self.ready.peek()?;
        let waits = !departure.claim.state.facts.focused && limits.has_one_place() && deadline > next;
        (waits && now + limits.usually_takes(&departure.claim.spec.role) > next).then_some(next)
    }

    /// The most urgent one; but after another one has gone, whoever has the focus does not wait for a second.
    pub(super) fn next_departure(&mut self) -> Option<Departure> {
        match self.focus {
            Some((focused, _)) if !self.focus_went && self.focus_is_ready() => self.ready.remove(focused),
            _ => self.ready.pop(),
        }
    }

    fn focus_is_ready(&self) -> bool {
        self.focus.is_some_and(|(focused, _)| self.ready.iter().any(|d| d.claim.target == focused))
    }

    pub(super) fn forget_focus(&mut self, target: TargetId) {
        self.focus = self.focus.filter(|(focused, _)| *focused != target);
    }
}
