//! The engine: starts the loops, waits, stops them in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};
use std::time::Duration;

use stakeout_core::alert::{Alerts, Silence};
use stakeout_core::{LastOutcome, SettingRefused, Source, Span};
use stakeout_store::{Retention, Store, StoreError, Wanted};
use tokio::sync::{Mutex, Notify, broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::agreed::Agreed;
use crate::alerts::Book;
use crate::clock::Clock;
use crate::committer::{CommitTimes, Committer};
use crate::control::Control;
use crate::deliver::Sink;
use crate::dispatch::{Dispatcher, Mode};
use crate::fatal::Fatal;
use crate::fetch::Fetch;
use crate::lane::Lane;
use crate::outlets::Outlets;
use crate::poll::{CREDENTIALS, first_look, is_refused};
use crate::repeats::Repeats;
use crate::settings::{self, settings_of, with_possible};

use crate::shared::{MAX_PUBLISHED, Shared};
use crate::stats::{PassReport, Stats};
use crate::tenure::Tenure;
use crate::{claimer, deliver, derive, hints, janitor, pricing, repeats};

/// How long a look for due targets may go on when everything else has stopped.
const CLAIMER_STOPS: Duration = Duration::from_secs(1);
/// Messages to the dispatcher that may wait.
const MAX_MESSAGES: usize = 64;

/// What an engine is made of.
#[derive(Clone)]
pub struct EngineConfig {
    /// Who holds the claims of this process.
    pub node: String,
    /// The upstreams.
    pub sources: Vec<Arc<dyn Source>>,
    /// The memory.
    pub store: Arc<dyn Store>,
    /// How upstreams are asked.
    pub fetch: Arc<dyn Fetch>,
    /// Where time comes from.
    pub clock: Clock,
    /// Who is told.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// What people asked to be told, besides what is stored.
    pub alerts: Arc<dyn Alerts>,
    /// How long things are kept.
    pub retention: Retention,
    /// How long a claim holds without being renewed.
    pub lease: Span,
    /// How far ahead of their due time targets are claimed.
    pub ahead: Span,
    /// Targets due again within this stay claimed, unless many are.
    pub keep: Span,
    /// How long polls in flight may take to finish at the end.
    pub grace: Duration,
}

impl EngineConfig {
    /// An engine with the usual numbers, the system's clock and no sinks.
    pub fn new(store: Arc<dyn Store>, sources: Vec<Arc<dyn Source>>, fetch: Arc<dyn Fetch>) -> EngineConfig {
        // Where others share the store, what is held here is nobody else's for as long.
        let keep = if store.is_shared() { Span::secs(20) } else { Span::mins(45) };
        EngineConfig {
            node: format!("node-{}", std::process::id()),
            sources,
            store,
            fetch,
            clock: Clock::system(),
            sinks: Vec::new(),
            alerts: Arc::new(Silence),
            retention: Retention {
                events: Span::hours(24 * 90),
                history: Span::hours(24 * 400),
                polls: Span::hours(24 * 14),
                gone_records: Span::hours(24 * 30),
            },
            lease: Span::secs(60),
            ahead: Span::secs(2),
            keep,
            grace: Duration::from_secs(3),
        }
    }
}

/// Why an engine cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting was refused; the old one stays.
    #[error(transparent)]
    Setting(#[from] SettingRefused),
    /// A setting that nobody knows.
    #[error("there is no setting {key:?}: known are {}", known.join(", "))]
    UnknownSetting {
        /// What was asked for.
        key: String,
        /// Where settings live.
        known: Vec<String>,
    },
    /// A target that nobody knows.
    #[error("there is no target {0:?}: `stakeout targets` lists them")]
    UnknownTarget(String),
    /// Two sources with one name.
    #[error("two sources are called {0:?}: names must differ")]
    DuplicateSource(String),
    /// The engine is stopping.
    #[error("the engine has stopped")]
    Stopped,
}

/// Starts engines.
pub struct Engine;

/// A running engine. Dropping it without [`EngineHandle::shutdown`] abandons everything in
/// flight, as a crash would.
pub struct EngineHandle {
    control: Control,
    fatal: Fatal,
    stop: CancellationToken,
    dispatcher: AbortOnDropHandle<()>,
    /// Claimer, janitor, committer and others: aborted with the handle.
    claimer: AbortOnDropHandle<()>,
    others: Vec<AbortOnDropHandle<()>>,
    /// One for each sink.
    delivering: Vec<AbortOnDropHandle<()>>,
    grace: Duration,
}

impl Engine {
    /// Starts polling.
    pub async fn start(config: EngineConfig) -> Result<EngineHandle, EngineError> {
        start(config, Mode::Service).await
    }

    /// Polls everything that is due once, including what a listing brings to light, and stops. Ends within `limit`
    /// and the grace time.
    pub async fn pass(mut config: EngineConfig, limit: Span) -> Result<PassReport, EngineError> {
        // Nothing stays claimed after a pass, and nothing is claimed that is not due.
        config.keep = Span(-1);
        config.ahead = Span::ZERO;
        let began = std::time::Instant::now();
        let engine = start(config, Mode::Pass).await?;
        let mut report = engine.control().pass(limit).await?;
        let control = engine.control();
        Repeats::default().turn(&control.shared).await;
        // What the pass brought about is on its way before the process goes; what is not taken in time waits for the next.
        let left = limit.to_std().saturating_sub(began.elapsed());
        if tokio::time::timeout(left, control.shared.outbox_settled()).await.is_err() {
            warn!("not everything was delivered within the time limit: the rest is with the next pass");
        }
        engine.shutdown().await?;
        let store = &control.shared.store;
        report.next_due = store.next_wake(&control.shared.source_names()).await?;
        report.took_ms = began.elapsed().as_millis() as u64;
        Ok(report)
    }
}

async fn start(config: EngineConfig, mode: Mode) -> Result<EngineHandle, EngineError> {
    let agreed = Agreed::begin(&config.clock, &*config.store).await?;
    let freed = Arc::new(Notify::new());
    let lanes = lanes(&config, &freed).await?;
    let kinds: Vec<_> = lanes.values().flat_map(|lane| lane.source().kinds().to_vec()).collect();
    let kinds: Vec<_> = kinds.iter().map(|kind| (**kind).clone()).collect();
    config.store.ensure_views(&kinds).await?;
    config.store.set_filed_alerts(&config.alerts.written(), config.clock.now()).await?;

    let fatal = Fatal::default();
    let commits = Arc::new(CommitTimes::default());
    let (committer, committing) = Committer::start(
        Arc::clone(&config.store),
        config.clock.clone(),
        fatal.clone(),
        Arc::clone(&commits),
    );
    let newest = config.store.stats().await?.seq;
    let settings = config.store.settings().await?;
    let shared = Arc::new(Shared {
        node: config.node,
        started: config.clock.now(),
        clock: config.clock,
        follows_store: agreed.follows(),
        clock_in_doubt: AtomicBool::new(false),
        store: config.store,
        fetch: config.fetch,
        lanes,
        committer,
        outlets: Outlets::new(&config.sinks, &settings),
        alerts: Book::new(config.alerts, &settings),
        lease: config.lease,
        keep: config.keep,
        ahead: config.ahead,
        fatal: fatal.clone(),
        stats: Stats::default(),
        look: Notify::new(),
        next_look_us: AtomicI64::new(i64::MIN),
        freed,
        replans: AtomicU64::new(0),
        settings: Mutex::new(()),
        passes: Mutex::new(()),
        newest: watch::channel(newest).0,
        settled: watch::channel(BTreeMap::new()).0,
        looks: Default::default(),
        polled: watch::channel(0).0,
        published: broadcast::channel(MAX_PUBLISHED).0,
        live: Default::default(),
        told_values: Default::default(),
        held: AtomicUsize::new(0),
        commits,
    });
    discover_roots(&shared).await?;

    let stop = CancellationToken::new();
    let (messages, inbox) = mpsc::channel(MAX_MESSAGES);
    let dispatcher = Dispatcher::new(Arc::clone(&shared), mode, inbox);
    let dispatcher = spawn(dispatcher.run(stop.clone(), config.grace));
    let mut others = vec![
        AbortOnDropHandle::new(committing),
        spawn(janitor::run(Arc::clone(&shared), config.retention, stop.clone())),
        spawn(pricing::run(Arc::clone(&shared), messages.clone(), stop.clone())),
    ];
    let claimer = spawn(claimer::run(Arc::clone(&shared), agreed, messages.clone(), stop.clone()));
    others.push(spawn(settings::watch(Arc::clone(&shared), messages.clone(), stop.clone())));
    others.push(spawn(hints::follow(Arc::clone(&shared), messages.clone(), stop.clone())));
    // Whoever calls passes has it done with each of them.
    if mode == Mode::Service {
        others.push(spawn(repeats::run(Arc::clone(&shared), stop.clone())));
    }
    for (name, _) in shared.lanes.iter().filter(|(_, lane)| lane.source().derives().is_some()) {
        others.push(spawn(derive::run(Arc::clone(&shared), name.clone(), messages.clone(), stop.clone())));
    }
    let mut delivering = Vec::new();
    for sink in config.sinks {
        let newest = shared.newest.subscribe();
        delivering.push(spawn(deliver::run(Arc::clone(&shared), sink, newest, stop.clone())));
    }
    let control = Control { shared, dispatcher: messages };
    others.push(spawn(catch_up(control.clone(), mode)));
    Ok(EngineHandle { control, fatal, stop, dispatcher, claimer, others, delivering, grace: config.grace })
}

/// What was listed may be old, and the configuration may have changed since the stored due times were computed. This
/// goes on beside the polling, because with a million targets it takes a while.
async fn catch_up(control: Control, mode: Mode) {
    let busy = control.shared.clock.busy();
    // Whoever calls passes decides when to look.
    if mode == Mode::Service
        && let Err(error) = look_at_listings(&control).await
    {
        warn!(%error, "what is listed is looked at when it is due, not at once");
    }
    if let Err(error) = control.replan().await {
        warn!(%error, "due times could not be computed anew");
    }
    drop(busy);
}

/// Nobody who starts again and again asks for a listing more often than this.
const LISTING_IS_FRESH: Span = Span::mins(1);

async fn look_at_listings(control: &Control) -> Result<(), EngineError> {
    let shared = &control.shared;
    let now = shared.clock.now();
    for (name, lane) in &shared.lanes {
        let source = lane.source();
        for root in source.roots(now).iter().filter(|root| source.looked_at_first(root)) {
            let Some(row) = shared.store.target(name, &root.key).await? else { continue };
            // What fails waits as long as it was told to.
            let well = row.state.last.outcome == LastOutcome::Good;
            let old = row.state.last.slot.is_some_and(|slot| now - slot >= LISTING_IS_FRESH);
            if row.enabled && well && old {
                control.poll_now(name, &root.key).await?;
            }
        }
    }
    Ok(())
}

fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// One lane per source, with its live settings applied.
async fn lanes(config: &EngineConfig, freed: &Arc<Notify>) -> Result<BTreeMap<String, Lane>, EngineError> {
    let stored = config.store.settings().await?;
    let mut lanes = BTreeMap::new();
    for source in &config.sources {
        let name = source.name().to_owned();
        let settings = settings_of(&**source, &stored);
        let configured = with_possible(source, &settings);
        // Where others are, nothing may be asked before it is agreed on.
        let tenure = if config.store.is_shared() { Tenure::None } else { Tenure::Sole };
        let lane = Lane::new(Arc::clone(source), configured, settings, Arc::clone(freed), tenure);
        let remembered = config.store.kv(CREDENTIALS, &name).await?;
        if remembered.is_some_and(|remembered| is_refused(&remembered.value)) {
            lane.was_refused(config.clock.now());
        }
        if lanes.insert(name.clone(), lane).is_some() {
            return Err(EngineError::DuplicateSource(name));
        }
    }
    Ok(lanes)
}

/// Discovery begins at the roots; everything else is listed by a poll.
async fn discover_roots(shared: &Shared) -> Result<(), EngineError> {
    let now = shared.clock.now();
    for (name, lane) in &shared.lanes {
        let source = lane.source();
        let roots: Vec<Wanted> =
            source.roots(now).iter().map(|spec| first_look(shared, lane, spec, now)).collect();
        let done = shared.store.reconcile_roots(name, &roots, now).await?;
        info!(
            source = name,
            roots = roots.len(),
            created = done.created,
            retired = done.retired,
            "source ready"
        );
    }
    Ok(())
}

impl EngineHandle {
    /// What the engine may be told.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Returns when the engine cannot go on by itself, with the reason.
    pub async fn stopped(&self) -> EngineError {
        self.fatal.raised().await;
        self.fatal.take().map_or(EngineError::Stopped, EngineError::Store)
    }

    /// Stops: no new polls, those in flight finish within the grace time or are abandoned without a trace, every
    /// claim is given back.
    pub async fn shutdown(self) -> Result<(), EngineError> {
        self.stop.cancel();
        // The dispatcher needs its grace for the polls in flight, and a little to give claims back.
        let limit = self.grace + Duration::from_secs(1);
        if tokio::time::timeout(limit, self.dispatcher).await.is_err() {
            warn!("the dispatcher did not stop in time");
        }
        // What it was just about to claim it gives back.
        let _ = tokio::time::timeout(self.grace.min(CLAIMER_STOPS), self.claimer).await;
        janitor::summarise(&self.control.shared);
        // Nothing new can come from the others now: what was handed in is committed. A sink may still hear the answer to
        // what it has sent, and mark it; what was not delivered is delivered after the next start.
        let mut delivering = self.delivering;
        let heard = async {
            for task in &mut delivering {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(self.grace, heard).await;
        let left = delivering.into_iter().filter(|task| !task.is_finished());
        for task in self.others.into_iter().chain(left) {
            task.abort();
            // Waited for, so that whoever stops the engine can close the store.
            let _ = task.await;
        }
        let shared = &self.control.shared;
        if let Err(error) = shared.store.leave(&shared.node).await {
            // What this node had runs out by itself.
            warn!(%error, "the other nodes could not be told");
        }
        self.fatal.take().map_or(Ok(()), |error| Err(EngineError::Store(error)))
    }
}
