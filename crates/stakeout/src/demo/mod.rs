//! `stakeout demo`: simulated upstreams, the real engine and a live picture of both, with nothing to configure.

mod drones;
mod feed;
mod screen;
mod tables;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use stakeout_core::{Source, Time};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Engine, EngineConfig};
use stakeout_server::{Server, ServerConfig, ServerError};
use stakeout_sim::{fpv, nztab, resy};
use stakeout_sources::alert::RuleBook;
use stakeout_sources::json::LimitsConfig;
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{Store, TargetFilter};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use self::feed::Feed;
use self::screen::Screen;
use crate::config::{Listen, ServerSettings};
use crate::output;

/// How often the picture is drawn anew.
const FRAME: Duration = Duration::from_millis(500);

/// More targets than a demo ever has.
const MOST_TARGETS: u32 = 100_000;

/// As many races as are within their hour when the demo begins, and some more.
const REQUESTS_AT_ONCE: u32 = 32;

/// The names of the sources.
const HORSES: &str = "nz";
const DRONES: &str = "track";
const TABLES: &str = "nyc";

/// How to run the demo.
#[derive(Clone, Debug)]
pub struct DemoArgs {
    /// How many times as fast time runs.
    pub speed: f64,
    /// Where the dashboard listens; at the usual address, or a free one, unless given.
    pub listen: Option<Listen>,
    /// Where the database is kept; a temporary directory, removed at the end, unless given.
    pub data: Option<PathBuf>,
}

/// Runs until Ctrl-C or SIGTERM.
pub async fn run(args: DemoArgs) -> Result<ExitCode> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let place = Place::new(args.data)?;
    let store = Arc::new(SqliteStore::open(place.directory().join("demo.db"), OpenOptions::default())?);
    let clock = Clock::scaled_from(beginning(&*store).await?, args.speed);
    let time = || {
        let clock = clock.clone();
        move || clock.now()
    };
    let horses = nztab::serve(Arc::new(nztab::demo(clock.now())), time());
    let trackside = fpv::serve(Arc::new(fpv::demo(clock.now())), time());
    let restaurants = resy::serve(Arc::new(resy::demo(clock.now())), time());
    let sources = vec![
        racing(&horses.url(""))?,
        drones::source(&trackside.url(""), args.speed)?,
        tables::source(&restaurants.url(""))?,
    ];
    let fetch = Arc::new(HttpFetch::new()?);
    let mut config = EngineConfig::new(Arc::clone(&store) as Arc<dyn Store>, sources, fetch);
    config.clock = clock.clone();
    config.node = "demo".to_owned();
    // Nobody asked for anything yet; whoever looks at it may.
    config.alerts = Arc::new(RuleBook::default());
    let onlookers: Arc<dyn Store> = Arc::new(store.for_onlookers()?);
    let dashboard = dashboard(args.listen, Arc::clone(&onlookers)).await?;
    let engine = Engine::start(config).await.context("the engine cannot start")?;

    let mut screen = Screen::new(std::io::stdout().is_terminal());
    screen.say(&format!(
        "A simulated day at {}× speed: NZTAB's API is played by {}, an FPVTrackside by {}, Resy by {}, all polled as the real ones would be.",
        args.speed,
        horses.url("/"),
        trackside.url("/"),
        restaurants.url("/"),
    ));
    screen.say(&format!(
        "The database is {}. Ctrl-C ends the demo.",
        place.directory().join("demo.db").display()
    ));
    let stop = CancellationToken::new();
    let answering = dashboard.map(|server| {
        screen.say(&format!("The dashboard and the API are at http://{}/", server.address()));
        tokio::spawn(server.run(engine.control(), stop.clone()))
    });
    let mut feed = Feed::new(onlookers, clock);
    let mut frames = tokio::time::interval(FRAME);
    let failed = loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => break None,
            _ = terminate.recv() => break None,
            error = engine.stopped() => break Some(error),
            _ = frames.tick() => match screen.show(&feed.look().await?) {
                Ok(()) => {}
                // Whoever watched has gone away.
                Err(_) => break None,
            },
        }
    };
    screen.close();
    stop.cancel();
    if let Some(answering) = answering {
        let _ = answering.await;
    }
    engine.shutdown().await?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Now, or later where the database has been in a demo's fast time before: what is older than what it holds would not be
/// believed.
async fn beginning(store: &dyn Store) -> Result<Time> {
    let filter = TargetFilter { limit: MOST_TARGETS, ..TargetFilter::default() };
    let targets = store.targets(&filter).await?;
    let newest = targets.iter().filter_map(|row| row.last_polled.max(row.state.as_of)).max();
    Ok(Clock::system().now().max(newest.unwrap_or_default()))
}

/// The dashboard's server. When the usual address is taken, any other will do; one that was asked for will not.
async fn dashboard(listen: Option<Listen>, store: Arc<dyn Store>) -> Result<Option<Server>> {
    let settings = ServerSettings::default();
    let Some(config) = settings.config(listen) else { return Ok(None) };
    match Server::bind(config.clone(), Arc::clone(&store)).await {
        Err(ServerError::Taken(address)) if listen.is_none() => {
            output::complain(&format!("{address} is taken by another program, so another port is used"));
            let free = ServerConfig { listen: SocketAddr::new(address.ip(), 0), ..config };
            Ok(Some(Server::bind(free, store).await?))
        }
        bound => Ok(Some(bound?)),
    }
}

/// The racing source, pointed at the simulated upstream, which minds no burst: the races of an hour, all looked at as soon
/// as they are known, and those that share a minute are not late for each other's sake.
fn racing(base_url: &str) -> Result<Arc<dyn Source>> {
    let config = RacingConfig {
        base_url: base_url.trim_end_matches('/').to_owned(),
        limits: LimitsConfig {
            burst: Some(REQUESTS_AT_ONCE),
            concurrency: Some(REQUESTS_AT_ONCE),
            ..LimitsConfig::default()
        },
        ..RacingConfig::default()
    };
    let identity = Identity {
        from: "demo@example.org".to_owned(),
        partner: "Stakeout".to_owned(),
        partner_id: "demo".to_owned(),
    };
    Ok(Arc::new(RacingSource::new(HORSES, &config, identity)?))
}

/// Where the demo keeps its database; a temporary directory is removed when it is dropped.
enum Place {
    Given(PathBuf),
    Temporary(TempDir),
}

impl Place {
    fn new(given: Option<PathBuf>) -> Result<Place> {
        if let Some(directory) = given {
            std::fs::create_dir_all(&directory)
                .with_context(|| cannot_make(&directory))
                .map(|()| Place::Given(directory))
        } else {
            let temporary = std::env::temp_dir();
            tempfile::Builder::new()
                .prefix("stakeout-demo-")
                .tempdir_in(&temporary)
                .with_context(|| cannot_make(&temporary.join("stakeout-demo-…")))
                .map(Place::Temporary)
        }
    }

    fn directory(&self) -> &Path {
        match self {
            Place::Given(directory) => directory,
            Place::Temporary(directory) => directory.path(),
        }
    }
}

fn cannot_make(directory: &Path) -> String {
    format!("cannot make the directory {}: name another with --data", directory.display())
}
