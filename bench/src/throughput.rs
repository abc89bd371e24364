//! Polls per second, unchanged and changed, next to a bare client on the same upstream.
//!
//! Two numbers per case. *Kept up*: the highest offered rate at which every due poll is made, found by halving.
//! *Overloaded*: what gets through when far more is due than fits; every poll is late then and is logged as such,
//! which is work that a healthy engine does not have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::args::Pace;
use crate::floor::Bare;
use crate::scene::{Scene, Watch, runtime};
use crate::stamped::StampedFetch;
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;
use crate::{floor, print};

/// Requests in flight, the engine's and the bare client's.
const IN_FLIGHT: u32 = 64;
/// Every target is due this often while looking for the highest rate.
const EVERY: Duration = Duration::from_millis(100);
/// Made ÷ due at which the engine counts as keeping up.
const KEPT_UP: f64 = 0.98;
/// Far more than any machine makes: 51,200 polls per second.
const OVERLOAD: (u64, Duration) = (512, Duration::from_millis(10));

struct Case {
    name: &'static str,
    path: &'static str,
    /// The least share of the bare client's rate.
    share: f64,
}

const CASES: [Case; 2] = [
    Case { name: "unchanged 4 KB answers", path: "/same/{id}", share: 0.5 },
    Case { name: "changed answers, durable", path: "/changing/{id}", share: 0.3 },
];

/// What came of one offered rate.
struct Trial {
    polls_per_second: f64,
    due_per_second: f64,
    events_per_second: f64,
    transactions_per_second: f64,
    synced_per_second: f64,
    /// Processor time per poll, the upstream's included: it depends less on what else the machine does.
    cpu_us: f64,
}

impl Trial {
    fn kept_up(&self) -> bool {
        self.polls_per_second >= self.due_per_second * KEPT_UP
    }

    fn describe(&self) -> String {
        let per_transaction = self.polls_per_second / self.transactions_per_second.max(1e-9);
        format!(
            "{}/s, {:.0} µs CPU each ({} events/s, {} transactions/s, {} of them synced, {per_transaction:.1} polls each)",
            grouped(self.polls_per_second),
            self.cpu_us,
            grouped(self.events_per_second),
            grouped(self.transactions_per_second),
            grouped(self.synced_per_second),
        )
    }
}

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in &CASES {
        let bare = bare(case, pace)?;
        print::progress(&format!("{}: {}", case.name, describe(&bare)));
        let best = highest_kept_up(case, bare.per_second, pace)?;
        rows.push(row(case, "kept up", best.as_ref(), &bare, true));
        let (targets, every) = OVERLOAD;
        let overloaded = trial(case.path, targets, every, pace.secs(4, 2))?;
        rows.push(row(case, "overloaded", Some(&overloaded), &bare, false));
    }
    Ok(rows)
}

fn bare(case: &Case, pace: Pace) -> anyhow::Result<Bare> {
    let upstream = Upstream::start()?;
    runtime()?.block_on(floor::client(&upstream, case.path, IN_FLIGHT, pace.secs(4, 2)))
}

fn describe(bare: &Bare) -> String {
    format!("bare client {}/s, {:.0} µs CPU each", grouped(bare.per_second), bare.cpu_us)
}

fn row(case: &Case, how: &str, trial: Option<&Trial>, bare: &Bare, judged: bool) -> Row {
    let share = trial.map_or(0.0, |trial| trial.polls_per_second / bare.per_second);
    Row {
        what: format!("polls per second, {}, {how}", case.name),
        ours: trial.map_or("none of the rates tried".to_owned(), Trial::describe),
        floor: describe(bare),
        ratio: Some(share),
        target: if judged { format!("≥ {:.0} %", case.share * 100.0) } else { String::new() },
        met: if judged { Met::when(share >= case.share) } else { Met::NoTarget },
    }
}

/// Halves the range of rates until it is a few hundredths of the floor wide.
fn highest_kept_up(case: &Case, bare: f64, pace: Pace) -> anyhow::Result<Option<Trial>> {
    let (mut low, mut high) = (0.0, 1.0);
    let mut best = None;
    for _ in 0..pace.pick(6, 4) {
        let share = (low + high) / 2.0;
        let targets = ((bare * share * EVERY.as_secs_f64()) as u64).max(1);
        let trial = trial(case.path, targets, EVERY, pace.secs(4, 2))?;
        let verdict = if trial.kept_up() { "kept up" } else { "fell behind" };
        print::progress(&format!("{} due/s: {}, {verdict}", grouped(trial.due_per_second), trial.describe()));
        if trial.kept_up() {
            low = share;
            best = Some(trial);
        } else {
            high = share;
        }
    }
    Ok(best)
}

/// One rate without its floor, for a profiler.
pub(crate) fn once(path: &str, targets: u64, every: Duration, window: Duration) -> anyhow::Result<()> {
    let trial = trial(path, targets, every, window)?;
    print::block(&format!("{} due/s: {}", grouped(trial.due_per_second), trial.describe()));
    Ok(())
}

fn trial(path: &str, targets: u64, every: Duration, window: Duration) -> anyhow::Result<Trial> {
    let upstream = Upstream::start()?;
    let url = upstream.url(path);
    let watch = Watch { url: &url, targets, every, concurrency: IN_FLIGHT };
    runtime()?.block_on(run(&upstream, &watch, window))
}

async fn run(upstream: &Upstream, watch: &Watch<'_>, window: Duration) -> anyhow::Result<Trial> {
    // Without targets to note: only failures are counted.
    let fetch = Arc::new(StampedFetch::new(0)?);
    let scene = Scene::start(watch, fetch.clone()).await?;
    // Baselines first: they write every record.
    scene.polled(watch.targets).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let counters = scene.store.counters().clone();
    // After the targets are made, only events draw sequence numbers.
    let newest = scene.control.newest();
    let count =
        || [scene.polls(), counters.transactions(), counters.durable_transactions(), *newest.borrow()];
    let (began, before, cpu_before) = (Instant::now(), count(), upstream.cpu_seconds_with_ours());
    tokio::time::sleep(window).await;
    let (took, after) = (began.elapsed().as_secs_f64(), count());
    let cpu_us = (upstream.cpu_seconds_with_ours() - cpu_before) * 1e6;
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    let per_second = |i: usize| (after[i] - before[i]) as f64 / took;
    Ok(Trial {
        polls_per_second: per_second(0),
        due_per_second: watch.rate(),
        events_per_second: per_second(3),
        transactions_per_second: per_second(1),
        synced_per_second: per_second(2),
        cpu_us: cpu_us / (after[0] - before[0]).max(1) as f64,
    })
}
