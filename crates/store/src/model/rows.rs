//! What is read: rows as people and the engine see them, and which of them.

use serde::Serialize;
use stakeout_core::{ContentHash, Event, Fingerprint, Span, TargetSpec, Time};

use super::{PollOutcome, Schedule, TargetId, TargetState};

/// What a reconcile did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Targets created.
    pub created: u32,
    /// Targets changed.
    pub updated: u32,
    /// Targets removed.
    pub retired: u32,
}

/// A target as people see it.
#[derive(Clone, Debug, Serialize)]
pub struct TargetRow {
    /// The row.
    pub id: TargetId,
    /// Its source.
    pub source: String,
    /// What is polled.
    pub spec: TargetSpec,
    /// The commit sequence at its creation.
    pub incarnation: u64,
    /// The target whose listing made it; `None` for a root.
    pub listed_by: Option<TargetId>,
    /// The user's switch.
    pub enabled: bool,
    /// When it is due and why.
    pub schedule: Schedule,
    /// Who holds it, and until when.
    pub owner: Option<String>,
    /// Until when the claim holds.
    pub lease_until: Option<Time>,
    /// The number of the last committed poll.
    pub poll_no: u64,
    /// The plan version.
    pub plan_version: u64,
    /// How the last poll ended; `None` before the first.
    pub last_outcome: Option<PollOutcome>,
    /// When it was committed.
    pub last_polled: Option<Time>,
    /// When something last changed.
    pub last_changed: Option<Time>,
    /// The last failure in words, until a poll succeeds.
    pub last_error: Option<String>,
    /// What it remembers.
    pub state: TargetState,
    /// How many records it holds.
    pub records: u64,
}

/// The order of a list of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetOrder {
    /// As they were created.
    #[default]
    Created,
    /// The next one to be claimed first; those that never are come last. For one source at a time: by index.
    Due,
    /// By key. For one source at a time: by index.
    Key,
}

/// Which targets to list.
#[derive(Clone, Debug, Default)]
pub struct TargetFilter {
    /// Only of this source.
    pub source: Option<String>,
    /// Only those that this target's listing made.
    pub listed_by: Option<TargetId>,
    /// Only keys that contain this.
    pub key_contains: Option<String>,
    /// Only those that are switched on, or off.
    pub enabled: Option<bool>,
    /// Only those whose last poll failed, or did not.
    pub failing: Option<bool>,
    /// Only of this role.
    pub role: Option<String>,
    /// Only those that are in this phase.
    pub phase: Option<String>,
    /// In which order.
    pub order: TargetOrder,
    /// Continue after this row, in the order asked for.
    pub after: Option<TargetId>,
    /// At most so many.
    pub limit: u32,
}

/// Which events to list.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only of this source.
    pub source: Option<String>,
    /// Only of this type, or of types beginning with it when it ends in `.`.
    pub event_type: Option<String>,
    /// Only about this record.
    pub subject: Option<Fingerprint>,
    /// Only of this target.
    pub target: Option<String>,
}

/// A record as stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredRecord {
    /// The kind's full name.
    pub kind: String,
    /// Who.
    pub fingerprint: Fingerprint,
    /// The readable key.
    pub key: String,
    /// The record it hangs on.
    pub parent: Option<Fingerprint>,
    /// Its group.
    pub group: Fingerprint,
    /// The hash of its tracked fields.
    pub content: ContentHash,
    /// All fields.
    pub body: serde_json::Value,
    /// How many targets hold it.
    pub holders: u32,
    /// When it was first seen; never overwritten.
    pub first_seen: Time,
    /// When it last changed.
    pub last_changed: Time,
    /// When the last holder let go; `None` while somebody holds it.
    pub gone: Option<Time>,
    /// Whether it was gone because its own time had passed, and not because it was taken away.
    pub gone_natural: bool,
}

/// A record that is held, or was once, found by its parent and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// Who.
    pub fingerprint: Fingerprint,
    /// Its group.
    pub group: Fingerprint,
    /// How many targets hold it; none when it is gone.
    pub holders: u32,
    /// Since when nobody does.
    pub gone: Option<Time>,
    /// When its own time is over: from then on it cannot return.
    pub ends: Option<Time>,
}

/// Which records to list, in the order of their rows.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    /// Only of this source.
    pub source: String,
    /// Only of this kind, by its full name.
    pub kind: Option<String>,
    /// Only those that hang on this record.
    pub parent: Option<Fingerprint>,
    /// Those that nobody holds any more, too.
    pub gone: bool,
    /// Continue after this row.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// A record in a list, with the row that the next page continues after.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRecord {
    /// The row.
    pub row: u64,
    /// The record.
    pub record: StoredRecord,
}

/// A window of a record's history.
#[derive(Clone, Debug)]
pub struct HistoryWindow {
    /// The record's source.
    pub source: String,
    /// The record.
    pub record: Fingerprint,
    /// Only this stream.
    pub stream: Option<String>,
    /// From then on, that moment included.
    pub from: Time,
    /// Before then.
    pub to: Time,
}

/// A published value as stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KvRow {
    /// `race`
    pub namespace: String,
    /// `currentOrder`
    pub key: String,
    /// Any JSON.
    pub value: serde_json::Value,
    /// When it last changed.
    pub updated: Time,
}

/// A finished run, and whose it is. The target itself may be gone.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedRun {
    /// The row that the next page continues after.
    pub row: u64,
    /// The target's key.
    pub key: String,
    /// The run.
    pub run: stakeout_core::adherence::Run,
}

/// A line of the poll log in a list over all targets.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPoll {
    /// The row that the next page continues before.
    pub row: u64,
    /// Its source; `None` when the target is gone and nothing else says whose it was.
    pub source: Option<String>,
    /// Its target's key; `None` in the same case.
    pub target: Option<String>,
    /// Whether the target is gone.
    pub gone: bool,
    /// The line.
    pub poll: super::PollLog,
}

/// How far the event log reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEnds {
    /// The newest number of the commit sequence.
    pub newest: u64,
    /// The highest number of an event that was pruned: whoever has not read so far may have missed something.
    pub pruned: u64,
}

/// Who may ask what. The secret itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// The part of the token that may be shown.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// `read`, `operate` or `admin`.
    pub scope: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// When it was made.
    pub created: Time,
    /// When it was revoked.
    pub revoked: Option<Time>,
}

/// A row of history as stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryRow {
    /// When.
    pub at: Time,
    /// The stream.
    pub stream: String,
    /// The stream's fields.
    pub values: serde_json::Value,
    /// Whether the upstream stamped it.
    pub upstream: bool,
    /// Whether moves between this row and the one before are lost.
    pub gap: bool,
}

/// An event on its way to a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// How often it was tried before.
    pub attempts: u32,
}

/// A delivery that was given up, for a person to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadDelivery {
    /// The sink that did not take it.
    pub sink: String,
    /// The event.
    pub event: Event,
    /// How often it was tried.
    pub attempts: u32,
    /// What went wrong last.
    pub error: Option<String>,
}

/// Which of a sink's deliveries somebody means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// That of the event with this number, dead or waiting.
    One(u64),
    /// All that were given up.
    Dead,
    /// All, those that wait for their turn included.
    Every,
}

impl Chosen {
    /// As SQL takes it: the one number, and whether those that are not dead count.
    pub(crate) fn parts(self) -> (Option<i64>, bool) {
        match self {
            Chosen::One(seq) => (Some(seq as i64), true),
            Chosen::Dead => (None, false),
            Chosen::Every => (None, true),
        }
    }
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Delivered events.
    pub events: Span,
    /// History rows.
    pub history: Span,
    /// Poll log and finished runs.
    pub polls: Span,
    /// Records nobody holds, once their history is gone.
    pub gone_records: Span,
}

/// What a pruning step removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows removed, all tables.
    pub rows: u64,
    /// Whether there is more: call again.
    pub more: bool,
}

/// Numbers for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreStats {
    /// Targets.
    pub targets: u64,
    /// Records somebody holds.
    pub records: u64,
    /// Events in the log.
    pub events: u64,
    /// History rows.
    pub history: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// The newest sequence number.
    pub seq: u64,
    /// The oldest event's sequence number still in the log; `seq + 1` when there is none.
    pub oldest_seq: u64,
}
