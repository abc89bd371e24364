//! What every measurement of the engine needs: a source, a durable store on a real file, a running engine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use stakeout_core::Source;
use stakeout_engine::{Control, Engine, EngineConfig, EngineHandle, Fetch};
use stakeout_sources::json::JsonSource;
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use tempfile::TempDir;

/// The name of the only source.
pub(crate) const SOURCE: &str = "bench";

/// Nothing here takes longer, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// What to watch and how hard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'a> {
    /// With `{id}` for the number of the target.
    pub(crate) url: &'a str,
    pub(crate) targets: u64,
    pub(crate) every: Duration,
    /// Polls in flight.
    pub(crate) concurrency: u32,
}

impl Watch<'_> {
    /// The source: 20 records, one tracked field, its history and an event per change, no jitter, and no limit that
    /// could bind but the concurrency.
    pub(crate) fn source(&self) -> anyhow::Result<Arc<dyn Source>> {
        let ids: Vec<String> = (0..self.targets).map(|n| n.to_string()).collect();
        let config = json!({
            "url": self.url, "ids": ids, "every": format!("{}us", self.every.as_micros()),
            "records": "items", "key": "id", "fields": ["value"], "history": ["value"],
            "limits": {
                "requests_per_second": 100_000, "burst": 100_000, "concurrency": self.concurrency,
                "timeout": "10s", "jitter": "0ms",
            },
        });
        let config = serde_json::from_value(config).context("the benchmark's source is wrong")?;
        Ok(Arc::new(JsonSource::new(SOURCE, &config, Vec::new())?))
    }

    /// Polls due per second.
    pub(crate) fn rate(&self) -> f64 {
        self.targets as f64 / self.every.as_secs_f64()
    }
}

/// A running engine.
pub(crate) struct Scene {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) control: Control,
    engine: EngineHandle,
    /// Removed last.
    _directory: TempDir,
}

impl Scene {
    pub(crate) async fn start(watch: &Watch<'_>, fetch: Arc<dyn Fetch>) -> anyhow::Result<Scene> {
        Scene::with(vec![watch.source()?], fetch).await
    }

    /// With these sources.
    pub(crate) async fn with(sources: Vec<Arc<dyn Source>>, fetch: Arc<dyn Fetch>) -> anyhow::Result<Scene> {
        let directory = tempfile::tempdir()?;
        let store = Arc::new(SqliteStore::open(directory.path().join("bench.db"), OpenOptions::default())?);
        let config = EngineConfig::new(store.clone(), sources, fetch);
        let engine = Engine::start(config).await?;
        let control = engine.control();
        Ok(Scene { store, control, engine, _directory: directory })
    }

    /// Returns when so many polls have been committed since the start.
    pub(crate) async fn polled(&self, polls: u64) -> anyhow::Result<()> {
        let mut polled = self.control.polled();
        tokio::time::timeout(LIMIT, polled.wait_for(|so_far| *so_far >= polls))
            .await
            .with_context(|| format!("{polls} polls were not made within {LIMIT:?}"))??;
        Ok(())
    }

    /// Polls committed so far.
    pub(crate) fn polls(&self) -> u64 {
        *self.control.polled().borrow()
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        Ok(self.engine.shutdown().await?)
    }
}

/// As the service runs: as many worker threads as cores.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}
