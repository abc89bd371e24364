//! The outbox with real receivers: the engine in virtual time, the receivers on loopback.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};
use stakeout_core::{Event, Failure, Request, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, EngineHandle, Fetch, Sink, SinkError, virtual_runtime};
use stakeout_sim::{Act, Loopback, Seen};
use stakeout_sinks::Found;
use stakeout_sinks::webhook::WebhookSink;
use stakeout_sources::json::JsonSource;
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store, Validators};
use support::standard_webhooks::verified;

const START: Time = Time::from_secs(1_800_000_000);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PREVIOUS: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// An upstream with one value that changes every ten minutes, for a while.
struct Ticking {
    until: Span,
}

#[async_trait]
impl Fetch for Ticking {
    async fn fetch(
        &self,
        _: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let value = (clock.now() - START).as_ms().min(self.until.as_ms()) / 600_000;
        let response = Response {
            status: 200,
            body: json!({"items": [{"id": "a", "value": value}]}).to_string().into(),
            content_type: Some("application/json".into()),
            age: Span::ZERO,
        };
        Ok(Answer::Full(response, Validators::default()))
    }
}

/// A sink whose secret is being changed.
fn hook(name: &str, server: &Loopback) -> Arc<dyn Sink> {
    let secrets =
        [("url", server.url("/")), ("secret", SECRET.to_owned()), ("previous_secret", PREVIOUS.to_owned())];
    let found: BTreeMap<String, String> =
        secrets.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut config = json!(found);
    config["allow"] = json!(["127.0.0.1"]);
    config["events"] = json!(["json.*"]);
    let config = serde_json::from_value(config).expect("a configuration");
    Arc::new(WebhookSink::new(name, &config, &Found::from_iter(found)).expect("a sink"))
}

async fn start(store: &Arc<SqliteStore>, clock: &Clock, sinks: Vec<Arc<dyn Sink>>) -> EngineHandle {
    start_ticking(store, clock, sinks, Span::hours(1_000)).await
}

async fn start_ticking(
    store: &Arc<SqliteStore>,
    clock: &Clock,
    sinks: Vec<Arc<dyn Sink>>,
    until: Span,
) -> EngineHandle {
    Engine::start(configured(store, clock, sinks, until)).await.expect("start")
}

fn configured(
    store: &Arc<SqliteStore>,
    clock: &Clock,
    sinks: Vec<Arc<dyn Sink>>,
    until: Span,
) -> EngineConfig {
    let config = json!({
        "url": "http://sim/", "every": "1min", "records": "items", "key": "id", "fields": ["value"],
        "history": ["value"],
    });
    let config = serde_json::from_value(config).expect("a configuration");
    let source = Arc::new(JsonSource::new("s", &config, vec![]).expect("a source"));
    let mut config = EngineConfig::new(store.clone(), vec![source], Arc::new(Ticking { until }));
    config.clock = clock.clone();
    config.sinks = sinks;
    config
}

async fn told(store: &SqliteStore) -> Vec<String> {
    let events = store.events(0, &EventFilter::default(), 1_000).await.expect("events");
    events.iter().map(|event| event.id.to_string()).collect()
}

fn id(seen: &Seen) -> String {
    seen.header("webhook-id").expect("an id").to_owned()
}

fn answering(status: u16) -> Act {
    Act::Answer { status, headers: vec![], body: "".into() }
}

#[test]
fn a_receiver_that_fails_for_an_hour_gets_everything_and_the_other_one_at_once() {
    let (runtime, clock) = virtual_runtime(START).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let good = Loopback::start(|_| answering(200));
    let time = clock.clone();
    let broken_until = START + Span::hours(1);
    let bad = Loopback::start(move |_| answering(if time.now() < broken_until { 500 } else { 200 }));
    let sinks = vec![hook("bad", &bad), hook("good", &good)];
    let (at_noon, all) = runtime.block_on(async {
        let engine = start(&store, &clock, sinks).await;
        clock.sleep_until(broken_until - Span::mins(1)).await;
        let at_noon = (told(&store).await, good.seen());
        clock.sleep_until(START + Span::hours(6)).await;
        engine.shutdown().await.expect("stop");
        (at_noon, told(&store).await)
    });
    let (so_far, at_once) = at_noon;
    assert_eq!(at_once.iter().map(id).collect::<Vec<_>>(), so_far, "the good one waits for nobody");
    assert_eq!(so_far.len(), 5, "and polling goes on");

    let mut tries: BTreeMap<String, u32> = BTreeMap::new();
    bad.seen().iter().for_each(|seen| *tries.entry(id(seen)).or_default() += 1);
    assert_eq!(tries.keys().cloned().collect::<BTreeSet<_>>(), all.iter().cloned().collect());
    // 0 s, 5 s, 35 s, 155 s, 7½ min, 23 min, 53 min and 113 min after it happened, ten minutes past the hour.
    assert_eq!(tries[&all[0]], 7, "{tries:?}");
    assert_eq!(tries[&all[20]], 1, "what came later was taken at once");
    let left = runtime.block_on(store.deliveries("bad", START + Span::hours(90), 100)).expect("deliveries");
    assert!(left.len() <= 1, "nothing is left but what may have come at the very end");
}

/// In a time of its own, because a receiver goes by the wall clock: the 5 s before the second try are more than one of
/// its seconds.
#[tokio::test]
async fn a_retry_has_the_same_id_a_fresh_timestamp_and_both_signatures() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let server = Loopback::start(|seen| answering(if seen.n == 1 { 500 } else { 200 }));
    let at = |since: Span| {
        let clock = Clock::scaled_from(START + since, 4.0);
        configured(&store, &clock, vec![hook("hook", &server)], Span::mins(10))
    };
    Engine::pass(at(Span::ZERO), Span::secs(30)).await.expect("what is known before anything changes");
    let engine = Engine::start(at(Span::mins(11))).await.expect("start");
    server.answers_reached(2).await;
    let tries = server.seen();
    engine.shutdown().await.expect("stop");

    assert_eq!((tries.len(), told(&store).await), (2, vec![id(&tries[0])]), "one event, two tries");
    let mut stamps = Vec::new();
    for one in &tries {
        let arrived_secs = one.at_us() as u64 / 1_000_000;
        for secret in [SECRET, PREVIOUS] {
            assert_eq!(verified(one, secret, arrived_secs), Ok(id(&tries[0])), "the same id, signed twice");
        }
        let stamp: u64 = one.header("webhook-timestamp").expect("a timestamp").parse().expect("seconds");
        assert!(arrived_secs - stamp <= 1, "{stamp} is the moment of another try than at {arrived_secs}");
        stamps.push(stamp);
    }
    assert!(stamps[1] > stamps[0], "{stamps:?}");
}

/// In a fast time, not in a virtual one, which stands still for as long as a receiver is waited for.
#[tokio::test]
async fn a_receiver_that_hangs_holds_up_neither_polls_nor_other_receivers() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let (good, hanging) = (Loopback::start(|_| answering(200)), Loopback::start(|_| Act::Hang));
    // Ten minutes are a tenth of a second; the hanging one has 15 real seconds.
    let clock = Clock::scaled_from(START, 6_000.0);
    let sinks = vec![hook("hanging", &hanging), hook("good", &good)];
    let mut config = configured(&store, &clock, sinks, Span::hours(1_000));
    // What hangs at the end is not waited for.
    config.grace = Duration::ZERO;
    let engine = Engine::start(config).await.expect("start");
    let began = Instant::now();
    let mut newest = engine.control().newest();
    newest.wait_for(|seq| *seq >= 20).await.expect("polling goes on");
    good.requests_reached(20).await;
    let good: Vec<String> = good.seen().iter().map(id).collect();
    let took = began.elapsed();
    assert_eq!(good[..20], told(&store).await[..20], "all of them, in their order");
    let stats = hanging.stats();
    assert!(
        (1..=4).contains(&stats.requests) && stats.answered == 0 && took.as_secs() < 15,
        "the other one's first tries hang all the while: {stats:?} in {took:?}"
    );
    engine.shutdown().await.expect("stop");
}

#[test]
fn a_receiver_that_is_gone_is_left_alone_until_it_is_switched_on_again() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let gone = Arc::new(AtomicBool::new(true));
    let is_gone = Arc::clone(&gone);
    let server = Loopback::start(move |_| answering(if is_gone.load(SeqCst) { 410 } else { 200 }));
    let (runtime, clock) = virtual_runtime(START).expect("runtime");
    runtime.block_on(async {
        let engine = start(&store, &clock, vec![hook("hook", &server)]).await;
        clock.sleep_until(START + Span::hours(2)).await;
        assert_eq!(server.stats().requests, 1, "once is enough");
        let off = ("sink.hook.enabled".to_owned(), Value::Bool(false));
        assert_eq!(store.settings().await.expect("settings"), [off]);
        engine.shutdown().await.expect("stop");
    });

    // Remembered beyond the process.
    let (runtime, clock) = virtual_runtime(START + Span::hours(2)).expect("runtime");
    let all = runtime.block_on(async {
        let engine = start(&store, &clock, vec![hook("hook", &server)]).await;
        clock.sleep_until(START + Span::hours(4)).await;
        assert_eq!(server.stats().requests, 1);
        gone.store(false, SeqCst);
        let refused = engine.control().set_setting("sink.hook.enabled", Some(json!("yes"))).await;
        assert!(refused.expect_err("refused").to_string().contains("true or false"));
        let unknown = engine.control().set_setting("sink.hok.enabled", Some(json!(true))).await;
        assert!(unknown.expect_err("refused").to_string().contains("sink.hook.enabled"));
        engine.control().set_setting("sink.hook.enabled", Some(json!(true))).await.expect("accepted");
        clock.sleep_until(START + Span::hours(5)).await;
        engine.shutdown().await.expect("stop");
        let missed = store.deliveries("hook", START + Span::hours(90), 100).await.expect("deliveries");
        assert!(missed.len() <= 1, "nothing waits");
        told(&store).await
    });
    let ids: Vec<String> = server.seen().iter().map(id).collect();
    assert_eq!(ids[..2], [all[0].clone(), all[0].clone()], "what it refused comes first");
    // The hour after; what happened meanwhile is in the log and not sent.
    assert!((6..=9).contains(&ids.len()), "{} of {}", ids.len(), all.len());
}

#[test]
fn a_delivery_that_never_succeeds_is_given_up_after_three_days() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let server = Loopback::start(|_| answering(503));
    let (runtime, clock) = virtual_runtime(START).expect("runtime");
    let first = runtime.block_on(async {
        // One thing happens, and then nothing any more: only the outbox goes on.
        let engine = start_ticking(&store, &clock, vec![hook("hook", &server)], Span::mins(10)).await;
        clock.sleep_until(START + Span::hours(69)).await;
        assert_eq!(store.dead_deliveries(None, 10).await.expect("dead").len(), 0, "not yet");
        clock.sleep_until(START + Span::hours(90)).await;
        let dead = store.dead_deliveries(None, 10).await.expect("dead");
        assert_eq!((dead.len(), dead[0].attempts), (1, 14));
        assert_eq!(dead[0].error.as_deref(), Some("answered 503 Service Unavailable"));
        engine.shutdown().await.expect("stop");
        dead[0].event.id.to_string()
    });
    assert_eq!(server.seen().iter().filter(|seen| id(seen) == first).count(), 14);
}

/// Keeps what is handed to it, parcel by parcel.
struct Gathers(Clock, Arc<Mutex<Vec<(Time, usize)>>>);

#[async_trait]
impl Sink for Gathers {
    fn name(&self) -> &str {
        "gathers"
    }
    fn gathers(&self) -> Option<Span> {
        Some(Span::mins(25))
    }
    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        self.deliver_all(&[event]).await.pop().expect("one")
    }
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        self.1.lock().expect("lock").push((self.0.now(), events.len()));
        events.iter().map(|_| Ok(())).collect()
    }
}

#[test]
fn events_within_a_time_are_handed_over_together() {
    let (runtime, clock) = virtual_runtime(START).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let parcels = Arc::new(Mutex::default());
    let sink = Arc::new(Gathers(clock.clone(), Arc::clone(&parcels)));
    runtime.block_on(async {
        let engine = start(&store, &clock, vec![sink]).await;
        clock.sleep_until(START + Span::hours(3)).await;
        engine.shutdown().await.expect("stop");
    });
    let parcels = parcels.lock().expect("lock").clone();
    // One event each ten minutes: with the first come those of the ten and the twenty minutes after it.
    assert!(parcels.len() >= 5, "{parcels:?}");
    assert!(parcels.iter().all(|(_, events)| *events == 3), "{parcels:?}");
    assert!(parcels.windows(2).all(|pair| pair[1].0 - pair[0].0 >= Span::mins(29)), "{parcels:?}");
}

/// How a receiver of digests takes them.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Its answer is never heard, as when the process is killed just then.
    Unheard,
    /// Nobody is there.
    Away,
    Takes,
}

/// Who came with whom.
type Together = Arc<Mutex<Vec<Vec<String>>>>;

struct Digests(Manner, Together, Arc<tokio::sync::Notify>);

#[async_trait]
impl Sink for Digests {
    fn name(&self) -> &str {
        "digests"
    }
    fn gathers(&self) -> Option<Span> {
        Some(Span::mins(25))
    }
    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        self.deliver_all(&[event]).await.pop().expect("one")
    }
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        if self.0 == Manner::Away {
            return vec![Err(SinkError::Down("nobody is there".to_owned()))];
        }
        self.1.lock().expect("lock").push(events.iter().map(|event| event.id.to_string()).collect());
        self.2.notify_one();
        if self.0 == Manner::Unheard {
            return std::future::pending().await;
        }
        events.iter().map(|_| Ok(())).collect()
    }
}

#[test]
fn what_was_sent_together_is_sent_again_together_whatever_has_come_since() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let together = Together::default();
    let life = |manner: Manner, from: Span, until: Span| {
        let (runtime, clock) = virtual_runtime(START + from).expect("runtime");
        let sent = Arc::new(tokio::sync::Notify::new());
        let sink = Arc::new(Digests(manner, Arc::clone(&together), Arc::clone(&sent)));
        runtime.block_on(async {
            let engine = start(&store, &clock, vec![sink]).await;
            match manner {
                Manner::Unheard => {
                    sent.notified().await;
                    // Dropped like this it leaves as a process that is killed.
                    drop(engine);
                }
                _ => {
                    clock.sleep_until(START + until).await;
                    engine.shutdown().await.expect("stop");
                }
            }
        });
    };
    life(Manner::Unheard, Span::ZERO, Span::ZERO);
    life(Manner::Away, Span::mins(36), Span::mins(75));
    life(Manner::Takes, Span::mins(76), Span::mins(78));
    let together = together.lock().expect("lock").clone();
    assert_eq!(together.len(), 3, "{together:?}");
    assert_eq!(together[0].len(), 3, "what happened within 25 min: {together:?}");
    assert_eq!(together[1], together[0], "the same again, so under the same id");
    assert!(together[2].iter().all(|id| !together[0].contains(id)), "what came since is another digest");
    let waiting = Handle::new(&store);
    assert_eq!(waiting.left("digests"), 0);
}

/// Reads a store outside any engine.
struct Handle<'a>(&'a SqliteStore, tokio::runtime::Runtime);

impl Handle<'_> {
    fn new(store: &SqliteStore) -> Handle<'_> {
        Handle(store, tokio::runtime::Runtime::new().expect("runtime"))
    }
    fn left(&self, sink: &str) -> usize {
        self.1.block_on(self.0.deliveries(sink, Time(i64::MAX), 100)).expect("deliveries").len()
    }
}

#[tokio::test]
async fn one_pass_waits_until_what_it_brought_about_is_delivered() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let server = Loopback::start(|_| Act::Delay { ms: 50, then: Box::new(answering(200)) });
    for hour in 0..3 {
        let clock = Clock::scaled_from(START + Span::hours(hour), 1.0);
        let config = configured(&store, &clock, vec![hook("hook", &server)], Span::hours(1_000));
        let report = Engine::pass(config, Span::secs(30)).await.expect("a pass");
        assert_eq!(report.polled, 1, "each is due");
    }
    let left = store.deliveries("hook", Time(i64::MAX), 100).await.expect("deliveries");
    assert_eq!((server.stats().requests, left.len()), (2, 0), "taken, and marked as taken");
}

#[tokio::test]
async fn a_receiver_that_is_gone_stays_off_while_the_settings_are_watched() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let server = Loopback::start(|_| answering(410));
    // Ten minutes are a second: the settings are looked at all the time.
    let clock = Clock::scaled_from(START, 600.0);
    let config = configured(&store, &clock, vec![hook("hook", &server)], Span::hours(1_000));
    let engine = Engine::start(config).await.expect("start");
    let mut newest = engine.control().newest();
    newest.wait_for(|seq| *seq >= 4).await.expect("it goes on");
    engine.shutdown().await.expect("stop");
    let off = ("sink.hook.enabled".to_owned(), Value::Bool(false));
    assert_eq!((server.stats().requests, store.settings().await.expect("settings")), (1, vec![off]));
}

#[test]
fn a_live_rule_that_nobody_would_hear_is_refused() {
    let (runtime, clock) = virtual_runtime(START).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let server = Loopback::start(|_| answering(200));
    runtime.block_on(async {
        let mut config = configured(&store, &clock, vec![hook("hook", &server)], Span::hours(1_000));
        config.alerts = Arc::new(stakeout_sources::alert::RuleBook::default());
        let engine = Engine::start(config).await.expect("start");
        let control = engine.control();
        let set = async |more: Value| {
            let mut rule = json!({ "when": { "on": "missed" } });
            rule.as_object_mut().expect("a rule").extend(more.as_object().expect("fields").clone());
            control.set_setting("alert.mine", Some(rule)).await.map_err(|error| error.to_string())
        };
        let sink = set(json!({ "sinks": ["hook", "hok"] })).await.expect_err("refused");
        assert!(sink.contains("\"hok\" is not there") && sink.contains("(hook)"), "{sink}");
        let source = set(json!({ "source": "nz" })).await.expect_err("refused");
        assert!(source.contains("\"nz\" is not there") && source.contains("(s)"), "{source}");
        let untold =
            set(json!({ "when": { "on": "event", "type": "json.chnaged" } })).await.expect_err("refused");
        assert!(untold.contains("json.changed") && untold.contains("json.chnaged"), "{untold}");
        set(json!({ "when": { "on": "event", "type": "json.*" } })).await.expect("accepted");
        control.set_setting("alert.mine", None).await.expect("removed");
        assert!(store.settings().await.expect("settings").is_empty(), "nothing was stored");
        set(json!({ "sinks": ["hook"], "source": "s" })).await.expect("accepted");
        engine.shutdown().await.expect("stop");
    });
}
