//! Digests in virtual time: what was handed over together stays together, whatever waits besides and whatever people do.

#[path = "../../engine/tests/support/telling.rs"]
mod telling;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use stakeout_core::{Event, Failure, Request, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, Fetch, Sink, SinkError, virtual_runtime};
use stakeout_sources::json::JsonSource;
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{Chosen, EventWrite, Store, Validators};

const START: Time = Time::from_secs(1_800_000_000);

fn minute(n: i64) -> Time {
    START + Span::mins(n)
}

/// An upstream that has nothing to tell.
struct Still;

#[async_trait]
impl Fetch for Still {
    async fn fetch(
        &self,
        _: &Request,
        _: &Validators,
        _: &FetchLimits,
        _: &Clock,
    ) -> Result<Answer, Failure> {
        let body = json!({"items": [{"id": "a", "value": 1}]}).to_string().into();
        let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

/// Takes digests from a moment on; before, it refuses them. It keeps who came with whom.
#[derive(Clone)]
struct Receiver {
    clock: Clock,
    takes_from: Time,
    tries: Arc<Mutex<Vec<Vec<u64>>>>,
    store: Arc<SqliteStore>,
    /// What somebody drops while it is taking a digest.
    dropped_meanwhile: Arc<Mutex<Vec<u64>>>,
}

#[async_trait]
impl Sink for Receiver {
    fn name(&self) -> &str {
        "digests"
    }
    fn gathers(&self) -> Option<Span> {
        Some(Span::mins(10))
    }
    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        self.deliver_all(&[event]).await.pop().expect("one")
    }
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        self.tries.lock().expect("lock").push(events.iter().map(|event| event.seq).collect());
        let dropped = std::mem::take(&mut *self.dropped_meanwhile.lock().expect("lock"));
        for seq in dropped {
            self.store.drop_deliveries("digests", Chosen::One(seq)).await.expect("dropped");
        }
        let answer = || match self.clock.now() >= self.takes_from {
            true => Ok(()),
            false => Err(SinkError::Refused("not now".to_owned())),
        };
        events.iter().map(|_| answer()).collect()
    }
}

/// A store and the receiver of its digests.
struct Story {
    store: Arc<SqliteStore>,
    tries: Arc<Mutex<Vec<Vec<u64>>>>,
    dropped_meanwhile: Arc<Mutex<Vec<u64>>>,
}

impl Story {
    fn new() -> Story {
        let store = Arc::new(SqliteStore::in_memory().expect("store"));
        Story { store, tries: Arc::default(), dropped_meanwhile: Arc::default() }
    }

    /// Runs between two moments with a receiver that takes digests from a third on; `meanwhile` is done on the way.
    fn run(&self, from: Time, until: Time, takes_from: Time, meanwhile: impl AsyncFnOnce(&Clock)) {
        let (runtime, clock) = virtual_runtime(from).expect("runtime");
        let config = json!({
            "url": "http://sim/", "every": "1h", "records": "items", "key": "id", "fields": ["value"],
        });
        let config = serde_json::from_value(config).expect("a configuration");
        let source = Arc::new(JsonSource::new("s", &config, vec![]).expect("a source"));
        let mut config = EngineConfig::new(self.store.clone(), vec![source], Arc::new(Still));
        config.clock = clock.clone();
        config.sinks = vec![Arc::new(Receiver {
            clock: clock.clone(),
            takes_from,
            tries: Arc::clone(&self.tries),
            store: Arc::clone(&self.store),
            dropped_meanwhile: Arc::clone(&self.dropped_meanwhile),
        })];
        runtime.block_on(async {
            let engine = Engine::start(config).await.expect("start");
            meanwhile(&clock).await;
            clock.sleep_until(until).await;
            engine.shutdown().await.expect("stop");
        });
    }

    /// So many events for the receiver, by their numbers.
    async fn tell(&self, count: usize, at: Time) -> Vec<u64> {
        let event = |n: usize| EventWrite {
            sinks: vec!["digests".to_owned()],
            ..telling::event("s", &n.to_string(), at)
        };
        telling::tell(&*self.store, "s", at, (0..count).map(event).collect()).await
    }

    /// Who came with whom, each grouping once, in the order of their first try.
    fn parcels(&self) -> Vec<Vec<u64>> {
        let mut parcels: Vec<Vec<u64>> = Vec::new();
        for parcel in self.tries.lock().expect("lock").iter() {
            if !parcels.contains(parcel) {
                parcels.push(parcel.clone());
            }
        }
        parcels
    }

    /// How many wait, and how many were given up.
    async fn left(&self) -> (u64, u64) {
        let outboxes = self.store.outboxes().await.expect("outboxes");
        outboxes.iter().find(|one| one.sink == "digests").map_or((0, 0), |one| (one.waiting, one.dead))
    }

    /// Which parcels are remembered.
    async fn remembered(&self) -> Option<serde_json::Value> {
        self.store.kv("outbox", "digests").await.expect("a value").map(|row| row.value)
    }
}

#[test]
fn digests_that_are_refused_stay_as_they_are_however_many_wait() {
    let story = Story::new();
    story.run(START, minute(400), minute(200), async |clock| {
        // Four full digests and what is left: far more than are looked at together.
        clock.sleep_until(minute(1)).await;
        let first = story.tell(430, clock.now()).await;
        clock.sleep_until(minute(60)).await;
        let later = story.tell(5, clock.now()).await;
        clock.sleep_until(minute(399)).await;
        assert_eq!(story.left().await, (0, 0));
        let mut expected: Vec<Vec<u64>> = first.chunks(100).map(<[u64]>::to_vec).collect();
        expected.push(later);
        assert_eq!(story.parcels(), expected, "each grouping from the first try to the last");
        assert_eq!(story.remembered().await, None, "what is through is forgotten");
    });
    let tries = story.tries.lock().expect("lock");
    assert!(tries.len() > 4 * 5, "each was refused several times: {}", tries.len());
}

#[test]
fn a_digest_that_was_given_up_is_tried_again_as_it_was() {
    let story = Story::new();
    let end = START + Span::hours(130);
    story.run(START, end, START + Span::hours(110), async |clock| {
        clock.sleep_until(minute(1)).await;
        let first = story.tell(3, clock.now()).await;
        clock.sleep_until(START + Span::hours(100)).await;
        assert_eq!(story.left().await, (0, 3), "given up after three days");
        // One is wanted again by itself, and with it comes something new.
        story.tell(1, clock.now()).await;
        story.store.retry_deliveries("digests", Chosen::One(first[1])).await.expect("retried");
        clock.sleep_until(START + Span::hours(118)).await;
        assert_eq!(story.left().await, (0, 2), "the others were left where they are");
        story.tell(2, clock.now()).await;
        story.store.retry_deliveries("digests", Chosen::Dead).await.expect("retried");
        clock.sleep_until(START + Span::hours(119)).await;
        assert_eq!(story.left().await, (0, 0));
        let parcels = story.parcels();
        let new = [first[2] + 1, first[2] + 2, first[2] + 3];
        let expected =
            [first.clone(), vec![first[1]], vec![new[0]], vec![first[0], first[2]], vec![new[1], new[2]]];
        assert_eq!(parcels, expected, "nothing new is put to what was sent before");
        assert_eq!(story.remembered().await, None);
    });
}

#[test]
fn what_is_dropped_of_a_digest_is_left_out_and_the_rest_stays_together() {
    let story = Story::new();
    story.run(START, minute(400), minute(200), async |clock| {
        clock.sleep_until(minute(1)).await;
        let first = story.tell(4, clock.now()).await;
        clock.sleep_until(minute(60)).await;
        story.store.drop_deliveries("digests", Chosen::One(first[1])).await.expect("dropped");
        let later = story.tell(2, clock.now()).await;
        clock.sleep_until(minute(399)).await;
        assert_eq!(story.left().await, (0, 0));
        let rest = vec![first[0], first[2], first[3]];
        assert_eq!(story.parcels(), [first, rest, later]);
    });
}

#[test]
fn a_digest_that_was_dropped_is_forgotten() {
    let story = Story::new();
    story.run(START, minute(400), minute(200), async |clock| {
        clock.sleep_until(minute(1)).await;
        story.tell(4, clock.now()).await;
        clock.sleep_until(minute(60)).await;
        assert!(story.remembered().await.is_some());
        story.store.drop_deliveries("digests", Chosen::Every).await.expect("dropped");
        let later = story.tell(2, clock.now()).await;
        clock.sleep_until(minute(90)).await;
        assert_eq!(story.remembered().await, Some(json!({ "open": [later] })));
    });
}

/// Two digests are due together; while the first is on its way, somebody drops the second.
#[test]
fn a_digest_that_is_dropped_when_its_turn_comes_is_not_sent_empty() {
    let story = Story::new();
    story.run(START, minute(400), minute(100), async |clock| {
        let mut digests = Vec::new();
        for (minutes, count) in [(1, 3), (20, 2)] {
            clock.sleep_until(minute(minutes)).await;
            digests.push(story.tell(count, clock.now()).await);
        }
        clock.sleep_until(minute(60)).await;
        assert_eq!(story.parcels(), digests, "each was refused");
        clock.sleep_until(minute(110)).await;
        *story.dropped_meanwhile.lock().expect("lock") = digests[1].clone();
        for digest in &digests {
            story.store.retry_deliveries("digests", Chosen::One(digest[0])).await.expect("retried");
        }
        clock.sleep_until(minute(120)).await;
        assert!(story.dropped_meanwhile.lock().expect("lock").is_empty(), "it was dropped");
        assert_eq!(story.left().await, (0, 0));
        assert_eq!(story.parcels(), digests, "no other was handed over");
        assert_eq!(story.remembered().await, None);
    });
}

#[test]
fn a_digest_is_the_same_after_a_restart() {
    let story = Story::new();
    story.run(START, minute(30), minute(200), async |clock| {
        clock.sleep_until(minute(1)).await;
        story.tell(250, clock.now()).await;
    });
    story.run(minute(31), minute(400), minute(200), async |clock| {
        story.tell(7, clock.now()).await;
    });
    assert_eq!(story.parcels().iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50, 7]);
}
