//! The next due time.

use std::borrow::Cow;

use crate::{Facts, Span, Stage, Time};

use super::backoff::backoff;
use super::countdown::{self, AFTER, OVER, OVERDUE, UNKNOWN, WAITING};
use super::grid::{Stretch, positive};
use super::{Last, LastOutcome, Next, Plan, Seat};

/// The most slack of a poll outside a countdown.
const MOST_SLACK: Span = Span::secs(30);
/// The smallest step of time: `strictly after now - TICK` is `at or after now`.
const TICK: Span = Span::us(1);

/// When to look again after a poll that ended at `now`: the first grid point after both the poll's slot and
/// `now`. What expired meanwhile collapses into the poll just made (see [`expired`]). A target that was never
/// polled gets its first due time.
///
/// `Stage::Over` ends a countdown only; other plans go on until the target is retired.
pub fn next(plan: &Plan, facts: &Facts, last: &Last, now: Time, seat: &Seat) -> Next {
    let line = Line::new(plan, facts, last, now, seat);
    let Some(slot) = last.slot else { return line.first(last, now) };
    line.following(last, slot, slot.max(now))
}

/// When to look again after something other than a poll changed the plan at `now`: a listing moved the start,
/// the focus moved, a setting or the price changed. As if the new plan had held since the last poll: what it
/// would have polled by now is due now. A target that just gained the focus is due now.
pub fn replan(plan: &Plan, facts: &Facts, last: &Last, now: Time, seat: &Seat) -> Next {
    let line = Line::new(plan, facts, last, now, seat);
    let Some(slot) = last.slot else { return line.first(last, now) };
    let next = line.following(last, slot, slot);
    let Some(due) = next.due else { return next };
    let focused = matches!(plan, Plan::Focus(_)) && facts.focused && last.outcome == LastOutcome::Good;
    if focused || due < now { line.answer(last, now, "at once: the plan changed") } else { next }
}

/// How many polls fell due after `due` and up to `now`: the ones that collapse into one. The cost does not depend
/// on the time that went by.
pub fn expired(plan: &Plan, facts: &Facts, seat: &Seat, due: Time, now: Time) -> u64 {
    let line = Line { plan, facts, seat, slot: Some(due), bell: None };
    let (mut count, mut from) = (0, due);
    // Every turn but the last ends a stretch: there are as many as the plan has phases.
    while from < now {
        let Some(stretch) = line.at(from) else { break };
        match stretch.end {
            Some(end) if end <= now => {
                count += stretch.count(from, end - TICK) + 1;
                from = end;
            }
            _ => return count + stretch.count(from, now),
        }
    }
    count
}

/// A target's time line: its plan as the facts bend it.
struct Line<'a> {
    plan: &'a Plan,
    facts: &'a Facts,
    seat: &'a Seat,
    slot: Option<Time>,
    /// The bell that is still to ring.
    bell: Option<Time>,
}

impl<'a> Line<'a> {
    fn new(plan: &'a Plan, facts: &'a Facts, last: &Last, now: Time, seat: &'a Seat) -> Line<'a> {
        let past = last.slot.map_or(now, |slot| slot.max(now));
        Line { plan, facts, seat, slot: last.slot, bell: seat.bell.filter(|bell| *bell > past) }
    }
    /// The stretch that `at` lies in; `None` when nothing is due any more.
    fn at(&self, at: Time) -> Option<Stretch> {
        let spread = self.seat.spread;
        Some(match self.plan {
            Plan::Fixed(plan) => {
                let place = plan.place.map_or(spread, |place| place.as_us().unsigned_abs());
                Stretch::pinned("fixed", plan.every, place)
            }
            Plan::Focus(plan) if self.facts.focused => Stretch::pinned("focus", plan.active, spread),
            Plan::Focus(plan) => Stretch::pinned("idle", plan.idle, spread),
            Plan::Adaptive(plan) => {
                let every = self.seat.budgeted.unwrap_or(plan.max).max(plan.min).min(plan.max);
                // The budget changes the interval a little with every price. On a grid pinned to absolute time
                // each change would draw a new place and the mean gap would be half the interval, so only the
                // first place is pinned; from then on the grid counts from the last slot, which is stored.
                match self.slot {
                    Some(slot) => Stretch::from("adaptive", every, slot),
                    None => Stretch::pinned("adaptive", every, spread),
                }
            }
            Plan::Countdown(plan) => return countdown::stretch(plan, self.facts, self.seat, self.slot, at),
        })
    }

    /// The first due time of a target that was never polled.
    fn first(&self, last: &Last, now: Time) -> Next {
        let at_once = match self.plan {
            Plan::Fixed(plan) => plan.eager,
            Plan::Focus(_) => self.facts.focused,
            Plan::Adaptive(_) => false,
            Plan::Countdown(plan) => match (self.facts.stage, self.facts.start, plan.before.first()) {
                (Stage::Pending, Some(start), Some(phase)) => now >= start - phase.from,
                (Stage::Pending, Some(start), None) => now >= start,
                _ => true,
            },
        };
        let Some(stretch) = self.at(now) else { return self.never() };
        if at_once {
            return self.answer(last, now, "first poll at once");
        }
        let why = match self.plan {
            Plan::Countdown(_) => "first poll when the countdown begins",
            _ => "first poll at its place in the interval",
        };
        self.answer(last, stretch.after(now - TICK), why)
    }

    /// The due time after a poll, counted from `reference`, which is not before its slot.
    fn following(&self, last: &Last, slot: Time, reference: Time) -> Next {
        let Some(stretch) = self.at(reference) else { return self.never() };
        let LastOutcome::Failed { failures, .. } = last.outcome else {
            let (step, due) = (stretch.step(reference), stretch.after(reference));
            let why = if due < step { self.clipped(due) } else { String::new() };
            return self.answer(last, due, &why);
        };
        let wait = backoff(self.patience(&stretch), failures, self.seat.spread, slot);
        let after = if failures == 1 { "1 failure".to_owned() } else { format!("{failures} failures") };
        match stretch.end {
            Some(end) if reference + wait >= end => {
                let why = format!("backoff after {after}, {}", self.clipped(end));
                self.answer(last, end, &why)
            }
            _ => self.answer(last, reference + wait, &format!("backoff of {wait} after {after}")),
        }
    }

    /// The interval that a backoff in this stretch is measured by. Before a countdown there is none, but a look at a bell
    /// that failed there is repeated as it would be when the countdown has begun.
    fn patience(&self, stretch: &Stretch) -> Span {
        match self.plan {
            Plan::Countdown(plan) if stretch.phase == WAITING => positive(countdown::first_every(plan)),
            _ => stretch.every,
        }
    }

    fn clipped(&self, boundary: Time) -> String {
        let phase = self.at(boundary).map_or(Cow::Borrowed(OVER), |stretch| stretch.phase);
        format!("clipped to the boundary {}", if phase == OVERDUE { "T" } else { &phase })
    }

    /// The answer for this due time, or for the bell if that comes first; no earlier than the upstream allows.
    fn answer(&self, last: &Last, due: Time, why: &str) -> Next {
        let (due, why) = match self.bell {
            Some(bell) if bell < due => (bell, "an alert rings at this moment"),
            _ => (due, why),
        };
        let floor = match last.outcome {
            LastOutcome::Failed { not_before, .. } => not_before.filter(|&floor| floor > due),
            LastOutcome::Good => None,
        };
        let due = floor.unwrap_or(due);
        let Some(stretch) = self.at(due) else { return self.never() };
        let mut reason = why.to_owned();
        if let Some(floor) = floor {
            let comma = if reason.is_empty() { "" } else { ", " };
            reason.push_str(&format!("{comma}not before {floor} as the upstream asked"));
        }
        if !reason.is_empty() {
            reason.push_str("; ");
        }
        reason.push_str(&self.rhythm(&stretch, due));
        let interval = match stretch.end {
            // There is no interval before a countdown: the next look is at its beginning.
            Some(end) if stretch.phase == WAITING => end - due,
            _ => stretch.every,
        };
        let slack = self.slack(interval, due);
        Next { due: Some(due), interval, phase: stretch.phase, reason, slack }
    }

    fn never(&self) -> Next {
        Next {
            due: None,
            interval: Span::ZERO,
            phase: Cow::Borrowed(OVER),
            reason: "over: nothing more will happen".to_owned(),
            slack: Span::ZERO,
        }
    }

    /// The rule that holds at `due`, for people.
    fn rhythm(&self, stretch: &Stretch, due: Time) -> String {
        let every = stretch.every;
        match self.plan {
            Plan::Fixed(_) => format!("every {every}"),
            Plan::Focus(_) if self.facts.focused => format!("every {every} with the focus"),
            Plan::Focus(_) => format!("every {every} without the focus"),
            Plan::Adaptive(_) if self.seat.budgeted.is_none() => {
                format!("every {every} until the budget is divided")
            }
            Plan::Adaptive(plan) => format!("every {every} by the budget ({} to {})", plan.min, plan.max),
            Plan::Countdown(_) => match (&*stretch.phase, self.facts.start) {
                (AFTER, _) => format!("every {every} since the start was confirmed at {}", stretch.anchor),
                (OVERDUE, Some(start)) if due > start => {
                    let by = due - start;
                    format!("start overdue by {by}, every {every} until it is confirmed (T = {start})")
                }
                (OVERDUE, Some(start)) => {
                    format!("every {every} from T until the start is confirmed (T = {start})")
                }
                (WAITING, Some(start)) => format!("the countdown has not begun (T = {start})"),
                (UNKNOWN, _) | (_, None) => format!("every {every} while the start is unknown"),
                (phase, Some(start)) => format!("every {every} from {phase} (T = {start})"),
            },
        }
    }

    fn slack(&self, interval: Span, due: Time) -> Span {
        match self.plan {
            Plan::Countdown(plan) => countdown::slack(plan, self.facts, due),
            _ => {
                let lowliness = 100_i64.saturating_sub(i64::from(self.seat.priority)).max(0);
                interval.times(lowliness).over(100).min(MOST_SLACK)
            }
        }
    }
}
