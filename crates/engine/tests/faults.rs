//! The fault table: what each fault of an upstream does, and what is in the database after.
//!
//! Every row is the same story: a good answer sets the baseline, the fault happens (several times over, with backoff),
//! the upstream recovers with one changed value. The fault must be named, must remove and invent nothing, and the
//! recovery must be told exactly once.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use stakeout_core::{Span, Time};
use stakeout_sim::{Act, Seen};
use stakeout_store::{PollOutcome, Store};
use support::{Scene, items, within};

const GOOD: u8 = 0;
const FAULTY: u8 = 1;
const RECOVERED: u8 = 2;

struct Row {
    what: &'static str,
    fault: fn() -> Act,
    /// The failure's class, or `None` when it is no failure but a poll that changes nothing.
    class: Option<&'static str>,
}

fn good() -> Act {
    Act::json(&items(&[("a", 1), ("b", 2), ("c", 3)]))
}

fn row(what: &'static str, class: &'static str, fault: fn() -> Act) -> Row {
    Row { what, fault, class: Some(class) }
}

fn table() -> Vec<Row> {
    vec![
        row("connection reset", "reset", || Act::Reset),
        row("reset in the middle of the body", "reset", || Act::ResetMidBody),
        row("no answer at all", "timeout", || Act::Hang),
        row("a body that drips in too slowly", "timeout", || Act::Drip {
            body: Bytes::from(items(&[("a", 9)]).to_string()),
            chunk: 1,
            every: Duration::from_millis(60),
        }),
        row("429 without Retry-After", "rate_limited", || Act::status(429)),
        row("429 with Retry-After", "rate_limited", || Act::status(429).header("Retry-After", "0")),
        row("500", "server_error", || Act::status(500)),
        row("503", "unavailable", || Act::status(503)),
        row("302 to a login page", "redirect", || Act::Redirect("/login?token=s3cret".into())),
        row("403", "forbidden", || Act::status(403)),
        row("404", "client_error", || Act::status(404)),
        row("a body shorter than announced", "reset", || Act::Truncated {
            body: Bytes::from(items(&[("a", 9)]).to_string()),
            sent: 10,
        }),
        row("half a JSON with the right length", "malformed", || {
            Act::body("application/json", Bytes::from_static(b"{\"items\": [{\"id\": \"a\", "))
        }),
        row("a gzip bomb", "too_large", || Act::GzipBomb { inflated_bytes: 4 << 20 }),
        row("a body that is not the gzip it claims to be", "encoding", || {
            Act::body("application/json", Bytes::from_static(b"not gzip")).header("Content-Encoding", "gzip")
        }),
        row("a 100 MB body", "too_large", || Act::Huge { bytes: 100 << 20 }),
        row("a 100 MB body without a length", "too_large", || Act::HugeUnannounced { bytes: 100 << 20 }),
        row("an HTML page called JSON", "malformed", || {
            Act::WrongContentType(Bytes::from_static(b"<html>down for maintenance</html>"))
        }),
        row("invalid UTF-8", "malformed", || Act::InvalidUtf8),
        row("an empty body", "malformed", || Act::body("application/json", Bytes::new())),
        row("no records where records were", "malformed", || Act::json(&json!({"error": "oops"}))),
        row("a lone surrogate in a name", "malformed", || {
            Act::body("application/json", Bytes::from_static(br#"{"items":[{"id":"\ud800","value":1}]}"#))
        }),
        // Not a failure: JSON is JSON whatever the header says.
        Row {
            what: "JSON called HTML",
            fault: || Act::WrongContentType(Bytes::from(items(&[("a", 1), ("b", 2), ("c", 3)]).to_string())),
            class: None,
        },
    ]
}

async fn check(row: Row) {
    let stage = Arc::new(AtomicU8::new(GOOD));
    let faults = Arc::new(AtomicU64::new(0));
    let (at, seen_faults) = (Arc::clone(&stage), Arc::clone(&faults));
    let fault = row.fault;
    let handler = move |_: &Seen| match at.load(SeqCst) {
        GOOD => good(),
        FAULTY => {
            seen_faults.fetch_add(1, SeqCst);
            fault()
        }
        _ => Act::json(&items(&[("a", 10), ("b", 2), ("c", 3)])),
    };
    // Short only where it is to run out: on a busy machine any answer may take longer than that.
    let timeout = if row.class == Some("timeout") { "150ms" } else { "20s" };
    let limits = json!({"limits": {"timeout": timeout, "max_body": "1MB"}});
    let scene = Scene::start(handler, limits).await;
    while scene.store.stats().await.expect("stats").records < 3 {
        scene.polled_more(1).await;
    }
    stage.store(FAULTY, SeqCst);
    while faults.load(SeqCst) < 2 {
        scene.polled_more(1).await;
    }
    scene.polled_more(1).await;

    let what = row.what;
    let during = scene.target().await;
    let stats = scene.store.stats().await.expect("stats");
    assert_eq!(
        (stats.records, stats.events, stats.history),
        (3, 0, 3),
        "{what}: nothing is removed or invented"
    );
    match row.class {
        Some(class) => {
            assert_eq!(during.last_outcome, Some(PollOutcome::Failed), "{what}");
            let log = scene.log().await;
            let failed = log.iter().find(|poll| poll.outcome == PollOutcome::Failed).expect("logged");
            assert_eq!(failed.error_class.as_deref(), Some(class), "{what}: {:?}", failed.detail);
            let error = during.last_error.expect("an error in words");
            assert!(!error.contains("s3cret"), "{what}: {error}");
            assert!(
                during.schedule.reason.contains("backoff") || class == "rate_limited",
                "{what}: {}",
                during.schedule.reason
            );
        }
        None => assert_eq!(during.last_outcome, Some(PollOutcome::Unchanged), "{what}"),
    }

    stage.store(RECOVERED, SeqCst);
    let mut newest = scene.control.newest();
    within(newest.wait_for(|seq| *seq > 0)).await.expect("recovers");
    scene.polled_more(2).await;
    while scene.target().await.last_outcome == Some(PollOutcome::Failed) && row.class == Some("timeout") {
        scene.polled_more(1).await;
    }
    let events = scene.events().await;
    assert_eq!(events.len(), 1, "{what}: the recovery is told once");
    assert_eq!(events[0].data["changes"], json!([{"field": "value", "old": 1, "new": 10}]), "{what}");
    assert_eq!(scene.target().await.last_error, None, "{what}: success clears the error");
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fault_table() {
    // A few at a time: each row waits for time limits most of the time.
    let mut rows = tokio::task::JoinSet::new();
    for row in table() {
        if rows.len() >= 6 {
            rows.join_next().await.expect("one is running").expect("the row holds");
        }
        rows.spawn(check(row));
    }
    while let Some(row) = rows.join_next().await {
        row.expect("the row holds");
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_failure_and_the_return_is_noticed() {
    let scene = Scene::start(|_| good(), json!({})).await;
    scene.polled(2).await;
    scene.server.pause();
    scene.polled_more(3).await;
    let row = scene.target().await;
    assert_eq!(row.last_outcome, Some(PollOutcome::Failed));
    assert!(
        row.last_error.as_deref().is_some_and(|error| error.starts_with("refused")),
        "{:?}",
        row.last_error
    );
    assert_eq!(row.records, 3);
    scene.server.resume();
    while scene.target().await.last_outcome != Some(PollOutcome::Unchanged) {
        scene.polled_more(1).await;
    }
    assert_eq!(scene.events().await, []);
    scene.stop().await;
}

#[tokio::test]
async fn retry_after_is_a_floor() {
    let handler = |seen: &Seen| match seen.n {
        1 => good(),
        2 => Act::status(429).header("Retry-After", "1"),
        _ => good(),
    };
    let scene = Scene::start(handler, json!({})).await;
    scene.polled(3).await;
    let seen = scene.server.seen();
    let waited = Span(seen[2].at_us() - seen[1].at_us());
    assert!(waited >= Span::ms(990), "asked again after {waited}");
    scene.stop().await;
}

#[tokio::test]
async fn an_older_answer_after_a_newer_one_is_dropped() {
    let at = |minute: u32, value: i64| {
        let mut body = items(&[("a", value)]);
        body["at"] = json!(format!("2026-01-10T02:{minute:02}:00Z"));
        Act::json(&body)
    };
    let handler = move |seen: &Seen| match seen.n {
        1 => at(10, 1),
        2 => at(11, 2),
        // A slow cache answers with what was true before.
        3 | 4 => at(10, 1),
        _ => at(12, 2),
    };
    let scene = Scene::start(handler, json!({"as_of": "at"})).await;
    scene.polled(6).await;
    let events = scene.events().await;
    assert_eq!(events.len(), 1, "1 → 2 is told once and never taken back: {events:?}");
    let stale = scene.log().await.iter().filter(|poll| poll.outcome == PollOutcome::Stale).count();
    assert_eq!(stale, 2);
    scene.stop().await;
}

#[tokio::test]
async fn an_answer_from_the_future_blinds_nobody() {
    let at = |year: u32, value: i64| {
        let mut body = items(&[("a", value)]);
        body["at"] = json!(format!("{year}-01-10T02:00:00Z"));
        Act::json(&body)
    };
    let handler = move |seen: &Seen| match seen.n {
        1 => at(2020, 1),
        2 => at(2999, 1),
        _ => at(2021, 2),
    };
    let scene = Scene::start(handler, json!({"as_of": "at"})).await;
    scene.polled(4).await;
    assert_eq!(scene.events().await.len(), 1, "1 → 2 is told, although an answer claimed to be later");
    let log = scene.log().await;
    assert!(log.iter().all(|poll| poll.outcome != PollOutcome::Stale), "{log:?}");
    assert!(
        log.iter().any(|poll| poll.detail.as_ref().is_some_and(|words| words.contains("bad_time"))),
        "{log:?}"
    );
    scene.stop().await;
}

#[tokio::test]
async fn a_mass_removal_waits_for_a_second_answer() {
    let many: Vec<(String, i64)> = (0..20).map(|n| (format!("i{n}"), n)).collect();
    let all: Vec<(&str, i64)> = many.iter().map(|(id, n)| (id.as_str(), *n)).collect();
    let (full, empty) = (items(&all), items(&[]));
    let handler = move |seen: &Seen| match seen.n {
        // A hiccup of one answer, and later a real clearance.
        3 => Act::json(&empty),
        n if n >= 6 => Act::json(&empty),
        _ => Act::json(&full),
    };
    let scene = Scene::start(handler, json!({})).await;
    scene.polled(5).await;
    assert_eq!(scene.events().await, [], "the hiccup removed nothing");
    scene.polled(8).await;
    let events = scene.events().await;
    assert_eq!(events.len(), 20);
    assert!(events.iter().all(|event| event.event_type == "json.removed"));
    scene.stop().await;
}

#[tokio::test]
async fn what_returns_after_an_outage_is_not_told() {
    let many: Vec<(String, i64)> = (0..20).map(|n| (format!("i{n}"), n)).collect();
    let all: Vec<(&str, i64)> = many.iter().map(|(id, n)| (id.as_str(), *n)).collect();
    let with_news: Vec<(&str, i64)> = all.iter().copied().chain([("new", 1)]).collect();
    let (full, empty, later) = (items(&all), items(&[]), items(&with_news));
    let handler = move |seen: &Seen| match seen.n {
        // Long enough to be believed.
        3..7 => Act::json(&empty),
        n if n >= 9 => Act::json(&later),
        _ => Act::json(&full),
    };
    let scene = Scene::start(handler, json!({})).await;
    scene.polled(11).await;
    let events = scene.events().await;
    let added: Vec<&str> =
        events.iter().filter(|e| e.event_type == "json.added").map(|e| e.subject_key.as_str()).collect();
    assert_eq!(added, ["new"], "twenty returned untold, one is new");
    scene.stop().await;
}

#[tokio::test]
async fn an_answer_that_was_not_asked_for_is_a_failure() {
    for status in [304, 206] {
        let scene = Scene::start(move |_| Act::status(status), json!({})).await;
        scene.polled(2).await;
        let row = scene.target().await;
        assert_eq!(row.last_outcome, Some(PollOutcome::Failed), "{status}");
        assert_eq!(row.state.memory.meaning, None, "{status}: no baseline came of it");
        scene.stop().await;
    }
}

#[tokio::test]
async fn nul_and_odd_characters_in_names_are_just_names() {
    let odd = "nul \u{0} quote ' \" backslash \\ emoji 🏇 rtl \u{202e}";
    let handler = move |seen: &Seen| Act::json(&json!({"items": [{"id": odd, "value": seen.n}]}));
    let scene = Scene::start(handler, json!({})).await;
    scene.polled(3).await;
    let events = scene.events().await;
    assert!(events.len() >= 2);
    // NUL cannot be stored by every database, so it is replaced, everywhere alike.
    let kept = odd.replace('\u{0}', "\u{fffd}");
    assert_eq!(events[0].subject_key, kept);
    let stored = scene.store.records("s", &[events[0].subject]).await.expect("read");
    assert_eq!(stored[0].key, kept);
    scene.stop().await;
}

#[tokio::test]
async fn polling_survives_a_step_of_the_clock_in_both_directions() {
    for hours in [1, -1] {
        let clock = stakeout_engine::Clock::system();
        let stepped = clock.clone();
        let scene = Scene::start_with(
            |seen| Act::json(&items(&[("a", if seen.n < 6 { 1 } else { 2 })])),
            |url| vec![support::json_source("s", support::watching(url, json!({})))],
            |config| config.clock = clock,
        )
        .await;
        scene.polled(3).await;
        stepped.step(Span::hours(hours));
        scene.polled_more(6).await;
        let due = scene.target().await.schedule.due.expect("due");
        let ahead = due - stepped.now();
        assert!(ahead < Span::secs(1), "{hours} h: next poll in {ahead}");
        assert_eq!(scene.events().await.len(), 1, "{hours} h: 1 → 2 is told once");
        scene.stop().await;
    }
}

#[tokio::test]
async fn a_failing_target_survives_a_clock_set_back() {
    let clock = stakeout_engine::Clock::system();
    let stepped = clock.clone();
    let scene = Scene::start_with(
        |seen| if seen.n < 5 { Act::status(500) } else { good() },
        |url| vec![support::json_source("s", support::watching(url, json!({})))],
        |config| config.clock = clock,
    )
    .await;
    scene.polled(2).await;
    stepped.step(-Span::hours(1));
    scene.polled_more(4).await;
    scene.stop().await;
}

#[tokio::test]
async fn secrets_in_headers_never_reach_the_database() {
    let secret = "tok-7f3a9c55d1";
    let config: serde_json::Value = support::watching("", json!({}));
    let echo = move |_: &Seen| {
        Act::body("application/json", Bytes::from(format!("<html>token {secret} expired</html>")))
    };
    let scene = Scene::start_with(
        echo,
        |url| {
            let mut config = config.clone();
            config["url"] = json!(url);
            let config = serde_json::from_value(config).expect("valid");
            let headers = vec![("X-Token".to_owned(), secret.to_owned())];
            vec![Arc::new(stakeout_sources::json::JsonSource::new("s", &config, headers).expect("valid"))]
        },
        |_| {},
    )
    .await;
    scene.polled(2).await;
    let row = scene.target().await;
    let everything = format!("{row:?} {:?} {:?}", scene.log().await, scene.store.stats().await);
    assert!(!everything.contains(secret), "{everything}");
    assert!(row.last_outcome == Some(PollOutcome::Failed) && row.schedule.due > Some(Time(0)));
    scene.stop().await;
}
