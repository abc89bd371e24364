//! The schedule, told as stories and as laws: what is due when, and what never happens whatever the upstream does.

mod countdown;
mod failing;
mod laws;
mod steady;

use proptest::prelude::*;
use stakeout_core::cadence::{
    Adaptive, Countdown, Fixed, Focus, Last, LastOutcome, Next, Phase, Plan, Seat, expired, jitter, next,
    replan,
};
use stakeout_core::{Facts, Span, Stage, Time};

const SEAT: Seat = Seat { spread: 0x5EED_CAFE, priority: 50, budgeted: None, bell: None };
const NEVER: Last = Last { slot: None, outcome: LastOutcome::Good };

fn t() -> Time {
    Time::parse("2026-01-10T02:00:00Z").expect("a valid time")
}

/// T plus this much, written the way people do: `-21m`, `+15s`.
fn at(offset: &str) -> Time {
    let (sign, span) = offset.split_at(1);
    let span = Span::parse(span).expect("a valid span");
    if sign == "-" { t() - span } else { t() + span }
}

fn pending(start: Time) -> Facts {
    Facts { start: Some(start), ..Facts::default() }
}

fn good(slot: Time) -> Last {
    Last { slot: Some(slot), outcome: LastOutcome::Good }
}

fn failed(slot: Time, failures: u32, not_before: Option<Time>) -> Last {
    Last { slot: Some(slot), outcome: LastOutcome::Failed { failures, not_before } }
}

fn seed() -> Plan {
    Plan::Countdown(Countdown::seed())
}

fn due(next: &Next) -> Time {
    next.due.unwrap_or_else(|| panic!("something is due: {next:?}"))
}
