//! What only several nodes on one PostgreSQL can get wrong: starting, upgrading, locking, clocks, hints, weeks.

use std::sync::Arc;
use std::time::Duration;

use stakeout_core::{Field, FieldType, Kind, Span, Stream, Time};
use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::conformance::story::{
    KIND, Poll, SOURCE, STREAM, World, after, at, print, request, wanted,
};
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::{
    Allowance, Claim, ClaimRequest, CommitOutcome, Effect, GrantRequest, Hint, Lease, LeaseRequest,
    PollCommit, PollOutcome, Retention, Stamp, Store, StoreError,
};
use tokio_postgres::{Client, NoTls};

/// The schema version of this program.
const STEPS: i64 = 3;

/// A new database's URL; leaves the test when there is no server.
macro_rules! database {
    () => {
        match PostgresServer::shared() {
            Some(server) => server.create().await,
            None => return,
        }
    };
}

async fn open(url: &str) -> Arc<PgStore> {
    let options = PgOptions { clock: LeaseClock::Caller, ..PgOptions::default() };
    Arc::new(PgStore::open(url, options).await.expect("opens"))
}

/// Somebody who looks at the database by other means.
async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect("a query").get(0)
}

async fn texts(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.expect("a query");
    rows.iter()
        .map(|row| {
            let cells =
                (0..row.len()).map(|n| row.get::<_, Option<String>>(n).unwrap_or_else(|| "NULL".into()));
            cells.collect::<Vec<_>>().join(" · ")
        })
        .collect()
}

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
                let polls: Vec<Poll> =
                    claims.iter().enumerate().map(|(k, claim)| busy(claim, round, k)).collect();
                let batch: Vec<Arc<PollCommit>> = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
                for outcome in world.store.commit(batch).await.expect("commit") {
                    assert!(matches!(outcome, CommitOutcome::Done(_)), "{outcome:?}");
                }
                claims = claims.iter().zip(&polls).map(|(claim, poll)| after(claim, poll)).collect();
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

/// Behind a pooler words may never arrive: whoever holds targets finds out which of them moved on.
#[tokio::test]
async fn plans_that_moved_on_are_found_by_comparing() {
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b", "c"]).await;
    let claims = world.claim(0).await;
    let held: Vec<_> = claims.iter().map(|claim| (claim.target, claim.plan_version)).collect();
    assert_eq!(world.store.moved_on(&held).await.expect("compared"), []);
    world.store.poll_now(held[1].0, at(1)).await.expect("asked for");
    world.store.set_enabled(held[2].0, false, at(1)).await.expect("switched off");
    let mut moved = world.store.moved_on(&held).await.expect("compared");
    moved.sort_unstable();
    assert_eq!(moved, [held[1].0, held[2].0]);
}

/// A node that hears what it says itself knows that it hears others.
#[tokio::test]
async fn whoever_listens_hears_himself() {
    let url = database!();
    let store = open(&url).await;
    let began = std::time::Instant::now();
    while !store.hears_hints().await.expect("asked") {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "nothing was heard");
        tokio::task::yield_now().await;
    }
}

/// More targets are re-planned at once than fit into one word: every one of them is named.
#[tokio::test]
async fn no_word_is_cut_short() {
    const MANY: usize = 700;
    let url = database!();
    let keys: Vec<String> = (0..MANY).map(|n| format!("t{n:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let listener = open(&url).await;
    let mut hints = listener.hints().expect("a shared store");
    let raw = raw(&url).await;
    raw.batch_execute("SELECT stakeout_hint('plans', ARRAY(SELECT id FROM targets))").await.expect("said");
    let mut named = std::collections::BTreeSet::new();
    while named.len() < MANY {
        match hints.recv().await.expect("words") {
            Hint::Plans(targets) => named.extend(targets),
            other => panic!("{other:?}"),
        }
    }
    drop(world);
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
                let polls: Vec<Poll> =
                    claims.iter().enumerate().map(|(k, claim)| busy(claim, round, k)).collect();
                let batch: Vec<Arc<PollCommit>> = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
                for outcome in world.store.commit(batch).await.expect("commit") {
                    assert!(matches!(outcome, CommitOutcome::Done(_)), "{outcome:?}");
                }
                claims = claims.iter().zip(&polls).map(|(claim, poll)| after(claim, poll)).collect();
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

fn wish(node: &str, now: i64, demand: f64, using: Allowance) -> GrantRequest {
    GrantRequest {
        source: SOURCE.to_owned(),
        node: node.to_owned(),
        now: at(now),
        holds: Span::secs(5),
        limits: Allowance { requests_per_second: 100.0, burst: 10, concurrency: 4 },
        demand,
        using,
        slow_until: None,
    }
}

/// What is granted never adds up to more than there is, also while a part is being made smaller.
#[tokio::test]
async fn limits_are_divided_and_never_handed_out_twice() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let nothing = Allowance::default();
    let ask = async |node: &str, now, demand, using| {
        world.store.grant(&wish(node, now, demand, using)).await.expect("asked").expect("known")
    };
    let one = ask("one", 0, 90.0, nothing).await;
    assert_eq!(one.allowance, Allowance { requests_per_second: 100.0, burst: 10, concurrency: 4 });
    assert!(one.first, "nobody was here before");
    let two = ask("two", 1, 0.0, nothing).await;
    assert_eq!(two.allowance, nothing, "everything is in use");
    let less = ask("one", 1, 90.0, one.allowance).await;
    assert!(less.allowance.requests_per_second < 96.0 && less.allowance.concurrency == 3, "{less:?}");
    let two = ask("two", 2, 0.0, nothing).await;
    assert_eq!(two.allowance, nothing, "it may still be using what it had");
    let one = ask("one", 2, 90.0, less.allowance).await.allowance;
    let two = ask("two", 2, 90.0, nothing).await;
    assert!(
        two.allowance.requests_per_second > 4.0 && two.allowance.concurrency == 1 && !two.first,
        "{two:?}"
    );
    assert_eq!(two.mean_demand, 90.0);
    let sum = one.requests_per_second + two.allowance.requests_per_second;
    assert!(sum <= 100.0 + 1e-9, "{sum}");
    // Both want the same: after a few rounds both have the same.
    let (mut a, mut b) = (one, two.allowance);
    for now in 3..8 {
        a = ask("one", now, 90.0, a).await.allowance;
        b = ask("two", now, 90.0, b).await.allowance;
        assert!(a.requests_per_second + b.requests_per_second <= 100.0 + 1e-9, "{a:?} {b:?}");
        assert!(a.burst + b.burst <= 10 && a.concurrency + b.concurrency <= 4, "{a:?} {b:?}");
    }
    assert_eq!((a.requests_per_second.round(), a.concurrency, a.burst), (50.0, 2, 5));
    assert_eq!((b.requests_per_second.round(), b.concurrency, b.burst), (50.0, 2, 5));
    world.store.leave("one").await.expect("leaves");
    let all = ask("two", 8, 90.0, b).await.allowance;
    assert_eq!((all.requests_per_second, all.concurrency), (100.0, 4), "what is left behind is free at once");
}

#[tokio::test]
async fn a_lease_has_one_owner_and_outlives_it_by_its_time() {
    let url = database!();
    let world = World::with(open(&url).await, &[]).await;
    let ask = async |node: &str, now| {
        let name = "source x".to_owned();
        let request = LeaseRequest { name, node: node.to_owned(), now: at(now), holds: Span::secs(5) };
        world.store.lease(&request).await.expect("asked")
    };
    assert_eq!(ask("one", 0).await, Some(Lease { until: at(5), taken_over: false }));
    assert_eq!(ask("two", 1).await, None);
    assert_eq!(ask("one", 2).await, Some(Lease { until: at(7), taken_over: false }));
    assert_eq!(ask("two", 6).await, None);
    assert_eq!(ask("two", 7).await, Some(Lease { until: at(12), taken_over: true }));
    assert_eq!(ask("one", 8).await, None);
    world.store.leave("two").await.expect("leaves");
    assert_eq!(ask("one", 8).await, Some(Lease { until: at(13), taken_over: false }));
}

#[tokio::test]
async fn one_node_writes_the_price_and_all_read_it() {
    let url = database!();
    let (one, two) = (World::with(open(&url).await, &["a"]).await, open(&url).await);
    assert_eq!(two.price(SOURCE).await.expect("read"), None);
    one.store.set_price(SOURCE, 0.25, at(1)).await.expect("written");
    one.store.set_price(SOURCE, 0.5, at(2)).await.expect("written");
    assert_eq!(two.price(SOURCE).await.expect("read"), Some(0.5));
}

/// A poll that changes the shared records, tells of it, and now and then lists another target.
fn busy(claim: &Claim, round: i64, k: usize) -> Poll {
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

/// Two nodes claim at once: every target goes to exactly one, and nobody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_claimed_by_one_node() {
    let url = database!();
    let keys: Vec<String> = (0..200).map(|n| format!("t{n:03}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let mut claiming = tokio::task::JoinSet::new();
    for n in 0..4 {
        let store = if n == 0 { Arc::clone(&world.store) } else { open(&url).await as Arc<dyn Store> };
        claiming.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let ask = ClaimRequest { node: format!("node-{n}"), limit: 7, ..request(1) };
                let claims = store.claim(ask).await.expect("claim");
                if claims.is_empty() {
                    return taken;
                }
                taken.extend(claims.into_iter().map(|claim| claim.spec.key));
            }
        });
    }
    let mut taken: Vec<String> = claiming.join_all().await.into_iter().flatten().collect();
    // A row that somebody had locked for a moment was skipped by the others, who may have gone by then.
    taken.extend(world.claim_keys(1).await);
    taken.sort();
    assert_eq!(taken, keys, "each once");
}

/// Clocks that are ten minutes off take nothing from a holder, and lose nothing of their own.
#[tokio::test]
async fn the_databases_clock_decides_leases() {
    let url = database!();
    let open = async || Arc::new(PgStore::open(&url, PgOptions::default()).await.expect("opens"));
    let (right, ahead, behind) = (open().await, open().await, open().await);
    let now = Time::from_secs(number(&raw(&url).await, "SELECT extract(epoch FROM now())::bigint").await);
    let off = Span::mins(10);
    right.reconcile_roots(SOURCE, &[wanted("a", 0)], now).await.expect("roots");
    let row = right.target(SOURCE, "a").await.expect("reads").expect("exists");
    right.poll_now(row.id, now - Span::hours(1)).await.expect("due");
    let ask = |now: Time| ClaimRequest { now, ..request(0) };
    let claim = right.claim(ask(now)).await.expect("claim").remove(0);
    assert!(claim.lease_until >= now + Span::secs(59) && claim.lease_until <= now + Span::secs(61));
    assert!(ahead.claim(ask(now + off)).await.expect("claim").is_empty(), "a fast clock takes nothing");

    let lapse = "UPDATE targets SET lease_until_us = 1, wake_us = 1";
    raw(&url).await.batch_execute(lapse).await.expect("the lease runs out");
    let theirs = behind.claim(ask(now - off)).await.expect("claim").remove(0);
    assert!(theirs.after_expired_lease);
    assert!(theirs.lease_until <= now - off + Span::secs(61), "as its own clock counts");
    assert!(
        right.claim(ask(now + Span::secs(30))).await.expect("claim").is_empty(),
        "held by the database's clock"
    );
    let poll = Poll::of(&claim, 0).with(|p| p.now = now);
    assert_eq!(right.commit(vec![poll.0.into()]).await.expect("commit"), [CommitOutcome::Stale]);
}

#[tokio::test]
async fn other_nodes_hear_of_changes() {
    let url = database!();
    let (speaker, listener) = (World { store: open(&url).await }, open(&url).await);
    let (mut own, mut hints) = (speaker.store.hints().expect("listens"), listener.hints().expect("listens"));
    speaker.roots(&["a"]).await;
    assert_eq!(hints.recv().await, Ok(Hint::Plans(vec![])));
    let id = speaker.row("a").await.id;
    let claim = speaker.claim_one(0).await;
    let told = speaker.done(Poll::of(&claim, 1).tells(&claim, "drop", "x", Effect::Any)).await.events;
    assert_eq!(hints.recv().await, Ok(Hint::Events(told[0].seq)));
    speaker.store.poll_now(id, at(2)).await.expect("due");
    assert_eq!(hints.recv().await, Ok(Hint::Plans(vec![id])));
    speaker.store.set_enabled(id, false, at(3)).await.expect("off");
    assert_eq!(hints.recv().await, Ok(Hint::Plans(vec![id])));
    speaker.store.set_setting("k", Some(1.into()), at(3)).await.expect("set");
    assert_eq!(hints.recv().await, Ok(Hint::Settings));
    listener.set_setting("k", None, at(4)).await.expect("unset");
    assert_eq!(own.recv().await, Ok(Hint::Settings), "nobody hears himself");
}

/// A text that PostgreSQL cannot hold is its poll's own misfortune, wherever it stands.
#[tokio::test]
async fn a_nul_harms_no_other() {
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b", "c", "d"]).await;
    let claims = world.claim(0).await;
    let mut polls: Vec<Poll> =
        claims.iter().map(|claim| Poll::of(claim, 1).with(|p| p.outcome = PollOutcome::Failed)).collect();
    polls[0].0.error = Some("before\0after".into());
    polls[1] = polls[1].clone().sees(&claims[1], &[("x\0y", 1)]);
    polls[2] = polls[2].clone().sees(&claims[2], &[("z", 1)]);
    let batch = polls.into_iter().map(|poll| poll.0.into()).collect();
    let outcomes = world.store.commit(batch).await.expect("commit");
    for (n, outcome) in outcomes.iter().enumerate() {
        match (n, outcome) {
            (0 | 1, CommitOutcome::Poisoned(_)) | (2 | 3, CommitOutcome::Done(_)) => {}
            _ => panic!("poll {n}: {outcome:?}"),
        }
    }
}

/// The commonest commit touches no index: that is what the free space on the pages is for.
#[tokio::test]
async fn a_poll_that_keeps_its_place_is_a_heap_only_update() {
    const POLLS: i64 = 50;
    let url = database!();
    let options = PgOptions { clock: LeaseClock::Caller, connections: 1, node: None };
    let world = World::with(Arc::new(PgStore::open(&url, options).await.expect("opens")), &["a"]).await;
    let mut claim = world.claim_one(0).await;
    for n in 1..=POLLS {
        let poll = Poll::of(&claim, n).holding(&claim);
        assert!(world.done(poll.clone()).await.held);
        claim = after(&claim, &poll);
    }
    drop(world);
    // A backend hands in its numbers when it ends.
    let raw = raw(&url).await;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while number(&raw, others).await > 0 {
        raw.batch_execute("SELECT pg_stat_clear_snapshot()").await.expect("looks again");
    }
    raw.batch_execute("SELECT pg_stat_clear_snapshot()").await.expect("looks again");
    let hot = number(&raw, "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'targets'").await;
    let all = number(&raw, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'targets'").await;
    assert_eq!(all, POLLS + 1, "the claim and each poll");
    // Now and then a page is full before its dead rows are swept.
    assert!(hot * 10 >= all * 9, "{hot} of {all} without touching an index");
}

/// History goes by whole weeks; the newest row of what is held stays, and what lies outside every week is kept, too.
#[tokio::test]
async fn history_goes_by_weeks() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let raw = raw(&url).await;
    let week = 7 * 24 * 3_600;
    let keep = Span::hours(4 * 7 * 24);
    let retention = Retention { events: keep, history: keep, polls: keep, gone_records: keep };
    let weeks = "SELECT count(*) FROM pg_class WHERE relname ~ '^history_w\\d+$'";
    // Before the weeks around this time exist, rows go to the default.
    let mut claim = world.claim_one(0).await;
    let first =
        Poll::of(&claim, 1).with(|p| p.hold_until = Some(at(99 * week))).sees(&claim, &[("x", 1), ("y", 1)]);
    world.done(first.clone()).await;
    claim = after(&claim, &first);
    assert_eq!(number(&raw, "SELECT count(*) FROM history_default").await, 2);
    world.store.prune(&retention, at(2), 100).await.expect("makes weeks");
    assert_eq!(number(&raw, "SELECT count(*) FROM history_default").await, 0, "moved to its week");
    for n in 1..=9 {
        let poll = Poll::of(&claim, n * week).with(|p| p.hold_until = Some(at(99 * week)));
        let poll = poll.sees(&claim, &[("x", n + 1), ("y", 1)]);
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
        while world.store.prune(&retention, at(n * week), 100).await.expect("prune").more {}
    }
    let left = world.store.history(SOURCE, print("x"), Some(STREAM), 99).await.expect("history");
    let prices: Vec<i64> = left.iter().filter_map(|row| row.values["price"].as_i64()).collect();
    assert_eq!(prices, [6, 7, 8, 9, 10], "four weeks");
    let y = world.store.history(SOURCE, print("y"), None, 99).await.expect("history");
    assert_eq!(y.len(), 1, "its only price, although its week is gone");
    assert!(number(&raw, weeks).await <= 4 + 2 + 4 + 6, "old weeks are gone");
    let old =
        Poll::of(&claim, 10 * week).with(|p| p.now = at(-50 * week)).remembers("x", 77, Stamp::Upstream);
    let done = world.done(old.with(|p| p.now = at(10 * week))).await;
    assert_eq!(done.history_rows, 1, "a time outside every week has a place");
}

/// Whatever becomes of the weeks, a write finds a place: while one is missing, while they are made and dropped, and while
/// somebody who reads keeps them from being so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_week_never_blocks_a_write() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let (raw, mut reader) = (raw(&url).await, raw(&url).await);
    let week = 7 * 24 * 3_600;
    let keep = Span::hours(4 * 7 * 24);
    let retention = Retention { events: keep, history: keep, polls: keep, gone_records: keep };
    let unplaced = "SELECT count(*) FROM history_default";
    let mut claim = world.claim_one(0).await;
    let mut price = 0;
    let mut next = |claim: &Claim, secs: i64| {
        price += 1;
        Poll::of(claim, secs).with(|p| p.hold_until = Some(at(99 * week))).sees(claim, &[("x", price)])
    };
    world.store.prune(&retention, at(0), 100).await.expect("makes weeks");

    let this_week = "SELECT 'history_w' || stakeout_week(at_us) FROM (SELECT $1::bigint AS at_us) moment";
    let name: String = raw.query_one(this_week, &[&at(1).us()]).await.expect("a week").get(0);
    raw.batch_execute(&format!("DROP TABLE {name}")).await.expect("somebody removes it");
    let poll = next(&claim, 1);
    world.done(poll.clone()).await;
    claim = after(&claim, &poll);
    assert_eq!(number(&raw, unplaced).await, 1, "kept aside");
    world.store.prune(&retention, at(2), 100).await.expect("makes it again");
    assert_eq!(number(&raw, unplaced).await, 0, "moved to its week");

    // Somebody reads and takes their time: weeks have to wait, and whoever waits for weeks does not keep writers waiting.
    let reading = reader.transaction().await.expect("begins");
    reading.query("SELECT * FROM history", &[]).await.expect("reads");
    let poll = next(&claim, 6 * week);
    let (pruned, written) = tokio::join!(
        world.store.prune(&retention, at(6 * week), 100),
        tokio::time::timeout(Duration::from_secs(3), world.done(poll.clone())),
    );
    pruned.expect("gives up until later");
    assert_eq!(written.expect("in time").history_rows, 1);
    claim = after(&claim, &poll);
    reading.commit().await.expect("has read");

    // And while weeks come and go all the time.
    let pruner = open(&url).await;
    let pruning = tokio::spawn(async move {
        for n in 7..=40 {
            while pruner.prune(&retention, at(n * week), 100).await.expect("prune").more {}
        }
    });
    for n in 7..=40 {
        let poll = next(&claim, n * week);
        assert_eq!(world.done(poll.clone()).await.history_rows, 1);
        claim = after(&claim, &poll);
    }
    pruning.await.expect("done");
    let left = world.store.history(SOURCE, print("x"), Some(STREAM), 99).await.expect("history");
    let newest: Vec<i64> = left.iter().rev().take(4).filter_map(|row| row.values["price"].as_i64()).collect();
    assert_eq!(newest, [36, 35, 34, 33], "nothing young was lost");
}

/// A holder renews everything it holds while its own commits and another node's are under way, in another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewing_beside_commits_loses_no_claim_and_waits_in_no_circle() {
    const ROUNDS: i64 = 30;
    let url = database!();
    let keys: Vec<String> = (0..16).map(|n| format!("t{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let mut claims = world.claim(0).await;
    let tokens: Vec<_> = claims.iter().rev().map(|claim| (claim.target, claim.fence)).collect();
    let renewer = open(&url).await;
    let (done, is_done) = tokio::sync::watch::channel(false);
    let renewing = tokio::spawn(async move {
        let mut renewed = 0;
        while !*is_done.borrow() {
            let lost = renewer.renew(&tokens, at(1_000 + renewed)).await.expect("renewed");
            assert_eq!(lost, [], "nothing was lost");
            renewed += 1;
        }
        renewed
    });
    for round in 1..=ROUNDS {
        let polls: Vec<Poll> = claims.iter().enumerate().map(|(k, claim)| busy(claim, round, k)).collect();
        let batch: Vec<Arc<PollCommit>> = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
        for outcome in world.store.commit(batch).await.expect("commit") {
            assert!(matches!(outcome, CommitOutcome::Done(_)), "{outcome:?}");
        }
        claims = claims.iter().zip(&polls).map(|(claim, poll)| after(claim, poll)).collect();
    }
    done.send_replace(true);
    assert!(renewing.await.expect("done") >= 5, "both were at work");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(number(&raw(&url).await, deadlocks).await, 0);
    for key in keys {
        let until = world.row(key).await.lease_until;
        assert!(until >= Some(at(600)), "{key} is held until {until:?}");
    }
}

/// A node stops while its listing is on its way: nothing of it runs any more, its connection neither. Whoever writes the
/// same source goes on, and so does it when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stands_still_in_a_listing_holds_up_nobody() {
    const ROUNDS: i64 = 40;
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
            let stop = Duration::from_micros(round as u64 * 250);
            let early = runtime.block_on(async {
                tokio::select! { outcomes = &mut commit => Some(outcomes), () = tokio::time::sleep(stop) => None }
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

#[tokio::test]
async fn anyone_can_open_the_database_and_read_it() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let slots = |fields: Vec<Field>| Kind {
        views: vec![],
        family: "tables".into(),
        collection: "slots".into(),
        version: 1,
        fields,
        streams: vec![Stream { name: STREAM.into(), fields: vec!["price".into()] }],
        merges: false,
    };
    let price = Field::new("price", FieldType::Int);
    let kind = slots(vec![price.clone()]);
    assert_eq!(kind.full_name(), KIND);
    let claim = world.claim_one(0).await;
    world.done(Poll::of(&claim, 1).sees(&claim, &[("x", 7)])).await;
    world.store.set_setting("k", Some("v".into()), at(1)).await.expect("set");
    world.store.ensure_views(std::slice::from_ref(&kind)).await.expect("views");
    world.store.ensure_views(&[kind]).await.expect("again");
    let raw = raw(&url).await;
    let slots_now = "SELECT key, price::text, source, parent, first_seen FROM slots";
    assert_eq!(texts(&raw, slots_now).await, ["x · 7 · nyc · NULL · 2027-01-15T08:00:01.000Z"]);
    let prices = "SELECT slot, price::text, timestamp, source FROM price_history";
    assert_eq!(texts(&raw, prices).await, ["x · 7 · 2027-01-15T08:00:01.000Z · nyc"]);
    let targets =
        "SELECT source, target, interval_ms::text, priority::text, next_due_at, enabled::text, last_status,
        last_fetched_at FROM ingest_targets";
    let row = "nyc · a · 10000 · 50 · 2027-01-15T08:00:11.000Z · true · ok · 2027-01-15T08:00:01.000Z";
    assert_eq!(texts(&raw, targets).await, [row]);
    assert_eq!(texts(&raw, "SELECT key, value FROM server_settings").await, ["k · \"v\""]);

    raw.batch_execute("CREATE VIEW my_own AS SELECT 1 AS one").await.expect("a person's own");
    world
        .store
        .ensure_views(&[slots(vec![price, Field::new("party", FieldType::Int)])])
        .await
        .expect("changed");
    assert_eq!(texts(&raw, "SELECT party::text FROM slots").await, ["NULL"]);
    world.store.ensure_views(&[]).await.expect("none");
    let left =
        texts(&raw, "SELECT viewname::text FROM pg_views WHERE schemaname = 'public' ORDER BY 1").await;
    assert_eq!(
        left,
        ["client_kv", "ingest_targets", "my_own", "notifications", "server_settings", "user_alert_configs"]
    );
}
