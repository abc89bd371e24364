//! A drone racing event in virtual time: the simulated FPVTrackside, watched by the real engine and compared with what
//! really happened.
//!
//! `trackside` answers requests, one after another; `judge` compares laps and the turns in the races' lives, `current`
//! the race that was published.

mod current;
mod judge;
mod trackside;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use serde_json::Value as Json;
use stakeout_core::{Event as Told, Span, Time};
use stakeout_engine::{Clock, Control, Engine, EngineConfig, virtual_runtime};
use stakeout_sim::fpv::{Event, EventConfig, Faults, Incident, Upstream, What};
use stakeout_sources::fpv::{FpvConfig, FpvSource};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{EventFilter, Store};

use super::tally::{adherence, count, quantiles, runs};

pub use super::tally::{PhaseAdherence, Quantiles};
pub use trackside::{Asked, Look, Trackside};

/// The name of the simulated source.
pub const SOURCE: &str = "track";
/// How long before the first race the watching begins, and how long after the last one it goes on.
const BEFORE: Span = Span::mins(2);
const AFTER: Span = Span::mins(2);
/// So many races have room for every incident.
pub const RACES_WITH_INCIDENTS: u32 = 48;
/// Remarks listed in the report.
const MOST_REMARKS: usize = 20;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct FpvEvent {
    /// The event: its seed, races, laps and times.
    pub event: EventConfig,
    /// What happens in it that was not planned.
    pub incidents: Vec<Incident>,
    /// The shortest and the longest time that a request takes.
    pub latency: (Span, Span),
    /// The chance of each sort of fault per request.
    pub faults: f64,
    /// The source's configuration; its URL does not matter.
    pub config: FpvConfig,
    /// Where to keep the database; in memory, unless given.
    pub database: Option<PathBuf>,
    /// When the watching begins; two minutes before the first race, unless given.
    pub start: Option<Time>,
    /// When the watching ends; two minutes after the last race, unless given.
    pub until: Option<Time>,
}

/// Laps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LapCount {
    /// Valid laps flown, holeshots included.
    #[serde(rename = "true")]
    pub flown: usize,
    /// Of them: told.
    pub told: usize,
    /// Of them: not told, though a poll saw them or should have.
    pub missed: usize,
    /// Of them: gone again before the next poll.
    pub unseen: usize,
    /// Told, and never flown.
    pub invented: usize,
}

/// The current race.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurrentReport {
    /// How often another race, or another place in the order, was the current one.
    pub changes: usize,
    /// How often one was published.
    pub published: usize,
    /// How long the published one was another than the looks so far had shown.
    pub wrong_ms: i64,
    /// From the moment a change could be read to its publication.
    pub delay_ms: Option<Quantiles>,
    /// Between two looks at the current race.
    pub gap_ms: Option<Quantiles>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Writes {
    /// Transactions.
    pub transactions: u64,
    /// Of them: waited for the disk.
    pub durable: u64,
    /// Rows inserted, updated or deleted, schedules included.
    pub rows: u64,
    /// Polls committed.
    pub polls: u64,
    /// History rows.
    pub history: u64,
    /// Events.
    pub events: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct FpvReport {
    /// The seed, to see it again.
    pub seed: u64,
    /// Races of the event.
    pub races: u32,
    /// Requests made, failed ones included.
    pub requests: u64,
    /// Requests that were refused, because the upstream was off.
    pub refused: u64,
    /// The most requests at the upstream at once.
    pub concurrent_requests_max: u32,
    /// The shortest time between two requests.
    pub least_gap_ms: Option<f64>,
    /// By phase.
    pub adherence: BTreeMap<String, PhaseAdherence>,
    /// By type.
    pub events: BTreeMap<String, u64>,
    /// The laps.
    pub laps: LapCount,
    /// From the moment a lap could be read to its event.
    pub lap_delay_ms: Option<Quantiles>,
    /// Starts, ends, resets, resumptions, invalidations and other events that happened.
    pub turns: usize,
    /// The current race.
    pub current: CurrentReport,
    /// What was written.
    pub writes: Writes,
    /// Laps and turns that were not told.
    pub misses: usize,
    /// Laps and turns that were told and did not happen.
    pub wrong_events: usize,
    /// How long the simulation took.
    pub took_ms: u64,
    /// The first few misses and wrong events, in words.
    pub remarks: Vec<String>,
}

/// A simulated event that is over, for tests that want to look closer.
pub struct Finished {
    /// The numbers.
    pub report: FpvReport,
    /// Everything that was told.
    pub events: Vec<Told>,
    /// What the engine kept.
    pub store: Arc<SqliteStore>,
    /// What really happened.
    pub upstream: Arc<Upstream>,
    /// What was asked.
    pub asked: Asked,
    /// What was published as the current race, and when.
    pub published: Vec<(Time, Json)>,
}

/// An event that is being watched.
pub struct Watching {
    /// What the engine may be told.
    pub control: Control,
    /// Its time.
    pub clock: Clock,
    /// What it keeps.
    pub store: Arc<SqliteStore>,
    /// Whom it asks.
    pub trackside: Arc<Trackside>,
    /// What really happens.
    pub upstream: Arc<Upstream>,
}

impl FpvEvent {
    /// 60 races with every incident, asked in 5 to 15 ms.
    pub fn new(seed: u64) -> FpvEvent {
        FpvEvent::with_races(seed, 60)
    }

    /// So many races: with every incident, or when there is no room for them all, with none.
    pub fn with_races(seed: u64, races: u32) -> FpvEvent {
        FpvEvent {
            event: EventConfig::new(seed).with_races(races),
            incidents: if races < RACES_WITH_INCIDENTS { Vec::new() } else { Incident::ALL.to_vec() },
            latency: (Span::ms(5), Span::ms(15)),
            faults: 0.0,
            config: FpvConfig::at("http://trackside.local:8080"),
            database: None,
            start: None,
            until: None,
        }
    }

    fn start(&self, upstream: &Upstream) -> Time {
        self.start.unwrap_or(upstream.event().began() - BEFORE)
    }

    /// Watches the whole event, and compares.
    pub fn run(&self) -> Result<Finished> {
        let began = Instant::now();
        let upstream = self.upstream();
        let until = self.until.unwrap_or(upstream.event().ended() + AFTER);
        let truth = upstream.event().truth();
        let switches = truth.changes().iter().filter(|change| change.what == What::Switched);
        let switches: Vec<Time> = switches.map(|change| change.at).collect();
        let watched = self.watch_until(Arc::clone(&upstream), async |watching: &Watching| {
            let (store, mut all) = (&*watching.store, BTreeMap::new());
            // How an event's targets were polled is forgotten with them.
            for at in switches {
                watching.clock.sleep_until(at.min(until)).await;
                all.extend(runs(store).await?);
            }
            watching.clock.sleep_until(until).await;
            all.extend(runs(store).await?);
            let events = store.events(0, &EventFilter::default(), 10_000_000).await?;
            Ok((events, all, store.stats().await?))
        })?;
        let ((events, runs, stats), store, asked, published) = watched;
        let counters = store.counters();
        let writes = Writes {
            transactions: counters.transactions(),
            durable: counters.durable_transactions(),
            rows: counters.rows_written(),
            polls: counters.polls(),
            history: stats.history,
            events: stats.events,
        };
        let mut report = self.report(&upstream, &asked, &events, &published, until);
        report.adherence = adherence(runs.values().flatten());
        report.writes = writes;
        report.took_ms = began.elapsed().as_millis() as u64;
        Ok(Finished { report, events, store, upstream, asked, published })
    }

    /// The upstream of this event.
    pub fn upstream(&self) -> Arc<Upstream> {
        let event = Event::with_incidents(&self.event, self.incidents.iter().copied());
        let upstream = Arc::new(Upstream::new(event));
        if self.faults > 0.0 {
            upstream.set_faults(Faults::each(self.event.seed, self.faults));
        }
        upstream
    }

    /// Watches an upstream in virtual time for as long as `during` lasts. Answers
    /// what `during` did, and the store, what was asked, and the published values.
    #[expect(clippy::type_complexity, reason = "four things of which nobody needs a name for all")]
    pub fn watch_until<T>(
        &self,
        upstream: Arc<Upstream>,
        during: impl AsyncFnOnce(&Watching) -> Result<T>,
    ) -> Result<(T, Arc<SqliteStore>, Asked, Vec<(Time, Json)>)> {
        let start = self.start(&upstream);
        let store = Arc::new(match &self.database {
            Some(path) => SqliteStore::open(path, OpenOptions::default())?,
            None => SqliteStore::in_memory()?,
        });
        let trackside = Arc::new(Trackside::new(Arc::clone(&upstream), self.event.seed, self.latency));
        let (runtime, clock) = virtual_runtime(start)?;
        let source = Arc::new(FpvSource::new(SOURCE, &self.config)?);
        let mut config =
            EngineConfig::new(Arc::clone(&store) as Arc<dyn Store>, vec![source], trackside.clone());
        config.clock = clock.clone();
        config.node = "simulation".to_owned();
        let (done, published) = runtime.block_on(async {
            let engine = Engine::start(config).await?;
            let control = engine.control();
            let (mut values, heard) = (control.published(), Arc::<Mutex<Vec<(Time, Json)>>>::default());
            let published = Arc::clone(&heard);
            let listening = tokio::spawn(async move {
                while let Ok(row) = values.recv().await {
                    if (row.namespace.as_str(), row.key.as_str()) == ("race", "currentOrder") {
                        lock(&heard).push((row.updated, row.value));
                    }
                }
            });
            let watching = Watching {
                control,
                clock,
                store: Arc::clone(&store),
                trackside: trackside.clone(),
                upstream,
            };
            let done = during(&watching).await?;
            engine.shutdown().await?;
            listening.abort();
            let published = lock(&published).clone();
            anyhow::Ok((done, published))
        })?;
        Ok((done, store, trackside.asked(), published))
    }

    fn report(
        &self,
        upstream: &Upstream,
        asked: &Asked,
        events: &[Told],
        published: &[(Time, Json)],
        until: Time,
    ) -> FpvReport {
        let event = upstream.event();
        let truth = event.truth();
        let laps = judge::laps(&truth, &asked.looks, events);
        let turns = judge::turns(&truth, self.start(upstream), events);
        let steps = current::published(published);
        let readable = current::readable(event);
        // Two idle intervals, and the regular check that ends them.
        let settles = Span::ms(self.config.scheduler.race_idle_ms.unwrap_or(5_000) * 2 + 1_000);
        let watched = current::watched(event, &asked.looks, settles);
        let (wrong, wrong_where) = current::wrong(&watched, &steps, until);
        let mut remarks: Vec<String> =
            laps.missed.iter().map(|(lap, at)| format!("missed: lap {lap} at {at}")).collect();
        remarks.extend(laps.invented.iter().map(|(lap, at)| format!("invented: lap {lap} at {at}")));
        remarks.extend(turns.missed.iter().map(|(name, of, at)| format!("missed: {name} {of} at {at}")));
        remarks.extend(turns.wrong.iter().map(|(name, of, at)| format!("wrong: {name} {of} at {at}")));
        remarks.extend(wrong_where.into_iter().map(|at| format!("current race {at}")));
        remarks.truncate(MOST_REMARKS);
        FpvReport {
            seed: self.event.seed,
            races: self.event.races,
            requests: asked.requests,
            refused: asked.refused,
            concurrent_requests_max: asked.most_at_once,
            least_gap_ms: asked.least_gap.map(|gap| gap.as_secs_f64() * 1e3),
            adherence: BTreeMap::new(),
            events: count(events.iter().map(|event| event.event_type.clone())),
            laps: LapCount {
                flown: laps.flown,
                told: laps.told,
                missed: laps.missed.len(),
                unseen: laps.unseen,
                invented: laps.invented.len(),
            },
            lap_delay_ms: quantiles(laps.delays),
            turns: turns.expected,
            current: CurrentReport {
                changes: readable.len().saturating_sub(1),
                published: steps.len(),
                wrong_ms: wrong.as_ms(),
                delay_ms: quantiles(current::delays(&readable, &steps)),
                gap_ms: quantiles(current::gaps(event, &watched, &steps, &asked.looks)),
            },
            writes: Writes::default(),
            misses: laps.missed.len() + turns.missed.len(),
            wrong_events: laps.invented.len() + turns.wrong.len(),
            took_ms: 0,
            remarks,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("never poisoned, because nothing panics while it is held")
}
