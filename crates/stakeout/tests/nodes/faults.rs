//! The database, the network or the clock is not as it should be. After each: nothing lost, nothing twice, the target is
//! polled again in time, and the report names the gap.

use std::time::{Duration, Instant};

use stakeout_store::conformance::server::PostgresServer;
use tokio::runtime::Runtime;

use crate::proxy::Proxy;
use crate::support::{LEASE_MS, Node, Site, until, until_within, within};
use crate::truth::{Gap, INTERVAL_MS, SOON, Truth, some_polls};

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
        let gap = Gap::begins(&eye);
        server.crash_and_restart();
        let polls = eye.polls();
        let took = until_within(SOON, "it is polled again", || eye.polls() > polls);
        println!("polled again {took:?} after the restart; {}", gap.is_named(&eye));
    }
    some_polls(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 5, "too few states to check");
}

const MINUTE: Duration = Duration::from_secs(60);
/// Calls that were made just before the way was open again are given up after half a minute.
const AFTER_SILENCE: Duration = Duration::from_secs(45);

#[test]
fn a_database_out_of_reach_for_a_minute_is_waited_for() {
    let Some(site) = Site::new() else { return };
    let proxy = Proxy::to(PostgresServer::shared().expect("it was there").socket());
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let way = proxy.url(&site.database);
    let mut nodes = ["one", "two"].map(|name| site.odd_node(name, &way, &source, &[]));
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    some_polls(&eye, &mut truth);
    let gap = Gap::begins(&eye);
    // Nobody is told: every call under way waits for an answer until it is given up.
    proxy.cut();
    let polls = eye.polls();
    let away = Instant::now();
    until_within(2 * MINUTE, "a minute has passed", || away.elapsed() > MINUTE);
    assert!(eye.polls() <= polls + 1, "nothing can have been committed");
    proxy.open();
    let took = until_within(AFTER_SILENCE, "it is polled again", || eye.polls() > polls + 1);
    some_polls(&eye, &mut truth);
    for node in &mut nodes {
        assert!(node.child.try_wait().expect("looked").is_none(), "it goes on");
        node.stop();
    }
    println!("polled again after {took:?}; {}", gap.is_named(&eye));
    assert!(truth.compare(&eye) > 1, "too few states to check");
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
        let gap = Gap::begins(&eye);
        let took = until_within(SOON, "the other one takes over", || {
            eye.holder().as_deref() == Some(names[1 - cut]) && eye.polls() > polls + 3
        });
        let named = gap.is_named(&eye);
        println!("round {round}: {holder} was cut off, {} took over after {took:?}; {named}", names[1 - cut]);
        proxies[cut].open();
    }
    some_polls(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 5, "too few states to check");
}

/// The commit got in, but its answer was lost with the connection. Whoever tries again hears that it is in and knows no
/// more: the target is given back, and nobody waits for its lease, which is long here.
#[test]
fn a_commit_whose_answer_is_lost_costs_no_lease() {
    let Some(site) = Site::new() else { return };
    let proxy = Proxy::to(PostgresServer::shared().expect("it was there").socket());
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let config = site.configure("one", &proxy.url(&site.database), "off", &source);
    let patient = std::fs::read_to_string(&config).expect("a configuration");
    let patient = patient.replace(&format!("lease = \"{LEASE_MS}ms\""), "lease = \"25s\"");
    std::fs::write(&config, patient).expect("written");
    let mut node = Node::start(&config);
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for round in 0..3 {
        some_polls(&eye, &mut truth);
        // Whoever has a question to ask before the commit waits for that answer: then once more.
        loop {
            proxy.deafen();
            let polls = eye.polls();
            if within(Duration::from_secs(2), || eye.polls() > polls).is_some() {
                break;
            }
            proxy.close();
            proxy.open();
            until_within(Duration::from_secs(180), "it goes on", || eye.polls() > polls);
        }
        proxy.close();
        let polls = eye.polls();
        proxy.open();
        // Far less than the lease, and enough for a busy machine.
        let took = until_within(Duration::from_secs(20), "it is polled again", || eye.polls() > polls);
        println!("round {round}: polled again after {took:?}");
    }
    some_polls(&eye, &mut truth);
    node.stop();
    assert!(node.logged().contains("it was committed before"), "that is what was tested");
    assert!(truth.compare(&eye) > 1, "too few states to check");
}
