//! What is committed: one poll, whole or not at all.

use serde::{Deserialize, Serialize};
use stakeout_core::adherence::{Cause, Run};
use stakeout_core::judge::Effect;
use stakeout_core::{ContentHash, Event, EventId, Fingerprint, Snapshot, Span, TargetSpec, Time};

use super::{Schedule, TargetId, TargetState};

/// A record as a commit writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordWrite {
    /// The kind's full name.
    pub kind: String,
    /// Who.
    pub fingerprint: Fingerprint,
    /// The readable key.
    pub key: String,
    /// The record it hangs on.
    pub parent: Option<Fingerprint>,
    /// Its group; zero when none.
    pub group: Fingerprint,
    /// What it says now.
    pub content: ContentHash,
    /// When its own time is over.
    pub ends: Option<Time>,
    /// All fields as a JSON object.
    pub body: String,
    /// When it was seen: of several targets' views of a shared record the newest wins.
    pub seen: Time,
    /// Whether this target did not hold it before: it becomes one more holder.
    pub added: bool,
    /// What was stored when this was worked out.
    pub base: Base,
}

/// What a record write builds on. If it is another now, somebody else was faster, and the whole poll is a
/// [`CommitOutcome::Conflict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nothing in particular.
    Anything,
    /// The record as it was recalled; `None` when it was not there.
    Recalled(Option<ContentHash>),
}

/// A record that this target no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Who.
    pub fingerprint: Fingerprint,
    /// Whether its own time had passed: it ended, it was not taken away.
    pub natural: bool,
}

/// How many holders of a record have not looked for so long that they say nothing about now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lapsed {
    /// Who.
    pub fingerprint: Fingerprint,
    /// Of its holders.
    pub holders: u32,
}

/// Who stamped a history row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The poll that saw it; written only if the record really changed by this commit.
    Observed,
    /// The upstream; written if it is newer than all it told us of the stream before. It takes the place of a later row
    /// that a poll stamped with the same values.
    Upstream,
}

/// A row of history as a commit writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryWrite {
    /// The record.
    pub fingerprint: Fingerprint,
    /// The stream.
    pub stream: String,
    /// When.
    pub at: Time,
    /// The stream's fields as a JSON object.
    pub values: String,
    /// Those of them that the upstream itself said, the same way; the others were carried forward, and where polls have
    /// stamped rows since, the row before knows better. Empty where a poll stamps the row.
    pub said: String,
    /// Who says so.
    pub stamp: Stamp,
    /// The upstream has forgotten older ones: if all it told us before is older still, the row is marked as a gap.
    pub oldest_known: bool,
}

/// An event as a commit proposes it; it comes about only if its conditions hold.
#[derive(Clone, Debug, PartialEq)]
pub struct EventWrite {
    /// Its identity. The same id with other content is an error.
    pub id: EventId,
    /// The type name.
    pub event_type: String,
    /// The rule.
    pub rule: String,
    /// The record it is about.
    pub subject: Fingerprint,
    /// Its readable key.
    pub subject_key: String,
    /// When it was seen.
    pub at: Time,
    /// A readable key, unique when present: an event whose key exists is left out.
    pub dedupe_key: Option<String>,
    /// The payload, a JSON object.
    pub data: serde_json::Value,
    /// What must have happened to the subject.
    pub requires: Effect,
    /// No event if (rule, subject) had one less than this ago; the suppressed one does not count as one.
    pub quiet: Option<Span>,
    /// With `Appeared`: no event if the record was last held less than this ago.
    pub unseen_for: Option<Span>,
    /// No event unless this one has come about.
    pub follows: Option<EventId>,
    /// Where it is to be delivered, besides the sinks that take every event of the commit.
    pub sinks: Vec<String>,
}

/// A target that a listing wants, with the due time it gets if it is new.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The target.
    pub spec: TargetSpec,
    /// When it is first due.
    pub schedule: Schedule,
}

/// Changes to the set of targets. Only differences are in here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconcile {
    /// Create, or update what a listing may change: never the user's `enabled`. When the start time of an
    /// existing target moved, it is also re-planned to the given schedule.
    pub upserts: Vec<Wanted>,
    /// Remove: the target, its snapshot and its hold on records. Events and history stay.
    pub retire: Vec<String>,
}

/// A new due time for a target whose plan changed without a poll; it counts only if nothing happened to the target
/// since its row was read.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPlan {
    /// The target.
    pub target: TargetId,
    /// Its plan version, as read.
    pub plan_version: u64,
    /// Its last committed poll, as read.
    pub poll_no: u64,
    /// The new due time.
    pub schedule: Schedule,
}

/// A value that a poll publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct KvSet {
    /// `credentials`
    pub namespace: String,
    /// `nyc`
    pub key: String,
    /// Any JSON.
    pub value: serde_json::Value,
}

/// How a poll ended, as one word in the row and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PollOutcome {
    /// It saw what it had seen before.
    Unchanged,
    /// It saw something new.
    Changed,
    /// It set a baseline: everything is stored, nothing is told.
    Baseline,
    /// It saw only a part; what it saw counts, absence does not.
    Partial,
    /// It was too bad to be true; it counts when a second poll agrees.
    Doubted,
    /// It was older than what is known, and dropped.
    Stale,
    /// It failed.
    Failed,
}

impl PollOutcome {
    /// The word in SQL, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            PollOutcome::Unchanged => "unchanged",
            PollOutcome::Changed => "changed",
            PollOutcome::Baseline => "baseline",
            PollOutcome::Partial => "partial",
            PollOutcome::Doubted => "doubted",
            PollOutcome::Stale => "stale",
            PollOutcome::Failed => "failed",
        }
    }

    /// The inverse of `name`.
    pub fn parse(name: &str) -> Option<PollOutcome> {
        use PollOutcome::{Baseline, Changed, Doubted, Failed, Partial, Stale, Unchanged};
        [Unchanged, Changed, Baseline, Partial, Doubted, Stale, Failed].into_iter().find(|o| o.name() == name)
    }
}

/// A line of the poll log: only notable polls have one (changed, late, missed, failed…).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PollLog {
    /// The poll's number.
    pub poll_no: u64,
    /// When it was due, jitter included.
    pub due: Time,
    /// When the first request was handed to the socket.
    pub sent: Time,
    /// When the last answer was whole.
    pub ended: Time,
    /// The phase it belonged to.
    pub phase: String,
    /// How it ended.
    pub outcome: PollOutcome,
    /// Why it was late, if it was.
    pub late: Option<Cause>,
    /// How many due polls before it were missed.
    pub missed: u64,
    /// Why they were missed.
    pub missed_cause: Option<Cause>,
    /// Requests made.
    pub requests: u32,
    /// Body bytes read.
    pub bytes: u64,
    /// Records added, changed, removed.
    pub changes: u32,
    /// Events proposed.
    pub events: u32,
    /// The failure's class, also of one that cost only a part of the answer.
    pub error_class: Option<String>,
    /// The failure in words, warnings otherwise; no secrets.
    pub detail: Option<String>,
}

/// A body that could not be understood, kept for diagnosis: the newest per target, size-capped, no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was received.
    pub at: Time,
    /// Why it was kept.
    pub reason: String,
    /// Its content type.
    pub content_type: Option<String>,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

/// One poll, committed whole or not at all.
#[derive(Clone, Debug)]
pub struct PollCommit {
    /// The target.
    pub target: TargetId,
    /// Its source.
    pub source: String,
    /// The claim's fencing token.
    pub fence: u64,
    /// One more than the last committed poll of this target.
    pub poll_no: u64,
    /// The plan version that `schedule` was computed from.
    pub plan_version: u64,
    /// The engine's time of the commit.
    pub now: Time,
    /// The next due time; the row's own wins if its plan version moved.
    pub schedule: Schedule,
    /// Keep the claim until then; `None` gives it back.
    pub hold_until: Option<Time>,
    /// How the poll ended.
    pub outcome: PollOutcome,
    /// The failure in words.
    pub error: Option<String>,
    /// What the target remembers from now on.
    pub state: TargetState,
    /// The new snapshot, when it differs.
    pub snapshot: Option<Snapshot>,
    /// Records added or changed, in fingerprint order.
    pub records: Vec<RecordWrite>,
    /// Records no longer held, in fingerprint order.
    pub releases: Vec<Release>,
    /// Holds of other targets that no longer count, in fingerprint order: a record that nobody else holds appears anew.
    pub lapsed: Vec<Lapsed>,
    /// History rows.
    pub history: Vec<HistoryWrite>,
    /// Events, if their conditions hold.
    pub events: Vec<EventWrite>,
    /// The sinks that each event is to be delivered to.
    pub sinks: Vec<String>,
    /// Changes to the set of targets.
    pub reconcile: Option<Reconcile>,
    /// Published values, written only where they differ.
    pub kv: Vec<KvSet>,
    /// The poll log's line, if it is notable.
    pub log: Option<PollLog>,
    /// A stretch of regular polling that this poll ended.
    pub finished_run: Option<Run>,
    /// A body to keep for diagnosis.
    pub sample: Option<Sample>,
}

impl PollCommit {
    /// Whether losing this poll with the power would lose more than a due time or a line of the log.
    pub fn brings_news(&self) -> bool {
        self.snapshot.is_some()
            || !self.records.is_empty()
            || !self.releases.is_empty()
            || !self.history.is_empty()
            || !self.events.is_empty()
            || self.reconcile.is_some()
            || !self.kv.is_empty()
    }

    /// Whether the poll brought nothing: its target's row is written, and perhaps what the log says of it.
    pub fn is_quiet(&self) -> bool {
        !self.brings_news() && self.sample.is_none()
    }

    /// Whether only its target's row is written.
    pub fn is_schedule_only(&self) -> bool {
        self.is_quiet() && self.log.is_none() && self.finished_run.is_none()
    }
}

/// What became of a poll's commit.
#[derive(Clone, Debug, PartialEq)]
pub enum CommitOutcome {
    /// It is in.
    Done(Done),
    /// This very poll was in already.
    AlreadyDone,
    /// The claim was lost, or the target is gone: nothing was written.
    Stale,
    /// A later poll of the same claim was in already: nothing was written.
    Older,
    /// A record is another than the poll thinks: nothing was written; recall it and judge again.
    Conflict,
    /// The store refused this poll alone, for this reason: nothing was written.
    Poisoned(String),
}

/// What a commit brought about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// The events that came about, in sequence order.
    pub events: Vec<Event>,
    /// The schedule in force: the commit's own, or the row's if its plan version had moved.
    pub schedule: Schedule,
    /// The row's plan version.
    pub plan_version: u64,
    /// Whether the row may be polled at all.
    pub enabled: bool,
    /// Whether the claim goes on as asked. It is given back in spite of `hold_until` when the target is switched off
    /// or its plan version moved: then what the holder has in memory (parameters, focus, baseline) is out of date,
    /// and whoever claims it next reads the row anew.
    pub held: bool,
    /// Targets that were created or re-planned on the side: somebody may have to claim them sooner.
    pub touched: Vec<TargetId>,
    /// History rows written.
    pub history_rows: u32,
    /// Published values that changed.
    pub kv_changed: Vec<(String, String)>,
}
