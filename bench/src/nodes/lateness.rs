//! How late polls are when two nodes share them, and what the polling leaves behind in the database.

use std::sync::Arc;
use std::time::Duration;

use stakeout_core::Span;
use stakeout_engine::{Clock, Engine, EngineConfig, EngineHandle, Fetch};
use stakeout_store::conformance::server::PostgresServer;
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

use super::open;
use crate::args::Pace;
use crate::quantile::Sorted;
use crate::scene::Watch;
use crate::stamped::{Grid, StampedFetch, judge};
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;
use crate::{floor, print};

const TARGETS: u64 = 1_000;
const EVERY: Duration = Duration::from_millis(200);
const P99_MS_MAX: f64 = 25.0;
/// Polls in flight: more than are ever needed here.
const CONCURRENCY: u32 = 256;
/// The baselines, 20 records each, are in by then.
const START_LIMIT: Duration = Duration::from_secs(300);
/// The nodes share the targets by then.
const WARM_UP: Duration = Duration::from_secs(20);

pub(super) fn measure(server: &PostgresServer, runtime: &Runtime, pace: Pace) -> anyhow::Result<Vec<Row>> {
    let bare = runtime.block_on(floor::timers(TARGETS, EVERY, pace.secs(15, 5)));
    let url = runtime.block_on(server.create());
    let seen = runtime.block_on(two_nodes(&url, pace))?;
    let Seen { lateness_ms, missed, shares, minutes, dead, live, bytes } = seen;
    let polls = lateness_ms.len() as u64;
    let p99 = lateness_ms.quantile(0.99);
    let lateness = Row {
        what: format!("lateness, two nodes, {} targets in all every 200 ms", grouped(TARGETS as f64)),
        ours: format!(
            "{} ({} polls made by {shares:?}, {missed} of {} due missed)",
            lateness_ms.summary_ms(),
            grouped(polls as f64),
            grouped((polls + missed) as f64)
        ),
        floor: format!("bare timers {}", bare.summary_ms()),
        ratio: Some(p99 / bare.quantile(0.99)),
        target: format!("p99 ≤ {P99_MS_MAX:.0} ms"),
        met: Met::when(p99 <= P99_MS_MAX && missed == 0),
    };
    let tuples = Row {
        what: format!("dead rows of targets after {minutes:.1} minutes of that"),
        ours: format!(
            "{} dead, {} live, table and indexes {} KB",
            grouped(dead),
            grouped(live),
            grouped(bytes / 1e3)
        ),
        floor: format!("{} updates", grouped(minutes * 60.0 * TARGETS as f64 / EVERY.as_secs_f64())),
        ratio: None,
        target: "bounded".to_owned(),
        // A twentieth of a minute's updates: vacuum keeps up.
        met: Met::when(dead <= 60.0 * TARGETS as f64 / EVERY.as_secs_f64() / 20.0),
    };
    Ok(vec![lateness, tuples])
}

struct Seen {
    lateness_ms: Sorted,
    missed: u64,
    /// Polls per node, over the whole time.
    shares: Vec<u64>,
    minutes: f64,
    dead: f64,
    live: f64,
    bytes: f64,
}

async fn node(url: &str, n: usize, watch: &Watch<'_>, fetch: Arc<dyn Fetch>) -> anyhow::Result<EngineHandle> {
    let mut config = EngineConfig::new(open(url, n).await?, vec![watch.source()?], fetch);
    config.node = format!("bench-{n}");
    Ok(Engine::start(config).await?)
}

async fn two_nodes(url: &str, pace: Pace) -> anyhow::Result<Seen> {
    let upstream = Upstream::start()?;
    let at = upstream.url("/same/{id}");
    let watch = Watch { url: &at, targets: TARGETS, every: EVERY, concurrency: CONCURRENCY };
    let fetch = Arc::new(StampedFetch::new(TARGETS)?);
    let nodes = [node(url, 1, &watch, fetch.clone()).await?, node(url, 2, &watch, fetch.clone()).await?];
    let polled = || nodes.iter().map(|node| *node.control().polled().borrow()).collect::<Vec<u64>>();
    let starting = std::time::Instant::now();
    while polled().iter().sum::<u64>() < TARGETS {
        anyhow::ensure!(starting.elapsed() < START_LIMIT, "the baselines are not in after {START_LIMIT:?}");
        tokio::time::sleep(EVERY).await;
    }
    let began = std::time::Instant::now();
    tokio::time::sleep(pace.pick(WARM_UP, WARM_UP / 2)).await;
    let clock = Clock::system();
    let before = polled();
    let from = clock.now();
    tokio::time::sleep(pace.secs(15, 5)).await;
    let to = clock.now();
    let shares = polled().iter().zip(&before).map(|(after, before)| after - before).collect();
    tokio::time::sleep(EVERY + Duration::from_millis(200)).await;
    let mut missed = 0;
    let mut lateness_ms = Vec::new();
    for (number, notes) in (0..).zip(fetch.notes()) {
        let kept = judge(Grid::of(number, Span::from_std(EVERY)), &notes, from, to);
        lateness_ms.extend(kept.lateness_ms);
        missed += kept.missed;
    }
    print::progress("two nodes go on, for what they leave behind");
    tokio::time::sleep(pace.secs(600, 20).saturating_sub(began.elapsed())).await;
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let sql = "SELECT n_dead_tup::float8, n_live_tup::float8, pg_total_relation_size('targets')::float8
               FROM pg_stat_user_tables WHERE relname = 'targets'";
    let row = client.query_one(sql, &[]).await?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    for node in nodes {
        node.shutdown().await?;
    }
    let (dead, live, bytes) = (row.get(0), row.get(1), row.get(2));
    Ok(Seen { lateness_ms: Sorted::new(lateness_ms), missed, shares, minutes, dead, live, bytes })
}
