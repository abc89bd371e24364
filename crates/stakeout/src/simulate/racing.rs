//! A racing day in virtual time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;
use stakeout_core::{Event, Source, Span, Time};
use stakeout_engine::{Engine, EngineConfig, virtual_runtime};
use stakeout_sim::nztab::{Body, Day, DayConfig, Faults, Upstream, nz_date, nz_time};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{EventFilter, Store};

use super::nztab::InProcess;
use super::oracle;
use super::tally::{adherence, count, quantiles, runs};

pub use super::tally::{PhaseAdherence, Quantiles};

/// What to simulate.
#[derive(Clone, Debug)]
pub struct RacingDay {
    /// Decides everything that happens.
    pub seed: u64,
    /// Races that are watched; the listing has many more.
    pub races: u32,
    /// Whether bodies have their real size.
    pub full_bodies: bool,
    /// The chance of each sort of fault per request.
    pub faults: f64,
    /// One in so many races shows when prices moved one renewal later than the prices; 0 is none.
    pub lagging_flucs_one_in: u64,
    /// How often the upstream renews what it serves.
    pub refresh: Span,
    /// The cadence and the rest of the source's configuration.
    pub config: RacingConfig,
    /// Where to keep the database; in memory, unless given.
    pub database: Option<PathBuf>,
    /// Who wants to be told what.
    pub alerts: BTreeMap<String, AlertConfig>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct RacingReport {
    /// The seed, to see it again.
    pub seed: u64,
    /// Races watched.
    pub races: u32,
    /// Requests made, failed ones included.
    pub requests: u64,
    /// The busiest minute.
    pub requests_per_minute_max: u64,
    /// By phase.
    pub adherence: BTreeMap<String, PhaseAdherence>,
    /// By type.
    pub events: BTreeMap<String, u64>,
    /// History rows kept.
    pub history_rows: u64,
    /// Changes of status, start, field, prices and money that a perfect watcher would have told at the same moments.
    pub expected: usize,
    /// Of them: not told; and polls that the schedule asks for and that never came, or that came when a race was over.
    pub misses: usize,
    /// Told, and nothing called for it.
    pub wrong_events: usize,
    /// From the moment the upstream served a change to its event.
    pub detection_delay_ms: Option<Quantiles>,
    /// How long the day took, without judging it.
    pub took_ms: u64,
    /// The first few misses and wrong events, in words.
    pub remarks: Vec<String>,
}

/// A simulated day that is over, for tests that want to look closer.
pub struct Finished {
    /// The numbers.
    pub report: RacingReport,
    /// Everything that was told.
    pub events: Vec<Event>,
    /// What the engine kept.
    pub store: Arc<SqliteStore>,
    /// What really happened.
    pub upstream: Arc<Upstream>,
    /// When it was over.
    pub until: Time,
    /// What was asked and answered.
    pub asked: Vec<super::nztab::Asked>,
}

/// From midnight until the last race is over, which may be after the next one.
const DAY: Span = Span::hours(27);
/// Remarks listed in the report.
const MOST_REMARKS: usize = 20;

impl RacingDay {
    /// A day of 96 races with lean bodies and no faults.
    pub fn new(seed: u64) -> RacingDay {
        RacingDay {
            seed,
            races: 96,
            full_bodies: false,
            faults: 0.0,
            lagging_flucs_one_in: 0,
            refresh: Span::secs(15),
            config: RacingConfig::default(),
            database: None,
            alerts: BTreeMap::new(),
        }
    }

    /// Runs the day: from midnight in New Zealand until every race is over.
    pub fn run(&self) -> Result<Finished> {
        let began = Instant::now();
        let date = nz_date(Time::parse("2026-01-10T00:00:00Z").context("a valid date")?);
        let mut day = DayConfig::new(self.seed, date).with_races(self.races);
        day.lagging_flucs_one_in = self.lagging_flucs_one_in;
        day.refresh = self.refresh;
        day.body = if self.full_bodies { Body::Full } else { Body::Lean };
        let upstream = Arc::new(Upstream::new([Day::new(&day)]));
        if self.faults > 0.0 {
            upstream.set_faults(Faults::each(self.seed, self.faults));
        }
        let start = nz_time(date, 0, 1);
        let store = Arc::new(match &self.database {
            Some(path) => SqliteStore::open(path, OpenOptions::default())?,
            // After a fault two targets may tell of the same record; whoever comes second tries again, at once.
            None if self.faults > 0.0 => SqliteStore::in_memory()?,
            None => SqliteStore::in_memory_without_undo()?,
        });
        let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
        let (runtime, clock) = virtual_runtime(start)?;
        let mut config =
            EngineConfig::new(Arc::clone(&store) as Arc<dyn Store>, vec![self.source()?], fetch.clone());
        config.clock = clock.clone();
        config.node = "simulation".to_owned();
        config.alerts = Arc::new(RuleBook::new(self.alerts.clone())?);
        let (took_ms, events, runs, history_rows) = runtime.block_on(async {
            let engine = Engine::start(config).await?;
            clock.sleep_until(start + DAY).await;
            engine.shutdown().await?;
            // What follows is read for the judge: his time, not the day's.
            let took_ms = began.elapsed().as_millis() as u64;
            let events = store.events(0, &EventFilter::default(), 10_000_000).await?;
            let runs = runs(&*store).await?;
            anyhow::Ok((took_ms, events, runs, store.stats().await?.history))
        })?;
        let asked = fetch.answered();
        let source = self.source()?;
        let verdict = oracle::judge(&oracle::Watched {
            days: upstream.days(),
            asked: &asked,
            events: &events,
            config: &self.config,
            source: Some(&*source).filter(|_| self.faults == 0.0),
            until: start + DAY,
        });
        let remarks = remarks(&verdict);
        let report = RacingReport {
            seed: self.seed,
            races: self.races,
            requests: upstream.requests(),
            requests_per_minute_max: busiest_minute(&asked),
            adherence: adherence(runs.values().flatten()),
            events: count(events.iter().map(|event| event.event_type.clone())),
            history_rows,
            expected: verdict.expected,
            misses: verdict.missed.len() + verdict.lapses.len(),
            wrong_events: verdict.wrong.len(),
            detection_delay_ms: quantiles(verdict.delays),
            took_ms,
            remarks,
        };
        Ok(Finished { report, events, store, upstream, until: start + DAY, asked })
    }

    /// The source that is watched.
    pub fn source(&self) -> Result<Arc<dyn Source>> {
        let identity = Identity {
            from: "simulation@example.org".to_owned(),
            partner: "Stakeout".to_owned(),
            partner_id: "simulation".to_owned(),
        };
        Ok(Arc::new(RacingSource::new("nz", &self.config, identity)?))
    }
}

fn busiest_minute(asked: &[super::nztab::Asked]) -> u64 {
    count(asked.iter().map(|asked| asked.at.us() / 60_000_000)).into_values().max().unwrap_or_default()
}

fn remarks(verdict: &oracle::Verdict) -> Vec<String> {
    let missed = verdict.missed.iter().map(|e| format!("missed: {} {} at {}", e.event_type, e.subject, e.at));
    let wrong = verdict.wrong.iter().map(|(kind, subject, at)| format!("wrong: {kind} {subject} at {at}"));
    missed.chain(wrong).chain(verdict.lapses.iter().cloned()).take(MOST_REMARKS).collect()
}
