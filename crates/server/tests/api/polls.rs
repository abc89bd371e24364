//! The log of polls, the stretches between them, and the moment before the first.

use serde_json::{Value as Json, json};
use stakeout_core::adherence::{Account, Look, Punctuality, Run, Sight};
use stakeout_core::{Span, Time};
use stakeout_store::conformance::story::{Poll, World, request};
use stakeout_store::{ClaimRequest, Schedule, Store};

use crate::support::{Scene, within};

#[tokio::test]
async fn the_polls_of_a_target_are_read_by_window_and_part_by_part() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(5).await;
    let path = "/v1/targets/s/main/polls";
    let numbers = |polls: &Json| -> Vec<u64> {
        let polls = polls.as_array().expect("polls").iter();
        polls.map(|poll| poll["poll_no"].as_u64().expect("a number")).collect()
    };
    let (_, all) = scene.get(path).await;
    let known = numbers(&all);
    assert!(known.len() >= 6 && known.is_sorted_by(|a, b| a > b), "the newest first: {known:?}");
    assert_eq!((&all[0]["target"], &all[0]["gone"]), (&json!("main"), &json!(false)));
    // What is notable meanwhile comes before them.
    let newest = all[0]["sent"].as_str().expect("a time");
    let (mut found, mut next) = (Vec::new(), Some(format!("{path}?to={newest}&limit=2")));
    while let Some(part) = next {
        let response = within(scene.http.get(scene.url(&part)).send()).await.expect("an answer");
        let link = response.headers().get("link").map(|link| link.to_str().expect("text").to_owned());
        let body = response.bytes().await.expect("a body");
        found.extend(numbers(&serde_json::from_slice(&body).expect("JSON")));
        next = link.map(|link| {
            let url = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\""));
            url.expect("the way on").to_owned()
        });
    }
    assert_eq!(found, known);
    let third = all[2]["sent"].as_str().expect("a time");
    let (_, some) = scene.get(&format!("{path}?from={third}&to={newest}")).await;
    assert_eq!(numbers(&some), known[..3]);
    assert_eq!(scene.get(&format!("{path}?before={}", known.last().expect("one"))).await.1, json!([]));
    for bad in ["?from=yesterday", "?before=x", "?limit=0"] {
        assert_eq!(scene.get(&format!("{path}{bad}")).await.0, 400, "{bad}");
    }
    scene.stop().await;
}

#[tokio::test]
async fn finished_stretches_of_all_targets_are_read_page_by_page() {
    let scene = Scene::start().await;
    let mut polled = scene.control.polled();
    scene.polled(2).await;
    // Switched off for longer than two intervals, another stretch begins.
    for _ in 0..3 {
        assert_eq!(scene.post("/v1/targets/s/main/disable").await.0, 204);
        let off = scene.control.clock().now();
        while scene.control.clock().now() - off < Span::ms(60) {
            scene.get("/livez").await;
        }
        polled.mark_unchanged();
        assert_eq!(scene.post("/v1/targets/s/main/enable").await.0, 204);
        within(polled.changed()).await.expect("the engine lives");
    }
    let (mut starts, mut next) = (Vec::new(), Some("/v1/runs/s?limit=1".to_owned()));
    while let Some(path) = next.filter(|_| starts.len() < 3) {
        let (status, page) = scene.get(&path).await;
        assert_eq!(status, 200, "{page}");
        for item in page["items"].as_array().expect("items") {
            assert!(item["key"] == "main" && item["run"]["polls"].as_u64() > Some(0), "{item}");
            starts.push(item["run"]["from"].as_str().expect("a time").to_owned());
        }
        next = page["next"].as_str().map(str::to_owned);
    }
    assert!(starts.len() == 3 && starts.is_sorted_by(|a, b| a < b), "each once: {starts:?}");
    assert_eq!(scene.get("/v1/runs/s?to=2020-01-01T00:00:00Z").await.1["items"], json!([]));
    assert_eq!(scene.get("/v1/runs/none").await.0, 404);
    scene.stop().await;
}

#[tokio::test]
async fn it_is_not_ready_before_the_first_look() {
    // The upstream keeps its first answer to itself until somebody has asked.
    let scene = Scene::silent().await;
    let (status, problem) = scene.get("/readyz").await;
    assert_eq!((status, &problem["type"]), (503, &json!("urn:stakeout:problem:unavailable")));
    assert_eq!(problem["detail"], "source s has not looked for its targets yet");
    assert_eq!(scene.get("/livez").await.0, 200);
    let (_, health) = scene.get("/v1/health").await;
    assert_eq!((&health["ready"], &health["waiting_for"]), (&json!(false), &problem["detail"]));
    scene.speak();
    scene.polled(1).await;
    assert_eq!(scene.get("/readyz").await.0, 200);
    scene.stop().await;
}

#[tokio::test]
async fn a_window_that_begins_in_an_outage_is_dark_until_the_first_look() {
    // Looked at from 0 s to 10 s and from 70 s to 80 s; asked for 40 s to 80 s.
    let scene = looked_at_twice().await;
    for path in ["/v1/adherence/s", "/v1/adherence/s/main"] {
        let window = "from=1970-01-01T00:00:40Z&to=1970-01-01T00:01:20Z";
        let (_, adherence) = scene.get(&format!("{path}?{window}")).await;
        assert!(adherence["unseen_ms"].as_f64().is_some_and(|ms| ms >= 30_000.0), "{path}: {adherence}");
    }
    // An hour in which it should have been looked at, and was not.
    let (_, dark) = scene.get("/v1/adherence/s?from=1970-01-01T01:00:00Z&to=1970-01-01T02:00:00Z").await;
    assert_eq!((&dark["unseen_ms"], &dark["worst"][0]["key"]), (&Json::Null, &json!("main")), "{dark}");
    scene.stop().await;
}

#[tokio::test]
async fn the_stretches_of_a_target_are_read_part_by_part_from_the_newest_back() {
    let scene = looked_at_twice().await;
    let path = "/v1/targets/s/main/runs?from=1970-01-01T00:00:00Z&to=1970-01-01T00:02:00Z";
    let (_, all) = scene.get(path).await;
    let starts = |runs: &Json| -> Vec<Json> {
        runs.as_array().expect("runs").iter().map(|run| run["from"].clone()).collect()
    };
    assert_eq!(starts(&all), ["1970-01-01T00:00:00.000Z", "1970-01-01T00:01:10.000Z"]);
    let newest =
        within(scene.http.get(scene.url(&format!("{path}&limit=1"))).send()).await.expect("an answer");
    let link = newest.headers().get("link").map(|link| link.to_str().expect("text").to_owned());
    let newest: Json = serde_json::from_slice(&newest.bytes().await.expect("a body")).expect("JSON");
    assert_eq!(starts(&newest), starts(&all)[1..], "what is new never falls out");
    let link = link.expect("there are more");
    let before =
        link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).expect("the way on");
    let response = within(scene.http.get(scene.url(before)).send()).await.expect("an answer");
    assert!(!response.headers().contains_key("link"), "that is all");
    let older: Json = serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON");
    assert_eq!(starts(&older), starts(&all)[..1]);
    assert_eq!(scene.get("/v1/targets/s/main/runs?limit=0").await.0, 400);
    scene.stop().await;
}

#[tokio::test]
async fn a_target_that_is_gone_still_has_its_account() {
    let scene = looked_at_twice().await;
    scene.store.reconcile_roots("s", &[], scene.control.clock().now()).await.expect("roots");
    let window = "from=1970-01-01T00:00:00Z&to=1970-01-01T00:02:00Z";
    let (_, of_all) = scene.get(&format!("/v1/adherence/s?{window}")).await;
    assert_eq!((&of_all["worst"][0]["key"], &of_all["worst"][0]["retired"]), (&json!("main"), &json!(true)));
    let (status, alone) = scene.get(&format!("/v1/adherence/s/main?{window}")).await;
    assert_eq!((status, &alone["worst"]), (200, &of_all["worst"]), "{alone}");
    let never = "to=1969-01-01T00:00:00Z";
    assert_eq!(scene.get(&format!("/v1/adherence/s/main?{never}")).await.0, 404, "of then nothing is known");
    assert_eq!(scene.get(&format!("/v1/adherence/s/other?{window}")).await.0, 404);
    scene.stop().await;
}

/// A scene whose target was looked at in two stretches, long ago.
async fn looked_at_twice() -> Scene {
    let scene = Scene::with(json!({ "every": "1h" }), |_| {}).await;
    scene.polled(1).await;
    let look = |from: i64, to: i64| {
        let account =
            Account { lateness: Span::ZERO, punctuality: Punctuality::OnTime, missed: 0, missed_cause: None };
        let (start, end, sight) = (Time::from_secs(from), Time::from_secs(to), Sight::Complete);
        Run::begin(&Look { phase: "fixed", interval: Span::secs(10), start, end, sight, account })
    };
    let now = scene.control.clock().now() + Span::hours(2);
    let claim = ClaimRequest { sources: vec!["s".to_owned()], now, ..request(0) };
    let claim = scene.store.claim(claim).await.expect("claim").pop().expect("nobody holds it");
    let poll = Poll::of(&claim, 0).with(|poll| {
        poll.finished_run = Some(look(0, 10));
        poll.state.run = Some(look(70, 80));
        poll.schedule = Schedule { due: Some(now + Span::hours(24)), ..claim.schedule.clone() };
    });
    World { store: scene.store.clone() }.done(poll).await;
    scene
}
