//! Clocks that differ, and clocks that are set. All nodes go by the database's, so nobody notices.

use std::path::Path;

use crate::faketime::{faketime, faketime_of};
use crate::support::{Eye, Node, Site, until, until_within};
use crate::truth::{Gap, INTERVAL_MS, SOON, Truth, some_polls};

fn holder(eye: &Eye, names: &[&str]) -> usize {
    let mut holder = None;
    until("it is held", || {
        holder = eye.holder();
        holder.is_some()
    });
    names.iter().position(|name| Some(*name) == holder.as_deref()).expect("one of ours")
}

/// Two nodes whose clocks are four seconds apart agree on who holds what, and on what is due: after each kill the other
/// one takes over within the lease and a time-out, and nothing is lost or told twice.
#[test]
fn nodes_whose_clocks_differ_by_four_seconds_take_over_from_each_other_in_time() {
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
    let (names, ahead) = (["one", "two"], ["+2s", "-2s"]);
    let mut nodes = [0, 1].map(|n| start(names[n], ahead[n]));
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for round in 0..4 {
        some_polls(&eye, &mut truth);
        let victim = holder(&eye, &names);
        let gap = Gap::begins(&eye);
        nodes[victim].signal("-KILL");
        nodes[victim].wait();
        let polls = eye.polls();
        let took = until_within(SOON, "the other one takes over", || eye.polls() > polls + 3);
        println!("round {round}: {} took over after {took:?}; {}", names[1 - victim], gap.is_named(&eye));
        nodes[victim] = start(names[victim], ahead[victim]);
    }
    some_polls(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 5, "too few states to check");
}

/// Somebody sets the clock of the node that polls, back and forth, a little and a lot. It goes on, nobody else believes
/// that it is gone, and when it is killed right after its clock was set back, the other one is as quick as ever.
#[test]
fn a_clock_that_is_set_under_a_running_node_changes_nothing() {
    let Some(site) = Site::new() else { return };
    let names = ["one", "two"];
    let files = names.map(|name| site.dir.path().join(format!("{name}.time")));
    let set = |file: &Path, ahead: &str| std::fs::write(file, ahead).expect("a clock that can be set");
    files.iter().for_each(|file| set(file, "+0s"));
    if faketime_of(&files[0]).is_none() {
        return;
    }
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let start = |n: usize| {
        let variables = faketime_of(&files[n]).expect("looked for above");
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        site.odd_node(names[n], &site.database, &source, &variables)
    };
    let mut nodes = [start(0), start(1)];
    let eye = site.eye();
    until("it is polled", || eye.polls() > 5);
    for ahead in ["+1.5s", "-1.5s", "+3600s", "+0s"] {
        some_polls(&eye, &mut truth);
        set(&files[holder(&eye, &names)], ahead);
        // What is under way at this moment may be lost, but no more.
        let polls = eye.polls();
        let took = until_within(SOON, "it is polled on", || eye.polls() > polls + 5);
        println!("set to {ahead}: polled on after {took:?}");
    }
    let said = nodes.each_ref().map(Node::logged).concat();
    assert!(said.contains("this machine's clock was set"), "it was noticed");
    for _ in 0..2 {
        some_polls(&eye, &mut truth);
        let victim = holder(&eye, &names);
        set(&files[victim], "-1s");
        let polls = eye.polls();
        until("it goes on for a moment", || eye.polls() > polls + 3);
        let victim = holder(&eye, &names);
        nodes[victim].signal("-KILL");
        nodes[victim].wait();
        let polls = eye.polls();
        let took = until_within(SOON, "the other one takes over", || eye.polls() > polls + 3);
        println!("{} took over after {took:?}", names[1 - victim]);
        set(&files[victim], "+0s");
        nodes[victim] = start(victim);
    }
    some_polls(&eye, &mut truth);
    nodes.iter_mut().for_each(Node::stop);
    assert!(truth.compare(&eye) > 5, "too few states to check");
}
