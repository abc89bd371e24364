//! When to look again: a pure function of plan, facts, last outcome and now.
//!
//! [`next`] answers the next due time after a poll with its interval, phase and reason; [`replan`] answers it
//! when something other than a poll changed the plan. Nothing else in the system computes a due time.
//!
//! Every plan is a sequence of *stretches*, each with one grid of due times (`grid`); a countdown has one
//! stretch per phase, the others a single endless one. A due time is always the first grid point after the last
//! poll, clipped to the end of its stretch, so nothing drifts, nothing is caught up, no boundary is jumped over.
//! A bell ([`Seat::bell`]) is one more such boundary: no wait goes beyond it but that which the upstream asked for.

mod backoff;
mod countdown;
mod due;
mod grid;
mod jitter;
mod presets;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use due::{expired, next, replan};
pub use jitter::jitter;
pub use presets::CadenceError;

use crate::{Span, Time};

/// How often a target wants to be looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// The same interval, always.
    Fixed(Fixed),
    /// Phases before a start time, overdue until it is confirmed, after it until the end.
    Countdown(Countdown),
    /// Fast while the target has its group's focus, slow otherwise.
    Focus(Focus),
    /// As often as the source's budget allows, by how much is expected to happen.
    Adaptive(Adaptive),
}

/// The same interval, always.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed {
    /// The interval.
    pub every: Span,
    /// Whether the first poll comes at once instead of at the target's place in the interval.
    pub eager: bool,
    /// The target's place in the interval, counted from 1970 in UTC; drawn from a hash unless given.
    pub place: Option<Span>,
}

/// Phases that follow the time to a start.
#[derive(Clone, Debug, PartialEq)]
pub struct Countdown {
    /// The phases before T, the earliest first.
    pub before: Vec<Phase>,
    /// Every so often from T until the start is confirmed.
    pub overdue: Span,
    /// Every so often from the poll that confirmed the start until the end, counted from that poll.
    pub after: Span,
}

/// One phase before T: from `from` before T to the next phase's beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Shown to people: `T-60m`.
    pub name: Cow<'static, str>,
    /// How long before T it begins.
    pub from: Span,
    /// The interval within it.
    pub every: Span,
}

/// Fast with the focus, slow without.
#[derive(Clone, Debug, PartialEq)]
pub struct Focus {
    /// The interval with the focus.
    pub active: Span,
    /// The interval without.
    pub idle: Span,
}

/// Bounds for a target whose interval the source's budget decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptive {
    /// Never more often than this.
    pub min: Span,
    /// Never less often than this.
    pub max: Span,
    /// How much an event here is worth, against 1 for the others.
    pub weight: f64,
}

/// The priority of whoever has the focus, whatever its own is.
pub const FOCUS_PRIORITY: u8 = 100;

/// What the cadence needs to know about who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The target's own number ([`crate::TargetSpec::spread`]): its place in the interval, its backoff jitter.
    pub spread: u64,
    /// The target's priority, 0 to 100.
    pub priority: u8,
    /// The interval that the budget gives an adaptive target; `max` until there is one.
    pub budgeted: Option<Span>,
    /// The next moment at which somebody wants to be told something: a look is due there, too.
    pub bell: Option<Time>,
}

/// The last poll of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// The grid time it was due at; `None` when the target was never polled.
    pub slot: Option<Time>,
    /// How it went.
    pub outcome: LastOutcome,
}

/// How the last poll went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastOutcome {
    /// It answered, changed or not.
    #[default]
    Good,
    /// It failed, this many times in a row.
    Failed {
        /// Consecutive failures, this one included; at least 1.
        failures: u32,
        /// The upstream asked not to be polled before this.
        not_before: Option<Time>,
    },
}

/// The answer: when, how often, in which phase and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// The next due time on the grid, without jitter; `None` means never again.
    pub due: Option<Time>,
    /// The interval of the phase that the due time lies in.
    pub interval: Span,
    /// The phase that the due time lies in: a poll on a boundary belongs to the phase that begins there.
    pub phase: Cow<'static, str>,
    /// Why then, for people.
    pub reason: String,
    /// How long after the due time the poll may wait behind more urgent ones.
    pub slack: Span,
}
