//! What is claimed: targets, their schedules and what they remember.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use stakeout_core::adherence::Run;
use stakeout_core::budget::RateEstimate;
use stakeout_core::compare::Memory;
use stakeout_core::{ContentHash, Facts, Fingerprint, Last, Record, Snapshot, Span, TargetSpec, Time};

/// A target's row. Never reused: a target that returns after its removal gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TargetId(pub i64);

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// When a target is due, and why; the store's copy of the cadence's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The next due time on the grid, without jitter; `None` means never.
    pub due: Option<Time>,
    /// The interval of that phase.
    pub interval: Span,
    /// The phase that the due time lies in.
    pub phase: String,
    /// Why then, for people.
    pub reason: String,
    /// How long the poll may wait behind more urgent ones.
    pub slack: Span,
}

/// The validators of the last answer, offered back to the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validators {
    /// `ETag`, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `Last-Modified`, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// What a target remembers between polls, besides its snapshot. Stored as one JSON column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetState {
    /// What decides the cadence.
    pub facts: Facts,
    /// The last poll's grid time and outcome.
    pub last: Last,
    /// What the comparison remembers: baseline, version, doubt.
    pub memory: Memory,
    /// The newest `as_of` that was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Time>,
    /// For conditional requests.
    pub validators: Validators,
    /// A hash of the last good answer's body, where equal answers mean the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<ContentHash>,
    /// The estimated rate of events, for adaptive cadence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateEstimate>,
    /// Events that polls which proved nothing found since the last complete look: the next one counts them.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub uncounted: u32,
    /// When the last complete look began; polls that failed or saw a part leave it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked: Option<Time>,
    /// Requests the last poll took.
    pub cost: u32,
    /// How late the last poll was sent; `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Span>,
    /// The stretch of regular polling that is going on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

fn is_none_of_them(n: &u32) -> bool {
    *n == 0
}

impl TargetState {
    /// When the last complete look began, also where only the stretch that goes on remembers it.
    pub fn last_look(&self) -> Option<Time> {
        self.looked.or_else(|| self.run.as_ref()?.last_start)
    }
}

/// A request for due targets.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who asks.
    pub node: String,
    /// Only targets of these sources.
    pub sources: Vec<String>,
    /// The engine's time; PostgreSQL uses the database's own for leases.
    pub now: Time,
    /// Targets due up to `now + ahead` are taken.
    pub ahead: Span,
    /// How long the claim holds beyond the due time (or `now`, if that is later).
    pub lease: Span,
    /// At most so many, over all sources.
    pub limit: u32,
}

/// A target under a lease: only the holder of the fencing token may commit a poll of it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The target's row.
    pub target: TargetId,
    /// Its source.
    pub source: String,
    /// What to poll.
    pub spec: TargetSpec,
    /// The commit sequence at the target's creation; part of every event id.
    pub incarnation: u64,
    /// The fencing token: rises with every claim.
    pub fence: u64,
    /// Until when the claim holds.
    pub lease_until: Time,
    /// Whether an earlier claim had run out: its request may still be on its way.
    pub after_expired_lease: bool,
    /// The number of the last committed poll.
    pub poll_no: u64,
    /// Raised by whoever changes the plan from outside: refocus, settings, disable, poll now.
    pub plan_version: u64,
    /// When it is due and why.
    pub schedule: Schedule,
    /// What it remembers.
    pub state: TargetState,
    /// What it held.
    pub snapshot: Snapshot,
    /// What its holder remembers of the records that it wrote, so that they need not be read again. A claim that is new
    /// remembers nothing. Others may have changed them since: a commit that builds on it finds out by [`Base`](crate::Base).
    pub known: BTreeMap<Fingerprint, Known>,
}

/// A record as it was written, of a kind whose content hash says all.
#[derive(Clone, Debug)]
pub struct Known {
    /// What it says, without the upstream's points.
    pub record: Record,
    /// The hash of it.
    pub content: ContentHash,
    /// Until when the upstream has told its streams, at least.
    pub told: BTreeMap<Cow<'static, str>, Time>,
}
