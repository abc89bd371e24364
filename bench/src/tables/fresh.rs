//! All buckets of a city kept fresh by the whole engine: over loopback, packed as the real upstream packs its answers,
//! with a database on disk, in real time. The upstream renders and packs in a process of its own, and what that costs
//! is reported apart.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use stakeout_core::Span;
use stakeout_engine::Clock;
use stakeout_sim::resy::{Market, MarketConfig, serve};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};
use stakeout_store::{PollOutcome, Store as _, TargetFilter, TargetRow};

use super::{BUCKETS, EVERY_SECS};
use crate::machine::cpu_seconds;
use crate::scene::{Scene, runtime};
use crate::stamped::StampedFetch;
use crate::upstream::Upstream;

/// Enough for all buckets every minute, so that the budget does not stretch them.
const BUDGET: &str = "6000/min";
/// The role of a bucket among the source's targets.
const BUCKET: &str = "bucket";

/// What came of it.
pub(super) struct Fresh {
    /// Looks at a bucket.
    pub(super) looks: u64,
    pub(super) events: u64,
    pub(super) took_secs: f64,
    /// Processor seconds of the engine's process, all threads.
    pub(super) engine_cpu_secs: f64,
    /// The same of the upstream's.
    pub(super) upstream_cpu_secs: f64,
}

impl Fresh {
    /// As a share of one core.
    pub(super) fn percent(&self, cpu_secs: f64) -> f64 {
        100.0 * cpu_secs / self.took_secs
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "{:.1} %, {:.0} ms a look ({} looks in {:.0} s, {} events; the upstream takes {:.1} % in its own process)",
            self.percent(self.engine_cpu_secs),
            1e3 * self.engine_cpu_secs / self.looks.max(1) as f64,
            self.looks,
            self.took_secs,
            self.events,
            self.percent(self.upstream_cpu_secs),
        )
    }
}

pub(super) fn keep(window: Duration) -> anyhow::Result<Fresh> {
    let upstream = Upstream::start_as("city")?;
    runtime()?.block_on(watch(&upstream, window))
}

async fn watch(upstream: &Upstream, window: Duration) -> anyhow::Result<Fresh> {
    let every = format!("{EVERY_SECS}s");
    let config: TablesConfig = serde_json::from_value(serde_json::json!({
        "base_url": upstream.url(""), "budget": BUDGET, "min_interval": every, "max_interval": every,
    }))?;
    let nobody = Credentials { api_key: "bench".to_owned(), auth_token: "bench".to_owned() };
    let source = Arc::new(TablesSource::new("tables", &config, nobody)?);
    let fetch = Arc::new(StampedFetch::new(0)?);
    let scene = Scene::with(vec![source], fetch.clone()).await?;
    // Baselines first: they write every record. Two looks each, so that whatever is told once has been told.
    tokio::time::sleep(Duration::from_secs_f64(2.0 * EVERY_SECS)).await;
    let newest = scene.control.newest();
    let cpu = || (cpu_seconds(std::process::id()).unwrap_or(0.0), upstream.cpu_seconds());
    let (looks, events, began, before) = (looks(&scene).await?, *newest.borrow(), Instant::now(), cpu());
    tokio::time::sleep(window).await;
    let (after, took_secs) = (cpu(), began.elapsed().as_secs_f64());
    let fresh = Fresh {
        looks: self::looks(&scene).await? - looks,
        events: *newest.borrow() - events,
        took_secs,
        engine_cpu_secs: after.0 - before.0,
        upstream_cpu_secs: after.1 - before.1,
    };
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    Ok(fresh)
}

/// How often the buckets have been looked at. A look of which pages moved while it was made is one too: the city
/// moves in real time, and such a look is compared as far as it goes.
async fn looks(scene: &Scene) -> anyhow::Result<u64> {
    let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
    let mut buckets = scene.store.targets(&filter).await?;
    buckets.retain(|row| row.spec.role == BUCKET);
    anyhow::ensure!(buckets.len() as f64 == BUCKETS, "{} buckets", buckets.len());
    let seen = |row: &TargetRow| {
        use PollOutcome::{Baseline, Changed, Partial, Unchanged};
        matches!(row.last_outcome, Some(Baseline | Changed | Partial | Unchanged))
    };
    if let Some(odd) = buckets.iter().find(|row| !seen(row)) {
        anyhow::bail!(
            "the bucket {} was not seen: {:?} {:?}",
            odd.spec.key,
            odd.last_outcome,
            odd.last_error
        );
    }
    Ok(buckets.iter().map(|row| row.poll_no).sum())
}

/// The other side: a city whose tables move in real time; serves until the input closes.
pub(crate) fn serve_city() -> anyhow::Result<()> {
    let clock = Clock::system();
    let config = MarketConfig::city(1).during(clock.now() - Span::hours(12), Span::hours(24));
    let upstream = stakeout_sim::resy::Upstream::new(Market::new(config));
    let server = serve(Arc::new(upstream), move || clock.now());
    let mut out = io::stdout();
    writeln!(out, "{}", server.addr()).context("cannot say where the city is")?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
