//! An alert that repeats: all nodes know at the same moment that it is due again, and one of them tells it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use serde_json::json;
use stakeout_sim::{Act, Loopback};

use crate::support::{Node, Site, until};

/// As often as a rule may.
const RULE: &str = r#"
[alert.again]
when = { on = "event", type = "json.*" }
repeat = "10s"
"#;

#[test]
fn a_repeat_is_told_once_by_any_of_three_nodes_also_when_some_are_killed() {
    let Some(site) = Site::new() else { return };
    let price = Arc::new(AtomicI64::new(3));
    let shown = Arc::clone(&price);
    let upstream = Loopback::start(move |_| {
        Act::json(&json!({ "items": [{ "id": "a", "price": shown.load(SeqCst) }] }))
    });
    let source = format!(
        "[source.shop]\nkind = \"json\"\nurl = \"{}\"\nevery = \"500ms\"\nrecords = \"items\"\nkey = \"id\"\n\
         fields = [\"price\"]\n{RULE}",
        upstream.url("/shop")
    );
    let configs = ["one", "two", "three"].map(|node| site.configure(node, &site.database, "off", &source));
    let mut nodes = configs.each_ref().map(|config| Node::start(config));
    let eye = site.eye();
    until("all have started", || nodes.iter().all(|node| node.logged().contains("source ready")));
    let polls = eye.polls() + 2;
    until("the first look is over", || eye.polls() > polls);
    price.store(2, SeqCst);
    let rung = || eye.number("SELECT count(*)::text FROM events WHERE rule = 'alert:again'");
    for n in 0..3_usize {
        until("it rings", || rung() > n as i64);
        if n > 0 {
            // What is committed is told, and nothing else is: one dies right after it, another comes.
            nodes[n].signal("-KILL");
            nodes[n].wait();
            nodes[n] = Node::start(&configs[n]);
        }
    }
    until("it rings for the fourth time", || rung() > 3);
    nodes.iter_mut().for_each(Node::stop);
    let numbers = eye.texts(
        "SELECT data::jsonb -> 'repeat' ->> 'number' FROM events WHERE rule = 'alert:again' ORDER BY seq",
    );
    assert_eq!(numbers, ["0", "1", "2", "3"], "each once, in order");
    let apart = "SELECT (min(at_us - before) / 1000000)::text FROM (SELECT at_us, lag(at_us) OVER (ORDER BY seq) AS before
                 FROM events WHERE rule = 'alert:again') AS rung";
    assert!(eye.number(apart) >= 10, "never sooner than asked for");
}
