//! One schema for all nodes: made once, brought further while others run, refused when it is too far ahead.

use std::sync::Arc;
use std::time::Duration;

use stakeout_store::conformance::story::{Poll, World, after, request};
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::{ClaimRequest, Effect, StoreError};

use crate::support::{commit_busy, database, number, open, raw};

/// The schema version of this program.
const STEPS: i64 = 7;

#[tokio::test]
async fn nodes_that_start_together_make_one_schema() {
    let url = database!();
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let url = url.clone();
        starting.spawn(async move { open(&url).await });
    }
    assert_eq!(starting.join_all().await.len(), 6);
    let raw = raw(&url).await;
    assert_eq!(number(&raw, "SELECT count(*) FROM schema_steps").await, STEPS);
    assert_eq!(number(&raw, "SELECT count(*) FROM pg_class WHERE relname ~ '^history_w\\d+$'").await, 6);
}

/// A newer node has made the next step: the older one goes on, and others of its version may start. Two steps ahead it
/// stays away.
#[tokio::test]
async fn a_node_works_with_the_next_schema_and_refuses_the_one_after() {
    let url = database!();
    let old = World::with(open(&url).await, &["a"]).await;
    let raw = raw(&url).await;
    let next = "ALTER TABLE targets ADD COLUMN colour text NOT NULL DEFAULT 'grey';
        ALTER TABLE records ADD COLUMN weight bigint;
        CREATE FUNCTION stakeout_commit_2(p_polls text[]) RETURNS void LANGUAGE sql AS 'SELECT';
        INSERT INTO schema_steps SELECT max(step) + 1 FROM schema_steps";
    raw.batch_execute(next).await.expect("the next step");
    let claim = old.claim_one(0).await;
    old.done(Poll::of(&claim, 1).sees(&claim, &[("x", 1)]).tells(&claim, "drop", "x", Effect::Appeared))
        .await;
    let another = World { store: open(&url).await };
    let claim = another.claim_one(11).await;
    another.done(Poll::of(&claim, 12).sees(&claim, &[("x", 2)])).await;

    let after = "INSERT INTO schema_steps SELECT max(step) + 1 FROM schema_steps";
    raw.batch_execute(after).await.expect("two steps ahead");
    let (found, known) = (STEPS as u32 + 2, STEPS as u32);
    for refused in [PgStore::open(&url, PgOptions::default()).await, PgStore::open_existing(&url).await] {
        let error = refused.expect_err("refused");
        let StoreError::TooNew { found: is, known: of } = error else { panic!("{error}") };
        assert_eq!((is, of), (found, known));
    }
}

/// An upgrade, node by node: the old one goes on while the new one brings the schema further, and both commit. When a
/// third is two steps ahead of the old one, that is told so when it looks; the one between works with both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_versions_commit_side_by_side_and_a_third_is_one_too_many() {
    const NEXT: &[&[&str]] = &[&["ALTER TABLE targets ADD COLUMN colour text NOT NULL DEFAULT 'grey';"]];
    const AFTER: &[&[&str]] = &[NEXT[0], &["ALTER TABLE targets ADD COLUMN weight bigint;"]];
    let url = database!();
    let ahead = |steps| {
        let options = PgOptions { clock: LeaseClock::Caller, ..PgOptions::default() };
        PgStore::open_ahead(&url, options, steps)
    };
    let keys: Vec<String> = (0..8).map(|n| format!("t{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let old = World::with(open(&url).await, &keys).await;
    let mut claims = old.claim(0).await;
    let new = World { store: Arc::new(ahead(NEXT).await.expect("the next version opens it")) };
    let others = claims.split_off(4);
    let mut writing = tokio::task::JoinSet::new();
    for (world, mut claims) in [(old, claims), (new, others)] {
        writing.spawn(async move {
            for round in 1..=20 {
                world.store.check_schema().await.expect("one step apart");
                claims = commit_busy(&world, &claims, round).await;
            }
            world
        });
    }
    let worlds = writing.join_all().await;
    ahead(AFTER).await.expect("the version after opens it");
    let mut verdicts = Vec::new();
    for world in &worlds {
        verdicts.push(world.store.check_schema().await.is_ok());
    }
    verdicts.sort_unstable();
    assert_eq!(verdicts, [false, true], "two steps are too many, one is not");
}

/// A database that the version before has filled is brought up to date; that version's nodes go on beside the new ones,
/// with what they hold and with what they take.
#[tokio::test]
async fn a_filled_database_is_brought_further_while_the_version_before_goes_on() {
    let url = database!();
    let raw = raw(&url).await;
    let options = PgOptions { clock: LeaseClock::Caller, ..PgOptions::default() };
    let before = PgStore::open_behind(&url, options, STEPS as usize - 1).await.expect("the version before");
    let before = World::with(Arc::new(before), &["a", "b", "c", "d"]).await;
    let version = "SELECT max(step)::bigint FROM schema_steps";
    assert_eq!(number(&raw, version).await, STEPS - 1);
    let one = |secs: i64| ClaimRequest { limit: 1, ..request(secs) };
    let take =
        async |secs: i64| before.store.claim(one(secs)).await.expect("claim").pop().expect("one is due");
    let held = take(1).await;
    let told = Poll::of(&held, 2).holding(&held).sees(&held, &[("x", 1)]);
    before.done(told.clone().tells(&held, "drop", "x", Effect::Appeared)).await;

    let new = World { store: open(&url).await };
    assert_eq!(number(&raw, version).await, STEPS);
    let beside = take(3).await;
    let mut claims = new.claim(4).await;
    assert_eq!(claims.len(), 2, "what the version before holds is left to it");
    for world in [&before, &new] {
        let claim = claims.pop().expect("two");
        world.done(Poll::of(&claim, 5).sees(&claim, &[("x", 1)])).await;
    }
    before.done(Poll::of(&beside, 6).sees(&beside, &[("x", 1)])).await;
    let held = after(&held, &told);
    before.done(Poll::of(&held, 7).sees(&held, &[("x", 2)])).await;
    let x = new.record("x").await.expect("there");
    assert_eq!((x.holders, new.events(0).await.len(), new.history_rows("x").await), (4, 1, 2));
    before.store.check_schema().await.expect("one step ahead is fine");
}

/// A step that changes a table waits only a moment for whoever uses it, and lets those pass who wait behind it; it tries
/// again until it gets the table, or gives up with a word about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_never_makes_others_wait_for_a_backup() {
    const NEXT: &[&[&str]] = &[&["ALTER TABLE targets ADD COLUMN colour text NOT NULL DEFAULT 'grey';"]];
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let backup = raw(&url).await;
    backup.batch_execute("BEGIN; LOCK TABLE targets IN ACCESS SHARE MODE").await.expect("reads");
    let ahead = async |patience: Duration| {
        let options = PgOptions { clock: LeaseClock::Caller, patience, ..PgOptions::default() };
        PgStore::open_ahead(&url, options, NEXT).await
    };
    let refused = ahead(Duration::from_millis(1)).await.expect_err("the backup goes on").to_string();
    assert!(refused.contains("a table was in use for") && refused.contains("pg_stat_activity"), "{refused}");

    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'";
    let looks = raw(&url).await;
    let writing = async {
        let mut claim = world.claim_one(0).await;
        for n in 1..=3 {
            while number(&looks, waits).await == 0 {
                tokio::task::yield_now().await;
            }
            // It stands in the queue now, and this one behind it.
            let poll = Poll::of(&claim, n).holding(&claim);
            let written = tokio::time::timeout(Duration::from_secs(10), world.done(poll.clone()));
            written.await.expect("let pass");
            claim = after(&claim, &poll);
        }
        backup.batch_execute("COMMIT").await.expect("done");
    };
    let (opened, ()) = tokio::join!(ahead(Duration::from_secs(60)), writing);
    opened.expect("when the backup is done");
    assert_eq!(number(&looks, "SELECT max(step)::bigint FROM schema_steps").await, STEPS + 1);
}

#[tokio::test]
async fn a_database_without_us_is_not_ours_to_read() {
    let url = database!();
    let error = PgStore::open_existing(&url).await.expect_err("nothing there");
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    let nowhere = PgStore::open("postgres://u:secret@127.0.0.1:1/db", PgOptions::default()).await;
    let error = nowhere.expect_err("nobody there").to_string();
    assert!(error.contains("postgres://127.0.0.1:1/db") && !error.contains("secret"), "{error}");
}
