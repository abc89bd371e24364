//! What PostgreSQL shows to people and publishes: the views of a kind, values that several sources write.

use std::sync::Arc;

use stakeout_core::{Field, FieldType, Kind, KindView, Shows};
use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::conformance::story::{KIND, Poll, SOURCE, World, after, at, print, request, wanted};
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::{
    ClaimRequest, CommitOutcome, Effect, EventWrite, KvSet, PollOutcome, ReadMark, Store as _,
};
use tokio_postgres::{Client, NoTls};

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

async fn texts(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let rows = client.query(sql, &[]).await.expect("a query");
    rows.iter().map(|row| (0..row.len()).map(|n| row.get(n)).collect()).collect()
}

fn slots() -> Kind {
    let view = |name: &str, shows| KindView { name: name.into(), shows };
    let drops = Shows::Events {
        event_type: "tables.drop".into(),
        target: "bucket_id".into(),
        subject: "slot_id".into(),
        fields: vec![Field::new("opened_at", FieldType::Time)],
    };
    let buckets = Shows::Targets { role: "bucket".into(), target: "bucket_id".into(), member: "slot".into() };
    let kind = Kind {
        family: "tables".into(),
        collection: "slots".into(),
        version: 1,
        fields: vec![Field::new("price", FieldType::Int)],
        streams: vec![],
        merges: false,
        views: vec![view("lives", Shows::Life), view("drops", drops), view("buckets", buckets)],
        layout: Default::default(),
    };
    assert_eq!(kind.full_name(), KIND);
    kind
}

fn some(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| Some((*cell).to_owned())).collect()
}

#[tokio::test]
async fn what_rang_is_shown_with_when_it_was_read() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    world.store.ensure_views(&[slots()]).await.expect("views");
    let claim = world.claim_one(0).await;
    let alert = |event: &mut EventWrite| {
        event.event_type = "alert.raised".into();
        event.data =
            serde_json::json!({ "alert": "bell", "user": "anna", "severity": "warning", "title": "Off" });
    };
    let poll = Poll::of(&claim, 1).holding(&claim).tells_with(&claim, "alert:bell", "r1", Effect::Any, alert);
    let told = world.done(poll).await.events;
    world.store.mark_read(&ReadMark::One(told[0].seq), at(90)).await.expect("marked");
    let columns = "alert, \"user\", severity, title, subject, target, source, at::text, read_at::text";
    let listed = texts(&raw(&url).await, &format!("SELECT {columns} FROM notifications")).await;
    let (rang, read) = (listed[0][7].clone(), listed[0][8].clone());
    assert_eq!(listed[0][..7], some(&["bell", "anna", "warning", "Off", "r1", "a", SOURCE])[..]);
    assert!(rang.is_some_and(|at| at.contains("08:00:01")) && read.is_some_and(|at| at.contains("08:01:30")));
}

#[tokio::test]
async fn a_kind_shows_lives_events_and_targets() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    world.store.ensure_views(&[slots()]).await.expect("views");
    let first = world.claim_one(0).await;
    let baseline = Poll::of(&first, 1)
        .holding(&first)
        .sees(&first, &[("x", 1), ("y", 1)])
        .with(|poll| poll.outcome = PollOutcome::Baseline);
    world.done(baseline.clone()).await;
    let second = after(&first, &baseline);
    let moved = Poll::of(&second, 2)
        .holding(&second)
        .sees(&second, &[("y", 1), ("z", 1)])
        .tells(&second, "drop", "z", Effect::Appeared)
        .with(|poll| poll.releases.iter_mut().for_each(|release| release.natural = true));
    world.done(moved.clone()).await;

    let raw = raw(&url).await;
    let ids = |names: [&str; 2]| {
        let mut ids = names.map(|name| print(name).to_string());
        ids.sort();
        serde_json::json!(ids)
    };
    let shown = async || {
        let sql = "SELECT bucket_id, baseline_slot_ids_json, prev_slot_ids_json FROM buckets";
        let row = texts(&raw, sql).await.pop().expect("one bucket");
        let list = |n: usize| -> serde_json::Value {
            serde_json::from_str(row[n].as_deref().expect("a list")).expect("JSON")
        };
        assert_eq!(row[0].as_deref(), Some("a"));
        (list(1), list(2))
    };
    assert_eq!(shown().await, (ids(["x", "y"]), ids(["y", "z"])), "the baseline stays as it was set");
    let states = texts(&raw, "SELECT state, count(*)::text FROM lives GROUP BY 1 ORDER BY 1").await;
    assert_eq!(states, [some(&["open", "2"]), some(&["passed", "1"])]);
    let drops = texts(&raw, "SELECT bucket_id, slot_id FROM drops").await;
    assert_eq!(drops, [some(&["a", &print("z").to_string()])]);

    let third = after(&second, &moved);
    let again = Poll::of(&third, 3).holding(&third).with(|poll| {
        poll.outcome = PollOutcome::Baseline;
        poll.state.memory.version = 9;
        poll.kv = vec![KvSet { namespace: "n".into(), key: "k".into(), value: 1.into() }];
    });
    world.done(again).await;
    assert_eq!(shown().await, (ids(["y", "z"]), ids(["y", "z"])), "a new baseline without a change");
}

/// Values belong to no source: nodes that watch different sources publish the same ones in opposite orders, with events
/// among them, and wait for each other at most in a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_that_publish_the_same_values_never_wait_in_a_circle() {
    const ROUNDS: i64 = 40;
    let url = database!();
    let mut writing = tokio::task::JoinSet::new();
    for (n, source) in [SOURCE, "london"].into_iter().enumerate() {
        let store = open(&url).await;
        store.reconcile_roots(source, &[wanted("a", 0), wanted("b", 0)], at(0)).await.expect("targets");
        let wish = ClaimRequest { sources: vec![source.into()], ..request(0) };
        let mut claims = store.claim(wish).await.expect("claims");
        assert_eq!(claims.len(), 2);
        writing.spawn(async move {
            let mut published = 0;
            for round in 1..=ROUNDS {
                let polls: Vec<Poll> = claims
                    .iter()
                    .enumerate()
                    .map(|(k, claim)| {
                        let key = ["left", "right"][(n + k) % 2];
                        let value = serde_json::json!([source, round]);
                        Poll::of(claim, round)
                            .holding(claim)
                            .with(|poll| {
                                poll.state.memory.version = round as u64;
                                poll.kv = vec![KvSet { namespace: "race".into(), key: key.into(), value }];
                            })
                            .tells(claim, "tick", "x", Effect::Any)
                    })
                    .collect();
                let batch = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
                for outcome in store.commit(batch).await.expect("commit") {
                    let CommitOutcome::Done(done) = outcome else { panic!("{outcome:?}") };
                    published += done.kv_changed.len();
                }
                claims = claims.iter().zip(&polls).map(|(claim, poll)| after(claim, poll)).collect();
            }
            published
        });
    }
    let published = writing.join_all().await;
    assert_eq!(published, [2 * ROUNDS as usize; 2], "every value was another");
    let deadlocks = "SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(texts(&raw(&url).await, deadlocks).await, [some(&["0"])]);
}
