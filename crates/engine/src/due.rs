//! Due: from what is known of a target to its next due time. Whoever wants one asks here, so that no way around forgets
//! what else has a say in it: the budget's price, the focus, and the bell of an alert.

use stakeout_core::cadence::{self, Next, Seat};
use stakeout_core::{Facts, Last, Plan, TargetSpec, Time};
use stakeout_store::{Schedule, TargetState};

use crate::lane::Lane;
use crate::shared::Shared;

/// A target whose due time is wanted.
pub(crate) struct Due<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) lane: &'a Lane,
    pub(crate) spec: &'a TargetSpec,
    /// What is known of it now; `state` may be from before.
    pub(crate) facts: &'a Facts,
    pub(crate) state: Option<&'a TargetState>,
}

impl Due<'_> {
    /// After a poll that ended now, or the first one.
    pub(crate) fn next(&self, last: &Last, now: Time) -> Next {
        let (plan, seat) = self.seated(now);
        cadence::next(&plan, self.facts, last, now, &seat)
    }

    /// After something other than a poll changed the plan.
    pub(crate) fn replan(&self, last: &Last, now: Time) -> Next {
        let (plan, seat) = self.seated(now);
        cadence::replan(&plan, self.facts, last, now, &seat)
    }

    fn seated(&self, now: Time) -> (Plan, Seat) {
        let source = self.lane.source();
        let plan = source.plan(self.spec, self.facts);
        let bell = self.shared.alerts.now().bell(source.name(), self.facts, now);
        let seat = Seat { bell, ..self.lane.seat(self.spec, &plan, self.state) };
        (plan, seat)
    }
}

/// The cadence's answer as the store keeps it.
pub(crate) fn schedule_of(next: Next) -> Schedule {
    Schedule {
        due: next.due,
        interval: next.interval,
        phase: next.phase.into_owned(),
        reason: next.reason,
        slack: next.slack,
    }
}
