//! What is looked up is looked up by key, in tables of any size, whether or not anybody has analysed them.

use std::sync::Arc;

use stakeout_core::{Fingerprint, Time};
use stakeout_store::conformance::story::{SOURCE, World, print, request};
use stakeout_store::{ClaimRequest, EventFilter, RecordFilter, Store as _};
use tokio::task::JoinSet;

use crate::support::{database, let_everyone_go, number, open, raw};

/// A claim walks its index and stops at its limit, however much is due and whether or not anybody has analysed the table.
#[tokio::test]
async fn a_claim_reads_no_more_rows_than_it_takes() {
    const TARGETS: usize = 10_000;
    const CLAIMS: i64 = 10;
    const LIMIT: u32 = 50;
    let url = database!();
    let raw = raw(&url).await;
    let store = open(&url).await;
    raw.batch_execute("ALTER TABLE targets SET (autovacuum_enabled = off)")
        .await
        .expect("nobody analyses it");
    let keys: Vec<String> = (0..TARGETS).map(|n| format!("t{n:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let_everyone_go(World::with(store, &keys).await, &raw).await;
    raw.batch_execute("SELECT pg_stat_reset()").await.expect("starts counting");
    let world = World { store: open(&url).await };
    for _ in 0..CLAIMS {
        let claims = world.store.claim(ClaimRequest { limit: LIMIT, ..request(1) }).await.expect("claim");
        assert_eq!(claims.len(), LIMIT as usize);
    }
    let_everyone_go(world, &raw).await;
    let read =
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'targets'";
    let (read, taken) = (number(&raw, read).await, CLAIMS * i64::from(LIMIT));
    assert!(read >= taken, "the numbers were handed in");
    // Found, taken and read. What was taken before is no longer where the walk begins.
    assert!(read <= 10 * taken, "{read} rows read to take {taken}");
}

/// Of what targets hold, a claim reads what it takes; also when it was planned while there was nothing to read.
#[tokio::test]
async fn a_claim_reads_no_other_snapshots() {
    const TARGETS: i64 = 2_000;
    const CLAIMS: i64 = 10;
    const LIMIT: u32 = 50;
    let url = database!();
    let raw = raw(&url).await;
    let keys: Vec<String> = (0..TARGETS).map(|n| format!("t{n:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let some = || ClaimRequest { limit: LIMIT, ..request(1) };
    raw.batch_execute("ALTER TABLE snapshots SET (autovacuum_enabled = off)").await.expect("nobody analyses");
    // Often enough for a plan that is kept.
    for _ in 0..CLAIMS {
        world.store.claim(some()).await.expect("claim");
    }
    let fill = "INSERT INTO snapshots (target_id, version, records, body) SELECT id, 1, 0, '' FROM targets";
    raw.batch_execute(fill).await.expect("filled");
    for _ in 0..CLAIMS {
        assert_eq!(world.store.claim(some()).await.expect("claim").len(), LIMIT as usize);
    }
    let_everyone_go(world, &raw).await;
    let read = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'snapshots'";
    let (read, taken) = (number(&raw, read).await, CLAIMS * i64::from(LIMIT));
    assert!((taken..=2 * taken).contains(&read), "{read} snapshots read for {taken} targets");
}

/// What a poll recalls is found by key; also when it was planned while there was nothing to find.
#[tokio::test]
async fn recalling_records_reads_no_others() {
    const TIMES: i64 = 10;
    let url = database!();
    let raw = raw(&url).await;
    let world = World::with(open(&url).await, &["a"]).await;
    raw.batch_execute("ALTER TABLE records SET (autovacuum_enabled = off)").await.expect("nobody analyses");
    let prints: Vec<Fingerprint> = (0..20).map(|n| print(&format!("record {n}"))).collect();
    let families: Vec<_> = prints.iter().map(|print| (*print, Fingerprint::default())).collect();
    let recall = async |found: usize| {
        for _ in 0..TIMES {
            assert_eq!(world.store.records(SOURCE, &prints).await.expect("records").len(), found);
            assert_eq!(world.store.siblings(SOURCE, &families).await.expect("siblings").len(), found);
        }
    };
    recall(0).await;
    let others = (0..2_000).map(|n| print(&format!("another {n}")));
    let all: Vec<Vec<u8>> = prints.iter().copied().chain(others).map(|p| p.to_bytes().to_vec()).collect();
    let fill = "INSERT INTO records (source_id, fingerprint, kind, key, parent, group_print, content, holders,
            first_seen_us, changed_us, seen_us, body)
        SELECT (SELECT id FROM sources), p, 'kind', 'key', p, decode(repeat('00', 16), 'hex'), p, 1, 0, 0, 0, '{}'
        FROM unnest($1::bytea[]) AS p";
    raw.execute(fill, &[&all]).await.expect("filled");
    recall(prints.len()).await;
    let_everyone_go(world, &raw).await;
    let read =
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'records'";
    let (read, asked) = (number(&raw, read).await, 2 * TIMES * prints.len() as i64);
    assert!((asked..=2 * asked).contains(&read), "{read} records read for {asked}");
}

/// What was told of a target is found by the target, also by a plan that is kept: the rest of the log is not read.
#[tokio::test]
async fn what_was_told_of_a_target_reads_no_other_events() {
    const TIMES: i64 = 10;
    const TOLD: i64 = 3;
    let url = database!();
    let raw = raw(&url).await;
    let world = World::with(open(&url).await, &["a"]).await;
    raw.batch_execute("ALTER TABLE events SET (autovacuum_enabled = off)").await.expect("nobody analyses");
    let fill =
        "INSERT INTO events (seq, id, type, source_id, target, rule, subject, subject_key, at_us, data)
        SELECT 1000 + n, decode(lpad(to_hex(n), 32, '0'), 'hex'), 'test.tick', (SELECT min(id) FROM sources),
            CASE WHEN n <= 3 THEN 'a' ELSE 'other' END, 'tick', decode(lpad('', 32, '0'), 'hex'), 'x', n, '{}'
        FROM generate_series(1, 5000) AS n";
    raw.batch_execute(fill).await.expect("filled");
    let (source, target) = (Some(SOURCE.to_owned()), Some("a".to_owned()));
    for filter in [
        EventFilter { source, target: target.clone(), ..EventFilter::default() },
        EventFilter { target, ..EventFilter::default() },
    ] {
        for _ in 0..TIMES {
            let told = world.store.newest_events(u64::MAX, &filter, 20).await.expect("events");
            assert_eq!(told.len() as i64, TOLD);
        }
    }
    let_everyone_go(world, &raw).await;
    let read =
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'events'";
    let (read, wanted) = (number(&raw, read).await, 2 * TIMES * TOLD);
    assert!((wanted..=2 * wanted).contains(&read), "{read} events read for {wanted}");
}

/// Whoever looks on has connections of his own: when none of them is free, the engine still reads.
#[tokio::test]
async fn the_engine_does_not_wait_behind_those_who_look_on() {
    const LOOKS: usize = 16;
    let url = database!();
    let store = open(&url).await;
    World::with(store.clone(), &["a"]).await;
    let onlookers = Arc::new(store.for_onlookers().expect("opens"));
    let raw = raw(&url).await;
    raw.batch_execute("BEGIN; LOCK TABLE records").await.expect("nobody reads records");
    let everything = RecordFilter {
        source: SOURCE.to_owned(),
        kind: None,
        parent: None,
        gone: false,
        after: None,
        limit: 1_000,
    };
    let mut looks = JoinSet::new();
    for _ in 0..LOOKS {
        let (onlookers, filter) = (Arc::clone(&onlookers), everything.clone());
        looks.spawn(async move { onlookers.list_records(&filter).await.expect("reads").len() });
    }
    // Until somebody stands at the lock, and for want of a connection the others behind him.
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    while number(&raw, waiting).await == 0 {}
    let due = store.next_wake(&[SOURCE.to_owned()]).await.expect("reads");
    assert!(due.is_some());
    assert!(looks.try_join_next().is_none(), "they still wait");
    raw.batch_execute("COMMIT").await.expect("lets go");
    assert_eq!(looks.join_all().await, [0; LOOKS]);
}

/// Whether targets were polled before is one step in an index for each; also when it was planned while nobody had been.
#[tokio::test]
async fn who_was_polled_before_is_found_without_reading_all_runs() {
    const TARGETS: i64 = 50;
    const TIMES: i64 = 10;
    let url = database!();
    let raw = raw(&url).await;
    let keys: Vec<String> = (0..TARGETS).map(|n| format!("t{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    raw.batch_execute("ALTER TABLE runs SET (autovacuum_enabled = off)").await.expect("nobody analyses");
    let mut targets = Vec::new();
    for key in &keys {
        targets.push(world.row(key).await.id);
    }
    let before = async |moment: i64, found: usize| {
        for _ in 0..TIMES {
            let polled = world.store.polled_before(&targets, Time(moment)).await.expect("runs");
            assert_eq!(polled.len(), found);
        }
    };
    before(90, 0).await;
    let fill = "INSERT INTO runs (target_id, source_id, key, from_us, to_us, body)
        SELECT id, source_id, key, n, n + 1, '' FROM targets, generate_series(1, 100) AS n";
    raw.batch_execute(fill).await.expect("filled");
    before(90, keys.len()).await;
    let_everyone_go(world, &raw).await;
    let read =
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'runs'";
    let (read, asked) = (number(&raw, read).await, TIMES * TARGETS);
    assert!(read <= 2 * asked, "{read} runs read for {asked}");
}
