//! The stretches of a countdown: phases before T, overdue from T, after the start until the end.

use std::borrow::Cow;

use crate::{Facts, Span, Stage, Time};

use super::grid::{Stretch, positive};
use super::{Countdown, Seat};

/// The most slack of a countdown poll, for a table that begins slowly.
const MOST_SLACK: Span = Span::secs(30);

/// The phase names that no table can give.
pub(super) const OVERDUE: &str = "overdue";
pub(super) const AFTER: &str = "after";
pub(super) const OVER: &str = "over";
pub(super) const UNKNOWN: &str = "start unknown";
pub(super) const WAITING: &str = "waiting";

/// The stretch that `at` lies in; `None` when it is over. `slot` is the last poll's.
pub(super) fn stretch(
    plan: &Countdown,
    facts: &Facts,
    seat: &Seat,
    slot: Option<Time>,
    at: Time,
) -> Option<Stretch> {
    Some(match (facts.stage, facts.start) {
        (Stage::Over, _) => return None,
        (Stage::Started, start) => {
            // The engine keeps `stage_since`; without it the last poll is the best witness of the start.
            let since = facts.stage_since.or(slot).or(start).unwrap_or(at);
            Stretch::from(AFTER, plan.after, since)
        }
        (Stage::Pending, None) => Stretch::pinned(UNKNOWN, first_every(plan), seat.spread),
        (Stage::Pending, Some(start)) => by_time(plan, start, at),
    })
}

fn by_time(plan: &Countdown, start: Time, at: Time) -> Stretch {
    if at >= start {
        return Stretch::from(OVERDUE, plan.overdue, start);
    }
    let begins = |index: usize| plan.before.get(index).map_or(start, |phase| start - phase.from);
    match plan.before.iter().rposition(|phase| start - phase.from <= at) {
        Some(index) => Stretch {
            phase: plan.before[index].name.clone(),
            every: positive(plan.before[index].every),
            anchor: begins(index),
            end: Some(begins(index + 1)),
        },
        // Before the first phase nothing is due but its beginning: a grid of one point.
        None => Stretch {
            phase: Cow::Borrowed(WAITING),
            every: Span(i64::MAX),
            anchor: begins(0),
            end: Some(begins(0)),
        },
    }
}

/// The interval at the very beginning, also used while nobody knows when that is.
pub(super) fn first_every(plan: &Countdown) -> Span {
    plan.before.first().map_or(plan.overdue, |phase| phase.every)
}

/// The less slack, the closer to the start: none from T on, two thirds of the most where the table begins, the
/// most after the start. It is continuous, so of many due races the closest to its start goes first.
pub(super) fn slack(plan: &Countdown, facts: &Facts, due: Time) -> Span {
    let most = first_every(plan).min(MOST_SLACK);
    match (facts.stage, facts.start) {
        (Stage::Pending, Some(start)) => {
            let whole = plan.before.first().map_or(Span::ZERO, |phase| phase.from);
            let left = (start - due).max(Span::ZERO).min(whole);
            let share = if whole > Span::ZERO { left.as_secs_f64() / whole.as_secs_f64() } else { 0.0 };
            Span((most.0 as f64 * share * 2.0 / 3.0) as i64)
        }
        _ => most,
    }
}
