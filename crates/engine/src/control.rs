//! Control: what people and programs may tell a running engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::Value as Json;
use stakeout_core::alert::{Places, is_type};
use stakeout_core::{SettingRefused, Source, Span, Time};
use stakeout_store::{KvRow, TargetId};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::alerts;
use crate::claimer::LookCount;
use crate::clock::Clock;
use crate::dispatch::Message;
use crate::engine::EngineError;
use crate::lane::Lane;
use crate::live::PollWatch;
use crate::outlets::{self, SinkState};
use crate::replan;
use crate::settings::{Scope, is_open, settings_of, with_possible};
use crate::shared::Shared;
use crate::sharing;
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
        let (lanes, stored) = self.try_setting(key, value.as_ref()).await?;
        self.shared.store.set_setting(key, value, self.shared.clock.now()).await?;
        self.shared.outlets.follow(&stored);
        let mut moved = Vec::new();
        if self.shared.alerts.follow(&stored) {
            moved.extend(replan::everything(&self.shared, None).await?);
        }
        for lane in lanes {
            let settings = settings_of(&**lane.filed(), &stored);
            lane.reconfigure(with_possible(lane.filed(), &settings), settings);
            sharing::limits_changed(lane, self.shared.clock.now());
            moved.extend(replan::source(&self.shared, lane.filed().name(), None).await?);
        }
        self.changed(moved).await
    }

    /// The sources that a setting is meant for, and its name there.
    fn meant<'s, 'k>(&'s self, key: &'k str) -> Result<(Vec<&'s Lane>, &'k str), EngineError> {
        let lanes = &self.shared.lanes;
        let (meant, name): (Vec<&Lane>, &str) = match Scope::of(key) {
            Some(Scope::One(source, name)) => (lanes.get(source).into_iter().collect(), name),
            Some(Scope::Open(name)) => {
                (lanes.values().filter(|lane| is_open(&**lane.filed(), name)).collect(), name)
            }
            None => (Vec::new(), key),
        };
        if meant.is_empty() {
            let mut known: Vec<String> = lanes.keys().map(|name| format!("source.{name}.…")).collect();
            let open = |lane: &Lane| lane.filed().open_settings().map(|prefix| format!("{prefix}…"));
            known.extend(lanes.values().filter_map(open));
            known.dedup();
            return Err(EngineError::UnknownSetting { key: key.to_owned(), known });
        }
        Ok((meant, name))
    }

    /// Computes the due times of all targets anew and lets go of those that moved.
    pub(crate) async fn replan(&self) -> Result<(), EngineError> {
        let moved = replan::everything(&self.shared, None).await?;
        self.changed(moved).await
    }

    /// Polls everything that is due now, waiting at most `limit`. One pass at a time, so that a poll is counted in one
    /// of them: whoever comes meanwhile waits for it.
    pub async fn pass(&self, limit: Span) -> Result<PassReport, EngineError> {
        let began = Instant::now();
        let ends = tokio::time::Instant::now() + limit.to_std();
        let mut report = PassReport::default();
        let mut held = None;
        if let Ok(_alone) = tokio::time::timeout_at(ends, self.shared.passes.lock()).await {
            self.shared.stats.take_pass();
            let (answer, reached) = oneshot::channel();
            self.dispatcher.send(Message::Barrier(answer)).await.map_err(|_| EngineError::Stopped)?;
            self.shared.look.notify_one();
            // Whoever ran out of time gets the numbers so far; the polls go on.
            held = tokio::time::timeout_at(ends, reached).await.ok().and_then(Result::ok).flatten();
            report = self.shared.stats.take_pass();
        }
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

    /// How due targets were looked for since the start.
    pub fn looks(&self) -> LookCount {
        self.shared.looks.count()
    }

    /// How many polls were committed since the start, failed ones included, as it grows.
    pub fn polled(&self) -> watch::Receiver<u64> {
        self.shared.polled.subscribe()
    }

    /// Published values, as they change. Whoever reads too slowly loses the oldest and is told so.
    pub fn published(&self) -> broadcast::Receiver<KvRow> {
        self.shared.published.subscribe()
    }

    /// Looks on: what each poll of this process comes to from now on, the newest of each target.
    pub fn watch_polls(&self) -> PollWatch {
        self.shared.live.watch()
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

    /// The alerts of the configuration file by name, as they would be written.
    pub fn filed_alerts(&self) -> BTreeMap<String, Json> {
        self.shared.alerts.filed().written()
    }

    /// The alerts in force by name, as they would be written: those of the file, and live ones, which go before them.
    pub fn alerts(&self) -> BTreeMap<String, Json> {
        self.shared.alerts.now().written()
    }

    /// The sinks, and whether they are switched on.
    pub fn sinks(&self) -> Vec<SinkState> {
        self.shared.outlets.states()
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

    /// The sources that a setting is meant for, and all settings with this one.
    async fn try_setting(
        &self,
        key: &str,
        value: Option<&Json>,
    ) -> Result<(Vec<&Lane>, Vec<(String, Json)>), EngineError> {
        let mut stored = self.shared.store.settings().await?;
        stored.retain(|(known, _)| known != key);
        stored.extend(value.map(|value| (key.to_owned(), value.clone())));
        if let (Some(name), Some(rule)) = (key.strip_prefix(alerts::SETTING_PREFIX), value) {
            let alone = BTreeMap::from([(name.to_owned(), rule.clone())]);
            let rules = self.shared.alerts.filed().configured(&alone)?;
            self.check_places(key, rule, &rules.places(name))?;
        }
        if key.starts_with(alerts::SETTING_PREFIX) {
            return Ok((Vec::new(), stored));
        }
        if key.starts_with(outlets::SETTING_PREFIX) {
            self.shared.outlets.check(key, value)?;
            return Ok((Vec::new(), stored));
        }
        let (lanes, name) = self.meant(key)?;
        if let Some(value) = value {
            lanes.iter().try_for_each(|lane| check(&**lane.filed(), &stored, name, value))?;
        }
        Ok((lanes, stored))
    }

    /// Whether the source and the sinks that a rule names are there, and somebody tells of what it waits for: otherwise it
    /// would never ring, or nobody would hear it.
    fn check_places(&self, key: &str, rule: &Json, places: &Places) -> Result<(), SettingRefused> {
        let shared = &self.shared;
        let unknown = |what: &str, found: &str, known: Vec<String>| {
            let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
            let expected =
                format!("a {what} of the configuration file ({known}), and {found:?} is not there");
            Err(SettingRefused::new(key, rule, expected))
        };
        if let Some(source) = places.source.as_ref().filter(|name| !shared.lanes.contains_key(*name)) {
            return unknown("source", source, shared.source_names());
        }
        if let Some(pattern) = &places.event_type {
            let meant = |name: &String| places.source.as_ref().is_none_or(|wanted| wanted == name);
            let lanes = shared.lanes.iter().filter(|(name, _)| meant(name));
            let told: BTreeSet<String> = lanes.flat_map(|(_, lane)| lane.source().event_types()).collect();
            if !told.iter().any(|event_type| is_type(event_type, pattern)) {
                let told: Vec<String> = told.into_iter().collect();
                let expected =
                    format!("a type of events that is told ({}), not {pattern:?}", told.join(", "));
                return Err(SettingRefused::new(key, rule, expected));
            }
        }
        match places.sinks.iter().find(|name| !shared.outlets.has(name)) {
            Some(sink) => unknown("sink", sink, shared.outlets.all_names()),
            None => Ok(()),
        }
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
}

/// Whether a new value can be, by itself and with the others. That an older one cannot be is not its fault.
fn check(
    filed: &dyn Source,
    stored: &[(String, Json)],
    name: &str,
    value: &Json,
) -> Result<(), SettingRefused> {
    filed.configured(&BTreeMap::from([(name.to_owned(), value.clone())]))?;
    let mut settings = settings_of(filed, stored);
    let together = filed.configured(&settings).map(|_| ());
    settings.remove(name);
    if filed.configured(&settings).is_ok() { together } else { Ok(()) }
}
