//! Nodes that write at the same time: in no circle, in the order of their numbers, and never for long.

use std::sync::Arc;
use std::time::Duration;

use stakeout_store::conformance::story::{Poll, World, after, at, late_line, request, wanted};
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::{Claim, ClaimRequest, CommitOutcome, Effect, Store};

use crate::support::{commit_busy, database, let_everyone_go, number, open, raw};

/// Two nodes commit batches that touch the same records and targets' neighbours in opposite orders, with events and
/// listings among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_never_wait_in_a_circle() {
    const ROUNDS: i64 = 30;
    let url = database!();
    let keys: Vec<String> = (0..16).map(|n| format!("t{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let nodes = [World::with(open(&url).await, &keys).await, World { store: open(&url).await }];
    let mut claims = nodes[0].claim(0).await;
    let others = claims.split_off(8);
    let mut writing = tokio::task::JoinSet::new();
    for (n, (world, mut claims)) in nodes.into_iter().zip([claims, others]).enumerate() {
        writing.spawn(async move {
            for round in 1..=ROUNDS {
                if n == 1 {
                    claims.reverse();
                }
                claims = commit_busy(&world, &claims, round).await;
            }
            world
        });
    }
    let worlds = writing.join_all().await;
    let raw = raw(&url).await;
    assert_eq!(
        number(&raw, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await,
        0
    );
    let events = worlds[0].store.events(0, &Default::default(), 10_000).await.expect("events");
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs.len(), (ROUNDS * 16) as usize);
    assert!(seqs.is_sorted());
    for name in ["one", "two", "three"] {
        assert_eq!(worlds[0].record(name).await.expect("stored").holders, 16, "{name}");
    }
}

/// Polls that are late have a line in the log, each of them. If that made them wait for those who write records, they
/// would be later next time, and never get out of being late.
#[tokio::test]
async fn late_polls_that_brought_nothing_wait_for_nobody_who_writes_records() {
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b", "c"]).await;
    let claims = world.claim(0).await;
    let writer = raw(&url).await;
    let locked = "BEGIN; SELECT stakeout_lock_records(ARRAY(SELECT id FROM sources))";
    writer.batch_execute(locked).await.expect("somebody writes records");
    let late = |claim: &Claim| Poll::of(claim, 5).holding(claim).with(|p| p.log = Some(late_line(1, 5)));
    let polls = claims.iter().map(|claim| late(claim).0.into()).collect();
    let outcomes = tokio::time::timeout(Duration::from_secs(20), world.store.commit(polls)).await;
    let outcomes = outcomes.expect("they wait for nobody").expect("commit");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, CommitOutcome::Done(_))), "{outcomes:?}");
    for claim in &claims {
        assert_eq!(world.store.polls(claim.target, 9).await.expect("polls"), [late_line(1, 5)]);
    }
}

/// Nodes write with connections of their own while one reads along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_never_find_a_lower_number_later_whoever_writes() {
    const POLLS: i64 = 40;
    let url = database!();
    let keys = ["a", "b", "c", "d"];
    let first = World::with(open(&url).await, &keys).await;
    // Different sources, so that nothing but the numbering stands between them.
    let mut writing = tokio::task::JoinSet::new();
    for n in 0..4 {
        let store = open(&url).await;
        let source = format!("source{n}");
        store.reconcile_roots(&source, &[wanted("a", 0)], at(0)).await.expect("roots");
        writing.spawn(async move {
            let ask = ClaimRequest { sources: vec![source], ..request(0) };
            let mut claim = store.claim(ask).await.expect("claim").remove(0);
            for n in 1..=POLLS {
                let poll = Poll::of(&claim, n).holding(&claim).with(|p| p.state.memory.version += 1);
                let poll = poll.tells(&claim, "tick", "x", Effect::Any);
                let outcome = store.commit(vec![poll.0.clone().into()]).await.expect("commit").remove(0);
                assert!(matches!(outcome, CommitOutcome::Done(_)), "{outcome:?}");
                claim = after(&claim, &poll);
            }
        });
    }
    let mut seen: Vec<u64> = Vec::new();
    while seen.len() < 4 * POLLS as usize {
        let news = first.events(seen.last().copied().unwrap_or(0)).await;
        seen.extend(news.iter().map(|event| event.seq));
        tokio::task::yield_now().await;
    }
    assert!(seen.is_sorted(), "nothing was passed by");
    writing.join_all().await;
}

/// The commonest commit touches no index: that is what the free space on the pages is for.
#[tokio::test]
async fn a_poll_that_keeps_its_place_is_a_heap_only_update() {
    const POLLS: i64 = 50;
    let url = database!();
    let options = PgOptions { clock: LeaseClock::Caller, connections: 1, ..PgOptions::default() };
    let world = World::with(Arc::new(PgStore::open(&url, options).await.expect("opens")), &["a"]).await;
    let mut claim = world.claim_one(0).await;
    for n in 1..=POLLS {
        let poll = Poll::of(&claim, n).holding(&claim);
        assert!(world.done(poll.clone()).await.held);
        claim = after(&claim, &poll);
    }
    let raw = raw(&url).await;
    let_everyone_go(world, &raw).await;
    let hot = number(&raw, "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'targets'").await;
    let all = number(&raw, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'targets'").await;
    assert_eq!(all, POLLS + 1, "the claim and each poll");
    // Now and then a page is full before its dead rows are swept.
    assert!(hot * 10 >= all * 9, "{hot} of {all} without touching an index");
}

/// A commit looks up what it touches, however much there is and whether or not anybody has analysed the tables.
#[tokio::test]
async fn a_commit_reads_no_more_rows_than_it_touches() {
    const RECORDS: usize = 2_000;
    const POLLS: i64 = 20;
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b"]).await;
    let raw = raw(&url).await;
    raw.batch_execute("ALTER TABLE records SET (autovacuum_enabled = off)")
        .await
        .expect("nobody analyses it");
    let claims = world.claim(0).await;
    let names: Vec<String> = (0..RECORDS).map(|n| format!("r{n:04}")).collect();
    let mut prices: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 0)).collect();
    let first = Poll::of(&claims[0], 1).holding(&claims[0]).sees(&claims[0], &prices);
    world.done(first.clone()).await;
    let mut claim = after(&claims[0], &first);
    let_everyone_go(world, &raw).await;
    raw.batch_execute("SELECT pg_stat_reset()").await.expect("starts counting");
    let world = World { store: open(&url).await };
    for n in 2..2 + POLLS {
        prices[n as usize].1 = n;
        let poll = Poll::of(&claim, n).holding(&claim).sees(&claim, &prices);
        world.done(poll.clone().tells(&claim, "moved", prices[n as usize].0, Effect::Any)).await;
        claim = after(&claim, &poll);
    }
    let_everyone_go(world, &raw).await;
    let read =
        "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'records'";
    let read = number(&raw, read).await;
    assert!(read >= POLLS, "the numbers were handed in");
    assert!(read <= 10 * POLLS, "{read} rows of records read by {POLLS} polls that changed one each");
}

/// A node stops while its listing is on its way: nothing of it runs any more, its connection neither. Whoever writes the
/// same source goes on, and so does it when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stands_still_in_a_listing_holds_up_nobody() {
    const ROUNDS: i64 = 40;
    const TURNS: i64 = 60;
    let url = database!();
    let world = World::with(open(&url).await, &["list", "other"]).await;
    let mut claims = world.claim(0).await;
    claims.sort_by(|a, b| a.spec.key.cmp(&b.spec.key));
    let (mut other, mut listing) = (claims.pop().expect("other"), claims.pop().expect("list"));
    let (stands, has_stopped) = std::sync::mpsc::channel();
    let (goes, may_go) = std::sync::mpsc::channel::<()>();
    let node = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let store = runtime.block_on(open(&url));
        let mut caught = 0;
        for round in 1..=ROUNDS {
            let named = |n: i64| format!("child{round}-{n}");
            let upserts = (0..20).map(|n| wanted(&named(n), 9_000 + round)).collect();
            let retire = (0..20).map(|n| format!("child{}-{n}", round - 1)).collect();
            let mut poll = Poll::of(&listing, round).with(|p| p.hold_until = Some(at(600)));
            poll = poll.sees(&listing, &[("listed", round)]).tells(&listing, "tick", "listed", Effect::Any);
            poll.0.state.memory.version = round as u64;
            poll.0.reconcile = Some(stakeout_store::Reconcile { upserts, retire });
            let mut commit = store.commit(vec![Arc::new(poll.0.clone())]);
            // In turns, not in time: how far a commit gets in a millisecond depends on the machine.
            let early = runtime.block_on(async {
                for _ in 0..round * TURNS {
                    tokio::select! {
                        biased;
                        outcomes = &mut commit => return Some(outcomes),
                        () = tokio::task::yield_now() => {}
                    }
                }
                None
            });
            caught += u32::from(early.is_none());
            stands.send(()).expect("heard");
            may_go.recv().expect("told");
            let outcomes = early.unwrap_or_else(|| runtime.block_on(commit)).expect("committed");
            assert!(matches!(outcomes.as_slice(), [CommitOutcome::Done(_)]), "{outcomes:?}");
            listing = after(&listing, &poll);
        }
        caught
    });
    for round in 1..=ROUNDS {
        tokio::task::block_in_place(|| has_stopped.recv()).expect("it stands");
        let poll = Poll::of(&other, round).with(|p| p.hold_until = Some(at(600)));
        let mut poll = poll.sees(&other, &[("seen", round)]).tells(&other, "tick", "seen", Effect::Any);
        poll.0.state.memory.version = round as u64;
        let written = tokio::time::timeout(Duration::from_secs(3), world.done(poll.clone()));
        written.await.unwrap_or_else(|_| panic!("round {round}: held up"));
        other = after(&other, &poll);
        goes.send(()).expect("it hears");
    }
    let caught = tokio::task::block_in_place(|| node.join()).expect("it went on");
    assert!(caught >= 5, "only {caught} listings were caught on their way");
}
