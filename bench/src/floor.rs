//! What nobody can beat here: bare timers, a bare HTTP client, a bare durable transaction.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use reqwest::Client;
use rusqlite::Connection;
use stakeout_core::Span;
use stakeout_engine::Clock;
use tokio::task::JoinSet;

use crate::quantile::Sorted;
use crate::stamped::Grid;
use crate::upstream::Upstream;

/// One task per target that does nothing but sleep until its due times; lateness in milliseconds.
pub(crate) async fn timers(targets: u64, every: Duration, window: Duration) -> Sorted {
    let clock = Clock::system();
    let end = Instant::now() + window;
    let mut tasks = JoinSet::new();
    for number in 0..targets {
        let clock = clock.clone();
        let grid = Grid::of(number, Span::from_std(every));
        tasks.spawn(async move {
            let mut lateness_ms = Vec::new();
            let mut due = grid.after(clock.now());
            while Instant::now() < end {
                let left = (due - clock.now()).to_std();
                tokio::time::sleep_until(tokio::time::Instant::now() + left).await;
                lateness_ms.push((clock.now() - due).as_secs_f64().max(0.0) * 1e3);
                due = grid.after(due.max(clock.now()));
            }
            lateness_ms
        });
    }
    Sorted::new(tasks.join_all().await.into_iter().flatten().collect())
}

/// What a bare client does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bare {
    /// Answers read whole.
    pub(crate) per_second: f64,
    /// Processor time per answer, the upstream's included.
    pub(crate) cpu_us: f64,
}

/// Reads answers with so many requests in flight.
pub(crate) async fn client(
    upstream: &Upstream,
    path: &str,
    in_flight: u32,
    window: Duration,
) -> anyhow::Result<Bare> {
    let url = upstream.url(path);
    // Whoever installed a provider before chose it on purpose.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().pool_max_idle_per_host(in_flight as usize).tcp_nodelay(true).build()?;
    let answers = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut loops = JoinSet::new();
    for number in 0..in_flight {
        let (client, answers, stop) = (client.clone(), Arc::clone(&answers), Arc::clone(&stop));
        let url = url.replace("{id}", &number.to_string());
        loops.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let body = client.get(&url).send().await?.error_for_status()?.bytes().await?;
                answers.fetch_add(u64::from(!body.is_empty()), Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    // Connections are opened before the clock runs.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let count = || (answers.load(Ordering::Relaxed) as f64, upstream.cpu_seconds_with_ours());
    let (began, before) = (Instant::now(), count());
    tokio::time::sleep(window).await;
    let (took, after) = (began.elapsed().as_secs_f64(), count());
    stop.store(true, Ordering::Relaxed);
    loops.join_all().await.into_iter().collect::<anyhow::Result<()>>()?;
    let read = after.0 - before.0;
    Ok(Bare { per_second: read / took, cpu_us: (after.1 - before.1) * 1e6 / read })
}

/// Durable transactions of one row each, one after another, in milliseconds each.
pub(crate) fn transactions(directory: &Path, window: Duration) -> anyhow::Result<Sorted> {
    let conn = Connection::open(directory.join("floor.db")).context("cannot open the floor's database")?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.execute_batch("CREATE TABLE IF NOT EXISTS floor (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
    let mut insert = conn.prepare("INSERT INTO floor (body) VALUES (?1)")?;
    let body = "x".repeat(200);
    let began = Instant::now();
    let mut each_ms = Vec::new();
    while began.elapsed() < window {
        let start = Instant::now();
        // Outside a transaction every statement is one of its own.
        insert.execute([&body])?;
        each_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Sorted::new(each_ms))
}
