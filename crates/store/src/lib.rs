//! Where polls become durable.
//!
//! [`Store`] is what the engine knows; [`sqlite`] is the embedded implementation, [`postgres`] the one that several
//! nodes share. Every backend passes the same conformance suite (feature `conformance`) and behaves the same.
//!
//! **Invariants kept here:** one poll, one transaction; a stale fencing token is refused whole; an event exists
//! once; sequence numbers are handed out in commit order. Nothing here knows a source, a cadence or HTTP.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod hint;
mod model;
pub mod postgres;
pub mod sqlite;
pub mod transfer;
pub mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stakeout_core::adherence::Run;
use stakeout_core::{Event, Fingerprint, Kind, Snapshot, Span, Time};

pub use error::StoreError;
pub use hint::Hint;
pub use model::*;
pub use stakeout_core::judge::Effect;

/// The result of asking a store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A durable memory of targets, records, history and events.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes the SQL views of these kinds, replacing older ones. Also removes views of kinds no longer there.
    async fn ensure_views(&self, kinds: &[Kind]) -> Result<()>;

    /// Takes due and enabled targets under a lease, earliest first, then by priority. By index: the cost does not
    /// grow with the number of targets that are not due.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>>;

    /// When the next target of these sources can be claimed.
    async fn next_wake(&self, sources: &[String]) -> Result<Option<Time>>;

    /// Commits polls, each whole or not at all, one outcome per poll in the same order. One that cannot be written,
    /// whatever the reason, is poisoned and harms no other. An error means that the store is in no state to write: nobody
    /// knows which of them are in, and they are offered again, because what is in already is recognised.
    async fn commit(&self, polls: Vec<Arc<PollCommit>>) -> Result<Vec<CommitOutcome>>;

    /// Gives claims back untouched, as if they had never been made.
    async fn release(&self, claims: &[(TargetId, u64)]) -> Result<()>;

    /// Extends claims to `until`; answers those that were lost. What a commit kept for longer meanwhile stays as it is.
    async fn renew(&self, claims: &[(TargetId, u64)], until: Time) -> Result<Vec<TargetId>>;

    /// Makes `desired` the whole set of root targets of a source (those that no listing made). Writes only
    /// differences and keeps a user's `enabled = false`.
    async fn reconcile_roots(&self, source: &str, desired: &[Wanted], now: Time) -> Result<Reconciled>;

    /// Switches a target on or off for good; listings do not undo it. A target switched on is due at `now`.
    async fn set_enabled(&self, target: TargetId, enabled: bool, now: Time) -> Result<()>;

    /// Makes a target due now, once.
    async fn poll_now(&self, target: TargetId, now: Time) -> Result<()>;

    /// Gives targets a new due time, because a setting changed; raises their plan version. Rows that are gone, or not
    /// as they were read, are passed over.
    async fn replan(&self, plans: &[NewPlan]) -> Result<()>;

    /// Everything a source holds of these kinds, with its targets, its focus and these published values, read at one
    /// moment.
    async fn whole(&self, source: &str, kinds: &[String], published: &[(String, String)]) -> Result<Whole>;

    /// Writes what follows from a source's records, whole or not at all.
    async fn derive(&self, derived: DeriveCommit) -> Result<DeriveOutcome>;

    /// Forgets a target's baseline: its next complete answer is a new one, without events.
    async fn rebaseline(&self, target: TargetId) -> Result<()>;

    /// Targets, by row.
    async fn targets(&self, filter: &TargetFilter) -> Result<Vec<TargetRow>>;

    /// One target by source and key.
    async fn target(&self, source: &str, key: &str) -> Result<Option<TargetRow>>;

    /// Stored records of a source by fingerprint; unknown ones are left out.
    async fn records(&self, source: &str, fingerprints: &[Fingerprint]) -> Result<Vec<StoredRecord>>;

    /// The records of these families, a parent and a group each, those included that are gone.
    async fn siblings(&self, source: &str, families: &[(Fingerprint, Fingerprint)]) -> Result<Vec<Sibling>>;

    /// What a target holds; nothing when there is no such target.
    async fn snapshot(&self, target: TargetId) -> Result<Snapshot>;

    /// The newest moment of each of these records' streams that the upstream itself has told; one answer per question,
    /// in the same order, `None` where it has told nothing.
    async fn told_until(&self, source: &str, streams: &[(Fingerprint, String)]) -> Result<Vec<Option<Time>>>;

    /// The history of a record, oldest first, at most `limit` newest rows; all streams or one.
    async fn history(
        &self,
        source: &str,
        record: Fingerprint,
        stream: Option<&str>,
        limit: u32,
    ) -> Result<Vec<HistoryRow>>;

    /// A page of a source's records. By index: the cost is that of the page.
    async fn list_records(&self, filter: &RecordFilter) -> Result<Vec<ListedRecord>>;

    /// The history of a record within a window, oldest first, at most `limit` oldest rows.
    async fn history_between(&self, window: &HistoryWindow, limit: u32) -> Result<Vec<HistoryRow>>;

    /// The same, thinned out for a chart: the window is cut into `points` parts of the same length, and of each part
    /// and stream there is the last row.
    async fn history_points(&self, window: &HistoryWindow, points: u32) -> Result<Vec<HistoryRow>>;

    /// What was known of a record at a moment: of each stream the newest row that is not later.
    async fn history_at(&self, source: &str, record: Fingerprint, at: Time) -> Result<Vec<HistoryRow>>;

    /// How far the event log reaches.
    async fn log_ends(&self) -> Result<LogEnds>;

    /// Events with a sequence number below `before`, the newest first.
    async fn newest_events(&self, before: u64, filter: &EventFilter, limit: u32) -> Result<Vec<Event>>;

    /// Events with a sequence number above `after`, in order.
    async fn events(&self, after: u64, filter: &EventFilter, limit: u32) -> Result<Vec<Event>>;

    /// The newest notable polls of a target, newest first.
    async fn polls(&self, target: TargetId, limit: u32) -> Result<Vec<PollLog>>;

    /// The same of those that were sent in the window, before a poll of an earlier page.
    async fn polls_between(
        &self,
        target: TargetId,
        from: Time,
        to: Time,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<PollLog>>;

    /// The newest notable polls of all targets, newest first, before a row of an earlier page.
    async fn newest_polls(&self, before: Option<u64>, limit: u32) -> Result<Vec<ListedPoll>>;

    /// Finished stretches of regular polling of all targets of a source, those that are gone included, that touch the
    /// window; in the order of their rows, after the row of an earlier page.
    async fn source_runs(
        &self,
        source: &str,
        from: Time,
        to: Time,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FinishedRun>>;

    /// Finished stretches of regular polling of a target that touch the window, oldest first.
    async fn runs(&self, target: TargetId, from: Time, to: Time) -> Result<Vec<Run>>;

    /// Those of the targets that have a finished stretch of polling which ended before a moment: what follows it, up to
    /// the next look, was dark.
    async fn polled_before(&self, targets: &[TargetId], moment: Time) -> Result<Vec<TargetId>>;

    /// All live settings.
    async fn settings(&self) -> Result<Vec<(String, serde_json::Value)>>;

    /// Sets a live setting; `None` removes it. The caller has validated it.
    async fn set_setting(&self, key: &str, value: Option<serde_json::Value>, now: Time) -> Result<()>;

    /// A published value.
    async fn kv(&self, namespace: &str, key: &str) -> Result<Option<KvRow>>;

    /// Keeps a value that comes from no poll and belongs to no source; `None` removes it.
    async fn set_kv(
        &self,
        namespace: &str,
        key: &str,
        value: Option<serde_json::Value>,
        now: Time,
    ) -> Result<()>;

    /// Published values by namespace and key, all or those of one namespace, after one of them.
    async fn list_kv(
        &self,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<KvRow>>;

    /// Keeps a token's hash. One with the same id is an error.
    async fn add_token(&self, token: &TokenRow) -> Result<()>;

    /// Revokes a token for good; answers whether there was one that was not revoked yet.
    async fn revoke_token(&self, id: &str, now: Time) -> Result<bool>;

    /// A token by its id, revoked or not.
    async fn token(&self, id: &str) -> Result<Option<TokenRow>>;

    /// All tokens, revoked ones included, in the order they were made.
    async fn tokens(&self) -> Result<Vec<TokenRow>>;

    /// Deliveries of a sink that are due, in sequence order.
    async fn deliveries(&self, sink: &str, now: Time, limit: u32) -> Result<Vec<Delivery>>;

    /// A sink's deliveries of these events that wait, whether they are due or not, in sequence order.
    async fn deliveries_of(&self, sink: &str, seqs: &[u64]) -> Result<Vec<Delivery>>;

    /// Those of these events, in sequence order, that a sink has not been given: they wait, or were given up and are
    /// somebody's to look at.
    async fn undelivered(&self, sink: &str, seqs: &[u64]) -> Result<Vec<u64>>;

    /// Marks deliveries as made.
    async fn delivered(&self, sink: &str, seqs: &[u64]) -> Result<()>;

    /// Marks a delivery as failed; it is tried again at `retry`, or kept as dead when `None`.
    async fn delivery_failed(&self, sink: &str, seq: u64, retry: Option<Time>, error: &str) -> Result<()>;

    /// Deliveries that were given up, of one sink or of all, by sink and event.
    async fn dead_deliveries(&self, sink: Option<&str>, limit: u32) -> Result<Vec<DeadDelivery>>;

    /// Makes a sink's deliveries due now, as if they had never been tried; answers how many.
    async fn retry_deliveries(&self, sink: &str, chosen: Chosen) -> Result<u64>;

    /// Drops a sink's deliveries for good; answers how many. The events stay.
    async fn drop_deliveries(&self, sink: &str, chosen: Chosen) -> Result<u64>;

    /// How much waits in the outbox of each sink that has anything there, by name.
    async fn outboxes(&self) -> Result<Vec<Outbox>>;

    /// What alerts told, below a sequence number, the newest first. By index: the cost does not grow with the other
    /// events.
    async fn notifications(
        &self,
        before: u64,
        filter: &NotificationFilter,
        limit: u32,
    ) -> Result<Vec<Notification>>;

    /// How many notifications nobody has read: all, or those of a user and of everybody.
    async fn unread_notifications(&self, user: Option<&str>) -> Result<u64>;

    /// Marks notifications as read; answers how many were not yet. When one was read first stays.
    async fn mark_read(&self, mark: &ReadMark, now: Time) -> Result<u64>;

    /// Keeps the alerts of the configuration file for whoever reads the database; those no longer there go.
    async fn set_filed_alerts(&self, rules: &BTreeMap<String, serde_json::Value>, now: Time) -> Result<()>;

    /// Removes at most `batch` rows that are older than the retention allows. Undelivered events stay, and so does
    /// everything that something kept still refers to.
    async fn prune(&self, retention: &Retention, now: Time, batch: u32) -> Result<Pruned>;

    /// Numbers for people.
    async fn stats(&self) -> Result<StoreStats>;

    /// Whether other processes may write at the same time: then limits and single-handed work are agreed on with them.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether everything is done in the order in which it is asked for, reading included: then whoever asks for something
    /// cannot tell whether the commit before was waited for.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Whoever waits for a commit has nothing else to do: a store that puts commits off puts them off no longer.
    fn hurry(&self) {}

    /// The time by which all its processes go, asked at `now` by the caller's clock; `None` where each may go by its own.
    async fn clock(&self, _now: Time) -> Result<Option<Time>> {
        Ok(None)
    }

    /// The caller's clock is about to be moved by so much, to agree with [`Store::clock`].
    fn clock_was_set(&self, _by: Span) {}

    /// Whether this program may still work with the schema, which another node may have brought further meanwhile.
    async fn check_schema(&self) -> Result<()> {
        Ok(())
    }

    /// Takes or keeps a lease; `None` when another node has it. Nobody to agree with: always had.
    async fn lease(&self, request: &LeaseRequest) -> Result<Option<Lease>> {
        Ok(Some(Lease { until: request.now + request.holds, taken_over: false }))
    }

    /// Takes or keeps the lease on a whole source; `None` when another node has it, or may still be using a part of its
    /// limits. Nobody to agree with: always had.
    async fn lane(&self, request: &LaneRequest) -> Result<Option<LaneLease>> {
        let lease = Lease { until: request.now + request.holds, taken_over: false };
        Ok(Some(LaneLease { lease, slow_until: request.slow_until }))
    }

    /// This node's part of a source's limits, nothing while another node has the whole of it; `None` when the source is not
    /// known yet. Nobody to agree with: all of it.
    async fn grant(&self, request: &GrantRequest) -> Result<Option<Grant>> {
        Ok(Some(Grant {
            until: request.now + request.holds,
            allowance: request.limits,
            first: true,
            slow_until: request.slow_until,
            mean_demand: request.demand,
        }))
    }

    /// Gives up every lease and grant of a node.
    async fn leave(&self, _node: &str) -> Result<()> {
        Ok(())
    }

    /// The price of a poll of a source, as another node may have worked it out.
    async fn price(&self, _source: &str) -> Result<Option<f64>> {
        Ok(None)
    }

    /// Lets the other nodes know the price of a poll.
    async fn set_price(&self, _source: &str, _price: f64, _now: Time) -> Result<()> {
        Ok(())
    }

    /// What other processes say they changed. Hints get lost; looking is the truth. `None` when nobody else can write.
    fn hints(&self) -> Option<tokio::sync::broadcast::Receiver<Hint>> {
        None
    }

    /// Whether hints arrive at the moment. Asked about once a second; the answer may lag a few seconds behind.
    async fn hears_hints(&self) -> Result<bool> {
        Ok(true)
    }

    /// Those of these targets whose plan is no longer of the version given, or that are gone.
    async fn moved_on(&self, _plans: &[(TargetId, u64)]) -> Result<Vec<TargetId>> {
        Ok(Vec::new())
    }
}
