//! Control: what people and programs may tell a running engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::Value as Json;
use stakeout_core::{Source, Span, Time};
use stakeout_store::TargetId;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::dispatch::Message;
use crate::engine::EngineError;
use crate::lane::Lane;
use crate::replan;
use crate::shared::Shared;
use crate::stats::PassReport;
use crate::vitals::{SourceVitals, Vitals};

/// A handle to a running engine; cheap to clone.
#[derive(Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) dispatcher: mpsc::Sender<Message>,
}

impl Control {
    /// Polls a target at once, and then as planned. One that is in flight is polled once more afterwards.
    pub async fn poll_now(&self, source: &str, key: &str) -> Result<(), EngineError> {
        let _busy = self.shared.clock.busy();
        let target = self.find(source, key).await?;
        self.shared.store.poll_now(target, self.shared.clock.now()).await?;
        self.changed(vec![target]).await
    }

    /// Switches a target on or off for good.
    pub async fn set_enabled(&self, source: &str, key: &str, enabled: bool) -> Result<(), EngineError> {
        let _busy = self.shared.clock.busy();
        let target = self.find(source, key).await?;
        self.shared.store.set_enabled(target, enabled, self.shared.clock.now()).await?;
        self.changed(vec![target]).await
    }

    /// Makes a target's next complete answer its new baseline, without events.
    pub async fn rebaseline(&self, source: &str, key: &str) -> Result<(), EngineError> {
        let _busy = self.shared.clock.busy();
        let target = self.find(source, key).await?;
        self.shared.store.rebaseline(target).await?;
        self.changed(vec![target]).await
    }

    /// Changes a live setting, or removes it with `None`. A value that is refused changes nothing.
    pub async fn set_setting(&self, key: &str, value: Option<Json>) -> Result<(), EngineError> {
        let _busy = self.shared.clock.busy();
        let _one_at_a_time = self.shared.settings.lock().await;
        let (source, lane, configured) = self.try_setting(key, value.as_ref()).await?;
        self.shared.store.set_setting(key, value, self.shared.clock.now()).await?;
        lane.reconfigure(configured);
        let moved = replan::source(&self.shared, source, None).await?;
        self.changed(moved).await
    }

    /// Computes the due times of all targets anew and lets go of those that moved.
    pub(crate) async fn replan(&self) -> Result<(), EngineError> {
        let moved = replan::everything(&self.shared, None).await?;
        self.changed(moved).await
    }

    /// Polls everything that is due now, waiting at most `limit`.
    pub async fn pass(&self, limit: Span) -> Result<PassReport, EngineError> {
        let began = Instant::now();
        self.shared.stats.take_pass();
        let (answer, reached) = oneshot::channel();
        self.dispatcher.send(Message::Barrier(answer)).await.map_err(|_| EngineError::Stopped)?;
        self.shared.look.notify_one();
        // Whoever ran out of time gets the numbers so far; the polls go on.
        let held = tokio::time::timeout(limit.to_std(), reached).await.ok().and_then(Result::ok).flatten();
        let mut report = self.shared.stats.take_pass();
        report.took_ms = began.elapsed().as_millis() as u64;
        // What is held wakes with its lease in the store, and with its due time here.
        let stored = self.shared.store.next_wake(&self.shared.source_names()).await?;
        report.next_due = [stored, held].into_iter().flatten().min();
        Ok(report)
    }

    /// The newest event's sequence number, as it grows.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.shared.newest.subscribe()
    }

    /// How many polls were committed since the start, failed ones included, as it grows.
    pub fn polled(&self) -> watch::Receiver<u64> {
        self.shared.polled.subscribe()
    }

    /// Names of published values that changed: namespace and key.
    pub fn published(&self) -> broadcast::Receiver<(String, String)> {
        self.shared.published.subscribe()
    }

    /// Engine time.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// When the engine started.
    pub fn started(&self) -> Time {
        self.shared.started
    }

    /// The sources as their settings are now, by name.
    pub fn sources(&self) -> Vec<Arc<dyn Source>> {
        self.shared.lanes.values().map(Lane::source).collect()
    }

    /// A source by name.
    pub fn source(&self, name: &str) -> Option<Arc<dyn Source>> {
        self.shared.lanes.get(name).map(Lane::source)
    }

    /// How the engine is doing. Never waits.
    pub fn vitals(&self) -> Vitals {
        let shared = &self.shared;
        let totals = shared.stats.totals();
        let source = |(name, lane): (&String, &Lane)| SourceVitals {
            name: name.clone(),
            totals: totals.get(name).cloned().unwrap_or_default(),
            lane: lane.state(),
        };
        let (commits, committing) = shared.commits.read();
        Vitals {
            sources: shared.lanes.iter().map(source).collect(),
            held: shared.held.load(Ordering::Relaxed) as u64,
            committing: shared.committer.waiting() as u64,
            commits,
            commit_time: committing,
        }
    }

    /// Whether a setting would be accepted, without changing it.
    pub async fn check_setting(&self, key: &str, value: Option<&Json>) -> Result<(), EngineError> {
        self.try_setting(key, value).await.map(|_| ())
    }

    /// Computes the due times of one target's plan anew, as after a change of settings.
    pub async fn replan_target(&self, source: &str, key: &str) -> Result<(), EngineError> {
        let row = self.shared.store.target(source, key).await?;
        let row = row.ok_or_else(|| EngineError::UnknownTarget(format!("{source}/{key}")))?;
        let moved = replan::one(&self.shared, &row).await?;
        self.changed(moved).await
    }

    /// The lane a setting belongs to, and its source with the setting applied.
    async fn try_setting(
        &self,
        key: &str,
        value: Option<&Json>,
    ) -> Result<(&str, &Lane, Arc<dyn Source>), EngineError> {
        let unknown = || EngineError::UnknownSetting {
            key: key.to_owned(),
            known: self.shared.source_names().iter().map(|name| format!("source.{name}.…")).collect(),
        };
        let (source, name) =
            key.strip_prefix("source.").and_then(|rest| rest.split_once('.')).ok_or_else(unknown)?;
        let (source, lane) = self.shared.lanes.get_key_value(source).ok_or_else(unknown)?;
        let mut settings = self.settings_of(source).await?;
        match value {
            Some(value) => settings.insert(name.to_owned(), value.clone()),
            None => settings.remove(name),
        };
        Ok((source, lane, lane.configured(&settings)?))
    }

    async fn find(&self, source: &str, key: &str) -> Result<TargetId, EngineError> {
        let row = self.shared.store.target(source, key).await?;
        row.map(|row| row.id).ok_or_else(|| EngineError::UnknownTarget(format!("{source}/{key}")))
    }

    async fn changed(&self, targets: Vec<TargetId>) -> Result<(), EngineError> {
        if targets.is_empty() {
            return Ok(());
        }
        self.dispatcher.send(Message::Changed(targets)).await.map_err(|_| EngineError::Stopped)
    }

    async fn settings_of(&self, source: &str) -> Result<BTreeMap<String, Json>, EngineError> {
        Ok(settings_of(source, self.shared.store.settings().await?))
    }
}

/// The live settings of one source, by their names without the prefix.
pub(crate) fn settings_of(source: &str, all: Vec<(String, Json)>) -> BTreeMap<String, Json> {
    let prefix = format!("source.{source}.");
    all.into_iter()
        .filter_map(|(key, value)| key.strip_prefix(&prefix).map(|name| (name.to_owned(), value)))
        .collect()
}
