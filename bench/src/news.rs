//! From an upstream's change to an event that can be read: what comes on top of the polling interval.

use std::sync::Arc;
use std::time::Duration;

use stakeout_engine::Clock;
use stakeout_store::{EventFilter, Store as _};
use tokio::time::Instant;

use crate::args::Pace;
use crate::floor;
use crate::quantile::Sorted;
use crate::scene::{Scene, Watch, runtime};
use crate::stamped::StampedFetch;
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;

/// 500 durable changes per second.
const TARGETS: u64 = 100;
const EVERY: Duration = Duration::from_millis(200);
/// For the whole way to an SSE client; what is measured here is the part up to a readable event.
const P99_MS_MAX: f64 = 10.0;
/// Events read at once.
const PAGE: u32 = 1_000;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let window = pace.secs(10, 4);
    let directory = tempfile::tempdir()?;
    let bare = floor::transactions(directory.path(), pace.secs(2, 1))?;
    let ours = runtime()?.block_on(watch(window))?;
    let p99 = ours.quantile(0.99);
    Ok(vec![Row {
        what: format!("upstream's changed answer → readable event, {} changes per second", TARGETS * 5),
        ours: format!("{} ({} events)", ours.summary_ms(), grouped(ours.len() as f64)),
        floor: format!("bare durable SQLite transaction {}", bare.summary_ms()),
        ratio: Some(p99 / bare.quantile(0.99)),
        target: format!("p99 ≤ {P99_MS_MAX:.0} ms (SSE included)"),
        met: Met::when(p99 <= P99_MS_MAX),
    }])
}

/// Reads events as they come. An event is stamped when its answer was whole: what is left until it is read is ours.
async fn watch(window: Duration) -> anyhow::Result<Sorted> {
    let upstream = Upstream::start()?;
    let url = upstream.url("/changing/{id}");
    let watch = Watch { url: &url, targets: TARGETS, every: EVERY, concurrency: 64 };
    let fetch = Arc::new(StampedFetch::new(0)?);
    let scene = Scene::start(&watch, fetch.clone()).await?;
    scene.polled(TARGETS * 5).await?;
    let clock = Clock::system();
    let mut newest = scene.control.newest();
    let mut seen = *newest.borrow_and_update();
    let end = Instant::now() + window;
    let mut delays_ms = Vec::new();
    while let Ok(changed) = tokio::time::timeout_at(end, newest.changed()).await {
        changed?;
        newest.borrow_and_update();
        let events = scene.store.events(seen, &EventFilter::default(), PAGE).await?;
        let now = clock.now();
        delays_ms.extend(events.iter().map(|event| (now - event.at).as_secs_f64() * 1e3));
        seen = events.last().map_or(seen, |event| event.seq);
    }
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    anyhow::ensure!(!delays_ms.is_empty(), "there were no events");
    Ok(Sorted::new(delays_ms))
}
