//! What can be wrong with a file, a directory, a disk or another process, and what the store says then.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stakeout_core::Span;
use stakeout_store::conformance::story::{Poll, SOURCE, World, after, at, request, wanted};
use stakeout_store::sqlite::{LockInfo, OpenOptions, SqliteStore, lock_holder};
use stakeout_store::{
    CommitOutcome, Effect, EventWrite, Reconcile, RecordFilter, Retention, Store, StoreError,
};
use tempfile::TempDir;
use tokio::task::JoinSet;

fn directory() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("stakeout.db");
    (dir, path)
}

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, OpenOptions::default())
}

fn error(result: Result<SqliteStore, StoreError>) -> StoreError {
    result.expect_err("it must not open")
}

async fn filled(path: &Path, records: usize) {
    let world = World::with(Arc::new(open(path).expect("opens")), &["a"]).await;
    let claim = world.claim_one(0).await;
    let names: Vec<String> = (0..records).map(|n| format!("record {n}")).collect();
    let prices: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    world.done(Poll::of(&claim, 1).sees(&claim, &prices)).await;
}

#[test]
fn a_newer_schema_is_refused() {
    let (_dir, path) = directory();
    drop(open(&path).expect("opens"));
    rusqlite::Connection::open(&path).expect("raw").pragma_update(None, "user_version", 99).expect("sets");
    let refused = error(open(&path));
    assert!(matches!(refused, StoreError::TooNew { found: 99, known: 6 }), "{refused}");
    assert!(matches!(error(SqliteStore::open_read_only(&path)), StoreError::TooNew { .. }));
}

#[tokio::test]
async fn where_nothing_can_be_undone_the_first_failure_is_the_end() {
    let store = Arc::new(SqliteStore::in_memory_without_undo().expect("opens"));
    let world = World::with(store.clone(), &["a"]).await;
    let claim = world.claim_one(0).await;
    let good = Poll::of(&claim, 1).sees(&claim, &[("x", 1)]);
    // Commits are put off until somebody is in a hurry.
    tokio::join!(world.done(good), async { store.hurry() });
    let claim = world.claim_one(20).await;
    // Fine up to its last event, which has the identity of the one before.
    let poll = Poll::of(&claim, 2).sees(&claim, &[("x", 2)]).tells(&claim, "moved", "x", Effect::Any);
    let poll = poll.with(|p| p.events.push(EventWrite { data: "other".into(), ..p.events[0].clone() }));
    let (refused, ()) = tokio::join!(store.commit(vec![poll.0.into()]), async { store.hurry() });
    let refused = refused.expect_err("half of it is in");
    assert!(matches!(refused, StoreError::Corrupt { .. }) && refused.is_fatal(), "{refused}");
    let later = store.claim(request(60)).await.expect_err("nobody goes on from there");
    assert!(matches!(later, StoreError::Corrupt { .. }), "{later}");
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let (_dir, path) = directory();
    fs::write(&path, "these are my holiday notes, not a database\n".repeat(100)).expect("writes");
    let before = fs::read(&path).expect("reads");
    let refused = error(open(&path));
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    assert_eq!(fs::read(&path).expect("reads"), before);

    let (_dir, path) = directory();
    rusqlite::Connection::open(&path)
        .expect("raw")
        .execute_batch("CREATE TABLE bookmarks (url)")
        .expect("creates");
    let refused = error(open(&path));
    assert!(refused.to_string().contains("another program's database"), "{refused}");
}

#[tokio::test]
async fn a_truncated_file_is_damaged() {
    let (_dir, path) = directory();
    filled(&path, 500).await;
    let size = fs::metadata(&path).expect("exists").len();
    fs::File::options().write(true).open(&path).expect("opens").set_len(size / 3).expect("cuts");
    let damaged = match open(&path) {
        Err(error) => error,
        Ok(store) => {
            let world = World { store: Arc::new(store) };
            match world.store.stats().await {
                Err(error) => error,
                Ok(_) => world.store.claim(request(100)).await.expect_err("some page is missing"),
            }
        }
    };
    assert!(matches!(damaged, StoreError::Corrupt { .. }), "{damaged}");
    assert!(damaged.is_fatal());
}

#[tokio::test]
async fn an_overwritten_page_is_noticed_when_it_is_met() {
    let (_dir, path) = directory();
    filled(&path, 500).await;
    // Everything but the first page, which holds the schema.
    let mut file = fs::File::options().write(true).open(&path).expect("opens");
    let pages = file.metadata().expect("exists").len() / 4096 - 1;
    file.seek(SeekFrom::Start(4096)).expect("seeks");
    file.write_all(&vec![0x5a; 4096 * pages as usize]).expect("writes");
    drop(file);
    let damaged = error(open(&path));
    assert!(matches!(damaged, StoreError::Corrupt { .. }), "{damaged}");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let (dir, path) = directory();
    fs::write(&path, "a file").expect("writes");
    for impossible in
        [path.join("below-a-file.db"), dir.path().join("no/such/directory.db"), "/proc/stakeout.db".into()]
    {
        let refused = error(open(&impossible));
        assert!(matches!(&refused, StoreError::ReadOnly { path, .. } if *path == impossible), "{refused}");
    }
    let refused = error(open(dir.path()));
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "a directory: {refused}");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_harms_nothing() {
    let (_dir, path) = directory();
    let options = OpenOptions { max_page_count: Some(64), ..OpenOptions::default() };
    let world = World::with(Arc::new(SqliteStore::open(&path, options).expect("opens")), &["a"]).await;
    let claim = world.claim_one(0).await;
    let small = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)]);
    world.done(small.clone().tells(&claim, "drop", "x", Effect::Appeared)).await;
    let claim = after(&claim, &small);
    let names: Vec<String> = (0..5_000).map(|n| format!("record {n}")).collect();
    let prices: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let large = Poll::of(&claim, 2).holding(&claim).sees(&claim, &prices);
    let full = world.store.commit(vec![large.clone().0.into()]).await.expect_err("no room");
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert!(full.is_fatal());
    assert!(world.record("record 0").await.is_none(), "nothing of it is in");
    assert_eq!(world.row("a").await.poll_no, 1);
    assert_eq!(world.events(0).await.len(), 1);
    world.done(Poll::of(&claim, 3).holding(&claim)).await;
    drop(world);

    let world = World { store: Arc::new(open(&path).expect("opens again, with more room")) };
    let claim = world.claim_one(20).await;
    world.done(Poll::of(&claim, 20).sees(&claim, &prices)).await;
}

#[test]
fn a_second_writer_is_told_who_the_first_is() {
    let (_dir, path) = directory();
    assert_eq!(lock_holder(&path), None);
    let options = OpenOptions { socket: Some("/run/first.sock".into()), ..OpenOptions::default() };
    let store = SqliteStore::open(&path, options).expect("opens");
    let pid = std::process::id().to_string();
    let refused = error(open(&path));
    assert!(matches!(&refused, StoreError::Locked { pid: found, .. } if *found == pid), "{refused}");
    let info = |socket: &str| Some(LockInfo { pid: pid.clone(), socket: Some(socket.into()) });
    assert_eq!(lock_holder(&path), info("/run/first.sock"));
    store.set_socket(Path::new("/run/second.sock")).expect("sets");
    assert_eq!(lock_holder(&path), info("/run/second.sock"));
    drop(store);
    assert_eq!(lock_holder(&path), None, "what a dead process left in the file counts for nothing");
    open(&path).expect("free again");
}

#[tokio::test]
async fn others_may_read_along() {
    let (_dir, path) = directory();
    let missing = error(SqliteStore::open_read_only(&path));
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    let world = World::with(Arc::new(open(&path).expect("opens")), &["a"]).await;
    let reader = SqliteStore::open_read_only(&path).expect("opens beside the writer");
    let claim = world.claim_one(0).await;
    world.done(Poll::of(&claim, 1).sees(&claim, &[("x", 1)])).await;
    assert_eq!(reader.stats().await.expect("stats").records, 1);
    let refused = reader.claim(request(100)).await.expect_err("only reads");
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused}");
    drop(world);
    assert_eq!(reader.target(SOURCE, "a").await.expect("reads on").expect("exists").poll_no, 1);
}

#[tokio::test]
async fn commits_that_wait_together_share_a_transaction() {
    const TARGETS: usize = 200;
    let (_dir, path) = directory();
    let store = Arc::new(open(&path).expect("opens"));
    let keys: Vec<String> = (0..TARGETS).map(|n| format!("t{n}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = Arc::new(World::with(Arc::clone(&store) as Arc<dyn Store>, &keys).await);
    let claims = world.claim(0).await;
    let before = store.counters().transactions();
    let mut tasks = tokio::task::JoinSet::new();
    for claim in claims {
        let world = Arc::clone(&world);
        tasks.spawn(
            async move { world.done(Poll::of(&claim, 1).sees(&claim, &[(&claim.spec.key, 1)])).await },
        );
    }
    assert_eq!(tasks.join_all().await.len(), TARGETS);
    let transactions = store.counters().transactions() - before;
    assert!(transactions <= TARGETS as u64 / 4, "{TARGETS} commits took {transactions} transactions");
    assert_eq!(store.counters().polls(), TARGETS as u64);
}

#[tokio::test]
async fn only_what_carries_changes_waits_for_the_disk() {
    let (_dir, path) = directory();
    let store = Arc::new(open(&path).expect("opens"));
    let world = World::with(Arc::clone(&store) as Arc<dyn Store>, &["a"]).await;
    let mut synced = store.counters().durable_transactions();
    let mut waited = || {
        let before = std::mem::replace(&mut synced, store.counters().durable_transactions());
        synced > before
    };
    let claim = world.claim_one(0).await;
    assert!(!waited(), "a claim");
    let changed = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)]);
    world.done(changed.clone()).await;
    assert!(waited(), "a change");
    let claim = after(&claim, &changed);
    world.done(Poll::of(&claim, 2).holding(&claim)).await;
    assert!(!waited(), "a schedule");
}

/// Records come and go and are pruned: freed pages are used again, so the file stops growing.
#[tokio::test]
async fn churn_and_pruning_keep_the_file_flat() {
    let (_dir, path) = directory();
    let world = World::with(Arc::new(open(&path).expect("opens")), &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let day = Span::secs(30);
    let retention = Retention { events: day, history: day, polls: day, gone_records: day };
    let mut sizes = Vec::new();
    for round in 0..60_i64 {
        let names: Vec<String> = (0..50).map(|n| format!("record {round} {n}")).collect();
        let prices: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), round)).collect();
        let now = round * 10;
        let mut poll =
            Poll::of(&claim, now).with(|p| p.hold_until = Some(at(now + 60))).sees(&claim, &prices);
        for name in &names {
            poll = poll.tells(&claim, "drop", name, Effect::Appeared);
        }
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
        while world.store.prune(&retention, at(now), 500).await.expect("prune").more {}
        // The log is copied into the file now and then; here after every round, so that the file itself is measured.
        let raw = rusqlite::Connection::open(&path).expect("raw");
        raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("checkpoint");
        sizes.push(std::fs::metadata(&path).expect("file").len());
    }
    drop(world);
    let settled = rusqlite::Connection::open(&path).expect("raw");
    let pages: i64 = settled.pragma_query_value(None, "page_count", |row| row.get(0)).expect("pages");
    let free: i64 = settled.pragma_query_value(None, "freelist_count", |row| row.get(0)).expect("free");
    let (middle, last) = (sizes[20..30].iter().max(), sizes[50..].iter().max());
    assert!(last <= middle.map(|size| size + size / 5).as_ref(), "{sizes:?}");
    assert!(free < pages, "{free} of {pages} pages are free");
}

/// A listing retires a target whose stored snapshot is damaged: that poll is refused, the others are in, and the file is
/// still of use.
#[tokio::test]
async fn a_poll_that_stumbles_over_damage_is_poisoned_alone() {
    let (_dir, path) = directory();
    let world = World::with(Arc::new(open(&path).expect("opens")), &["a", "b"]).await;
    let claims = world.claim(0).await;
    let upserts = vec![wanted("child", 15)];
    let first = Poll::of(&claims[0], 1).holding(&claims[0]);
    let first = first.with(|p| p.reconcile = Some(Reconcile { upserts, retire: vec![] }));
    world.done(first.clone()).await;
    let child = world.claim_one(15).await;
    world.done(Poll::of(&child, 16).sees(&child, &[("x", 1)])).await;
    let raw = rusqlite::Connection::open(&path).expect("raw");
    raw.execute("UPDATE snapshots SET body = CAST(body || 'x' AS BLOB)", []).expect("damaged");

    let lister = after(&claims[0], &first);
    let retire = Some(Reconcile { upserts: vec![], retire: vec!["child".into()] });
    let bad = Poll::of(&lister, 20).sees(&lister, &[("y", 1)]).with(|p| p.reconcile = retire);
    let good = Poll::of(&claims[1], 20).sees(&claims[1], &[("z", 1)]);
    let outcomes = world.store.commit(vec![bad.0.into(), good.0.into()]).await.expect("the file is of use");
    assert!(matches!(outcomes[..], [CommitOutcome::Poisoned(_), CommitOutcome::Done(_)]), "{outcomes:?}");
    assert!(world.record("y").await.is_none() && world.record("z").await.is_some());
}

/// Whoever looks on may ask for as much as he likes: what the engine reads does not wait behind it.
#[tokio::test]
async fn the_engine_does_not_wait_behind_those_who_look_on() {
    const LOOKS: usize = 500;
    let (_dir, path) = directory();
    filled(&path, 500).await;
    let store = open(&path).expect("opens");
    let onlookers = Arc::new(store.for_onlookers().expect("opens"));
    let everything = RecordFilter {
        source: SOURCE.to_owned(),
        kind: None,
        parent: None,
        gone: false,
        after: None,
        limit: 1_000,
    };
    let mut looks = JoinSet::new();
    let (asked, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..LOOKS {
        let (onlookers, filter) = (Arc::clone(&onlookers), everything.clone());
        let (asked, seen) = (Arc::clone(&asked), Arc::clone(&seen));
        looks.spawn(async move {
            asked.fetch_add(1, Ordering::Relaxed);
            let records = onlookers.list_records(&filter).await.expect("reads");
            seen.fetch_add(1, Ordering::Relaxed);
            records.len()
        });
    }
    while asked.load(Ordering::Relaxed) < LOOKS {
        tokio::task::yield_now().await;
    }
    store.next_wake(&[SOURCE.to_owned()]).await.expect("reads");
    let before = seen.load(Ordering::Relaxed);
    assert!(before < LOOKS / 2, "{before} of {LOOKS} others were answered first");
    assert!(looks.join_all().await.into_iter().all(|records| records == 500));
    // Both have the file; it is free when both have gone.
    drop(store);
    assert!(matches!(error(open(&path)), StoreError::Locked { .. }));
    drop(onlookers);
    open(&path).expect("is free");
}
