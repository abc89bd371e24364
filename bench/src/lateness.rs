//! How late polls are sent: handed to the client − due.

use std::sync::Arc;
use std::time::Duration;

use stakeout_core::Span;
use stakeout_engine::Clock;

use crate::args::Pace;
use crate::quantile::Sorted;
use crate::scene::{Scene, Watch, runtime};
use crate::stamped::{Grid, StampedFetch, judge};
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;
use crate::{floor, print};

/// After the baselines are in, the engine runs so long before the window begins.
const WARM_UP: Duration = Duration::from_secs(2);

/// Polls in flight: more than are ever needed here, so that the limit is not what is measured.
const CONCURRENCY: u32 = 256;

struct Case {
    targets: u64,
    every: Duration,
    p99_ms_max: f64,
}

const CASES: [Case; 2] = [
    Case { targets: 1_000, every: Duration::from_millis(200), p99_ms_max: 5.0 },
    Case { targets: 2_000, every: Duration::from_secs(1), p99_ms_max: 4.0 },
];

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    CASES.iter().map(|case| row(case, pace.secs(15, 5))).collect()
}

fn row(case: &Case, window: Duration) -> anyhow::Result<Row> {
    let Case { targets, every, p99_ms_max } = *case;
    let bare = runtime()?.block_on(floor::timers(targets, every, window));
    print::progress(&format!("bare timers: {}", bare.summary_ms()));
    let (ours, missed) = runtime()?.block_on(engine(case, window))?;
    let polls = ours.len() as u64;
    let p99 = ours.quantile(0.99);
    Ok(Row {
        what: format!("lateness, {} targets every {} ms", grouped(targets as f64), every.as_millis()),
        ours: format!(
            "{} ({} polls made, {missed} of {} due missed)",
            ours.summary_ms(),
            grouped(polls as f64),
            grouped((polls + missed) as f64)
        ),
        floor: format!("bare timers {}", bare.summary_ms()),
        ratio: Some(p99 / bare.quantile(0.99)),
        target: format!("p99 ≤ {p99_ms_max:.0} ms"),
        met: Met::when(p99 <= p99_ms_max && missed == 0),
    })
}

async fn engine(case: &Case, window: Duration) -> anyhow::Result<(Sorted, u64)> {
    let upstream = Upstream::start()?;
    let url = upstream.url("/same/{id}");
    let watch = Watch { url: &url, targets: case.targets, every: case.every, concurrency: CONCURRENCY };
    let fetch = Arc::new(StampedFetch::new(case.targets)?);
    let scene = Scene::start(&watch, fetch.clone()).await?;
    scene.polled(case.targets).await?;
    tokio::time::sleep(WARM_UP).await;
    let clock = Clock::system();
    let from = clock.now();
    tokio::time::sleep(window).await;
    let to = clock.now();
    // What was due in the window but is not sent yet would look like missed.
    tokio::time::sleep(case.every + Duration::from_millis(200)).await;
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    let mut lateness_ms = Vec::new();
    let mut missed = 0;
    for (number, notes) in (0..).zip(fetch.notes()) {
        let kept = judge(Grid::of(number, Span::from_std(case.every)), &notes, from, to);
        lateness_ms.extend(kept.lateness_ms);
        missed += kept.missed;
    }
    Ok((Sorted::new(lateness_ms), missed))
}
