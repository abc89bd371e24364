//! From an upstream's change to whoever listens: what comes on top of the polling interval.

use std::sync::Arc;
use std::time::Duration;

use crate::args::Pace;
use crate::floor;
use crate::listeners::{Crowd, Report, Serving};
use crate::scene::{Scene, Watch, runtime};
use crate::stamped::StampedFetch;
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;

/// 500 durable changes per second.
const TARGETS: u64 = 100;
const EVERY: Duration = Duration::from_millis(200);
const P99_MS_MAX: f64 = 10.0;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let window = pace.secs(10, 4);
    let directory = tempfile::tempdir()?;
    let bare = floor::transactions(directory.path(), pace.secs(2, 1))?;
    let ours = runtime()?.block_on(heard(window))?;
    Ok(vec![Row {
        what: format!(
            "upstream's changed answer → read by an SSE client, {} changes per second",
            TARGETS * 5
        ),
        ours: format!(
            "p50 {:.1} ms, p99 {:.1} ms ({} events)",
            ours.delay_ms_p50,
            ours.delay_ms_p99,
            grouped(ours.most as f64)
        ),
        floor: format!("bare durable SQLite transaction {}", bare.summary_ms()),
        ratio: Some(ours.delay_ms_p99 / bare.quantile(0.99)),
        target: format!("p99 ≤ {P99_MS_MAX:.0} ms"),
        met: Met::when(ours.delay_ms_p99 <= P99_MS_MAX),
    }])
}

/// What one client hears. An event is stamped when its answer was whole: what is left until it is read is ours.
async fn heard(window: Duration) -> anyhow::Result<Report> {
    let upstream = Upstream::start()?;
    let url = upstream.url("/changing/{id}");
    let watch = Watch { url: &url, targets: TARGETS, every: EVERY, concurrency: 64 };
    let fetch = Arc::new(StampedFetch::new(0)?);
    let scene = Scene::start(&watch, fetch.clone()).await?;
    let serving = Serving::start(&scene).await?;
    scene.polled(TARGETS * 5).await?;
    let client = Crowd::start(serving.address, 1)?;
    tokio::time::sleep(window).await;
    let heard = client.finish()?;
    serving.stop().await?;
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    anyhow::ensure!(heard.least > 0, "there were no events");
    Ok(heard)
}
