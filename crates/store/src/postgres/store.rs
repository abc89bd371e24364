//! The [`Store`] of a [`PgStore`].

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stakeout_core::adherence::Run;
use stakeout_core::{Event, Fingerprint, Kind, Snapshot, Span, Time};
use tokio::sync::broadcast;

use super::{
    PgStore, all, browse, claim, control, deliveries, derived, migrate, notifications, one, prune, read,
    sharing, targets, tokens, wire,
};
use crate::{
    Chosen, Claim, ClaimRequest, CommitOutcome, DeadDelivery, Delivery, DeriveCommit, DeriveOutcome,
    EventFilter, FinishedRun, Grant, GrantRequest, Hint, HistoryRow, HistoryWindow, KvRow, LaneLease,
    LaneRequest, Lease, LeaseRequest, ListedPoll, ListedRecord, LogEnds, NewPlan, Notification,
    NotificationFilter, Outbox, PollCommit, PollLog, Pruned, ReadMark, Reconciled, RecordFilter, Result,
    Retention, Sibling, Store, StoreStats, StoredRecord, TargetFilter, TargetId, TargetRow, TokenRow, Wanted,
    Whole,
};

#[async_trait]
impl Store for PgStore {
    async fn ensure_views(&self, kinds: &[Kind]) -> Result<()> {
        self.on("make the views", async |client| control::ensure_views(client, kinds).await).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>> {
        self.on("claim due targets", async |client| self.take(client, &request).await).await
    }

    async fn next_wake(&self, sources: &[String]) -> Result<Option<Time>> {
        self.on("find the next due time", async |client| claim::next_wake(client, sources).await).await
    }

    async fn commit(&self, polls: Vec<Arc<PollCommit>>) -> Result<Vec<CommitOutcome>> {
        self.commit_in_parts(&polls).await.map_err(|fault| fault.into_store("commit polls"))
    }

    async fn release(&self, claims: &[(TargetId, u64)]) -> Result<()> {
        self.on("give claims back", async |client| claim::release(client, claims).await).await
    }

    async fn renew(&self, claims: &[(TargetId, u64)], until: Time) -> Result<Vec<TargetId>> {
        self.on("extend claims", async |client| self.renew_all(client, claims, until).await).await
    }

    async fn reconcile_roots(&self, source: &str, desired: &[Wanted], now: Time) -> Result<Reconciled> {
        self.on("reconcile targets", async |client| {
            let text = wire::roots(desired)?;
            let sql = "SELECT o_created, o_updated, o_retired FROM stakeout_roots($1, $2, $3)";
            let row = one(client, sql, &[&source, &text, &now.us()]).await?;
            let count = |column: usize| row.try_get::<_, i32>(column).map(|count| count as u32);
            Ok(Reconciled { created: count(0)?, updated: count(1)?, retired: count(2)? })
        })
        .await
    }

    async fn set_enabled(&self, target: TargetId, enabled: bool, now: Time) -> Result<()> {
        self.on("switch a target", async |client| control::set_enabled(client, target, enabled, now).await)
            .await
    }

    async fn poll_now(&self, target: TargetId, now: Time) -> Result<()> {
        self.on("make a target due", async |client| control::poll_now(client, target, now).await).await
    }

    async fn replan(&self, plans: &[NewPlan]) -> Result<()> {
        self.on("re-plan targets", async |client| {
            all(client, "SELECT stakeout_replan_all($1)", &[&wire::plans(plans)?]).await?;
            Ok(())
        })
        .await
    }

    async fn whole(&self, source: &str, kinds: &[String], published: &[(String, String)]) -> Result<Whole> {
        self.on("read a source's records", async |client| {
            derived::whole(client, source, kinds, published).await
        })
        .await
    }

    async fn derive(&self, derived: DeriveCommit) -> Result<DeriveOutcome> {
        self.on("write what follows from the records", async |client| derived::write(client, &derived).await)
            .await
    }

    async fn rebaseline(&self, target: TargetId) -> Result<()> {
        self.on("forget a baseline", async |client| control::rebaseline(client, target).await).await
    }

    async fn targets(&self, filter: &TargetFilter) -> Result<Vec<TargetRow>> {
        self.on("list targets", async |client| targets::list(client, filter).await).await
    }

    async fn target(&self, source: &str, key: &str) -> Result<Option<TargetRow>> {
        self.on("find a target", async |client| targets::find(client, source, key).await).await
    }

    async fn records(&self, source: &str, fingerprints: &[Fingerprint]) -> Result<Vec<StoredRecord>> {
        self.on("read records", async |client| read::records(client, source, fingerprints).await).await
    }

    async fn siblings(&self, source: &str, families: &[(Fingerprint, Fingerprint)]) -> Result<Vec<Sibling>> {
        self.on("read siblings", async |client| read::siblings(client, source, families).await).await
    }

    async fn snapshot(&self, target: TargetId) -> Result<Snapshot> {
        self.on("read a snapshot", async |client| read::snapshot(client, target).await).await
    }

    async fn told_until(&self, source: &str, streams: &[(Fingerprint, String)]) -> Result<Vec<Option<Time>>> {
        self.on("read history", async |client| browse::told_until(client, source, streams).await).await
    }

    async fn history(
        &self,
        source: &str,
        record: Fingerprint,
        stream: Option<&str>,
        limit: u32,
    ) -> Result<Vec<HistoryRow>> {
        self.on("read history", async |client| read::history(client, source, record, stream, limit).await)
            .await
    }

    async fn list_records(&self, filter: &RecordFilter) -> Result<Vec<ListedRecord>> {
        self.on("list records", async |client| browse::records(client, filter).await).await
    }

    async fn history_between(&self, window: &HistoryWindow, limit: u32) -> Result<Vec<HistoryRow>> {
        self.on("read history", async |client| browse::history_between(client, window, limit).await).await
    }

    async fn history_points(&self, window: &HistoryWindow, points: u32) -> Result<Vec<HistoryRow>> {
        self.on("read history", async |client| browse::history_points(client, window, points).await).await
    }

    async fn history_at(&self, source: &str, record: Fingerprint, at: Time) -> Result<Vec<HistoryRow>> {
        self.on("read history", async |client| browse::history_at(client, source, record, at).await).await
    }

    async fn log_ends(&self) -> Result<LogEnds> {
        self.on("find the ends of the log", async |client| browse::log_ends(client).await).await
    }

    async fn newest_events(&self, before: u64, filter: &EventFilter, limit: u32) -> Result<Vec<Event>> {
        self.on("read events", async |client| read::newest_events(client, before, filter, limit).await).await
    }

    async fn events(&self, after: u64, filter: &EventFilter, limit: u32) -> Result<Vec<Event>> {
        self.on("read events", async |client| read::events(client, after, filter, limit).await).await
    }

    async fn polls(&self, target: TargetId, limit: u32) -> Result<Vec<PollLog>> {
        self.on("read the poll log", async |client| read::polls(client, target, limit).await).await
    }

    async fn polls_between(
        &self,
        target: TargetId,
        from: Time,
        to: Time,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<PollLog>> {
        self.on("read the poll log", async |client| {
            browse::polls_between(client, target, (from, to), before, limit).await
        })
        .await
    }

    async fn newest_polls(&self, before: Option<u64>, limit: u32) -> Result<Vec<ListedPoll>> {
        self.on("read the poll log", async |client| browse::polls(client, before, limit).await).await
    }

    async fn source_runs(
        &self,
        source: &str,
        from: Time,
        to: Time,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<FinishedRun>> {
        self.on("read runs", async |client| browse::runs(client, source, (from, to), after, limit).await)
            .await
    }

    async fn runs(&self, target: TargetId, from: Time, to: Time) -> Result<Vec<Run>> {
        self.on("read runs", async |client| read::runs(client, target, from, to).await).await
    }

    async fn polled_before(&self, targets: &[TargetId], moment: Time) -> Result<Vec<TargetId>> {
        self.on("read runs", async |client| browse::polled_before(client, targets, moment).await).await
    }

    async fn settings(&self) -> Result<Vec<(String, serde_json::Value)>> {
        self.on("read settings", async |client| read::settings(client).await).await
    }

    async fn set_setting(&self, key: &str, value: Option<serde_json::Value>, now: Time) -> Result<()> {
        self.on("change a setting", async |client| {
            control::set_setting(client, key, value.as_ref(), now).await
        })
        .await
    }

    async fn kv(&self, namespace: &str, key: &str) -> Result<Option<KvRow>> {
        self.on("read a published value", async |client| read::kv(client, namespace, key).await).await
    }

    async fn set_kv(
        &self,
        namespace: &str,
        key: &str,
        value: Option<serde_json::Value>,
        now: Time,
    ) -> Result<()> {
        self.on("keep a value", async |client| {
            control::set_kv(client, namespace, key, value.as_ref(), now).await
        })
        .await
    }

    async fn list_kv(
        &self,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<KvRow>> {
        self.on("list published values", async |client| browse::kv(client, namespace, after, limit).await)
            .await
    }

    async fn add_token(&self, token: &TokenRow) -> Result<()> {
        self.on("keep a token", async |client| tokens::add(client, token).await).await
    }

    async fn revoke_token(&self, id: &str, now: Time) -> Result<bool> {
        self.on("revoke a token", async |client| tokens::revoke(client, id, now).await).await
    }

    async fn token(&self, id: &str) -> Result<Option<TokenRow>> {
        self.on("find a token", async |client| tokens::find(client, id).await).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.on("list tokens", async |client| tokens::list(client).await).await
    }

    async fn deliveries(&self, sink: &str, now: Time, limit: u32) -> Result<Vec<Delivery>> {
        self.on("read deliveries", async |client| read::deliveries(client, sink, now, limit).await).await
    }

    async fn deliveries_of(&self, sink: &str, seqs: &[u64]) -> Result<Vec<Delivery>> {
        self.on("read deliveries", async |client| deliveries::of(client, sink, seqs).await).await
    }

    async fn undelivered(&self, sink: &str, seqs: &[u64]) -> Result<Vec<u64>> {
        self.on("look for deliveries", async |client| deliveries::undelivered(client, sink, seqs).await).await
    }

    async fn delivered(&self, sink: &str, seqs: &[u64]) -> Result<()> {
        self.on("mark deliveries", async |client| control::delivered(client, sink, seqs).await).await
    }

    async fn delivery_failed(&self, sink: &str, seq: u64, retry: Option<Time>, error: &str) -> Result<()> {
        self.on("mark a failed delivery", async |client| {
            control::delivery_failed(client, sink, seq, retry, error).await
        })
        .await
    }

    async fn dead_deliveries(&self, sink: Option<&str>, limit: u32) -> Result<Vec<DeadDelivery>> {
        self.on("list dead deliveries", async |client| deliveries::dead(client, sink, limit).await).await
    }

    async fn retry_deliveries(&self, sink: &str, chosen: Chosen) -> Result<u64> {
        self.on("retry deliveries", async |client| deliveries::retry(client, sink, chosen).await).await
    }

    async fn drop_deliveries(&self, sink: &str, chosen: Chosen) -> Result<u64> {
        self.on("drop deliveries", async |client| deliveries::drop(client, sink, chosen).await).await
    }

    async fn outboxes(&self) -> Result<Vec<Outbox>> {
        self.on("count deliveries", async |client| notifications::outboxes(client).await).await
    }

    async fn notifications(
        &self,
        before: u64,
        filter: &NotificationFilter,
        limit: u32,
    ) -> Result<Vec<Notification>> {
        self.on("read notifications", async |client| notifications::list(client, before, filter, limit).await)
            .await
    }

    async fn unread_notifications(&self, user: Option<&str>) -> Result<u64> {
        self.on("count notifications", async |client| notifications::unread(client, user).await).await
    }

    async fn mark_read(&self, mark: &ReadMark, now: Time) -> Result<u64> {
        self.on("mark notifications", async |client| notifications::mark(client, mark, now).await).await
    }

    async fn set_filed_alerts(&self, rules: &BTreeMap<String, serde_json::Value>, now: Time) -> Result<()> {
        self.on("keep the alerts of the file", async |client| {
            notifications::set_filed(client, rules, now).await
        })
        .await
    }

    async fn prune(&self, retention: &Retention, now: Time, batch: u32) -> Result<Pruned> {
        self.on("prune", async |client| {
            let mut cursor = self.cursor.lock().await;
            prune::prune(client, &mut cursor, retention, now, batch).await
        })
        .await
    }

    async fn stats(&self) -> Result<StoreStats> {
        self.on("count", async |client| read::stats(client).await).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn clock(&self, now: Time) -> Result<Option<Time>> {
        if !self.offset.is_database() {
            return Ok(None);
        }
        let answered =
            self.on("read the database's clock", async |client| sharing::clock(client).await).await?;
        self.offset.measure(now, answered.us());
        Ok(Some(answered))
    }

    fn clock_was_set(&self, by: Span) {
        self.offset.engine_moves(by);
    }

    async fn check_schema(&self) -> Result<()> {
        let found = self
            .on("read the schema's version", async |client| {
                let row = one(client, "SELECT coalesce(max(step), 0) FROM schema_steps", &[]).await?;
                Ok(row.try_get::<_, i32>(0)? as u32)
            })
            .await?;
        migrate::check(found, self.known)
    }

    async fn lease(&self, request: &LeaseRequest) -> Result<Option<Lease>> {
        self.on("take a lease", async |client| self.take_lease(client, request).await).await
    }

    async fn lane(&self, request: &LaneRequest) -> Result<Option<LaneLease>> {
        self.on("take a source", async |client| self.take_lane(client, request).await).await
    }

    async fn grant(&self, request: &GrantRequest) -> Result<Option<Grant>> {
        self.on("share a source's limits", async |client| self.take_grant(client, request).await).await
    }

    async fn leave(&self, node: &str) -> Result<()> {
        self.on("leave", async |client| sharing::leave(client, node).await).await
    }

    async fn price(&self, source: &str) -> Result<Option<f64>> {
        self.on("read a price", async |client| sharing::price(client, source).await).await
    }

    async fn set_price(&self, source: &str, price: f64, now: Time) -> Result<()> {
        self.on("write a price", async |client| sharing::set_price(client, source, price, now).await).await
    }

    fn hints(&self) -> Option<broadcast::Receiver<Hint>> {
        self.listener.as_ref().map(|_| self.hints.subscribe())
    }

    async fn hears_hints(&self) -> Result<bool> {
        let Some(listener) = &self.listener else { return Ok(false) };
        self.on("speak to itself", async |client| sharing::hears(client, listener).await).await
    }

    async fn moved_on(&self, plans: &[(TargetId, u64)]) -> Result<Vec<TargetId>> {
        self.on("compare plans", async |client| sharing::moved_on(client, plans).await).await
    }
}
