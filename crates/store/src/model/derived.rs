//! What follows from all of a source's records together: read as a whole, written as differences.

use stakeout_core::{ContentHash, Event, Fingerprint, Time};

use super::{EventWrite, KvRow, Schedule, StoredRecord, TargetId, TargetRow, Wanted};

/// What a source holds, read at one moment.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// The records of the kinds asked for that somebody holds, by kind and key.
    pub records: Vec<StoredRecord>,
    /// The keys of all its targets, in order.
    pub targets: Vec<String>,
    /// The targets that have the focus: one, or none.
    pub focused: Vec<TargetRow>,
    /// The published values asked for that exist.
    pub kv: Vec<KvRow>,
}

/// A target that gains or loses the focus. Raises its `plan_version`.
#[derive(Clone, Debug, PartialEq)]
pub struct Refocus {
    /// The target's key.
    pub key: String,
    /// Its new due time.
    pub schedule: Schedule,
    /// Whether it has the focus now.
    pub focused: bool,
}

/// A published value that is another now.
#[derive(Clone, Debug, PartialEq)]
pub struct KvWrite {
    /// `race`
    pub namespace: String,
    /// `currentOrder`
    pub key: String,
    /// Any JSON.
    pub value: serde_json::Value,
    /// What was published when this was worked out.
    pub before: Option<serde_json::Value>,
}

/// A held record with other derived fields. When it was seen stays as it is: no answer said this.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedRecord {
    /// Who.
    pub fingerprint: Fingerprint,
    /// What it said when this was worked out.
    pub base: ContentHash,
    /// What it says now.
    pub content: ContentHash,
    /// All fields as a JSON object.
    pub body: String,
}

/// What follows from a source's records, where it differs from what is stored; written whole or not at all.
#[derive(Clone, Debug)]
pub struct DeriveCommit {
    /// The source.
    pub source: String,
    /// The engine's time.
    pub now: Time,
    /// Who had the focus when this was worked out.
    pub focused_before: Vec<TargetId>,
    /// A target to be made, because it gets the focus and does not exist.
    pub create: Option<Wanted>,
    /// Who gains and who loses the focus.
    pub refocus: Vec<Refocus>,
    /// Published values that are others.
    pub kv: Vec<KvWrite>,
    /// Records that are others.
    pub records: Vec<DerivedRecord>,
    /// What is told about it, under this target name.
    pub events: Vec<EventWrite>,
    /// The sinks that each event is to be delivered to.
    pub sinks: Vec<String>,
}

impl DeriveCommit {
    /// The name that stands in the place of a target in events that no single target's poll brought about.
    pub const TARGET: &'static str = "derived";

    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.create.is_none() && self.refocus.is_empty() && self.kv.is_empty() && self.records.is_empty()
    }
}

/// What became of a derivation.
#[derive(Clone, Debug, PartialEq)]
pub enum DeriveOutcome {
    /// It is in.
    Done(DeriveDone),
    /// Something is another than it was read: nothing was written; read and derive again.
    Conflict,
}

/// What a derivation brought about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeriveDone {
    /// The events that came about, in sequence order.
    pub events: Vec<Event>,
    /// Targets that were created or re-planned: whoever holds them lets go.
    pub touched: Vec<TargetId>,
}
