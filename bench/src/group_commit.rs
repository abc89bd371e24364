//! Group commit: how many durable polls per second the store takes, by how many commit at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stakeout_core::Span;
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{Claim, CommitOutcome, Store as _};
use tokio::task::JoinSet;

use crate::args::Pace;
use crate::polls::{START, changed, claim_request, wanted};
use crate::scene::{SOURCE, runtime};
use crate::table::{Met, Row, grouped};
use crate::{floor, print};

const COMMITTERS: [usize; 4] = [1, 8, 64, 512];

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let window = pace.secs(3, 1);
    COMMITTERS.iter().map(|committers| row(*committers, window)).collect()
}

fn row(committers: usize, window: Duration) -> anyhow::Result<Row> {
    let directory = tempfile::tempdir()?;
    let bare = floor::transactions(directory.path(), window)?.len() as f64 / window.as_secs_f64();
    let store = Arc::new(SqliteStore::open(directory.path().join("bench.db"), OpenOptions::default())?);
    let (polls, transactions) = runtime()?.block_on(commit(store, committers, window))?;
    print::progress(&format!("{committers} committers: {}/s", grouped(polls)));
    Ok(Row {
        what: format!("durable commits, {committers} at the same time"),
        ours: format!(
            "{} polls/s in {} transactions/s ({:.1} polls each)",
            grouped(polls),
            grouped(transactions),
            polls / transactions
        ),
        floor: format!("bare SQLite, one row each: {}/s", grouped(bare)),
        ratio: Some(polls / bare),
        target: String::new(),
        met: Met::NoTarget,
    })
}

/// Polls and durable transactions per second.
async fn commit(store: Arc<SqliteStore>, committers: usize, window: Duration) -> anyhow::Result<(f64, f64)> {
    let roots: Vec<_> = (0..committers).map(|n| wanted(n.to_string(), START)).collect();
    store.reconcile_roots(SOURCE, &roots, START).await?;
    let claims = store.claim(claim_request(START, committers as u32)).await?;
    anyhow::ensure!(claims.len() == committers, "{} of {committers} targets were claimed", claims.len());
    let before = store.counters().durable_transactions();
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for claim in claims {
        tasks.spawn(commit_in_turn(Arc::clone(&store), claim, began + window));
    }
    let done = tasks.join_all().await.into_iter().sum::<anyhow::Result<u64>>()?;
    let took = began.elapsed().as_secs_f64();
    let transactions = store.counters().durable_transactions() - before;
    Ok((done as f64 / took, transactions as f64 / took))
}

/// Commits one target's polls, one after another.
async fn commit_in_turn(store: Arc<SqliteStore>, mut claim: Claim, end: Instant) -> anyhow::Result<u64> {
    let mut done = 0;
    while Instant::now() < end {
        let now = START + Span::ms(1).times(done as i64);
        let outcomes = store.commit(vec![changed(&claim, now, done).into()]).await?;
        anyhow::ensure!(
            matches!(outcomes[..], [CommitOutcome::Done(_)]),
            "a commit was refused: {outcomes:?}"
        );
        claim.poll_no += 1;
        done += 1;
    }
    Ok(done)
}
