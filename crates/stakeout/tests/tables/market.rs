//! The simulated market knows what opened: everything it expects is told, and nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value as Json, json};
use stakeout_core::{Failure, Request, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Fetch};
use stakeout_sim::resy::{Asked, Bucket, Look, Market, MarketConfig, Reply, Upstream, Watch};
use stakeout_store::Validators;

use crate::support::{START, World, start};

/// The simulated upstream, asked in this process, with a note of every look.
struct InProcess {
    upstream: Upstream,
    looks: Mutex<Vec<Look>>,
}

#[async_trait]
impl Fetch for InProcess {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let now = clock.now();
        let asked: Json = serde_json::from_slice(&request.body).expect("a JSON body");
        let filter = &asked["slot_filter"];
        if asked["page"] == 1 && filter["party_size"] == 2 {
            let key = format!(
                "{}_{}",
                filter["day"].as_str().expect("a day"),
                filter["time_filter"].as_str().expect("a time")
            );
            let bucket = Bucket::parse(&key).expect("a bucket");
            self.looks.lock().expect("lock").push(Look { at: now, bucket });
        }
        let asked = Asked { path: "/3/venuesearch/search", headers: &request.headers, body: &request.body };
        let Reply::Answer(answer) = self.upstream.answer(asked, now) else {
            panic!("no faults were asked for")
        };
        assert_eq!(answer.status, 200);
        let response = Response { status: 200, body: answer.body, content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

fn check(seed: u64, more: fn(&mut MarketConfig)) {
    let mut config = MarketConfig::new(seed).during(start(), Span::hours(10));
    more(&mut config);
    let slot_cap = config.slot_cap.unwrap_or(0);
    let watch_box = config.area;
    let upstream = Upstream::new(Market::new(config));
    let fetch = Arc::new(InProcess { upstream, looks: Mutex::default() });
    let watching = json!({
        "market": { "box": watch_box, "zone": "America/New_York" }, "days": 2, "slot_cap": slot_cap,
        "budget": "60000/min", "min_interval": "2min", "max_interval": "2min", "limits": { "jitter": "0ms" },
    });
    let (events, _) = World::at(START).run(&watching, Span::mins(90), fetch.clone(), async |_| {});
    let looks = fetch.looks.lock().expect("lock").clone();
    let truth = fetch.upstream.market().truth();
    let expected: BTreeSet<(String, String)> = truth
        .expected(&Watch::default(), &looks)
        .into_iter()
        .map(|drop| (drop.slot.to_string(), minute(drop.seen)))
        .collect();
    let told: BTreeSet<(String, String)> = events
        .iter()
        .map(|event| {
            let text = |field: &str| event.data[field].as_str().expect("text");
            let slot = format!("venue {} at {}:00", text("venue_id"), text("start"));
            (slot, text("opened_at")[..16].to_owned())
        })
        .collect();
    assert!(!expected.is_empty(), "seed {seed}: only {} drops", expected.len());
    let missed: Vec<_> = expected.difference(&told).collect();
    let invented: Vec<_> = told.difference(&expected).collect();
    assert!(
        missed.is_empty() && invented.is_empty(),
        "seed {seed}: missed {missed:?}, invented {invented:?}"
    );
}

fn minute(at: Time) -> String {
    at.to_string()[..16].to_owned()
}

#[test]
fn every_drop_of_a_market_is_told_and_no_other() {
    check(1, |config| config.slot_cap = None);
}

#[test]
fn lists_that_are_cut_off_invent_no_drops() {
    check(4, |config| config.slot_cap = Some(3));
}
