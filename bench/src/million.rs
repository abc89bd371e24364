//! A million targets: what a process that watches them needs, and how soon it polls the first one.
//!
//! Measured in a process of its own, because memory is counted per process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Engine, EngineConfig};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};

use crate::args::Pace;
use crate::print;
use crate::scene::{Watch, runtime};
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;

/// Every target once in this time: a million make 278 polls per second.
const EVERY: Duration = Duration::from_secs(3_600);
/// How long it polls before its memory is read.
const POLLS_FOR: Duration = Duration::from_secs(5);
const RSS_MB_MAX: f64 = 600.0;
const READY_S_MAX: f64 = 5.0;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let targets: u64 = pace.pick(1_000_000, 100_000);
    let upstream = Upstream::start()?;
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("bench.db");
    let first = child(&database, &upstream.url("/same/{id}"), targets)?;
    print::progress(&format!("first start: {first}"));
    let again = child(&database, &upstream.url("/same/{id}"), targets)?;
    print::progress(&format!("started again: {again}"));
    let few = child(&directory.path().join("few.db"), &upstream.url("/same/{id}"), 1_000)?;
    let number =
        |report: &Value, name: &str| report[name].as_f64().with_context(|| format!("{name} is missing"));
    let what = format!("{} targets", grouped(targets as f64));
    let (rss, ready) = (number(&again, "rss_mb")?, number(&again, "ready_s")?);
    Ok(vec![
        Row {
            what: format!("{what}: resident memory while polling"),
            ours: format!(
                "{rss:.0} MB (peak {:.0} MB; after the first start {:.0} MB, peak {:.0} MB)",
                number(&again, "peak_mb")?,
                number(&first, "rss_mb")?,
                number(&first, "peak_mb")?
            ),
            floor: format!("1,000 targets: {:.0} MB", number(&few, "rss_mb")?),
            ratio: Some(rss / number(&few, "rss_mb")?),
            target: format!("≤ {RSS_MB_MAX:.0} MB"),
            met: Met::when(rss <= RSS_MB_MAX),
        },
        Row {
            what: format!("{what}: start until the first poll"),
            ours: format!(
                "{ready:.2} s (open {:.2} s, engine {:.2} s; creating them all: {:.2} s)",
                number(&again, "open_s")?,
                number(&again, "start_s")?,
                number(&first, "ready_s")?
            ),
            // Its first target may be due only seconds later, so the wait for it is left out.
            floor: format!("1,000 targets: engine {:.2} s", number(&few, "start_s")?),
            ratio: None,
            target: format!("≤ {READY_S_MAX:.0} s"),
            met: Met::when(ready <= READY_S_MAX),
        },
    ])
}

/// Starts this programme again as an engine and reads its report.
fn child(database: &Path, url: &str, targets: u64) -> anyhow::Result<Value> {
    let output = Command::new(std::env::current_exe()?)
        .arg("million")
        .arg(database)
        .args([url, &targets.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start the engine's process")?;
    anyhow::ensure!(output.status.success(), "the engine's process ended with {}", output.status);
    serde_json::from_slice(&output.stdout).context("the engine's process gave no report")
}

/// The other side: opens, starts, polls for a while, reports.
pub(crate) fn run_as_child(database: &Path, url: &str, targets: u64) -> anyhow::Result<()> {
    let report = runtime()?.block_on(async {
        let source = Watch { url, targets, every: EVERY, concurrency: 64 }.source()?;
        let began = Instant::now();
        let store = Arc::new(SqliteStore::open(database, OpenOptions::default())?);
        let open_s = began.elapsed().as_secs_f64();
        let fetch = Arc::new(HttpFetch::new()?);
        let engine = Engine::start(EngineConfig::new(store, vec![source], fetch)).await?;
        let start_s = began.elapsed().as_secs_f64() - open_s;
        let mut polled = engine.control().polled();
        tokio::time::timeout(Duration::from_secs(120), polled.wait_for(|polls| *polls > 0)).await??;
        let ready_s = began.elapsed().as_secs_f64();
        tokio::time::sleep(POLLS_FOR).await;
        let polls = *polled.borrow();
        let status = std::fs::read_to_string("/proc/self/status")?;
        engine.shutdown().await?;
        anyhow::Ok(json!({
            "open_s": open_s, "start_s": start_s, "ready_s": ready_s, "polls": polls,
            "rss_mb": status_mb(&status, "VmRSS:"), "peak_mb": status_mb(&status, "VmHWM:"),
        }))
    })?;
    print::block(&report.to_string());
    Ok(())
}

/// A line of `/proc/self/status`, in megabytes (10⁶ bytes).
fn status_mb(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_megabytes() {
        let status = "Name:\tx\nVmHWM:\t  500000 kB\nVmRSS:\t  250000 kB\n";
        assert_eq!(status_mb(status, "VmRSS:"), Some(256.0));
        assert_eq!(status_mb(status, "VmHWM:"), Some(512.0));
        assert_eq!(status_mb(status, "VmSwap:"), None);
    }
}
