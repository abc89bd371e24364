//! The database, the network or the clock is not as it should be. After each: nothing lost, nothing twice, the target is
//! polled again in time, and the report names the gap.

use std::time::{Duration, Instant};

use stakeout_sim::{Act, Loopback, SplitMix64};
use stakeout_store::conformance::server::PostgresServer;
use tokio::runtime::Runtime;

use crate::faketime::faketime;
use crate::proxy::Proxy;
use crate::support::{Eye, LEASE_MS, Node, Site, now_ms, until, until_within};
use crate::truth::{INTERVAL_MS, SEED, TIMEOUT_MS, Truth};

/// The lease, one request time-out of the successor, a look, and a machine that has other things to do.
const SOON: Duration = Duration::from_millis(LEASE_MS + TIMEOUT_MS + 1_000 + 5_000);

/// Lets the nodes poll for a while.
fn some_polls(eye: &Eye, truth: &mut Truth) {
    let began = now_ms();
    let polls = eye.polls() + 40;
    until("it is polled", || eye.polls() > polls);
    truth.calm_since(began);
}

/// The same, all by one node: a hand-over between clocks that differ waits until the target is due by the other one.
fn some_polls_by_one(eye: &Eye, truth: &mut Truth) {
    loop {
        let (began, holder) = (now_ms(), eye.holder());
        let polls = eye.polls() + 40;
        until("it is polled", || eye.polls() > polls);
        if holder.is_some() && holder == eye.holder() {
            return truth.calm_since(began);
        }
    }
}

/// What the report says about the time that nobody polled.
fn longest_miss(eye: &Eye) -> (i64, Vec<String>) {
    let missed = eye.number("SELECT max(missed)::text FROM polls");
    (missed, eye.texts("SELECT DISTINCT missed_cause FROM polls WHERE missed_cause IS NOT NULL"))
}

#[test]
fn a_database_that_crashes_comes_back_to_nodes_that_go_on() {
    let Some(server) = PostgresServer::another() else { return };
    let runtime = Runtime::new().expect("a runtime");
    let database = runtime.block_on(server.create());
    let site = Site { dir: tempfile::tempdir().expect("a directory"), database };
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let mut nodes = ["one", "two"].map(|name| site.node(name, &source));
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for _ in 0..3 {
        some_polls(&eye, &mut truth);
        truth.kill();
        server.crash_and_restart();
        let polls = eye.polls();
        let took = until_within(SOON, "it is polled again", || eye.polls() > polls);
        println!("polled again {took:?} after the restart");
    }
    some_polls(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 5, "too few states to check");
}

#[test]
fn a_database_out_of_reach_is_waited_for() {
    let Some(site) = Site::new() else { return };
    let proxy = Proxy::to(PostgresServer::shared().expect("it was there").socket());
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let way = proxy.url(&site.database);
    let mut nodes = ["one", "two"].map(|name| site.odd_node(name, &way, &source, &[]));
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    some_polls(&eye, &mut truth);
    proxy.close();
    let polls = eye.polls();
    let away = Instant::now();
    until("the lease has run out twice", || {
        eye.polls();
        away.elapsed() > Duration::from_millis(2 * LEASE_MS)
    });
    assert!(eye.polls() <= polls + 1, "nothing can have been committed");
    proxy.open();
    let took = until_within(SOON, "it is polled again", || eye.polls() > polls + 1);
    some_polls(&eye, &mut truth);
    for node in &mut nodes {
        assert!(node.child.try_wait().expect("looked").is_none(), "it goes on");
        node.stop();
    }
    let (missed, causes) = longest_miss(&eye);
    println!("polled again after {took:?}; {missed} polls missed, because of {causes:?}");
    // Two leases at 40 ms each.
    assert!(missed as u64 > LEASE_MS / INTERVAL_MS && !causes.is_empty(), "the report names the gap");
    assert!(truth.compare(&eye) > 2, "too few states to check");
}

/// One node's cable is pulled. It cannot know that its lease has run out but by its clock; the other one takes over,
/// and what the first one says when it is back is not heard.
#[test]
fn a_node_that_is_cut_off_is_replaced_and_not_heard_any_more() {
    let Some(site) = Site::new() else { return };
    let socket = PostgresServer::shared().expect("it was there").socket();
    let proxies = [Proxy::to(socket.clone()), Proxy::to(socket)];
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let names = ["one", "two"];
    let mut nodes: Vec<Node> = names
        .iter()
        .zip(&proxies)
        .map(|(name, proxy)| site.odd_node(name, &proxy.url(&site.database), &source, &[]))
        .collect();
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for round in 0..4 {
        some_polls(&eye, &mut truth);
        let mut holder = None;
        until("it is held", || {
            holder = eye.holder();
            holder.is_some()
        });
        let holder = holder.expect("just seen");
        let cut = names.iter().position(|name| **name == holder).expect("one of ours");
        if round % 2 == 0 {
            proxies[cut].cut()
        } else {
            proxies[cut].close()
        }
        let polls = eye.polls();
        let took = until_within(SOON, "the other one takes over", || {
            eye.holder().as_deref() == Some(names[1 - cut]) && eye.polls() > polls + 3
        });
        println!("round {round}: {holder} was cut off, {} took over after {took:?}", names[1 - cut]);
        proxies[cut].open();
    }
    some_polls(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(longest_miss(&eye).1.contains(&"lease_lost".to_owned()), "the report names the gap");
    assert!(truth.compare(&eye) > 5, "too few states to check");
}

/// Two nodes whose clocks are four seconds apart agree on who holds what; due times are where each of them believes, so
/// whoever gets a target from a node that is ahead waits out the difference.
#[test]
#[ignore = "a state shown for two seconds can go unseen after a take-over between such clocks"]
fn clocks_that_differ_by_four_seconds_change_nothing_while_one_node_has_a_target() {
    let Some(site) = Site::new() else { return };
    if faketime("+0s").is_none() {
        return;
    }
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let start = |name: &str, ahead: &str| {
        let variables = faketime(ahead).expect("looked for above");
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        site.odd_node(name, &site.database, &source, &variables)
    };
    let names = [("one", "+2s"), ("two", "-2s")];
    let mut nodes = names.map(|(name, ahead)| start(name, ahead));
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for round in 0..4 {
        some_polls_by_one(&eye, &mut truth);
        let mut holder = None;
        until("it is held", || {
            holder = eye.holder();
            holder.is_some()
        });
        let victim =
            names.iter().position(|(name, _)| Some(*name) == holder.as_deref()).expect("one of ours");
        nodes[victim].signal("-KILL");
        nodes[victim].wait();
        let polls = eye.polls();
        // Two seconds of difference may be waited for by whoever believes that it is not due yet.
        let took = until_within(SOON + Duration::from_secs(4), "the other one takes over", || {
            eye.polls() > polls + 3
        });
        println!("round {round}: {} took over after {took:?}", names[1 - victim].0);
        nodes[victim] = start(names[victim].0, names[victim].1);
    }
    some_polls_by_one(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 5, "too few states to check");
}

/// A source whose every answer is another: every poll is a commit with records, history and an event.
fn busy(name: &str, server: &Loopback) -> String {
    format!(
        r#"
[source.{name}]
kind = "json"
url = "{url}"
every = "20ms"
records = "items"
key = "id"
fields = ["value"]
history = ["value"]
limits = {{ requests_per_second = 1000, burst = 100, timeout = "500ms" }}
"#,
        url = server.url("/state"),
    )
}

/// How long somebody has been waiting for a lock.
const WAITING_MS: &str =
    "SELECT max(extract(epoch FROM clock_timestamp() - query_start) * 1000)::bigint::text
    FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Wherever in its commit a node stops, nobody waits for it: no lock outlives a call.
#[test]
fn a_node_that_stands_still_in_a_commit_holds_up_nobody() {
    let Some(site) = Site::new() else { return };
    let count = std::sync::atomic::AtomicU64::new(0);
    let server = Loopback::start(move |_| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let items: Vec<_> = (0..200).map(|id| serde_json::json!({"id": id, "value": n + id})).collect();
        Act::json(&serde_json::json!({ "items": items }))
    });
    let mut one = site.node("one", &busy("first", &server));
    let mut two = site.node("two", &busy("second", &server));
    let eye = site.eye();
    let polls = |source: &str| {
        eye.number(&format!(
            "SELECT sum(poll_no)::text FROM targets t JOIN sources s ON s.id = t.source_id WHERE s.name = '{source}'"
        ))
    };
    until("both poll", || polls("first") > 5 && polls("second") > 5);
    let mut random = SplitMix64::new(SEED);
    let mut longest_ms = 0;
    for _ in 0..40 {
        let spin = Duration::from_micros(random.between(0, 60_000));
        let spinning = Instant::now();
        while spinning.elapsed() < spin {
            std::hint::spin_loop();
        }
        one.signal("-STOP");
        let before = polls("second");
        until_within(Duration::from_secs(10), "the other one goes on", || {
            longest_ms = longest_ms.max(eye.number(WAITING_MS));
            polls("second") > before + 2
        });
        one.signal("-CONT");
        let before = polls("first");
        until("it goes on itself", || polls("first") > before);
    }
    println!("nobody waited longer than {longest_ms} ms for a lock");
    assert!(longest_ms < 3_000, "{longest_ms} ms");
    one.stop();
    two.stop();
}
