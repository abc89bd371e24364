//! A store that does everything at once and withholds an answer until it is told to give it, as a slow way to a database
//! does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value as Json;
use stakeout_core::adherence::Run;
use stakeout_core::{Event, Fingerprint, Kind, Snapshot, Time};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::*;
use tokio::sync::{Notify, watch};

/// A store with an answer to withhold.
pub(crate) struct Withholding {
    pub(crate) inner: SqliteStore,
    withheld: Mutex<Option<&'static str>>,
    /// How many polls that publish something are still to be refused.
    poisoned: Mutex<u32>,
    done: Notify,
    given: Notify,
    /// How often what was asked, and answered.
    answered: watch::Sender<BTreeMap<&'static str, u64>>,
}

impl Withholding {
    pub(crate) fn new() -> Withholding {
        Withholding {
            inner: SqliteStore::in_memory().expect("store"),
            withheld: Mutex::new(None),
            poisoned: Mutex::new(0),
            done: Notify::new(),
            given: Notify::new(),
            answered: watch::channel(BTreeMap::new()).0,
        }
    }

    /// The next such thing that is asked for is done, but not answered until [`Withholding::answer`]. A claim that finds
    /// nothing does not count.
    pub(crate) fn withhold(&self, what: &'static str) {
        *self.withheld.lock().expect("nobody panics here") = Some(what);
    }

    /// The next so many polls that publish a value are refused alone.
    #[allow(dead_code, reason = "not every test file refuses something")]
    pub(crate) fn poison(&self, polls: u32) {
        *self.poisoned.lock().expect("nobody panics here") = polls;
    }

    fn refuses(&self, poll: &PollCommit) -> bool {
        let mut left = self.poisoned.lock().expect("nobody panics here");
        let refused = *left > 0 && !poll.kv.is_empty();
        *left -= u32::from(refused);
        refused
    }

    /// Returns when something was done whose answer is withheld.
    pub(crate) async fn done(&self) {
        self.done.notified().await;
    }

    /// Gives the answer.
    pub(crate) fn answer(&self) {
        self.given.notify_one();
    }

    /// Returns when this was asked and answered once more, counted from the call on.
    pub(crate) fn once_more(&self, what: &'static str) -> impl Future<Output = ()> + use<> {
        let count =
            move |answered: &BTreeMap<&'static str, u64>| answered.get(what).copied().unwrap_or_default();
        let mut answered = self.answered.subscribe();
        let before = count(&answered.borrow_and_update());
        async move {
            answered.wait_for(|answered| count(answered) > before).await.expect("the store lives");
        }
    }

    async fn maybe_withhold(&self, what: &'static str) {
        let withheld =
            self.withheld.lock().expect("nobody panics here").take_if(|withheld| *withheld == what).is_some();
        if withheld {
            self.done.notify_one();
            self.given.notified().await;
        }
        self.answered.send_modify(|answered| *answered.entry(what).or_default() += 1);
    }
}

macro_rules! passes_on {
    ($($name:ident($($asked:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Withholding {
            async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
                let claims = self.inner.claim(request).await?;
                self.maybe_withhold(if claims.is_empty() { "look" } else { "claim" }).await;
                Ok(claims)
            }

            async fn commit(&self, polls: Vec<Arc<PollCommit>>) -> Result<Vec<CommitOutcome>> {
                let refused: Vec<bool> = polls.iter().map(|poll| self.refuses(poll)).collect();
                let taken = polls.into_iter().zip(&refused).filter(|(_, refused)| !**refused);
                let mut outcomes = self.inner.commit(taken.map(|(poll, _)| poll).collect()).await?.into_iter();
                self.maybe_withhold("commit").await;
                let poisoned = || Some(CommitOutcome::Poisoned("refused by the test".to_owned()));
                let outcome = |refused: bool| if refused { poisoned() } else { outcomes.next() };
                Ok(refused.into_iter().filter_map(outcome).collect())
            }

            $(async fn $name(&self, $($asked: $type),*) -> Result<$answer> {
                let answer = self.inner.$name($($asked),*).await;
                self.maybe_withhold(stringify!($name)).await;
                answer
            })*
        }
    };
}

// Everything that a store must answer; what it may leave to the trait is for stores that several processes share.
passes_on! {
    ensure_views(kinds: &[Kind]) -> ();
    next_wake(sources: &[String]) -> Option<Time>;
    release(claims: &[(TargetId, u64)]) -> ();
    renew(claims: &[(TargetId, u64)], until: Time) -> Vec<TargetId>;
    reconcile_roots(source: &str, desired: &[Wanted], now: Time) -> Reconciled;
    set_enabled(target: TargetId, enabled: bool, now: Time) -> ();
    poll_now(target: TargetId, now: Time) -> ();
    replan(plans: &[NewPlan]) -> ();
    whole(source: &str, kinds: &[String], published: &[(String, String)]) -> Whole;
    derive(derived: DeriveCommit) -> DeriveOutcome;
    rebaseline(target: TargetId) -> ();
    targets(filter: &TargetFilter) -> Vec<TargetRow>;
    target(source: &str, key: &str) -> Option<TargetRow>;
    records(source: &str, fingerprints: &[Fingerprint]) -> Vec<StoredRecord>;
    siblings(source: &str, families: &[(Fingerprint, Fingerprint)]) -> Vec<Sibling>;
    snapshot(target: TargetId) -> Snapshot;
    told_until(source: &str, streams: &[(Fingerprint, String)]) -> Vec<Option<Time>>;
    history(source: &str, record: Fingerprint, stream: Option<&str>, limit: u32) -> Vec<HistoryRow>;
    list_records(filter: &RecordFilter) -> Vec<ListedRecord>;
    history_between(window: &HistoryWindow, limit: u32) -> Vec<HistoryRow>;
    history_points(window: &HistoryWindow, points: u32) -> Vec<HistoryRow>;
    history_at(source: &str, record: Fingerprint, at: Time) -> Vec<HistoryRow>;
    log_ends() -> LogEnds;
    newest_events(before: u64, filter: &EventFilter, limit: u32) -> Vec<Event>;
    events(after: u64, filter: &EventFilter, limit: u32) -> Vec<Event>;
    polls(target: TargetId, limit: u32) -> Vec<PollLog>;
    polls_between(target: TargetId, from: Time, to: Time, before: Option<u64>, limit: u32) -> Vec<PollLog>;
    newest_polls(before: Option<u64>, limit: u32) -> Vec<ListedPoll>;
    source_runs(source: &str, from: Time, to: Time, after: Option<u64>, limit: u32) -> Vec<FinishedRun>;
    runs(target: TargetId, from: Time, to: Time) -> Vec<Run>;
    polled_before(targets: &[TargetId], moment: Time) -> Vec<TargetId>;
    settings() -> Vec<(String, Json)>;
    set_setting(key: &str, value: Option<Json>, now: Time) -> ();
    kv(namespace: &str, key: &str) -> Option<KvRow>;
    set_kv(namespace: &str, key: &str, value: Option<Json>, now: Time) -> ();
    list_kv(namespace: Option<&str>, after: Option<(&str, &str)>, limit: u32) -> Vec<KvRow>;
    add_token(token: &TokenRow) -> ();
    revoke_token(id: &str, now: Time) -> bool;
    token(id: &str) -> Option<TokenRow>;
    tokens() -> Vec<TokenRow>;
    deliveries(sink: &str, now: Time, limit: u32) -> Vec<Delivery>;
    deliveries_of(sink: &str, seqs: &[u64]) -> Vec<Delivery>;
    undelivered(sink: &str, seqs: &[u64]) -> Vec<u64>;
    delivered(sink: &str, seqs: &[u64]) -> ();
    delivery_failed(sink: &str, seq: u64, retry: Option<Time>, error: &str) -> ();
    dead_deliveries(sink: Option<&str>, limit: u32) -> Vec<DeadDelivery>;
    retry_deliveries(sink: &str, chosen: Chosen) -> u64;
    drop_deliveries(sink: &str, chosen: Chosen) -> u64;
    outboxes() -> Vec<Outbox>;
    notifications(before: u64, filter: &NotificationFilter, limit: u32) -> Vec<Notification>;
    unread_notifications(user: Option<&str>) -> u64;
    mark_read(mark: &ReadMark, now: Time) -> u64;
    set_filed_alerts(rules: &BTreeMap<String, Json>, now: Time) -> ();
    prune(retention: &Retention, now: Time, batch: u32) -> Pruned;
    stats() -> StoreStats;
}
