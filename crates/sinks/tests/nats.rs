//! NATS JetStream, with a real broker: an event that it does not take is refused alone, and the others go on.

mod support;

use async_nats::jetstream::{self, stream};
use serde_json::json;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::Found;
use stakeout_sinks::nats::NatsSink;
use support::broker::Broker;
use support::event;
use tempfile::TempDir;

/// The largest message the broker takes, with its headers.
const MOST: usize = 2_048;

/// A broker in a directory of its own.
struct Site {
    broker: Broker,
    _dir: TempDir,
}

impl Site {
    fn new() -> Option<Site> {
        let dir = tempfile::tempdir().expect("a directory");
        let broker = Broker::start(dir.path(), None, &format!("max_payload: {MOST}"))?;
        Some(Site { broker, _dir: dir })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.broker.port)
    }

    fn sink(&self) -> NatsSink {
        let config = json!({ "url": self.url(), "allow": ["127.0.0.1"] });
        let config = serde_json::from_value(config).expect("a configuration");
        NatsSink::new("events", &config, &Found::default()).expect("a sink")
    }

    async fn context(&self) -> jetstream::Context {
        let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
        let client = options.connect(self.url()).await.expect("connects");
        client.flush().await.expect("connected");
        jetstream::new(client)
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

/// What another client finds in a stream that we made.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_not_there_is_made_and_keeps_each_event_once() {
    let Some(site) = Site::new() else { return };
    let sink = site.sink();
    for _ in 0..2 {
        let outcomes = delivered(&sink, &[event(1), event(2)]).await;
        assert_eq!(words(&outcomes), ["taken", "taken"], "{outcomes:?}");
    }
    let mut stream = site.context().await.get_stream("STAKEOUT").await.expect("there");
    let found = stream.info().await.expect("known").clone();
    assert_eq!(found.state.messages, 2, "what is sent again is known by its id");
    assert_eq!(found.config.subjects, ["stakeout.>"]);
    assert_eq!(found.config.duplicate_window.as_secs(), 60 * 60);
    let kept = (found.config.storage, found.config.retention, found.config.discard);
    assert_eq!(
        kept,
        (stream::StorageType::File, stream::RetentionPolicy::Limits, stream::DiscardPolicy::Old)
    );
    assert_eq!((found.config.max_messages, found.config.max_bytes, found.config.max_consumers), (-1, -1, -1));
    for n in 1..=2 {
        let message = stream.get_raw_message(n).await.expect("a message");
        assert_eq!(message.subject.as_str(), "stakeout.nz.alert.raised");
        assert_eq!(message.headers.get("Nats-Msg-Id").expect("an id").as_str(), event(n).id.to_string());
        let content_type = message.headers.get("Content-Type").expect("a type");
        assert_eq!(content_type.as_str(), stakeout_sinks::cloud_event::CONTENT_TYPE);
        let body = stakeout_sinks::cloud_event::cloud_event(&event(n)).to_string();
        assert_eq!(message.payload.as_ref(), body.as_bytes());
    }
}

/// Somebody removes it: the next try makes it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_was_removed_is_made_again() {
    let Some(site) = Site::new() else { return };
    let sink = site.sink();
    assert_eq!(words(&delivered(&sink, &[event(1)]).await), ["taken"]);
    site.context().await.delete_stream("STAKEOUT").await.expect("removed");
    let outcome = sink.deliver(&event(2)).await;
    assert!(matches!(&outcome, Err(SinkError::Down(words)) if words.contains("no stream")), "{outcome:?}");
    sink.deliver(&event(2)).await.expect("taken");
}

/// Headers count, too: there is a length for which the body alone would fit.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_that_is_too_large_for_the_broker_is_refused_alone() {
    let Some(site) = Site::new() else { return };
    let body = |event: &Event| stakeout_sinks::cloud_event::cloud_event(event).to_string().len();
    let bare = body(&of_length(2, 0));
    let just = of_length(2, MOST - bare);
    assert_eq!(body(&just), MOST, "the body fits by itself");
    let sink = site.sink();
    let outcomes = delivered(&sink, &[event(1), just, of_length(3, 2 * MOST), event(4)]).await;
    assert_eq!(words(&outcomes), ["taken", "refused", "refused", "taken"], "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_that_is_too_large_for_the_stream_is_refused_alone() {
    let Some(site) = Site::new() else { return };
    let stream = stream::Config {
        name: "STAKEOUT".to_owned(),
        subjects: vec!["stakeout.>".to_owned()],
        max_message_size: 1_000,
        ..stream::Config::default()
    };
    let context = site.context().await;
    context.create_stream(stream).await.expect("a stream");
    let sink = site.sink();
    let outcomes = delivered(&sink, &[event(1), of_length(2, 1_000), event(3)]).await;
    assert_eq!(words(&outcomes), ["taken", "refused", "taken"], "{outcomes:?}");
    let mut stream = context.get_stream("STAKEOUT").await.expect("there");
    assert_eq!(stream.info().await.expect("known").state.messages, 2);
}

/// A stream that takes nothing from anybody is not the event's fault: everything waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_that_is_full_makes_everything_wait() {
    let Some(site) = Site::new() else { return };
    let stream = stream::Config {
        name: "STAKEOUT".to_owned(),
        subjects: vec!["stakeout.>".to_owned()],
        max_messages: 1,
        discard: stream::DiscardPolicy::New,
        ..stream::Config::default()
    };
    site.context().await.create_stream(stream).await.expect("a stream");
    let sink = site.sink();
    let outcomes = delivered(&sink, &[event(1), event(2), event(3)]).await;
    assert_eq!(words(&outcomes), ["taken", "down"], "{outcomes:?}");
}
