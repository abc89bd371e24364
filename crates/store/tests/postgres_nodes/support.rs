//! Databases of their own, nodes on them, and somebody who looks at them by other means.

use std::sync::Arc;

use stakeout_store::conformance::story::{Poll, World, after, at, wanted};
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::{Claim, CommitOutcome, Effect, PollCommit};
use tokio_postgres::{Client, NoTls};

/// A new database's URL; leaves the test when there is no server.
macro_rules! database {
    () => {
        match stakeout_store::conformance::server::PostgresServer::shared() {
            Some(server) => server.create().await,
            None => return,
        }
    };
}
pub(crate) use database;

pub(crate) async fn open(url: &str) -> Arc<PgStore> {
    let options = PgOptions { clock: LeaseClock::Caller, ..PgOptions::default() };
    Arc::new(PgStore::open(url, options).await.expect("opens"))
}

/// Somebody who looks at the database by other means.
pub(crate) async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

pub(crate) async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("a query").get(0)
}

pub(crate) async fn texts(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.expect("a query");
    rows.iter()
        .map(|row| {
            let cells =
                (0..row.len()).map(|n| row.get::<_, Option<String>>(n).unwrap_or_else(|| "NULL".into()));
            cells.collect::<Vec<_>>().join(" · ")
        })
        .collect()
}

/// Drops what uses the database and waits until nobody is connected but the one who looks: a backend hands in its
/// numbers when it ends.
pub(crate) async fn let_everyone_go(world: World, raw: &Client) {
    drop(world);
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while number(raw, others).await > 0 {
        raw.batch_execute("SELECT pg_stat_clear_snapshot()").await.expect("looks again");
    }
    raw.batch_execute("SELECT pg_stat_clear_snapshot()").await.expect("looks again");
}

/// A poll that changes the shared records, tells of it, and now and then lists another target.
pub(crate) fn busy(claim: &Claim, round: i64, k: usize) -> Poll {
    let mut names = [("one", round), ("two", round), ("three", round)];
    names.rotate_left(k % 3);
    let mut poll = Poll::of(claim, round).with(|p| p.hold_until = Some(at(600))).sees(claim, &names);
    poll.0.state.memory.version = round as u64;
    if k % 4 == 3 && round % 5 == 0 {
        let listed = wanted(&format!("{}/child", claim.spec.key), 9_000 + round);
        poll.0.reconcile = Some(stakeout_store::Reconcile { upserts: vec![listed], retire: vec![] });
    }
    poll.tells(claim, "tick", "one", Effect::Any)
}

/// Commits a busy poll for each claim in one batch; answers the claims as they are then.
pub(crate) async fn commit_busy(world: &World, claims: &[Claim], round: i64) -> Vec<Claim> {
    let polls: Vec<Poll> = claims.iter().enumerate().map(|(k, claim)| busy(claim, round, k)).collect();
    let batch: Vec<Arc<PollCommit>> = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
    for outcome in world.store.commit(batch).await.expect("commit") {
        assert!(matches!(outcome, CommitOutcome::Done(_)), "{outcome:?}");
    }
    claims.iter().zip(&polls).map(|(claim, poll)| after(claim, poll)).collect()
}
