//! An engine that stops gives back what it was just claiming, so that nobody waits for a lease that nobody uses.
//!
//! The answer to a claim may come at two bad moments: when nobody takes it in any more, and when it is handed over to
//! somebody who does not look at it any more.

mod support;
#[path = "support/withholding.rs"]
mod withholding;

use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

use serde_json::json;
use stakeout_core::Span;
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Engine, EngineConfig, EngineHandle};
use stakeout_sim::{Act, Loopback};
use stakeout_store::{Store, TargetFilter};
use support::{items, json_source, watching, within};
use withholding::Withholding;

/// Two targets, polled once and held for an hour; a store that can withhold an answer, and an upstream that can, too.
struct Scene {
    server: Loopback,
    store: Arc<Withholding>,
    engine: EngineHandle,
    /// One for each request that may be answered.
    answers: mpsc::Sender<()>,
}

async fn both_are_held() -> Scene {
    let (answers, allowed) = mpsc::channel();
    let allowed = Mutex::new(allowed);
    let server = Loopback::start(move |_| {
        // Nobody is left to allow anything when the test has failed.
        let _ = allowed.lock().expect("one at a time").recv();
        Act::json(&items(&[("x", 1)]))
    });
    answers.send(()).expect("the upstream lives");
    answers.send(()).expect("the upstream lives");
    let store = Arc::new(Withholding::new());
    let more = json!({"ids": ["a", "b"], "every": "1h", "limits": {"timeout": "20s"}});
    let source = json_source("s", watching(&server.url("/{id}"), more));
    let fetch = Arc::new(HttpFetch::new().expect("client"));
    let mut config = EngineConfig::new(store.clone(), vec![source], fetch);
    config.keep = Span::hours(2);
    let engine = Engine::start(config).await.expect("start");
    for key in ["a", "b"] {
        engine.control().poll_now("s", key).await.expect("asked");
    }
    within(engine.control().polled().wait_for(|polled| *polled >= 2)).await.expect("the engine lives");
    Scene { server, store, engine, answers }
}

/// Who holds which target.
async fn holders(store: &Withholding) -> Vec<(String, Option<String>)> {
    let rows =
        store.inner.targets(&TargetFilter { limit: 10, ..TargetFilter::default() }).await.expect("targets");
    rows.into_iter().map(|row| (row.spec.key, row.owner)).collect()
}

fn nobody_holds_anything() -> Vec<(String, Option<String>)> {
    vec![("a".to_owned(), None), ("b".to_owned(), None)]
}

#[tokio::test]
async fn a_claim_that_is_answered_when_nobody_takes_it_in_any_more_is_given_back() {
    let Scene { store, engine, .. } = both_are_held().await;
    store.withhold("claim");
    engine.control().poll_now("s", "b").await.expect("asked");
    within(store.done()).await;
    let stopping = engine.shutdown();
    let answering = async {
        // Whoever gives back what it holds has closed its door before.
        store.once_more("release").await;
        store.answer();
    };
    let (stopped, ()) = within(async { tokio::join!(stopping, answering) }).await;
    stopped.expect("clean shutdown");
    assert_eq!(holders(&store).await, nobody_holds_anything());
}

#[tokio::test]
async fn a_claim_that_was_handed_over_and_not_taken_in_is_given_back() {
    let Scene { server, store, engine, answers } = both_are_held().await;
    engine.control().poll_now("s", "a").await.expect("asked");
    within(server.requests_reached(3)).await;
    store.withhold("claim");
    engine.control().poll_now("s", "b").await.expect("asked");
    within(store.done()).await;
    let mut stopping = pin!(engine.shutdown());
    // It has been told to stop when it was polled once, and waits for the poll in flight.
    let begun = std::future::poll_fn(|cx| Poll::Ready(stopping.as_mut().poll(cx).is_pending())).await;
    assert!(begun, "a poll is in flight");
    let answering = async {
        store.answer();
        // Whoever asks when to look next has handed over what it found.
        store.once_more("next_wake").await;
        answers.send(()).expect("the upstream lives");
    };
    let (stopped, ()) = within(async { tokio::join!(stopping, answering) }).await;
    stopped.expect("clean shutdown");
    assert_eq!(holders(&store).await, nobody_holds_anything());
}
