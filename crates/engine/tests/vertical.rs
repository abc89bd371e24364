//! The whole way of a poll, on a real loopback server and a real store.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

use serde_json::json;
use stakeout_core::Span;
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Engine, EngineConfig, NullSink};
use stakeout_sim::{Act, Loopback};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{PollOutcome, Store};
use support::{Scene, items, json_source, watching, within};

#[tokio::test]
async fn a_change_upstream_becomes_one_event_and_one_history_row() {
    let value = Arc::new(AtomicI64::new(1));
    let upstream = Arc::clone(&value);
    let scene =
        Scene::start(move |_| Act::json(&items(&[("a", upstream.load(SeqCst)), ("b", 7)])), json!({})).await;
    scene.polled(3).await;
    assert_eq!(scene.events().await, [], "the first answer is the baseline");
    assert_eq!(scene.target().await.records, 2);

    value.store(2, SeqCst);
    let mut newest = scene.control.newest();
    within(newest.wait_for(|seq| *seq > 0)).await.expect("an event");
    scene.polled_more(3).await;
    let events = scene.events().await;
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!((event.event_type.as_str(), event.subject_key.as_str()), ("json.changed", "a"));
    assert_eq!(event.data["changes"], json!([{"field": "value", "old": 1, "new": 2}]));
    let history = scene.store.history("s", event.subject, None, 10).await.expect("history");
    let values: Vec<_> = history.iter().map(|row| row.values["value"].clone()).collect();
    assert_eq!(values, [json!(1), json!(2)]);
    scene.stop().await;
}

#[tokio::test]
async fn what_changed_at_once_is_told_in_the_order_of_the_answer() {
    const NAMES: [&str; 8] = ["h", "c", "a", "g", "e", "b", "f", "d"];
    let value = Arc::new(AtomicI64::new(1));
    let upstream = Arc::clone(&value);
    let answer = move |_: &_| Act::json(&items(&NAMES.map(|name| (name, upstream.load(SeqCst)))));
    let scene = Scene::start(answer, json!({})).await;
    scene.polled(3).await;
    value.store(2, SeqCst);
    let mut newest = scene.control.newest();
    within(newest.wait_for(|seq| *seq > 0)).await.expect("an event");
    let told: Vec<String> = scene.events().await.into_iter().map(|event| event.subject_key).collect();
    assert_eq!(told, NAMES);
    scene.stop().await;
}

#[tokio::test]
async fn a_poll_that_saw_nothing_new_writes_nothing_but_its_schedule() {
    let scene = Scene::start(|_| Act::json(&items(&[("a", 1)])), json!({})).await;
    scene.polled(2).await;
    let before = scene.store.stats().await.expect("stats");
    let rows = scene.store.counters().rows_written();
    let polled = *scene.control.polled().borrow();
    scene.polled_more(20).await;
    let after = scene.store.stats().await.expect("stats");
    assert_eq!((before.events, before.history, before.records), (after.events, after.history, after.records));
    let polls = *scene.control.polled().borrow() - polled;
    let written = scene.store.counters().rows_written() - rows;
    // One row per poll; a poll that this busy machine made late may have a line in the log as well.
    let notable = scene.log().await.len() as u64;
    assert!(written <= polls + notable + 2, "{written} rows for {polls} polls, {notable} of them notable");
    scene.stop().await;
}

#[tokio::test]
async fn unchanged_answers_are_not_even_transferred_when_the_upstream_offers_validators() {
    let scene = Scene::start(
        |_| Act::Conditional { etag: "\"v1\"".into(), body: items(&[("a", 1)]).to_string().into() },
        json!({}),
    )
    .await;
    scene.polled(3).await;
    let seen = scene.server.seen();
    assert_eq!(seen[0].header("if-none-match"), None);
    assert_eq!(seen[2].header("if-none-match"), Some("\"v1\""));
    assert_eq!(scene.target().await.last_outcome, Some(PollOutcome::Unchanged));
    scene.stop().await;
}

#[tokio::test]
async fn a_target_is_never_in_flight_twice() {
    let scene = Scene::start(|_| Act::json(&items(&[("a", 1)])).after_ms(70), json!({})).await;
    scene.server.requests_reached(2).await;
    for _ in 0..5 {
        scene.control.poll_now("s", "main").await.expect("poll now");
    }
    scene.polled(6).await;
    assert_eq!(scene.server.stats().max_concurrent, 1);
    let log = scene.log().await;
    assert!(log.iter().any(|poll| poll.missed > 0), "polls that went by meanwhile are accounted for");
    scene.stop().await;
}

#[tokio::test]
async fn poll_now_while_in_flight_leads_to_one_poll_afterwards() {
    let scene = Scene::start(|_| Act::json(&items(&[("a", 1)])).after_ms(30), json!({"every": "1h"})).await;
    scene.server.requests_reached(1).await;
    scene.control.poll_now("s", "main").await.expect("poll now");
    scene.control.poll_now("s", "main").await.expect("poll now");
    scene.polled(2).await;
    scene.control.pass(Span::secs(5)).await.expect("pass");
    assert_eq!(scene.server.stats().requests, 2);
    scene.stop().await;
}

#[tokio::test]
async fn of_two_passes_at_once_each_counts_its_own_polls() {
    // Two upstreams whose answers wait until they are let go.
    let gate = || {
        let (open, wait) = std::sync::mpsc::channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let answer = move |_: &stakeout_sim::Seen| {
            let _ = wait.lock().expect("one at a time").recv();
            Act::json(&items(&[("a", 1)]))
        };
        (open, answer)
    };
    let ((open_first, first), (open_second, second)) = (gate(), gate());
    let other = Loopback::start(second);
    let url = other.url("/x");
    let scene = Scene::start_with(
        first,
        |first| {
            let patient = json!({"every": "1h", "limits": {"timeout": "60s"}});
            let source = |name: &str, url: &str| json_source(name, watching(url, patient.clone()));
            vec![source("s", first), source("t", &url)]
        },
        |_| {},
    )
    .await;
    scene.server.requests_reached(1).await;
    other.requests_reached(1).await;
    let later = async {
        open_first.send(()).expect("it waits");
        scene.polled(1).await;
        // Whoever comes now must not take what the first has counted.
        let let_go = async { open_second.send(()).expect("it waits") };
        tokio::join!(scene.control.pass(Span::secs(60)), let_go).0
    };
    let (first, second) = within(async { tokio::join!(scene.control.pass(Span::secs(60)), later) }).await;
    let (first, second) = (first.expect("a pass"), second.expect("a pass"));
    assert_eq!((first.polled, second.polled), (2, 0));
    scene.stop().await;
}

#[tokio::test]
async fn an_upstream_with_concurrency_one_never_sees_two_requests_at_once() {
    let ids: Vec<String> = (0..12).map(|n| n.to_string()).collect();
    let config = json!({"ids": ids, "limits": {"concurrency": 1}});
    let scene = Scene::start_with(
        |_| Act::json(&items(&[("a", 1)])).after_ms(2),
        |url| vec![json_source("s", watching(&format!("{url}?id={{id}}"), config))],
        |_| {},
    )
    .await;
    scene.polled(30).await;
    assert_eq!(scene.server.stats().max_concurrent, 1);
    scene.stop().await;
}

#[tokio::test]
async fn disable_stops_and_enable_resumes() {
    let scene = Scene::start(|_| Act::json(&items(&[("a", 1)])), json!({})).await;
    scene.polled(2).await;
    scene.control.set_enabled("s", "main", false).await.expect("disable");
    scene.control.pass(Span::secs(5)).await.expect("settle");
    let requests = scene.server.stats().requests;
    let report = scene.control.pass(Span::secs(5)).await.expect("pass");
    assert_eq!((report.polled, scene.server.stats().requests), (0, requests));
    assert!(!scene.target().await.enabled);
    scene.control.set_enabled("s", "main", true).await.expect("enable");
    scene.polled_more(2).await;
    scene.stop().await;
}

#[tokio::test]
async fn settings_take_effect_at_once_and_bad_ones_are_refused() {
    let scene = Scene::start(|_| Act::json(&items(&[("a", 1)])), json!({"every": "1h"})).await;
    scene.polled(1).await;
    scene.control.set_setting("source.s.every_ms", Some(json!(20))).await.expect("accepted");
    scene.polled_more(3).await;
    for (key, value) in
        [("source.s.every_ms", json!(-5)), ("source.s.nonsense", json!(1)), ("source.x.every_ms", json!(9))]
    {
        let refused = scene.control.set_setting(key, Some(value)).await.expect_err(key).to_string();
        assert!(refused.contains("every_ms") || refused.contains("source.s"), "{refused}");
    }
    assert_eq!(scene.target().await.schedule.interval, Span::ms(20), "the old value stays");
    let stored = scene.store.settings().await.expect("settings");
    assert_eq!(stored, [("source.s.every_ms".to_owned(), json!(20))]);
    scene.control.set_setting("source.s.every_ms", None).await.expect("removed");
    // The file's value is in force again, for a poll that was under way, too.
    within(async {
        while scene.target().await.schedule.interval != Span::hours(1) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    scene.stop().await;
}

#[tokio::test]
async fn a_setting_written_into_the_table_by_others_is_heard() {
    let scene = Scene::start(|_| Act::json(&items(&[("a", 1)])), json!({"every": "1h"})).await;
    scene.polled(1).await;
    let write = async |value: serde_json::Value| {
        let now = stakeout_core::Time::from_secs(1);
        scene.store.set_setting("source.s.every_ms", Some(value), now).await.expect("written");
    };
    write(json!(20)).await;
    // Without the setting the next poll is an hour away.
    scene.polled_more(3).await;
    assert_eq!(scene.target().await.schedule.interval, Span::ms(20));
    // What cannot be is passed over, and does not stand in the way of the next one.
    write(json!("soon")).await;
    write(json!(40)).await;
    while scene.target().await.schedule.interval != Span::ms(40) {
        scene.polled_more(1).await;
    }
    scene.stop().await;
}

#[tokio::test]
async fn one_pass_polls_what_is_due_once_and_leaves_nothing_claimed() {
    let served = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&served);
    let server = Loopback::start(move |_| {
        count.fetch_add(1, SeqCst);
        Act::json(&items(&[("a", 1)]))
    });
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let config = || {
        let source = json_source("s", watching(&server.url("/"), json!({"every": "50ms"})));
        EngineConfig::new(store.clone(), vec![source], Arc::new(HttpFetch::new().expect("client")))
    };
    let report = Engine::pass(config(), Span::secs(10)).await.expect("pass");
    assert_eq!((report.polled, report.baselines, report.failed), (1, 1, 0));
    assert_eq!(served.load(SeqCst), 1);
    assert!(report.next_due.is_some());
    let row = store.target("s", "main").await.expect("read").expect("exists");
    assert_eq!((row.owner, row.lease_until), (None, None));
}

#[tokio::test]
async fn a_changed_configuration_takes_effect_at_the_next_start() {
    let server = Loopback::start(|_| Act::json(&items(&[("a", 1)])));
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    for (every, polls) in [("1h", 1), ("20ms", 3)] {
        let source = json_source("s", watching(&server.url("/"), json!({"every": every})));
        let fetch = Arc::new(HttpFetch::new().expect("client"));
        let engine =
            Engine::start(EngineConfig::new(store.clone(), vec![source], fetch)).await.expect("start");
        let mut polled = engine.control().polled();
        within(polled.wait_for(|n| *n >= polls)).await.expect("polls");
        engine.shutdown().await.expect("stop");
    }
}

#[tokio::test]
async fn events_are_delivered_and_the_outbox_drains() {
    let value = Arc::new(AtomicI64::new(0));
    let upstream = Arc::clone(&value);
    let scene = Scene::start_with(
        move |_| Act::json(&items(&[("a", upstream.fetch_add(1, SeqCst))])),
        |url| vec![json_source("s", watching(url, json!({})))],
        |config| config.sinks = vec![Arc::new(NullSink)],
    )
    .await;
    scene.polled(5).await;
    let store = Arc::clone(&scene.store);
    scene.stop().await;
    let left = store.deliveries("null", stakeout_core::Time(i64::MAX), 100).await.expect("read");
    let events = store.stats().await.expect("stats").events;
    assert!(events >= 4, "{events} events");
    assert!((left.len() as u64) < events, "{} of {events} undelivered", left.len());
}

#[tokio::test]
async fn a_restart_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("s.db");
    let server = Loopback::start(|seen| Act::json(&items(&[("a", if seen.n < 4 { 1 } else { 2 })])));
    let mut incarnations = Vec::new();
    for _ in 0..2 {
        let store = Arc::new(SqliteStore::open(&path, OpenOptions::default()).expect("open"));
        let source = json_source("s", watching(&server.url("/"), json!({})));
        let fetch = Arc::new(HttpFetch::new().expect("client"));
        let engine =
            Engine::start(EngineConfig::new(store.clone(), vec![source], fetch)).await.expect("start");
        let mut polled = engine.control().polled();
        within(polled.wait_for(|n| *n >= 3)).await.expect("polls");
        let row = store.target("s", "main").await.expect("read").expect("exists");
        incarnations.push((row.incarnation, row.poll_no >= 3));
        engine.shutdown().await.expect("stop");
    }
    assert_eq!(incarnations[0], incarnations[1]);
    let store = SqliteStore::open(&path, OpenOptions::default()).expect("open");
    assert_eq!(store.stats().await.expect("stats").events, 1, "1 → 2 is told once, however often we restart");
}
