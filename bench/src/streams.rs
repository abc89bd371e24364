//! A thousand listeners: what they cost the polling, and how soon they hear.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stakeout_core::{Source, Span};
use stakeout_engine::Clock;
use stakeout_sources::json::JsonSource;

use crate::args::Pace;
use crate::listeners::{Crowd, Report, Serving};
use crate::print;
use crate::quantile::Sorted;
use crate::scene::{Scene, Watch, runtime};
use crate::stamped::{Grid, StampedFetch, judge};
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;

const TARGETS: u64 = 1_000;
const EVERY: Duration = Duration::from_millis(200);
/// Targets of another source, which change with every poll: one event each.
const TALKING: u64 = 5;
const TALK_EVERY: Duration = Duration::from_secs(1);
/// Their numbers begin beyond those whose lateness is judged.
const TALKING_FROM: u64 = 1_000_000;
const LATENESS_P99_MS_MAX: f64 = 5.0;
/// Between two windows, and after the listeners came.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let listeners: usize = pace.pick(1_000, 200);
    runtime()?.block_on(rows(listeners, pace.secs(15, 4)))
}

async fn rows(listeners: usize, window: Duration) -> anyhow::Result<Vec<Row>> {
    let upstream = Upstream::start()?;
    let (same, changing) = (upstream.url("/same/{id}"), upstream.url("/changing/{id}"));
    let watch = Watch { url: &same, targets: TARGETS, every: EVERY, concurrency: 256 };
    let fetch = Arc::new(StampedFetch::new(TARGETS)?);
    let scene = Scene::with(vec![watch.source()?, talker(&changing)?], fetch.clone()).await?;
    let serving = Serving::start(&scene).await?;
    scene.polled(TARGETS).await?;
    tokio::time::sleep(SETTLE).await;

    let alone = window_of(&fetch, window).await;
    print::progress(&format!("nobody listens: {}", alone.0.summary_ms()));
    let (heard, crowd) = listened(&scene, &fetch, &serving, listeners, window).await?;

    serving.stop().await?;
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    let mut rows = vec![punctual(listeners, &alone, &heard)];
    rows.push(crowd.row(listeners));
    Ok(rows)
}

type Window = (Sorted, u64);

/// What listeners said they heard, and how many events there were while everybody listened.
struct Listened {
    report: Report,
    told: u64,
}

impl Listened {
    fn row(&self, listeners: usize) -> Row {
        let Report { least, most, delay_ms_p50, delay_ms_p99 } = self.report;
        Row {
            what: format!(
                "upstream's changed answer → read by every one of {} listeners",
                grouped(listeners as f64)
            ),
            ours: format!(
                "p50 {delay_ms_p50:.1} ms, p99 {delay_ms_p99:.1} ms (each heard {least} to {most} events; {} were told in \
                 the window)",
                self.told
            ),
            floor: "polling interval".to_owned(),
            ratio: None,
            // They share two cores with everything else; the last of them hears a thousand writes later than the first.
            target: "nothing lost".to_owned(),
            // Those who came a moment later may have heard a few less; nobody less than the window had.
            met: Met::when(least >= self.told),
        }
    }
}

/// A window in which so many listen.
async fn listened(
    scene: &Scene,
    fetch: &StampedFetch,
    serving: &Serving,
    listeners: usize,
    window: Duration,
) -> anyhow::Result<(Window, Listened)> {
    let crowd = Crowd::start(serving.address, listeners)?;
    tokio::time::sleep(SETTLE).await;
    let before = *scene.control.newest().borrow();
    let heard = window_of(fetch, window).await;
    let told = *scene.control.newest().borrow() - before;
    Ok((heard, Listened { report: crowd.finish()?, told }))
}

fn punctual(listeners: usize, alone: &Window, heard: &Window) -> Row {
    let (p99, missed) = (heard.0.quantile(0.99), heard.1);
    let who = format!("{} listeners", grouped(listeners as f64));
    Row {
        what: format!("lateness, 1,000 targets every 200 ms, {who} who all hear {TALKING} events per second"),
        ours: format!("{} ({} polls, {missed} missed)", heard.0.summary_ms(), grouped(heard.0.len() as f64)),
        floor: format!("nobody listens: {} ({} missed)", alone.0.summary_ms(), alone.1),
        ratio: Some(p99 / alone.0.quantile(0.99)),
        target: format!("p99 ≤ {LATENESS_P99_MS_MAX:.0} ms, none missed"),
        met: Met::when(p99 <= LATENESS_P99_MS_MAX && missed == 0),
    }
}

/// A source that has something to tell with every poll.
fn talker(url: &str) -> anyhow::Result<Arc<dyn Source>> {
    let ids: Vec<String> = (0..TALKING).map(|n| (TALKING_FROM + n).to_string()).collect();
    let config = json!({
        "url": url, "ids": ids, "every": format!("{}ms", TALK_EVERY.as_millis()),
        "records": "items", "key": "id", "fields": ["value"],
        "limits": { "requests_per_second": 1_000, "burst": 100, "concurrency": 16, "timeout": "10s", "jitter": "0ms" },
    });
    Ok(Arc::new(JsonSource::new("talk", &serde_json::from_value(config)?, Vec::new())?))
}

/// How late the polls of a window were, and how many were missed.
async fn window_of(fetch: &StampedFetch, window: Duration) -> Window {
    let clock = Clock::system();
    let from = clock.now();
    tokio::time::sleep(window).await;
    let to = clock.now();
    // What was due in the window but is not sent yet would look like missed.
    tokio::time::sleep(EVERY + Duration::from_millis(200)).await;
    let (mut lateness_ms, mut missed) = (Vec::new(), 0);
    for (number, notes) in (0..).zip(fetch.notes()) {
        let kept = judge(Grid::of(number, Span::from_std(EVERY)), &notes, from, to);
        lateness_ms.extend(kept.lateness_ms);
        missed += kept.missed;
    }
    (Sorted::new(lateness_ms), missed)
}
