//! Webhooks and templates against a real receiver on loopback, which checks signatures by itself and misbehaves.

mod support;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sim::{Act, Loopback};
use stakeout_sinks::Found;
use stakeout_sinks::http::HttpSink;
use stakeout_sinks::webhook::WebhookSink;
use support::event;
use support::standard_webhooks::verified;

const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER: &str = "whsec_/////////////////////////////////////////w==";

fn answering(status: u16) -> Act {
    Act::Answer { status, headers: vec![], body: "thanks".into() }
}

fn found(config: &Value) -> Found {
    let keys = ["url", "secret", "previous_secret"];
    keys.into_iter().filter_map(|key| Some((key.to_owned(), config[key].as_str()?.to_owned()))).collect()
}

fn hook(url: &str, more: Value) -> WebhookSink {
    let mut config = json!({"url": url, "secret": NEW, "allow": ["127.0.0.1"], "timeout": "300ms"});
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let found = found(&config);
    WebhookSink::new("hook", &serde_json::from_value(config).expect("a configuration"), &found)
        .expect("a sink")
}

fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

#[tokio::test]
async fn a_receiver_can_check_who_sent_it() {
    let server = Loopback::start(|_| answering(204));
    let sink = hook(&server.url("/in"), json!({}));
    let event = event(1);
    sink.deliver(&event).await.expect("taken");
    sink.deliver(&event).await.expect("taken again");
    let seen = server.seen();
    for request in &seen {
        assert_eq!(verified(request, NEW, now_secs()), Ok(event.id.to_string()), "the same id on every try");
        assert!(verified(request, OTHER, now_secs()).is_err(), "another secret does not fit");
        assert_eq!(request.header("content-type"), Some("application/cloudevents+json"));
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/in"));
    }
    let body: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    assert_eq!((&body["specversion"], &body["id"]), (&json!("1.0"), &json!(event.id.to_string())));
    assert_eq!(body["data"]["title"], "Odds fell 1");
    let mut forged = seen[0].clone();
    forged.body = String::from_utf8_lossy(&forged.body).replace("4.2", "9.9").into();
    assert!(verified(&forged, NEW, now_secs()).is_err(), "what was changed on the way is noticed");
}

#[tokio::test]
async fn while_a_secret_is_changed_both_fit() {
    let server = Loopback::start(|_| answering(200));
    hook(&server.url("/"), json!({"previous_secret": OLD})).deliver(&event(1)).await.expect("taken");
    let request = &server.seen()[0];
    assert!(verified(request, NEW, now_secs()).is_ok() && verified(request, OLD, now_secs()).is_ok());
    assert!(verified(request, OTHER, now_secs()).is_err());
    assert_eq!(request.header("webhook-signature").expect("signed").split(' ').count(), 2);
}

#[tokio::test]
async fn only_2xx_is_taken() {
    let elsewhere = Loopback::start(|_| answering(200));
    let target = elsewhere.url("/");
    let server = Loopback::start(move |seen| match seen.path.as_str() {
        "/200" => answering(200),
        "/299" => answering(299),
        "/302" => Act::Redirect(target.clone()),
        "/308" => {
            let headers = vec![("location".to_owned(), target.clone())];
            Act::Answer { status: 308, headers, body: "".into() }
        }
        "/410" => answering(410),
        "/500" => answering(500),
        "/429" => answering(429),
        "/hang" => Act::Hang,
        "/reset" => Act::Reset,
        "/huge" => Act::Huge { bytes: 1 << 40 },
        _ => answering(404),
    });
    let outcome = async |path: &str| match hook(&server.url(path), json!({})).deliver(&event(1)).await {
        Ok(()) => "taken".to_owned(),
        Err(SinkError::Refused(said)) => format!("refused: {said}"),
        Err(SinkError::Gone(said)) => format!("gone: {said}"),
        Err(SinkError::Down(said)) => format!("down: {said}"),
    };
    for (path, expected) in [
        ("/200", "taken"),
        ("/299", "taken"),
        ("/huge", "taken"),
        ("/302", "refused: answered 302 Found: redirects are not followed"),
        ("/308", "refused: answered 308 Permanent Redirect: redirects are not followed"),
        ("/410", "gone: answered 410 Gone"),
        ("/500", "refused: answered 500 Internal Server Error"),
        ("/429", "refused: answered 429 Too Many Requests"),
    ] {
        assert_eq!(outcome(path).await, expected, "{path}");
    }
    for path in ["/hang", "/reset"] {
        let said = outcome(path).await;
        assert!(said.starts_with("refused: "), "{path}: {said}");
        assert!(!said.contains(path), "the address may be a secret: {said}");
    }
    assert_eq!(elsewhere.stats().requests, 0, "nobody was sent elsewhere");
}

#[tokio::test]
async fn so_many_are_on_their_way_at_once_and_no_more() {
    let server = Loopback::start(|_| Act::Delay { ms: 30, then: Box::new(answering(200)) });
    let sink = hook(&server.url("/"), json!({"concurrency": 3, "timeout": "5s"}));
    let events: Vec<Event> = (1..=12).map(event).collect();
    let events: Vec<&Event> = events.iter().collect();
    let outcomes = sink.deliver_all(&events).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 12);
    let most = server.seen().iter().map(|seen| seen.in_flight).max();
    assert_eq!(most, Some(3), "several, but not all");
}

#[tokio::test]
async fn after_410_no_more_is_begun() {
    let server = Loopback::start(|_| answering(410));
    let sink = hook(&server.url("/"), json!({"concurrency": 2}));
    let events: Vec<Event> = (1..=20).map(event).collect();
    let outcomes = sink.deliver_all(&events.iter().collect::<Vec<_>>()).await;
    assert!(matches!(outcomes.as_slice(), [Err(SinkError::Gone(_))]), "{outcomes:?}");
    assert!(server.stats().requests <= 3, "{}", server.stats().requests);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_never_connected_to() {
    let server = Loopback::start(|_| answering(200));
    let port = server.addr().port();
    let sink = hook(&format!("https://localhost:{port}/secret-path"), json!({}));
    let said = sink.deliver(&event(1)).await.expect_err("refused").to_string();
    assert!(said.contains("localhost is at") && said.contains("loopback"), "{said}");
    assert!(!said.contains("secret-path"), "{said}");
    let allowed = hook(&format!("http://localhost:{port}/"), json!({"allow": ["localhost"]}));
    allowed.deliver(&event(1)).await.expect("allowed by name");
    assert_eq!(server.stats().requests, 1);
}

#[tokio::test]
async fn a_template_is_a_request_of_its_own() {
    let server = Loopback::start(|_| answering(200));
    let config = json!({
        "url": server.url("/bot-token/send"), "method": "PUT", "allow": ["127.0.0.1"],
        "headers": {"authorization": "Bearer abc"},
        "body": r#"{"chat_id": 5, "text": "{title}: {text}", "quiet": false}"#,
    });
    let found: Found =
        [("url", server.url("/bot-token/send")), ("headers.authorization", "Bearer abc".into())]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
    let sink = HttpSink::new("chat", &serde_json::from_value(config).expect("a configuration"), &found);
    let sink = sink.expect("a sink");
    assert!(!sink.takes("alert.raised"), "only what names it");
    sink.deliver(&event(7)).await.expect("taken");
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("PUT", "/bot-token/send"));
    assert_eq!(seen.header("authorization"), Some("Bearer abc"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    assert_eq!(body, json!({"chat_id": 5, "text": "Odds fell 7: 4.2 → 3.1", "quiet": false}));
}

#[tokio::test]
async fn a_template_has_the_same_id_on_every_try_unless_it_has_its_own() {
    let server = Loopback::start(|seen| answering(if seen.n == 1 { 500 } else { 200 }));
    let sink = |headers: Value| {
        let url = server.url("/send");
        let config = json!({ "url": url, "allow": ["127.0.0.1"], "headers": headers, "body": "{}" });
        let own = headers.as_object().into_iter().flatten();
        let own =
            own.map(|(name, value)| (format!("headers.{name}"), value.as_str().expect("text").to_owned()));
        let found: Found = own.chain([("url".to_owned(), url)]).collect();
        HttpSink::new("chat", &serde_json::from_value(config).expect("a configuration"), &found)
            .expect("a sink")
    };
    let plain = sink(json!({}));
    assert!(plain.deliver(&event(7)).await.is_err(), "refused at first");
    plain.deliver(&event(7)).await.expect("taken");
    plain.deliver(&event(8)).await.expect("taken");
    sink(json!({ "Idempotency-Key": "mine" })).deliver(&event(9)).await.expect("taken");
    let seen = server.seen();
    let ids: Vec<_> = seen.iter().map(|seen| seen.header("idempotency-key").expect("an id")).collect();
    let (seven, eight) = (event(7).id.to_string(), event(8).id.to_string());
    assert_eq!(ids, [seven.as_str(), &seven, &eight, "mine"]);
}
