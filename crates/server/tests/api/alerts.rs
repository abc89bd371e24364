//! Rules, what they told, who has read it, and where it went.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::Event;
use stakeout_engine::{EngineConfig, Sink, SinkError};
use stakeout_server::{Scope, TokenPolicy};
use stakeout_sources::alert::RuleBook;
use stakeout_store::Store;

use crate::support::Scene;

/// A sink that never takes anything.
struct Stuck;

#[async_trait::async_trait]
impl Sink for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }
    fn kind(&self) -> &'static str {
        "webhook"
    }
    fn takes(&self, _: &str) -> bool {
        false
    }
    async fn deliver(&self, _: &Event) -> Result<(), SinkError> {
        Err(SinkError::Down("nobody is there".into()))
    }
}

/// One rule in the file, and one sink.
fn with_a_rule(config: &mut EngineConfig) {
    let rules = json!({ "filed": { "when": { "on": "unhealthy", "failures": 3 }, "user": "anna" } });
    let rules: BTreeMap<_, _> = serde_json::from_value(rules).expect("rules");
    config.alerts = Arc::new(RuleBook::new(rules).expect("a book"));
    config.sinks = vec![Arc::new(Stuck)];
}

async fn ringing() -> Scene {
    Scene::engine(|_| {}, with_a_rule).await
}

fn on_change() -> Json {
    json!({ "when": { "on": "event", "type": "json.*" }, "severity": "warning", "sinks": ["stuck"] })
}

#[tokio::test]
async fn rules_are_listed_made_changed_and_removed() {
    let scene = ringing().await;
    let (status, rules) = scene.get("/v1/alerts").await;
    assert_eq!(status, 200);
    assert_eq!(
        (&rules[0]["name"], &rules[0]["origin"], &rules[0]["user"], &rules[0]["over_file"]),
        (&json!("filed"), &json!("file"), &json!("anna"), &json!(false))
    );

    let (status, made) = scene.tell("PUT", "/v1/alerts/changes", &on_change()).await;
    assert_eq!(
        (status, &made["origin"], &made["rule"]["severity"]),
        (200, &json!("live"), &json!("warning"))
    );
    let over = json!({ "when": { "on": "unhealthy", "failures": 9 }, "enabled": false });
    let (status, made) = scene.tell("PUT", "/v1/alerts/filed", &over).await;
    assert_eq!((status, &made["over_file"]), (200, &json!(true)), "{made}");
    let (_, rules) = scene.get("/v1/alerts").await;
    assert_eq!(rules.as_array().map(Vec::len), Some(2));
    assert_eq!(rules[1]["rule"]["when"]["failures"], 9, "the live one holds");

    let remove = |name: &str| scene.ask(scene.http.delete(scene.url(&format!("/v1/alerts/{name}"))));
    assert_eq!(remove("filed").await.0, 204);
    assert_eq!(scene.get("/v1/alerts").await.1[1]["rule"]["when"]["failures"], 3, "that of the file again");
    let (status, problem) = remove("filed").await;
    assert!(status == 422 && problem["detail"].to_string().contains("configuration file"), "{problem}");
    assert_eq!(remove("changes").await.0, 204);
    assert_eq!(remove("changes").await.0, 404);
    scene.stop().await;
}

#[tokio::test]
async fn a_rule_that_cannot_ring_is_refused_with_what_would_do() {
    let scene = ringing().await;
    for (rule, words) in [
        (json!({ "when": { "on": "nothing" } }), "unhealthy"),
        (json!({ "when": { "on": "odds", "direction": "up", "percent": 5, "within": "5m" } }), "shortened"),
        (json!({ "when": { "on": "missed", "polls": 0 } }), "at least 1"),
        (json!({ "when": { "on": "missed" }, "quite": "5m" }), "quiet"),
        (json!({ "when": { "on": "missed" }, "sinks": ["mail"] }), "expected one of stuck"),
        (json!({ "when": { "on": "missed" }, "source": "nz" }), "expected one of s"),
        (json!({ "when": { "on": "event", "type": "json.chnaged" } }), "expected one of json."),
        (json!({ "when": { "on": "event", "type": "alert.raised" } }), "nobody tells of"),
    ] {
        for (method, path) in [("PUT", "/v1/alerts/bad"), ("POST", "/v1/alerts/test")] {
            let (status, problem) = scene.tell(method, path, &rule).await;
            let detail = problem["detail"].as_str().unwrap_or_default();
            assert!(status == 422 && detail.contains(words), "{rule}: {status} {problem}");
        }
    }
    let fine = json!({ "when": { "on": "missed" } });
    let (status, problem) = scene.tell("PUT", "/v1/alerts/a%20b", &fine).await;
    assert!(status == 422 && problem["detail"].to_string().contains("letters"), "{problem}");
    for since in ["yesterday", "0s", "90d"] {
        assert_eq!(
            scene.tell("POST", &format!("/v1/alerts/test?since={since}"), &fine).await.0,
            400,
            "{since}"
        );
    }
    assert_eq!(scene.post("/v1/alerts/nobody/test").await.0, 404);
    assert_eq!(scene.get("/v1/alerts").await.1.as_array().map(Vec::len), Some(1), "nothing was kept");
    scene.stop().await;
}

#[tokio::test]
async fn what_rings_is_listed_until_it_is_read() {
    let scene = ringing().await;
    scene.polled(2).await;
    assert_eq!(scene.tell("PUT", "/v1/alerts/changes", &on_change()).await.0, 200);
    scene.change(2).await;
    let (_, told) = scene.get("/v1/notifications").await;
    assert_eq!((&told["unread"], &told["next"]), (&json!(4), &Json::Null), "{told}");
    let first = &told["items"][0];
    assert_eq!(
        (&first["alert"], &first["severity"], &first["user"]),
        (&json!("changes"), &json!("warning"), &Json::Null)
    );
    assert!(first["title"].is_string() && first["read_at"].is_null() && first["id"].is_string(), "{first}");

    // The rule says of the past what it said.
    let (status, tried) = scene.post("/v1/alerts/changes/test?since=1h").await;
    assert_eq!((status, tried["rings"].as_array().map(Vec::len)), (200, Some(4)), "{tried}");
    let texts = |list: &Json| -> Vec<String> {
        let mut texts: Vec<String> = list
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| format!("{} {}", one["at"], one["text"]))
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&tried["rings"]), texts(&told["items"]));
    let draft = json!({ "when": { "on": "event", "type": "json.*" }, "quiet": "1h" });
    let (_, tried) = scene.tell("POST", "/v1/alerts/test", &draft).await;
    assert_eq!(
        (tried["rings"].as_array().map(Vec::len), &tried["kept_quiet"]),
        (Some(2), &json!(2)),
        "{tried}"
    );

    let seq = |n: usize| told["items"][n]["seq"].as_u64().expect("a number");
    assert_eq!(scene.post(&format!("/v1/notifications/{}/read", seq(1))).await.0, 204);
    assert_eq!(scene.post(&format!("/v1/notifications/{}/read", seq(1))).await.0, 204, "twice is no mistake");
    let (_, unread) = scene.get("/v1/notifications?unread=true&limit=2").await;
    assert_eq!((&unread["unread"], &unread["items"][1]["seq"]), (&json!(3), &json!(seq(2))));
    let next = unread["next"].as_str().expect("more").to_owned();
    let (_, rest) = scene.get(&next).await;
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(1), "{rest}");
    assert_eq!(scene.post(&format!("/v1/notifications/read?upto={}", seq(2))).await.1["count"], 2);
    assert_eq!(scene.post("/v1/notifications/read").await.1["count"], 1);
    assert_eq!(scene.get("/v1/notifications?user=anna").await.1["unread"], 0);
    for missing in ["/v1/notifications/999999/read", &format!("/v1/notifications/{}/read", seq(3) - 1)] {
        assert_eq!(scene.post(missing).await.0, 404, "{missing}");
    }
    assert_eq!(scene.get("/v1/notifications?limit=0").await.0, 400);
    scene.stop().await;
}

#[tokio::test]
async fn what_a_sink_did_not_take_is_listed_retried_and_dropped() {
    let scene = ringing().await;
    scene.polled(2).await;
    assert_eq!(scene.tell("PUT", "/v1/alerts/changes", &on_change()).await.0, 200);
    scene.change(1).await;
    let (_, sinks) = scene.get("/v1/sinks").await;
    let stuck = json!([{ "name": "stuck", "kind": "webhook", "on": true, "waiting": 2, "dead": 0 }]);
    assert_eq!(sinks, stuck);
    let (_, told) = scene.get("/v1/notifications").await;
    let seqs: Vec<u64> = (0..2).map(|n| told["items"][n]["seq"].as_u64().expect("a number")).collect();
    for seq in &seqs {
        scene.store.delivery_failed("stuck", *seq, None, "500").await.expect("given up");
    }
    let (_, dead) = scene.get("/v1/deliveries/dead?sink=stuck").await;
    assert_eq!((&dead[0]["error"], &dead[0]["type"]), (&json!("500"), &json!("alert.raised")), "{dead}");
    let metrics =
        scene.http.get(scene.url("/metrics")).send().await.expect("an answer").text().await.expect("text");
    for line in [
        "stakeout_outbox_dead{sink=\"stuck\"} 2",
        "stakeout_sink_on{sink=\"stuck\",kind=\"webhook\"} 1",
        "stakeout_notifications_unread 2",
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
    let one = json!({ "sink": "stuck", "event": seqs[0] });
    assert_eq!(scene.tell("POST", "/v1/deliveries/retry", &one).await.1["count"], 1);
    assert_eq!(scene.get("/v1/sinks").await.1[0]["dead"], 1);
    assert_eq!(scene.tell("POST", "/v1/deliveries/drop", &json!({ "sink": "stuck" })).await.1["count"], 1);
    let missing = json!({ "sink": "stuck", "event": 999_999 });
    assert_eq!(scene.tell("POST", "/v1/deliveries/drop", &missing).await.0, 404);
    assert_eq!(scene.tell("POST", "/v1/deliveries/drop", &json!({ "sing": "stuck" })).await.0, 400);
    scene.stop().await;
}

#[tokio::test]
async fn whoever_may_only_read_changes_nothing() {
    let scene = Scene::engine(|server| server.token = TokenPolicy::Always, with_a_rule).await;
    let rule = on_change();
    let choice = json!({ "sink": "stuck" });
    for (scope, allowed) in [(None, 401), (Some(Scope::Read), 403), (Some(Scope::Operate), 200)] {
        let token = match scope {
            Some(scope) => Some(scene.token(scope).await),
            None => None,
        };
        let with_token = |request: reqwest::RequestBuilder| match &token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        for (method, path, body) in [
            ("PUT", "/v1/alerts/mine", &rule),
            ("POST", "/v1/notifications/read", &Json::Null),
            ("POST", "/v1/deliveries/retry", &choice),
            ("POST", "/v1/deliveries/drop", &choice),
        ] {
            let asked = scene.ask(with_token(scene.telling(method, path, body))).await;
            assert_eq!(asked.0, allowed, "{scope:?} {method} {path}: {}", asked.1);
        }
        let looks = if scope.is_some() { 200 } else { 401 };
        for path in ["/v1/alerts", "/v1/notifications", "/v1/sinks", "/v1/deliveries/dead"] {
            let asked = scene.ask(with_token(scene.http.get(scene.url(path)))).await;
            assert_eq!(asked.0, looks, "{scope:?} {path}");
        }
        let tried = with_token(scene.telling("POST", "/v1/alerts/test", &rule));
        assert_eq!(scene.ask(tried).await.0, looks, "{scope:?}: trying sends nothing");
    }
    scene.stop().await;
}
