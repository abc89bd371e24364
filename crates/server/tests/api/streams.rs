//! Streams: no gap, no double, whatever happens in between.

use std::time::Duration;

use serde_json::json;
use stakeout_core::{Fingerprint, Span};
use stakeout_store::{EventFilter, KvSet, Retention, Store};

use crate::listener::Listener;
use crate::support::{Scene, within};

async fn log(scene: &Scene) -> Vec<u64> {
    let events = scene.store.events(0, &EventFilter::default(), 10_000).await.expect("events");
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn a_stream_resumes_without_a_gap_or_a_double() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    let mut heard = Vec::new();
    let mut listener = Listener::open(&scene, "?after=0", None).await;
    // Broken off in the middle, again and again, with more happening while nobody listens.
    for round in 0..6 {
        scene.change(3).await;
        heard.extend(listener.events(if round % 2 == 0 { 5 } else { 2 }).await);
        drop(listener);
        scene.change(2).await;
        listener = Listener::open(&scene, "?after=0", heard.last().copied()).await;
    }
    let told = log(&scene).await;
    heard.extend(listener.events(told.len() - heard.len()).await);
    assert_eq!(heard, told, "each once, in order");
    scene.stop().await;
}

#[tokio::test]
async fn what_happens_while_a_stream_catches_up_is_told_once() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(120).await;
    let busy = async {
        scene.change(60).await;
        scene.change(0).await;
    };
    let listening = async {
        let mut listener = Listener::open(&scene, "", Some(0)).await;
        listener.events(360).await
    };
    let ((), heard) = tokio::join!(busy, listening);
    assert_eq!(heard, log(&scene).await);
    scene.stop().await;
}

#[tokio::test]
async fn a_new_stream_begins_now_and_knows_its_place() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(2).await;
    let before = log(&scene).await;
    let mut listener = Listener::open(&scene, "", None).await;
    let first = listener.next().await.expect("a message");
    assert_eq!((first.name.as_str(), first.id), ("heartbeat", before.last().copied()));
    scene.change(1).await;
    let news = listener.events(2).await;
    assert_eq!(log(&scene).await, [before, news].concat());
    scene.stop().await;
}

#[tokio::test]
async fn a_pruned_cursor_is_told_once_to_look_anew() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(3).await;
    let old = log(&scene).await;
    let forget = Retention {
        events: Span::ZERO,
        history: Span::hours(1),
        polls: Span::hours(1),
        gone_records: Span::hours(1),
    };
    let now = scene.control.clock().now();
    while scene.store.prune(&forget, now, 1_000).await.expect("prunes").more {}
    scene.change(1).await;
    let left = log(&scene).await;
    assert!(left.len() < old.len() + 2, "some are gone");

    let mut listener = Listener::open(&scene, "", Some(old[0])).await;
    let first = listener.next().await.expect("a message");
    assert_eq!((first.name.as_str(), first.id), ("resync", old.last().copied()));
    assert_eq!(first.data["after"], json!(old[0]));
    assert_eq!(listener.events(left.len()).await, left);
    scene.change(1).await;
    let message = listener.next().await.expect("a message");
    assert_ne!(message.name, "resync", "once is enough");
    drop(listener);

    // Having read up to there, nothing was missed.
    let mut listener = Listener::open(&scene, "", old.last().copied()).await;
    assert_eq!(listener.next().await.expect("a message").name, "event");
    // A cursor that is not there yet is from another log.
    let mut listener = Listener::open(&scene, "?after=1000000", None).await;
    assert_eq!(listener.next().await.expect("a message").name, "resync");
    scene.stop().await;
}

#[tokio::test]
async fn a_filtered_stream_hears_its_own_and_its_place_moves_on() {
    let scene = Scene::with(json!({}), |server| server.heartbeat = Duration::from_millis(20)).await;
    scene.polled(2).await;
    let a = Fingerprint::of("json_s", &["a"]);
    let mut of_a = Listener::open(&scene, &format!("?record={a}"), None).await;
    let mut of_none = Listener::open(&scene, "?type=other.", None).await;
    let mut of_source = Listener::open(&scene, "?source=s&type=json.", None).await;
    let mut of_other = Listener::open(&scene, "?source=other&after=0", None).await;
    scene.change(2).await;
    for _ in 0..2 {
        let event = of_a.next_named("event").await;
        assert_eq!(event.data["subject_key"], "a");
    }
    assert_eq!(of_source.events(4).await, log(&scene).await);
    let newest = log(&scene).await.last().copied().expect("an event");
    for listener in [&mut of_none, &mut of_other] {
        loop {
            let message = listener.next().await.expect("a message");
            assert_eq!(message.name, "heartbeat", "nothing else is wanted");
            assert_eq!(message.data["seq"], json!(message.id));
            if message.id >= Some(newest) {
                break;
            }
        }
    }
    scene.stop().await;
}

#[tokio::test]
async fn whoever_looks_on_hears_of_every_target_and_its_place_in_the_log_stays() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    let mut of_all = Listener::open(&scene, "?polls=all", None).await;
    let mut of_target = Listener::open(&scene, "?polls=s/main&type=none.", None).await;
    let mut of_other = Listener::open(&scene, "?polls=other", None).await;
    let pulse = of_all.next_named("pulse").await;
    assert_eq!((pulse.id, &pulse.data["sources"][0]["name"]), (None, &json!("s")));
    let mut before = 0;
    for _ in 0..3 {
        let poll = of_all.next_named("poll").await;
        assert_eq!((poll.id, &poll.data["target"]), (None, &json!("main")));
        let poll_no = poll.data["poll_no"].as_u64().expect("a number");
        assert!(poll_no > before, "each is newer than the last");
        before = poll_no;
        assert_eq!(poll.data["interval_ms"], 20);
        assert!(poll.data["next_due"].as_str() > poll.data["due"].as_str(), "{:?}", poll.data);
        assert_eq!(poll.data["run"]["phase"], poll.data["phase"]);
        assert!(poll.data["start"].is_null() && poll.data["earlier"].is_array(), "{:?}", poll.data);
    }
    scene.change(1).await;
    let mut changes = 0;
    while changes == 0 {
        changes = of_target.next_named("poll").await.data["changes"].as_u64().expect("a number");
    }
    assert_eq!(changes, 2, "a change is told of even if a later poll is the newest");
    scene.control.poll_now("s", "main").await.expect("known");
    assert_eq!(of_other.next_named("targets").await.id, None);
    scene.stop().await;
}

#[tokio::test]
async fn a_slow_client_is_dropped_and_nobody_waits_for_it() {
    // Large events and a short ring: the sockets' own buffers are soon full.
    let scene = Scene::padded(json!({ "every": "10ms" }), 500_000, |server| {
        server.ring = 4;
        server.write_wait = Duration::from_millis(100);
    })
    .await;
    scene.polled(2).await;
    let mut asleep = Listener::open(&scene, "", None).await;
    asleep.next().await.expect("the first message");
    let mut dropped = 0;
    for _ in 0..200 {
        scene.change(1).await;
        let metrics = scene.http.get(scene.url("/metrics")).send().await.expect("an answer");
        let text = metrics.text().await.expect("text");
        let line = text
            .lines()
            .find(|line| line.starts_with("stakeout_slow_clients_dropped_total "))
            .expect("a line");
        dropped = line.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        if dropped > 0 {
            break;
        }
    }
    assert_eq!(dropped, 1);
    // What it had got so far is a part of the log without a hole, and it can go on from there.
    let mut heard = Vec::new();
    while let Some(message) = asleep.next().await {
        heard.extend(message.id.filter(|_| message.name == "event"));
    }
    let told = log(&scene).await;
    assert!(!heard.is_empty() && told.starts_with(&heard));
    let mut again = Listener::open(&scene, "", heard.last().copied()).await;
    heard.extend(again.events(2).await);
    assert!(told.starts_with(&heard));
    scene.stop().await;
}

#[tokio::test]
async fn there_are_only_so_many_streams() {
    let scene = Scene::with(json!({}), |server| server.streams_max = 2).await;
    let first = Listener::open(&scene, "", None).await;
    let _second = Listener::open(&scene, "", None).await;
    let (status, problem) = scene.get("/v1/events/stream").await;
    assert_eq!((status, &problem["type"]), (503, &json!("urn:stakeout:problem:unavailable")));
    drop(first);
    // The place is free as soon as the server has noticed.
    within(async {
        while scene.http.get(scene.url("/v1/events/stream")).send().await.expect("an answer").status() != 200
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    scene.stop().await;
}

#[tokio::test]
async fn nonsense_is_refused_before_a_stream_begins() {
    let scene = Scene::start().await;
    for query in ["?after=x", "?record=abc", "?unknown=1", "?polls="] {
        assert_eq!(scene.get(&format!("/v1/events/stream{query}")).await.0, 400, "{query}");
    }
    let request = scene.http.get(scene.url("/v1/events/stream")).header("last-event-id", "abc");
    assert_eq!(scene.ask(request).await.0, 400);
    scene.stop().await;
}

/// Claims a target of a source that the engine does not run, and publishes a value with its poll.
async fn publish(scene: &Scene, value: i64) {
    use stakeout_store::conformance::story::{Poll, World};
    let world = World { store: scene.store.clone() };
    world.roots(&["a"]).await;
    let claim = world.claim_one(value * 100).await;
    let kv = KvSet { namespace: "race".into(), key: "currentOrder".into(), value: json!({ "order": value }) };
    world.done(Poll::of(&claim, value * 100).with(|poll| poll.kv = vec![kv])).await;
}

#[tokio::test]
async fn published_values_are_read_and_told_to_whoever_comes() {
    let scene = Scene::start().await;
    publish(&scene, 1).await;
    assert_eq!(scene.get("/v1/kv/race/currentOrder").await, (200, json!({ "order": 1 })));
    let (_, all) = scene.get("/v1/kv?namespace=race").await;
    assert_eq!((&all[0]["key"], &all[0]["value"]["order"]), (&json!("currentOrder"), &json!(1)));
    let all = scene.http.get(scene.url("/v1/kv?limit=1")).send().await.expect("an answer");
    let link = all.headers()["link"].to_str().expect("text").to_owned();
    assert_eq!(link, "</v1/kv?limit=1&after=race%2FcurrentOrder>; rel=\"next\"");
    assert_eq!(scene.get("/v1/kv?limit=1&after=race%2FcurrentOrder").await, (200, json!([])));
    assert_eq!(scene.get("/v1/kv?after=race").await.0, 400);
    for query in ["", "?kv=race", "?source=s&kv=all"] {
        let told = Listener::open(&scene, query, None).await.next_named("kv").await;
        assert_eq!((told.id, &told.data["value"]["order"]), (None, &json!(1)), "{query}");
    }
    for query in ["?kv=none", "?source=s", "?kv=other"] {
        let first = Listener::open(&scene, query, None).await.next().await.expect("a message");
        assert_eq!(first.name, "heartbeat", "{query}");
    }
    scene.stop().await;
}

#[tokio::test]
async fn a_value_that_changes_while_a_stream_catches_up_is_told() {
    // More than a page of the log, and the first page more than can be on its way while nobody reads: the stream has not
    // come to the second one when the value changes.
    let scene = Scene::padded(json!({}), 100_000, |_| {}).await;
    scene.polled(2).await;
    publish(&scene, 1).await;
    scene.change(110).await;
    let mut listener = Listener::open(&scene, "?after=0", None).await;
    let order = |message: &crate::listener::Message| message.data["value"]["order"].clone();
    assert_eq!(order(&listener.next_named("kv").await), json!(1));
    publish(&scene, 2).await;
    listener.events(220).await;
    // Before anything else comes by: nobody would speak of it again until its next change.
    let next = listener.next().await.expect("a message");
    assert_eq!((next.name.as_str(), order(&next)), ("kv", json!(2)));
    scene.stop().await;
}

#[tokio::test]
async fn all_published_values_are_told_however_many_there_are() {
    let scene = Scene::start().await;
    let now = scene.control.clock().now();
    for n in 0..1_005 {
        scene.store.set_kv("many", &format!("{n:04}"), Some(json!(n)), now).await.expect("kept");
    }
    let mut listener = Listener::open(&scene, "?kv=many", None).await;
    for n in 0..1_005 {
        let told = listener.next().await.expect("a message");
        assert_eq!((told.name.as_str(), &told.data["value"]), ("kv", &json!(n)));
    }
    scene.stop().await;
}
