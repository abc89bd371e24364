//! NATS JetStream, with a real broker: an event that it does not take is refused alone, and the others go on.

#![allow(clippy::print_stdout, reason = "whoever runs the tests learns what was skipped")]

mod support;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use async_nats::jetstream::{self, stream};
use serde_json::json;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::nats::{Access, NatsSink};
use support::event;
use tempfile::TempDir;

/// The largest message the broker takes, with its headers.
const MOST: usize = 2_048;

struct Broker {
    child: Child,
    port: u16,
    _dir: TempDir,
}

impl Broker {
    /// `None`, having said why, where there is no nats-server; with `CI=true` that is a failure.
    fn start() -> Option<Broker> {
        let dir = tempfile::tempdir().expect("a directory");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let config = dir.path().join("nats.conf");
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\nmax_payload: {MOST}\njetstream {{ store_dir: {:?} }}\n",
            dir.path().join("store")
        );
        std::fs::write(&config, text).expect("written");
        // Debian keeps it where only root's path leads.
        let aside = Path::new("/usr/sbin/nats-server");
        let mut command = Command::new(if aside.exists() { aside } else { Path::new("nats-server") });
        match command.arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => Some(Broker { child, port, _dir: dir }),
            Err(error) => {
                println!("skipped: nats-server cannot be started (Debian's package nats-server): {error}");
                assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
                None
            }
        }
    }

    fn sink(&self) -> NatsSink {
        let url = format!("nats://127.0.0.1:{}", self.port);
        let config = json!({ "url": url, "allow": ["127.0.0.1"] });
        let config = serde_json::from_value(config).expect("a configuration");
        NatsSink::new("events", &config, Access::Open).expect("a sink")
    }

    async fn context(&self) -> jetstream::Context {
        let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
        let client = options.connect(format!("nats://127.0.0.1:{}", self.port)).await.expect("connects");
        client.flush().await.expect("connected");
        jetstream::new(client)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn of_length(seq: u64, length: usize) -> Event {
    let mut event = event(seq);
    event.data = json!({ "text": "x".repeat(length) });
    event
}

/// What became of the events, once the broker is there at all.
async fn delivered(sink: &NatsSink, events: &[Event]) -> Vec<Result<(), SinkError>> {
    let events: Vec<&Event> = events.iter().collect();
    loop {
        let outcomes = sink.deliver_all(&events).await;
        if !matches!(outcomes.first(), Some(Err(SinkError::Down(_)))) {
            return outcomes;
        }
        tokio::task::yield_now().await;
    }
}

fn words(outcomes: &[Result<(), SinkError>]) -> Vec<&'static str> {
    let word = |outcome: &Result<(), SinkError>| match outcome {
        Ok(()) => "taken",
        Err(SinkError::Refused(_)) => "refused",
        Err(SinkError::Down(_)) => "down",
        Err(SinkError::Gone(_)) => "gone",
    };
    outcomes.iter().map(word).collect()
}

/// Headers count, too: there is a length for which the body alone would fit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_that_is_too_large_for_the_broker_is_refused_alone() {
    let Some(broker) = Broker::start() else { return };
    let body = |event: &Event| stakeout_sinks::cloud_event::cloud_event(event).to_string().len();
    let bare = body(&of_length(2, 0));
    let just = of_length(2, MOST - bare);
    assert_eq!(body(&just), MOST, "the body fits by itself");
    let sink = broker.sink();
    let outcomes = delivered(&sink, &[event(1), just, of_length(3, 2 * MOST), event(4)]).await;
    assert_eq!(words(&outcomes), ["taken", "refused", "refused", "taken"], "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_that_is_too_large_for_the_stream_is_refused_alone() {
    let Some(broker) = Broker::start() else { return };
    let stream = stream::Config {
        name: "STAKEOUT".to_owned(),
        subjects: vec!["stakeout.>".to_owned()],
        max_message_size: 1_000,
        ..stream::Config::default()
    };
    let context = broker.context().await;
    context.create_stream(stream).await.expect("a stream");
    let sink = broker.sink();
    let outcomes = delivered(&sink, &[event(1), of_length(2, 1_000), event(3)]).await;
    assert_eq!(words(&outcomes), ["taken", "refused", "taken"], "{outcomes:?}");
    let mut stream = context.get_stream("STAKEOUT").await.expect("there");
    assert_eq!(stream.info().await.expect("known").state.messages, 2);
}

/// A stream that takes nothing from anybody is not the event's fault: everything waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_full_makes_everything_wait() {
    let Some(broker) = Broker::start() else { return };
    let stream = stream::Config {
        name: "STAKEOUT".to_owned(),
        subjects: vec!["stakeout.>".to_owned()],
        max_messages: 1,
        discard: stream::DiscardPolicy::New,
        ..stream::Config::default()
    };
    broker.context().await.create_stream(stream).await.expect("a stream");
    let sink = broker.sink();
    let outcomes = delivered(&sink, &[event(1), event(2), event(3)]).await;
    assert_eq!(words(&outcomes), ["taken", "down"], "{outcomes:?}");
}
