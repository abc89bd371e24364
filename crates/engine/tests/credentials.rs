//! What a poll learns about the source's credentials is told once, also where the poll that learned it comes to nothing.

#[allow(dead_code, reason = "it can withhold answers, too")]
#[path = "support/withholding.rs"]
mod withholding;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use stakeout_core::{Failure, FailureClass, Request, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, Fetch, virtual_runtime};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};
use stakeout_store::{EventFilter, Store, Validators};
use withholding::Withholding;

/// Answers nothing but refusals from one minute to another.
struct Refusing {
    from: Time,
    to: Time,
}

#[async_trait]
impl Fetch for Refusing {
    async fn fetch(
        &self,
        _: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        if (self.from..self.to).contains(&clock.now()) {
            return Err(Failure::new(FailureClass::Forbidden, "simulated"));
        }
        let venue = json!({ "id": 1, "name": "Venue", "availability": { "slots": [] } });
        let body =
            json!({ "meta": { "total": 1, "total_pages": 1 }, "search": { "hits": [venue] } }).to_string();
        let response = Response { status: 200, body: body.into(), content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

/// The alerts told and what is remembered in the end, when this many polls that learned something were refused.
fn watched(poisoned: u32) -> (usize, serde_json::Value) {
    let start = Time::parse("2026-02-26T19:00:00Z").expect("a time");
    let config = json!({ "days": 1, "time_slots": ["20:30"], "party_sizes": [2], "min_interval": "1min",
        "max_interval": "1min", "limits": { "jitter": "0ms" } });
    let config: TablesConfig = serde_json::from_value(config).expect("a configuration");
    let credentials = Credentials { api_key: "key".into(), auth_token: "token".into() };
    let source = TablesSource::new("nyc", &config, credentials).expect("a source");
    let store = Arc::new(Withholding::new());
    store.poison(poisoned);
    let upstream = Refusing { from: start + Span::mins(5), to: start + Span::mins(40) };
    let (runtime, clock) = virtual_runtime(start).expect("a runtime");
    let mut engine = EngineConfig::new(store.clone(), vec![Arc::new(source)], Arc::new(upstream));
    engine.clock = clock.clone();
    runtime.block_on(async {
        let engine = Engine::start(engine).await.expect("start");
        clock.sleep_until(start + Span::mins(120)).await;
        engine.shutdown().await.expect("stop");
        let events = store.events(0, &EventFilter::default(), 1_000).await.expect("events");
        let alerts = events.iter().filter(|event| event.event_type == "tables.credentials").count();
        let remembered = store.kv("credentials", "nyc").await.expect("read").expect("remembered");
        (alerts, remembered.value["refused"].clone())
    })
}

#[test]
fn a_refusal_is_told_once_however_many_polls_come_to_nothing() {
    assert_eq!(watched(0), (1, json!(false)), "and forgotten when it is over");
    assert_eq!(watched(1), (1, json!(false)));
    assert_eq!(watched(3), (1, json!(false)));
}
