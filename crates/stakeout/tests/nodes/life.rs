//! The node that holds the target is killed or stopped at random moments, again and again; the other takes over when the
//! lease has run out.

use std::time::{Duration, Instant};

use stakeout_sim::SplitMix64;

use crate::support::{LEASE_MS, Node, Site, now_ms, until, until_within};
use crate::truth::{Gap, INTERVAL_MS, SEED, SOON, Truth};

/// Of these every third is a stop: the process comes back later and does not know that it was away.
const ROUNDS: usize = 6;

/// How often some node is killed, whatever it is doing.
const KILLS: usize = 100;

/// A random moment within a poll: spinning, because a sleep would always end at the same place.
fn spin(random: &mut SplitMix64) {
    let spin = Duration::from_micros(random.between(0, 2 * INTERVAL_MS * 1_000));
    let spinning = Instant::now();
    while spinning.elapsed() < spin {
        std::hint::spin_loop();
    }
}

#[test]
fn a_killed_or_stopped_node_loses_nothing_and_doubles_nothing() {
    let Some(site) = Site::new() else { return };
    let mut truth = Truth::new(3_000);
    let names = ["one", "two"];
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let configs = names.map(|node| site.configure(node, &site.database, "off", &source));
    let mut nodes = [Node::start(&configs[0]), Node::start(&configs[1])];
    let eye = site.eye();
    let mut random = SplitMix64::new(SEED);
    let mut waits_ms: Vec<u64> = Vec::new();
    let mut newest = 0;

    for round in 0..ROUNDS {
        until("somebody holds the target", || eye.holder().is_some());
        let polled = eye.polls() + random.between(60, 100) as i64;
        let began = now_ms();
        until("it is polled", || eye.polls() > polled);
        let holder = eye.holder().expect("held between its polls");
        let victim = names.iter().position(|name| **name == holder).expect("one of ours");
        let other = names[1 - victim];
        spin(&mut random);
        truth.calm_since(began);
        let stopped = round % 3 == 2;
        let gap = Gap::begins(&eye);
        nodes[victim].signal(if stopped { "-STOP" } else { "-KILL" });
        let lost = now_ms();
        let polls = eye.polls();
        until("the other one takes over", || eye.holder().as_deref() == Some(other) && eye.polls() > polls);
        waits_ms.push(now_ms() - lost);
        let how = if stopped { "stopped" } else { "killed" };
        println!("round {round}: {holder} {how}, {other} took over; {}", gap.is_named(&eye));
        if stopped {
            nodes[victim].signal("-CONT");
        } else {
            nodes[victim].wait();
            nodes[victim] = Node::start(&configs[victim]);
        }
        let seq = eye.number("SELECT max(seq)::text FROM events");
        assert!(seq >= newest, "sequence numbers went back");
        newest = seq;
    }
    let began = now_ms();
    let polled = eye.polls() + 50;
    until("life goes on", || eye.polls() > polled);
    truth.calm_since(began);
    nodes.iter_mut().for_each(Node::stop);
    println!("{ROUNDS} rounds; polled again after {waits_ms:?} ms");
    let longest = waits_ms.iter().max().copied().unwrap_or_default();
    assert!(longest < SOON.as_millis() as u64, "{waits_ms:?}");
    assert_eq!(eye.number("SELECT count(*)::text FROM targets WHERE owner IS NOT NULL"), 0, "all given back");
    assert!(truth.compare(&eye) > 10, "too few states to check");
}

/// A hundred times a node is killed, whichever, whatever it is doing, and comes back at once. In the end the log is the
/// truth: whatever was answered more often than nodes died is known, once.
#[test]
fn a_hundred_kills_leave_the_log_equal_to_the_truth() {
    let Some(site) = Site::new() else { return };
    let mut truth = Truth::new(1_500);
    let names = ["one", "two"];
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let configs = names.map(|node| site.configure(node, &site.database, "off", &source));
    let mut nodes = [Node::start(&configs[0]), Node::start(&configs[1])];
    let eye = site.eye();
    let mut random = SplitMix64::new(SEED + 1);
    until("it is polled", || eye.polls() > 5);
    let began = Instant::now();
    for round in 0..KILLS {
        let polls = eye.polls() + random.between(1, 12) as i64;
        until("it is polled", || eye.polls() > polls);
        spin(&mut random);
        // Mostly the one that polls, now and then the other, sometimes both.
        let holder = eye.holder();
        let holds = |n: usize| holder.as_deref() == Some(names[n]);
        let all = random.between(0, 10) == 0;
        let wrong_one = random.between(0, 4) == 0;
        truth.kill();
        for n in (0..2).filter(|n| all || holds(*n) != wrong_one) {
            nodes[n].signal("-KILL");
            nodes[n].wait();
            nodes[n] = Node::start(&configs[n]);
        }
        if round % 20 == 19 {
            println!(
                "{} kills in {:?}, {} events",
                round + 1,
                began.elapsed(),
                eye.number("SELECT count(*)::text FROM events")
            );
        }
    }
    let polls = eye.polls() + 50;
    until("life goes on", || eye.polls() > polls);
    nodes.iter_mut().for_each(Node::stop);
    let seqs = eye.texts("SELECT seq::text FROM events ORDER BY seq");
    assert!(seqs.len() > 50, "only {} events", seqs.len());
    assert!(truth.compare_answers(&eye) > 50, "too few states to check");
}

/// A node that is asked to stop gives its targets back, and the others hear of it: nobody waits for a lease.
#[test]
fn nodes_come_and_go_and_the_work_goes_on() {
    let Some(site) = Site::new() else { return };
    let mut truth = Truth::new(2_000);
    let names = ["one", "two"];
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let configs = names.map(|node| site.configure(node, &site.database, "off", &source));
    let mut nodes = [Node::start(&configs[0]), Node::start(&configs[1])];
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for _ in 0..4 {
        let began = now_ms();
        let polls = eye.polls() + 40;
        until("it is polled", || eye.polls() > polls);
        truth.calm_since(began);
        let mut holder = None;
        until("it is held", || {
            holder = eye.holder();
            holder.is_some()
        });
        let leaves = names.iter().position(|name| Some(*name) == holder.as_deref()).expect("one of ours");
        nodes[leaves].stop();
        let polls = eye.polls();
        let took =
            until_within(Duration::from_millis(LEASE_MS), "the other one goes on", || eye.polls() > polls);
        println!("{} left, polled again after {took:?}", names[leaves]);
        nodes[leaves] = Node::start(&configs[leaves]);
    }
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 1, "too few states to check");
}

/// Somebody brings the schema two steps further under a running node: it says so and goes, before it misunderstands
/// anything.
#[test]
fn a_running_node_leaves_when_the_schema_has_become_too_new() {
    let Some(site) = Site::new() else { return };
    let truth = Truth::new(2_000);
    let mut node = site.node("one", &truth.source(&format!("{INTERVAL_MS}ms")));
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    let further = "INSERT INTO schema_steps SELECT max(step) + 1 FROM schema_steps RETURNING step::text";
    assert_eq!(eye.texts(further).len(), 1);
    let polls = eye.polls() + 50;
    until("it goes on with the next schema", || eye.polls() > polls);
    assert_eq!(eye.texts(further).len(), 1);
    let mut ended = None;
    until("it goes", || {
        ended = node.child.try_wait().expect("looked");
        ended.is_some()
    });
    assert!(!ended.expect("just seen").success(), "that is a failure");
    assert!(node.logged().contains("this program knows versions up to"), "{}", node.logged());
}
