//! A source's limits hold for all nodes together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{demo, serve};
use stakeout_sim::{Act, Loopback, Seen};

use crate::support::{Site, said, stakeout, until};
use crate::truth::Truth;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Time(i64::try_from(since.as_micros()).expect("before the year 294247"))
}

/// FPVTrackside answers one request at a time, and is asked so: by one node, and by another when that one is gone.
#[test]
fn fpvtrackside_sees_one_request_at_a_time_whoever_asks() {
    let Some(site) = Site::new() else { return };
    let upstream = Arc::new(demo(now()));
    upstream.set_latency(Span::ms(5));
    let server = serve(upstream, now);
    let source = format!("[source.track]\nkind = \"fpv\"\nurl = \"{}\"\n", server.url(""));
    let mut nodes = BTreeMap::from(["one", "two"].map(|name| (name, site.node(name, &source))));
    let eye = site.eye();
    let owner = || eye.texts("SELECT owner FROM leases WHERE name = 'source track'").pop();
    for round in 0..2 {
        until("somebody asks the source", || owner().is_some());
        let first = owner().expect("just now");
        let asked = server.stats().requests;
        until("it is asked", || owner().as_ref() == Some(&first) && server.stats().requests > asked + 30);
        let holders = "SELECT DISTINCT owner FROM targets WHERE owner IS NOT NULL";
        until("nobody else holds a target, once the leases of the dead have run out", || {
            eye.texts(holders) == [first.clone()]
        });
        let mut gone = nodes.remove(first.as_str()).expect("one of ours");
        if round == 0 {
            gone.signal("-KILL");
            gone.wait();
            nodes.insert("three", site.node("three", &source));
        } else {
            gone.stop();
        }
        until("another one asks", || owner().is_some_and(|owner| owner != first));
    }
    let asked = server.stats().requests;
    until("it is asked again", || {
        owner();
        server.stats().requests > asked + 30
    });
    nodes.values_mut().for_each(|node| node.stop());
    assert_eq!(server.stats().max_concurrent, 1, "one request at a time");
    // Two requests of one node or of two: never closer than the gap of five milliseconds, less what a busy machine
    // makes of it on the way.
    let seen = server.seen();
    let close = seen
        .windows(2)
        .filter(|two| two[1].at_instant - two[0].at_instant < Duration::from_millis(3))
        .count();
    assert!(close * 20 < seen.len(), "{close} of {} came too close", seen.len());
}

/// A pass of the same configuration comes by its own name: the node that runs keeps its claims and its source, and nobody
/// asks beside it.
#[test]
fn a_pass_beside_a_running_node_takes_nothing_from_it() {
    let Some(site) = Site::new() else { return };
    let upstream = Arc::new(demo(now()));
    upstream.set_latency(Span::ms(5));
    let server = serve(upstream, now);
    let truth = Truth::new(600_000);
    // Asked so rarely that its claim is not given back meanwhile: only somebody else could have moved its token.
    let sources =
        format!("[source.track]\nkind = \"fpv\"\nurl = \"{}\"\n{}", server.url(""), truth.source("15s"));
    let mut node = site.node("one", &sources);
    let eye = site.eye();
    let lane = || eye.texts("SELECT owner FROM leases WHERE name = 'source track'");
    let claim = "SELECT owner || ' ' || fence FROM targets t JOIN sources s ON s.id = t.source_id WHERE s.name = 'script'";
    until("the node asks both", || server.stats().requests > 30 && !eye.texts(claim).is_empty());
    let held = eye.texts(claim);
    for _ in 0..3 {
        said(&stakeout(&site.database, site.dir.path(), &["poll", "-c", "one.toml", "--limit", "5s"]));
        assert_eq!(lane(), ["one"], "the source is still the node's");
        assert_eq!(eye.texts(claim), held, "and so is the claim, under the same token");
        let asked = server.stats().requests;
        until("the node goes on", || server.stats().requests > asked + 10);
    }
    assert!(!node.logged().contains("another node asks the source"), "it never lost it");
    node.stop();
    assert_eq!(server.stats().max_concurrent, 1, "one request at a time");
    assert_eq!(eye.texts("SELECT node FROM grants WHERE until_us > 0"), [""; 0], "both have left");
}

const PER_SECOND: f64 = 60.0;
const BURST: usize = 10;
const PLACES: usize = 4;

fn many(server: &Loopback, node: &str) -> String {
    let ids: Vec<String> = (0..40).map(|n| format!("\"t{n}\"")).collect();
    format!(
        r#"
[source.many]
kind = "json"
url = "{url}"
ids = [{ids}]
every = "250ms"
records = "items"
key = "id"
fields = ["value"]
headers = {{ x-node = "{node}" }}
limits = {{ requests_per_second = {PER_SECOND}, burst = {BURST}, concurrency = {PLACES}, timeout = "1s" }}
"#,
        url = server.url("/state/{id}"),
        ids = ids.join(", "),
    )
}

fn asked_by(seen: &[Seen]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for seen in seen {
        *counts.entry(seen.header("x-node").unwrap_or("?").to_owned()).or_default() += 1;
    }
    counts
}

fn since(server: &Loopback, began: Instant) -> Vec<Seen> {
    server.seen().into_iter().filter(|seen| seen.at_instant >= began).collect()
}

/// Forty targets want 160 requests per second and are given 60, by two nodes: rate, burst and concurrency are those of
/// one. A node that joins takes its part of the work; what it leaves behind is taken over.
#[test]
fn rate_burst_and_concurrency_hold_for_all_nodes_together() {
    let Some(site) = Site::new() else { return };
    let state = serde_json::json!({"items": [{"id": 1, "value": 1}]});
    let server = Loopback::start(move |_| Act::json(&state).after_ms(20));
    let mut one = site.node("one", &many(&server, "one"));
    let eye = site.eye();
    until("one polls", || eye.polls() > 60);
    let mut two = site.node("two", &many(&server, "two"));
    let shares = || eye.texts("SELECT node FROM grants WHERE rate > 20 AND places > 0");
    until("both have a good part of the rate", || shares().len() == 2);
    let began = Instant::now();
    let polls = eye.polls() + 5 * PER_SECOND as i64;
    until("both poll for a while", || eye.polls() > polls);
    let took = began.elapsed().as_secs_f64();
    let both = since(&server, began);
    two.stop();
    let left = Instant::now();
    let polls = eye.polls() + PER_SECOND as i64;
    until("one polls alone", || eye.polls() > polls);
    let alone = since(&server, left + Duration::from_secs(1));
    one.stop();

    let shares = asked_by(&both);
    println!(
        "{} requests in {took:.1} s: {shares:?}; at most {} at once",
        both.len(),
        server.stats().max_concurrent
    );
    assert!(shares.values().all(|count| *count * 4 > both.len()), "both work: {shares:?}");
    assert!(both.len() as f64 > took * PER_SECOND * 0.6, "not much of the rate is wasted");
    assert!(asked_by(&alone).keys().all(|node| node == "one"), "what was left behind is taken over");
    assert!(server.stats().max_concurrent <= PLACES, "{} at once", server.stats().max_concurrent);
    // In no second more than the rate and one burst; a request or two may have been held up on their way.
    let all = server.seen();
    for (n, first) in all.iter().enumerate() {
        let second =
            all[n..].iter().take_while(|s| s.at_instant - first.at_instant < Duration::from_secs(1)).count();
        assert!(second <= PER_SECOND as usize + BURST + 3, "{second} requests in one second");
    }
}

/// A live setting makes a lane of a source that two nodes ask, and parts of it again: from its first request on, the lane is
/// one node's, and at no time are there more requests under way than there may be.
#[test]
fn a_source_that_becomes_a_lane_is_asked_by_one_node_from_then_on() {
    let Some(site) = Site::new() else { return };
    let state = serde_json::json!({"items": [{"id": 1, "value": 1}]});
    let server = Loopback::start(move |_| Act::json(&state).after_ms(200));
    let mut nodes = ["one", "two"].map(|name| site.node(name, &many(&server, name)));
    let eye = site.eye();
    let asking = |began: Instant| asked_by(&since(&server, began));
    let lane = || eye.texts("SELECT owner FROM leases WHERE name = 'source many' AND owner IS NOT NULL");
    let set = |value: &str| {
        let words = ["settings", "set", "source.many.concurrency", value, "-c", "one.toml"];
        said(&stakeout(&site.database, site.dir.path(), &words));
    };
    for _ in 0..2 {
        let began = Instant::now();
        until("both ask", || asking(began).values().filter(|count| **count > 3).count() == 2);
        set("1");
        until("it is one node's", || lane().len() == 1);
        let alone = Instant::now();
        until("that one asks", || asking(alone).values().sum::<usize>() > 8);
        let seen = since(&server, alone);
        let seen = &seen[..8];
        assert_eq!(asked_by(seen).len(), 1, "nobody else does: {:?}", asked_by(seen));
        // The next is sent when the answer before is there, and that takes a fifth of a second.
        let least = seen.windows(2).map(|two| two[1].at_instant - two[0].at_instant).min();
        assert!(least > Some(Duration::from_millis(100)), "one after the other: {least:?}");
        set(&PLACES.to_string());
        until("the whole is given up", || lane().is_empty());
    }
    nodes.iter_mut().for_each(|node| node.stop());
    assert!(server.stats().max_concurrent <= PLACES, "{} at once", server.stats().max_concurrent);
}
