//! The [`Store`] of a [`SqliteStore`]: which thread does what, and what must reach the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stakeout_core::adherence::Run;
use stakeout_core::{Event, Fingerprint, Kind, Snapshot, Time};
use tokio::sync::oneshot;

use super::SqliteStore;
use super::writer::{Durability, Job};
use super::{
    browse, claim, control, deliveries, derived, history, notifications, prune, read, reconcile, rows, tokens,
};
use crate::{
    Chosen, Claim, ClaimRequest, CommitOutcome, DeadDelivery, Delivery, DeriveCommit, DeriveOutcome,
    EventFilter, FinishedRun, HistoryRow, HistoryWindow, KvRow, ListedPoll, ListedRecord, LogEnds, NewPlan,
    Notification, NotificationFilter, Outbox, PollCommit, PollLog, Pruned, ReadMark, Reconciled,
    RecordFilter, Result, Retention, Sibling, Store, StoreError, StoreStats, StoredRecord, TargetFilter,
    TargetId, TargetRow, TokenRow, Wanted, Whole,
};

#[async_trait]
impl Store for SqliteStore {
    async fn ensure_views(&self, kinds: &[Kind]) -> Result<()> {
        let kinds = kinds.to_vec();
        self.write("make the views", Durability::Relaxed, move |tx| control::ensure_views(tx, &kinds)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        self.write("claim due targets", Durability::Relaxed, move |tx| claim::claim(tx, &request)).await
    }

    async fn next_wake(&self, sources: &[String]) -> Result<Option<Time>> {
        let sources = sources.to_vec();
        self.read("find the next due time", move |conn| claim::next_wake(conn, &sources)).await
    }

    async fn commit(&self, polls: Vec<Arc<PollCommit>>) -> Result<Vec<CommitOutcome>> {
        let (reply, answer) = oneshot::channel();
        self.writer()?.send(Job::Commit { polls, reply }).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    async fn release(&self, claims: &[(TargetId, u64)]) -> Result<()> {
        let claims = claims.to_vec();
        self.write("give claims back", Durability::Relaxed, move |tx| claim::release(tx, &claims)).await
    }

    async fn renew(&self, claims: &[(TargetId, u64)], until: Time) -> Result<Vec<TargetId>> {
        let claims = claims.to_vec();
        self.write("extend claims", Durability::Relaxed, move |tx| claim::renew(tx, &claims, until)).await
    }

    async fn reconcile_roots(&self, source: &str, desired: &[Wanted], now: Time) -> Result<Reconciled> {
        let (source, desired) = (source.to_owned(), desired.to_vec());
        self.write("reconcile targets", Durability::Synced, move |tx| {
            reconcile::roots(tx, &source, &desired, now)
        })
        .await
    }

    async fn set_enabled(&self, target: TargetId, enabled: bool, now: Time) -> Result<()> {
        self.write("switch a target", Durability::Synced, move |tx| {
            control::set_enabled(tx, target, enabled, now)
        })
        .await
    }

    async fn poll_now(&self, target: TargetId, now: Time) -> Result<()> {
        self.write("make a target due", Durability::Relaxed, move |tx| control::poll_now(tx, target, now))
            .await
    }

    async fn replan(&self, plans: &[NewPlan]) -> Result<()> {
        let plans = plans.to_vec();
        self.write("re-plan targets", Durability::Relaxed, move |tx| {
            plans.iter().try_for_each(|plan| reconcile::replan_if_unchanged(tx.conn, plan))
        })
        .await
    }

    async fn whole(&self, source: &str, kinds: &[String], published: &[(String, String)]) -> Result<Whole> {
        let (source, kinds, published) = (source.to_owned(), kinds.to_vec(), published.to_vec());
        self.read("read a source's records", move |conn| derived::whole(conn, &source, &kinds, &published))
            .await
    }

    async fn derive(&self, derived: DeriveCommit) -> Result<DeriveOutcome> {
        self.write("write what follows from the records", Durability::Synced, move |tx| {
            derived::write(tx, &derived)
        })
        .await
    }

    async fn rebaseline(&self, target: TargetId) -> Result<()> {
        self.write("forget a baseline", Durability::Synced, move |tx| control::rebaseline(tx, target)).await
    }

    async fn targets(&self, filter: &TargetFilter) -> Result<Vec<TargetRow>> {
        let filter = filter.clone();
        self.read("list targets", move |conn| read::targets(conn, &filter)).await
    }

    async fn target(&self, source: &str, key: &str) -> Result<Option<TargetRow>> {
        let (source, key) = (source.to_owned(), key.to_owned());
        self.read("find a target", move |conn| read::target(conn, &source, &key)).await
    }

    async fn records(&self, source: &str, fingerprints: &[Fingerprint]) -> Result<Vec<StoredRecord>> {
        let (source, prints) = (source.to_owned(), fingerprints.to_vec());
        self.read("read records", move |conn| read::records(conn, &source, &prints)).await
    }

    async fn siblings(&self, source: &str, families: &[(Fingerprint, Fingerprint)]) -> Result<Vec<Sibling>> {
        let (source, families) = (source.to_owned(), families.to_vec());
        self.read("read siblings", move |conn| read::siblings(conn, &source, &families)).await
    }

    async fn snapshot(&self, target: TargetId) -> Result<Snapshot> {
        self.read("read a snapshot", move |conn| Ok(rows::snapshot(conn, target.0)?.0)).await
    }

    async fn told_until(&self, source: &str, streams: &[(Fingerprint, String)]) -> Result<Vec<Option<Time>>> {
        let (source, streams) = (source.to_owned(), streams.to_vec());
        self.read("read how far history was told", move |conn| history::told_until(conn, &source, &streams))
            .await
    }

    async fn history(
        &self,
        source: &str,
        record: Fingerprint,
        stream: Option<&str>,
        limit: u32,
    ) -> Result<Vec<HistoryRow>> {
        let (source, stream) = (source.to_owned(), stream.map(str::to_owned));
        self.read("read history", move |conn| read::history(conn, &source, record, stream.as_deref(), limit))
            .await
    }

    async fn list_records(&self, filter: &RecordFilter) -> Result<Vec<ListedRecord>> {
        let filter = filter.clone();
        self.read("list records", move |conn| browse::records(conn, &filter)).await
    }

    async fn history_between(&self, window: &HistoryWindow, limit: u32) -> Result<Vec<HistoryRow>> {
        let window = window.clone();
        self.read("read history", move |conn| browse::history_between(conn, &window, limit)).await
    }

    async fn history_points(&self, window: &HistoryWindow, points: u32) -> Result<Vec<HistoryRow>> {
        let window = window.clone();
        self.read("read history", move |conn| browse::history_points(conn, &window, points)).await
    }

    async fn history_at(&self, source: &str, record: Fingerprint, at: Time) -> Result<Vec<HistoryRow>> {
        let source = source.to_owned();
        self.read("read history", move |conn| browse::history_at(conn, &source, record, at)).await
    }

    async fn log_ends(&self) -> Result<LogEnds> {
        self.read("read the ends of the event log", browse::log_ends).await
    }

    async fn newest_events(&self, before: u64, filter: &EventFilter, limit: u32) -> Result<Vec<Event>> {
        let filter = filter.clone();
        self.read("read events", move |conn| read::newest_events(conn, before, &filter, limit)).await
    }

    async fn events(&self, after: u64, filter: &EventFilter, limit: u32) -> Result<Vec<Event>> {
        let filter = filter.clone();
        self.read("read events", move |conn| read::events(conn, after, &filter, limit)).await
    }

    async fn polls(&self, target: TargetId, limit: u32) -> Result<Vec<PollLog>> {
        self.read("read the poll log", move |conn| read::polls(conn, target, limit)).await
    }

    async fn polls_between(
        &self,
        target: TargetId,
        from: Time,
        to: Time,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<PollLog>> {
        let window = (from, to);
        self.read("read the poll log", move |conn| browse::polls_between(conn, target, window, before, limit))
            .await
    }

    async fn newest_polls(&self, before: Option<u64>, limit: u32) -> Result<Vec<ListedPoll>> {
        self.read("read the poll log", move |conn| browse::polls(conn, before, limit)).await
    }

    async fn source_runs(
        &self,
        source: &str,
        from: Time,
        to: Time,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FinishedRun>> {
        let source = source.to_owned();
        self.read("read runs", move |conn| browse::runs(conn, &source, (from, to), after, limit)).await
    }

    async fn runs(&self, target: TargetId, from: Time, to: Time) -> Result<Vec<Run>> {
        self.read("read runs", move |conn| read::runs(conn, target, from, to)).await
    }

    async fn polled_before(&self, targets: &[TargetId], moment: Time) -> Result<Vec<TargetId>> {
        let targets = targets.to_vec();
        self.read("read runs", move |conn| browse::polled_before(conn, &targets, moment)).await
    }

    async fn settings(&self) -> Result<Vec<(String, serde_json::Value)>> {
        self.read("read settings", read::settings).await
    }

    async fn set_setting(&self, key: &str, value: Option<serde_json::Value>, now: Time) -> Result<()> {
        let key = key.to_owned();
        self.write("change a setting", Durability::Synced, move |tx| {
            control::set_setting(tx, &key, value.as_ref(), now)
        })
        .await
    }

    async fn kv(&self, namespace: &str, key: &str) -> Result<Option<KvRow>> {
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        self.read("read a published value", move |conn| read::kv(conn, &namespace, &key)).await
    }

    async fn set_kv(
        &self,
        namespace: &str,
        key: &str,
        value: Option<serde_json::Value>,
        now: Time,
    ) -> Result<()> {
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        self.write("keep a value", Durability::Synced, move |tx| {
            control::set_kv(tx, &namespace, &key, value.as_ref(), now)
        })
        .await
    }

    async fn list_kv(
        &self,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<KvRow>> {
        let namespace = namespace.map(str::to_owned);
        let after = after.map(|(namespace, key)| (namespace.to_owned(), key.to_owned()));
        self.read("read published values", move |conn| browse::kv(conn, namespace, after, limit)).await
    }

    async fn add_token(&self, token: &TokenRow) -> Result<()> {
        let token = token.clone();
        self.write("keep a token", Durability::Synced, move |tx| tokens::add(tx.conn, &token)).await
    }

    async fn revoke_token(&self, id: &str, now: Time) -> Result<bool> {
        let id = id.to_owned();
        self.write("revoke a token", Durability::Synced, move |tx| tokens::revoke(tx.conn, &id, now)).await
    }

    async fn token(&self, id: &str) -> Result<Option<TokenRow>> {
        let id = id.to_owned();
        self.read("find a token", move |conn| tokens::find(conn, &id)).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.read("list tokens", tokens::all).await
    }

    async fn deliveries(&self, sink: &str, now: Time, limit: u32) -> Result<Vec<Delivery>> {
        let sink = sink.to_owned();
        self.read("read deliveries", move |conn| read::deliveries(conn, &sink, now, limit)).await
    }

    async fn deliveries_of(&self, sink: &str, seqs: &[u64]) -> Result<Vec<Delivery>> {
        let (sink, seqs) = (sink.to_owned(), seqs.to_vec());
        self.read("read deliveries", move |conn| deliveries::of(conn, &sink, &seqs)).await
    }

    async fn undelivered(&self, sink: &str, seqs: &[u64]) -> Result<Vec<u64>> {
        let (sink, seqs) = (sink.to_owned(), seqs.to_vec());
        self.read("look for deliveries", move |conn| deliveries::undelivered(conn, &sink, &seqs)).await
    }

    // Losing the mark with the power means delivering again: at least once, with the same event id.
    async fn delivered(&self, sink: &str, seqs: &[u64]) -> Result<()> {
        let (sink, seqs) = (sink.to_owned(), seqs.to_vec());
        self.write("mark deliveries", Durability::Relaxed, move |tx| control::delivered(tx, &sink, &seqs))
            .await
    }

    async fn delivery_failed(&self, sink: &str, seq: u64, retry: Option<Time>, error: &str) -> Result<()> {
        let (sink, error) = (sink.to_owned(), error.to_owned());
        self.write("mark a failed delivery", Durability::Relaxed, move |tx| {
            control::delivery_failed(tx, &sink, seq, retry, &error)
        })
        .await
    }

    async fn dead_deliveries(&self, sink: Option<&str>, limit: u32) -> Result<Vec<DeadDelivery>> {
        let sink = sink.map(str::to_owned);
        self.read("list dead deliveries", move |conn| deliveries::dead(conn, sink.as_deref(), limit)).await
    }

    async fn retry_deliveries(&self, sink: &str, chosen: Chosen) -> Result<u64> {
        let sink = sink.to_owned();
        self.write("retry deliveries", Durability::Synced, move |tx| {
            deliveries::retry(tx.conn, &sink, chosen)
        })
        .await
    }

    async fn drop_deliveries(&self, sink: &str, chosen: Chosen) -> Result<u64> {
        let sink = sink.to_owned();
        self.write("drop deliveries", Durability::Synced, move |tx| deliveries::drop(tx.conn, &sink, chosen))
            .await
    }

    async fn outboxes(&self) -> Result<Vec<Outbox>> {
        self.read("count deliveries", notifications::outboxes).await
    }

    async fn notifications(
        &self,
        before: u64,
        filter: &NotificationFilter,
        limit: u32,
    ) -> Result<Vec<Notification>> {
        let filter = filter.clone();
        self.read("read notifications", move |conn| notifications::list(conn, before, &filter, limit)).await
    }

    async fn unread_notifications(&self, user: Option<&str>) -> Result<u64> {
        let user = user.map(str::to_owned);
        self.read("count notifications", move |conn| notifications::unread(conn, user.as_deref())).await
    }

    async fn mark_read(&self, mark: &ReadMark, now: Time) -> Result<u64> {
        let mark = mark.clone();
        self.write("mark notifications", Durability::Relaxed, move |tx| {
            notifications::mark(tx.conn, &mark, now)
        })
        .await
    }

    async fn set_filed_alerts(&self, rules: &BTreeMap<String, serde_json::Value>, now: Time) -> Result<()> {
        let rules = rules.clone();
        self.write("keep the alerts of the file", Durability::Relaxed, move |tx| {
            notifications::set_filed(tx.conn, &rules, now)
        })
        .await
    }

    async fn prune(&self, retention: &Retention, now: Time, batch: u32) -> Result<Pruned> {
        let retention = *retention;
        self.on_writer("prune", move |writer| {
            let mut cursor = std::mem::take(&mut writer.cursor);
            let pruned = writer.transaction(Durability::Relaxed, |tx| {
                prune::prune(tx, &mut cursor, &retention, now, batch)
            })?;
            writer.cursor = cursor;
            Ok(pruned)
        })
        .await
    }

    async fn stats(&self) -> Result<StoreStats> {
        let mut stats = self.read("count", read::stats).await?;
        let size = |suffix: &str| {
            let mut path = self.path.as_os_str().to_owned();
            path.push(suffix);
            std::fs::metadata(path).map(|file| file.len()).ok()
        };
        // A database in memory has no file: then its pages count.
        if let Some(bytes) = size("") {
            stats.bytes = bytes + size("-wal").unwrap_or(0);
        }
        Ok(stats)
    }

    fn hurry(&self) {
        if let Some(writer) = &self.writer {
            writer.hurry();
        }
    }

    fn is_in_order(&self) -> bool {
        // Without readers beside it, everything goes through the writer.
        self.readers.is_none()
    }
}
