//! A change of plan that comes between something done in the store and the news of it is not lost: a poll that was just
//! committed did not know of it, nor does a claim whose answer is still on its way.

mod support;
#[path = "support/withholding.rs"]
mod withholding;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use stakeout_core::cadence::Fixed;
use stakeout_core::{Failure, FieldType, Kind, Observation, Plan, Request, Response, Span, TargetSpec};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Engine, EngineConfig, Fetch};
use stakeout_sim::{Act, Loopback};
use stakeout_store::Validators;
use support::source::MadeUp;
use support::{items, json_source, watching, within};
use withholding::Withholding;

/// Two targets that are polled every hour and held in between.
fn two_targets() -> (Loopback, Arc<Withholding>, EngineConfig) {
    let server = Loopback::start(|_| Act::json(&items(&[("x", 1)])));
    let store = Arc::new(Withholding::new());
    let source = json_source("s", watching(&server.url("/{id}"), json!({"every": "1h", "ids": ["a", "b"]})));
    let fetch = Arc::new(HttpFetch::new().expect("client"));
    let mut config = EngineConfig::new(store.clone(), vec![source], fetch);
    config.keep = Span::hours(2);
    (server, store, config)
}

#[tokio::test]
async fn a_poll_that_is_asked_for_just_after_a_commit_is_made() {
    let (server, store, config) = two_targets();
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
async fn a_setting_that_changes_between_a_polls_plan_and_its_commit_holds_for_it() {
    let (server, store, config) = two_targets();
    let engine = Engine::start(config).await.expect("start");
    let control = engine.control();
    // The first answer of a target is compared with what is stored: its plan is made by then.
    store.withhold("records");
    control.poll_now("s", "a").await.expect("asked");
    within(store.done()).await;
    control.set_setting("source.s.every_ms", Some(json!(20))).await.expect("accepted");
    store.answer();
    // By the plan that the poll had made, the next one is in an hour.
    within(async {
        for requests in 2.. {
            server.requests_reached(requests).await;
            if server.seen().iter().filter(|seen| seen.path == "/a").count() == 3 {
                break;
            }
        }
    })
    .await;
    within(engine.shutdown()).await.expect("clean shutdown");
}

#[tokio::test]
async fn a_poll_that_is_asked_for_while_a_claim_is_answered_is_made() {
    let (server, store, mut config) = two_targets();
    // Every target is within reach, and held until it is due.
    config.ahead = Span::hours(2);
    store.withhold("claim");
    let engine = Engine::start(config).await.expect("start");
    within(store.done()).await;
    engine.control().poll_now("s", "a").await.expect("asked");
    store.answer();
    within(server.requests_reached(1)).await;
    assert_eq!(server.seen()[0].path, "/a");
    within(engine.shutdown()).await.expect("clean shutdown");
}

/// Answers a catalogue of two documents; from then on the store withholds the answer to the next claim.
struct Library(Arc<Withholding>);

#[async_trait]
impl Fetch for Library {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        _: &FetchLimits,
        _: &Clock,
    ) -> Result<Answer, Failure> {
        if request.url == "catalogue" {
            self.0.withhold("claim");
        }
        let response =
            Response { status: 200, body: Bytes::from_static(b"{}"), content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

fn listed(_: &[Arc<Kind>], target: &TargetSpec, _: &[u8]) -> Result<Observation, Failure> {
    let documents = || ["a", "b"].map(|key| TargetSpec::new(key, "document")).to_vec();
    let targets = (target.role == "catalogue").then(documents);
    Ok(Observation { targets, ..Observation::complete(vec![]) })
}

#[tokio::test]
async fn what_a_pass_brings_to_light_is_polled_though_it_is_claimed_before_the_news_of_it() {
    let store = Arc::new(Withholding::new());
    let number = [("number", FieldType::Int)];
    let kinds = vec![support::source::kind("library", "documents", &number, vec![])];
    let catalogue = TargetSpec::new("catalogue", "catalogue");
    let plan = |_: &TargetSpec| Plan::Fixed(Fixed { every: Span::hours(1), eager: true, place: None });
    let source = Arc::new(MadeUp::new("library", kinds, catalogue, listed, plan));
    let config = EngineConfig::new(store.clone(), vec![source], Arc::new(Library(store.clone())));
    let answering = async {
        store.done().await;
        // The catalogue's poll lands meanwhile.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        // Whoever gave them back would find them again only when that is done.
        store.withhold("release");
        store.answer();
    };
    let passing = Engine::pass(config, Span::mins(1));
    let (report, ()) = within(async { tokio::join!(passing, answering) }).await;
    assert_eq!(report.expect("a pass").polled, 3);
}
