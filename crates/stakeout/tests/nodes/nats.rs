//! Events on NATS JetStream: each exactly once for whoever keeps ids, however often nodes and the broker die.

use std::collections::BTreeMap;

use async_nats::jetstream;
use tokio::runtime::Runtime;

use crate::broker::Broker;
use crate::support::{Node, Site, now_ms, until};
use crate::truth::Truth;

struct Message {
    subject: String,
    id: String,
    body: serde_json::Value,
}

/// Everything the stream has, in its order.
fn messages(runtime: &Runtime, port: u16) -> Vec<Message> {
    runtime.block_on(async {
        let client = async_nats::connect(format!("nats://127.0.0.1:{port}")).await.expect("connects");
        let context = jetstream::new(client);
        let mut stream = context.get_stream("STAKEOUT").await.expect("the stream was made");
        let state = stream.info().await.expect("known").state.clone();
        let mut messages = Vec::new();
        for n in state.first_sequence..=state.last_sequence {
            let raw = stream.get_raw_message(n).await.expect("a message");
            let id = raw.headers.get("Nats-Msg-Id").expect("an id").to_string();
            let body = serde_json::from_slice(&raw.payload).expect("JSON");
            messages.push(Message { subject: raw.subject.to_string(), id, body });
        }
        messages
    })
}

#[test]
fn every_event_reaches_the_stream_once_whoever_dies() {
    let Some(site) = Site::new() else { return };
    let Some(mut broker) = Broker::start(site.dir.path(), None, "") else { return };
    let port = broker.port;
    let mut truth = Truth::new(1_500);
    let sink = format!(
        "[sink.events]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:{port}\"\nallow = [\"127.0.0.1\"]\n"
    );
    let sources = format!("{}\n{sink}", truth.source("40ms"));
    let names = ["one", "two"];
    let configs = names.map(|name| site.configure(name, &site.database, "off", &sources));
    let mut nodes = [Node::start(&configs[0]), Node::start(&configs[1])];
    let eye = site.eye();
    let told = || eye.number("SELECT count(*)::text FROM events");
    let waiting = || eye.number("SELECT count(*)::text FROM deliveries");
    let deliverer = || {
        let holder = eye.texts("SELECT owner FROM leases WHERE name = 'sink events'").pop().expect("held");
        names.iter().position(|name| **name == holder).expect("one of ours")
    };
    until("it is polled", || eye.polls() > 0);
    let mut began = now_ms();
    until("something is told and delivered", || told() > 3 && waiting() == 0);

    for round in 0..6 {
        let before = told();
        // The broker, the node that delivers, and both at once.
        if round % 3 != 1 {
            broker.kill();
            until("events wait for the broker", || waiting() > 1);
        }
        if round % 3 != 0 {
            let victim = deliverer();
            truth.calm_since(began);
            nodes[victim].signal("-KILL");
            nodes[victim].wait();
            nodes[victim] = Node::start(&configs[victim]);
            until("somebody polls again", || told() > before + 1);
            began = now_ms();
        }
        if round % 3 != 1 {
            broker = Broker::start(site.dir.path(), Some(port), "").expect("it was there before");
        }
        until("everything is delivered", || told() > before + 3 && waiting() == 0);
        println!("round {round}: {} told", told());
    }
    // One that only stands still: another one delivers when its lease has run out, and when it comes back it may send
    // what was sent meanwhile, under the same ids.
    let before = told();
    let victim = deliverer();
    truth.calm_since(began);
    nodes[victim].signal("-STOP");
    until("another one delivers", || deliverer() != victim && told() > before + 1 && waiting() == 0);
    nodes[victim].signal("-CONT");
    began = now_ms();
    let before = told();
    until("everything is delivered", || told() > before + 3 && waiting() == 0);
    truth.calm_since(began);
    nodes.iter_mut().for_each(Node::stop);
    // What happened while they stopped is delivered by whoever comes next.
    let mut last = Node::start(&configs[0]);
    until("the rest is delivered", || waiting() == 0);
    last.stop();

    let runtime = Runtime::new().expect("a runtime");
    let messages = messages(&runtime, port);
    let mut first: BTreeMap<&str, &Message> = BTreeMap::new();
    for message in &messages {
        first.entry(&message.id).or_insert(message);
    }
    let events = eye.texts("SELECT encode(id, 'hex') FROM events ORDER BY seq");
    println!("{} events, {} messages", events.len(), messages.len());
    // What was told while the last one stopped waits for the next.
    let waiting = eye.texts("SELECT encode(e.id, 'hex') FROM events e JOIN deliveries d ON d.seq = e.seq");
    let missing = |id: &&String| !first.contains_key(id.as_str()) && !waiting.contains(id);
    assert_eq!(events.iter().filter(missing).count(), 0, "something was never delivered");
    assert!(first.keys().all(|id| events.iter().any(|event| event == id)), "nothing was invented");
    let types = eye.texts("SELECT type FROM events ORDER BY seq");
    for (id, event_type) in events.iter().zip(&types) {
        let Some(message) = first.get(id.as_str()) else { continue };
        assert_eq!(message.subject, format!("stakeout.script.{event_type}"));
        assert_eq!(
            (message.body["id"].as_str(), message.body["specversion"].as_str()),
            (Some(id.as_str()), Some("1.0"))
        );
    }
    truth.compare(&eye);
}
