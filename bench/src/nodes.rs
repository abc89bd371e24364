//! Several nodes on one PostgreSQL: what claiming and committing through the store costs next to bare SQL on the same
//! tables, next to a job queue, and how late two nodes are.

mod floor;
mod lateness;
mod peer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use stakeout_core::{EventId, Time};
use stakeout_engine::Clock;
use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::postgres::{PgOptions, PgStore};
use stakeout_store::{Claim, CommitOutcome, Effect, EventWrite, PollCommit, Store as _};

use crate::args::Pace;
use crate::polls::{changed, claim_request, unchanged, wanted};
use crate::print;
use crate::scene::{SOURCE, runtime};
use crate::table::{Met, Row, grouped};

/// Targets in the table, all of them due all the time.
const TARGETS: u64 = 4_000;
/// Taken and written at once.
const BATCH: u32 = 100;
const NODES: [usize; 3] = [1, 2, 4];

/// What is done with a claimed target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Nothing was new: only the next due time.
    Reschedule,
    /// One record, one row of history, one event, on the disk.
    Commit,
}

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let server = PostgresServer::durable().map_err(|reason| anyhow!(reason))?;
    let runtime = runtime()?;
    let window = pace.secs(10, 2);
    let mut rows = Vec::new();
    // One node that reschedules: what the job queue is compared with.
    let mut first = None;
    let job_queue = runtime.block_on(async { peer::jobs_per_second(&server.create().await, pace) });
    for work in [Work::Reschedule, Work::Commit] {
        for nodes in NODES {
            let (bare, ours) = runtime.block_on(async {
                let bare = floor::per_second(&server.create().await, nodes, work, window).await?;
                anyhow::Ok((bare, per_second(&server.create().await, nodes, work, window).await?))
            })?;
            first.get_or_insert(ours);
            print::progress(&format!("{work:?}, {nodes} nodes: {ours:.0}/s, bare SQL {bare:.0}/s"));
            rows.push(row(work, nodes, ours, bare));
        }
    }
    rows.insert(1, next_to_queue(first.unwrap_or_default(), job_queue));
    rows.extend(lateness::measure(&server, &runtime, pace)?);
    Ok(rows)
}

fn row(work: Work, nodes: usize, ours: f64, bare: f64) -> Row {
    let (what, target) = match work {
        Work::Reschedule => ("claim and reschedule on PostgreSQL", 0.75),
        Work::Commit => ("claim and commit a change on PostgreSQL, durable", 0.0),
    };
    let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    Row {
        what: format!("{what}, {nodes}"),
        ours: format!("{} targets/s", grouped(ours)),
        floor: format!("bare SQL, the same columns and indexes: {}/s", grouped(bare)),
        ratio: Some(ours / bare),
        target: if target > 0.0 { "≥ 75 %".to_owned() } else { String::new() },
        met: if target > 0.0 { Met::when(ours / bare >= target) } else { Met::NoTarget },
    }
}

/// The same next to a job queue that does nothing with its jobs.
fn next_to_queue(ours: f64, queue: Result<f64, String>) -> Row {
    let (floor, ratio, met) = match queue {
        Ok(jobs) => {
            let ratio = ours / jobs;
            let floor = format!("graphile-worker, batched: {} jobs/s", grouped(jobs));
            (floor, Some(ratio), Met::when(ratio >= 3.0))
        }
        Err(reason) => (format!("graphile-worker: not measured, {reason}"), None, Met::NoTarget),
    };
    let what = "claim and reschedule on PostgreSQL, next to a job queue".to_owned();
    let ours = format!("{} targets/s", grouped(ours));
    Row { what, ours, floor, ratio, target: "≥ 3 ×".to_owned(), met }
}

async fn open(url: &str, node: usize) -> anyhow::Result<Arc<PgStore>> {
    let options = PgOptions { connections: 4, node: Some(format!("bench-{node}")), ..PgOptions::default() };
    Ok(Arc::new(PgStore::open(url, options).await?))
}

/// Makes the targets, due since a while.
async fn make_targets(store: &PgStore, targets: u64) -> anyhow::Result<()> {
    let now = Clock::system().now();
    let roots: Vec<_> = (0..targets).map(|n| wanted(n.to_string(), Time(now.us() - 1_000_000))).collect();
    store.reconcile_roots(SOURCE, &roots, now).await?;
    Ok(())
}

/// Targets per second that go through so many stores, each claiming and committing as fast as it can.
async fn per_second(url: &str, nodes: usize, work: Work, window: Duration) -> anyhow::Result<f64> {
    make_targets(&*open(url, 0).await?, TARGETS).await?;
    let mut running = tokio::task::JoinSet::new();
    for node in 0..nodes {
        let store = open(url, node).await?;
        running.spawn(async move { turn(&store, work, window).await });
    }
    let mut done = 0.0;
    while let Some(finished) = running.join_next().await {
        done += finished??;
    }
    Ok(done)
}

async fn turn(store: &PgStore, work: Work, window: Duration) -> anyhow::Result<f64> {
    let clock = Clock::system();
    // Statements are prepared and caches are warm when the window begins.
    once(store, work, clock.now()).await?;
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < window {
        done += once(store, work, clock.now()).await?;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

async fn once(store: &PgStore, work: Work, now: Time) -> anyhow::Result<usize> {
    let claims = store.claim(claim_request(now, BATCH)).await?;
    let poll = |claim: &Claim| match work {
        Work::Reschedule => unchanged(claim, now, now),
        Work::Commit => told(claim, now),
    };
    let polls: Vec<Arc<PollCommit>> = claims.iter().map(|claim| Arc::new(poll(claim))).collect();
    let outcomes = store.commit(polls).await?;
    let refused = outcomes.iter().find(|outcome| !matches!(outcome, CommitOutcome::Done(_)));
    anyhow::ensure!(refused.is_none(), "a poll was refused: {refused:?}");
    Ok(outcomes.len())
}

/// A poll with one changed record, one row of history and one event, that gives its claim back.
fn told(claim: &Claim, now: Time) -> PollCommit {
    let poll = changed(claim, now, claim.poll_no);
    let record = &poll.records[0];
    let event = EventWrite {
        id: EventId::of_trigger(SOURCE, "changed", &claim.spec.key, &claim.poll_no.to_string()),
        event_type: "json.bench.changed".to_owned(),
        rule: "changed".to_owned(),
        subject: record.fingerprint,
        subject_key: record.key.clone(),
        at: now,
        dedupe_key: None,
        data: serde_json::json!({"record": {"value": claim.poll_no}}),
        requires: Effect::Any,
        quiet: None,
        unseen_for: None,
        follows: None,
        sinks: Vec::new(),
    };
    let schedule = unchanged(claim, now, now).schedule;
    PollCommit { events: vec![event], hold_until: None, schedule, ..poll }
}
