//! A change of plan that comes between something done in the store and the news of it is not lost: a poll that was just
//! committed did not know of it, nor does a claim whose answer is still on its way.

mod support;
#[path = "support/withholding.rs"]
mod withholding;

use std::sync::Arc;

use serde_json::json;
use stakeout_core::Span;
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Engine, EngineConfig};
use stakeout_sim::{Act, Loopback};
use support::{items, json_source, watching, within};
use withholding::Withholding;

#[tokio::test]
async fn a_poll_that_is_asked_for_just_after_a_commit_is_made() {
    let server = Loopback::start(|_| Act::json(&items(&[("x", 1)])));
    let store = Arc::new(Withholding::new());
    let source = json_source("s", watching(&server.url("/{id}"), json!({"every": "1h", "ids": ["a", "b"]})));
    let fetch = Arc::new(HttpFetch::new().expect("client"));
    let mut config = EngineConfig::new(store.clone(), vec![source], fetch);
    config.keep = Span::hours(2);
    let engine = Engine::start(config).await.expect("start");
    let control = engine.control();
    control.poll_now("s", "b").await.expect("asked");
    within(control.polled().wait_for(|polled| *polled == 1)).await.expect("the engine lives");
    store.withhold("commit");
    control.poll_now("s", "a").await.expect("asked");
    within(store.done()).await;
    control.poll_now("s", "a").await.expect("asked");
    // Changes are taken in one after the other: whoever lets go of this one has heard of the other.
    let let_go = store.once_more("release");
    control.poll_now("s", "b").await.expect("asked");
    within(let_go).await;
    store.answer();
    within(server.requests_reached(4)).await;
    let asked_for_a = server.seen().iter().filter(|seen| seen.path == "/a").count();
    assert_eq!(asked_for_a, 2);
    within(engine.shutdown()).await.expect("clean shutdown");
}

#[tokio::test]
async fn a_poll_that_is_asked_for_while_a_claim_is_answered_is_made() {
    let server = Loopback::start(|_| Act::json(&items(&[("x", 1)])));
    let store = Arc::new(Withholding::new());
    let source = json_source("s", watching(&server.url("/{id}"), json!({"every": "1h", "ids": ["a", "b"]})));
    let fetch = Arc::new(HttpFetch::new().expect("client"));
    // Every target is within reach, and held until it is due.
    let mut config = EngineConfig::new(store.clone(), vec![source], fetch);
    config.keep = Span::hours(2);
    config.ahead = Span::hours(2);
    store.withhold("claim");
    let engine = Engine::start(config).await.expect("start");
    within(store.done()).await;
    let told = store.once_more("poll_now");
    engine.control().poll_now("s", "a").await.expect("asked");
    within(told).await;
    store.answer();
    within(server.requests_reached(1)).await;
    assert_eq!(server.seen()[0].path, "/a");
    within(engine.shutdown()).await.expect("clean shutdown");
}
