//! Listings make targets, failed or doubtful ones retire none, and a budget is shared by what happens.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use stakeout_core::cadence::{Adaptive, Fixed};
use stakeout_core::judge::Trigger;
use stakeout_core::{
    Failure, FailureClass, FieldType, Fingerprint, Kind, Observation, Plan, Record, Request, Response, Rule,
    Source, Span, TargetSpec, Time,
};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::virtual_time::Busy;
use stakeout_engine::{Clock, Control, Engine, EngineConfig, Fetch, virtual_runtime};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store, TargetFilter, Validators};

use support::source::{MadeUp, kind};

/// A source whose catalogue lists its documents, and whose documents have one number each.
fn library(budget: Option<f64>) -> Arc<dyn Source> {
    library_asked_every(Span::secs(10), budget)
}

fn library_asked_every(every: Span, budget: Option<f64>) -> Arc<dyn Source> {
    let fields = ["number", "left", "right"].map(|name| (name, FieldType::Int));
    let documents = Kind { merges: true, ..kind("library", "documents", &fields, vec![]) };
    let changed = Trigger::Changed { fields: vec![] };
    let plan = move |target: &TargetSpec| match (target.role.as_str(), budget) {
        ("catalogue", _) => Plan::Fixed(Fixed { every: Span::secs(60), eager: true, place: None }),
        // All in one place, so that they are polled at the same moment.
        (_, None) => Plan::Fixed(Fixed { every, eager: false, place: Some(Span::ZERO) }),
        (_, Some(_)) => Plan::Adaptive(Adaptive { min: Span::secs(1), max: Span::mins(10), weight: 1.0 }),
    };
    let catalogue = TargetSpec::new("catalogue", "catalogue");
    Arc::new(MadeUp {
        rules: vec![Rule::new("changed", "library.changed", &documents.full_name(), changed)],
        budget,
        ..MadeUp::new("library", vec![documents], catalogue, pages, plan)
    })
}

fn pages(kinds: &[Arc<Kind>], target: &TargetSpec, body: &[u8]) -> Result<Observation, Failure> {
    let malformed = |error: serde_json::Error| Failure::malformed(error.to_string());
    let body: Value = serde_json::from_slice(body).map_err(malformed)?;
    if target.role == "catalogue" {
        let keys: Vec<String> = serde_json::from_value(body).map_err(malformed)?;
        let targets = keys.into_iter().map(|key| TargetSpec::new(key, "document")).collect();
        return Ok(Observation { targets: Some(targets), ..Observation::complete(vec![]) });
    }
    let key = target.key.split('/').next().filter(|first| *first == "shared").unwrap_or(&target.key);
    let field = |name: &str| stakeout_core::Value::from_json(body.get(name).unwrap_or(&Value::Null));
    let number = body.as_i64().map_or_else(|| field("number"), stakeout_core::Value::from);
    let values = vec![number, field("left"), field("right")];
    Ok(Observation::complete(vec![Record::new(&kinds[0], &[key], values)]))
}

/// What the upstream says about a path at a time.
type Says = dyn Fn(&str, Time) -> Result<Value, FailureClass> + Send + Sync;

struct Upstream {
    says: Box<Says>,
    asked: Mutex<BTreeMap<String, u64>>,
}

#[async_trait]
impl Fetch for Upstream {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        *self.asked.lock().expect("lock").entry(request.url.clone()).or_default() += 1;
        let said =
            (self.says)(&request.url, clock.now()).map_err(|class| Failure::new(class, "simulated"))?;
        let body = Bytes::from(said.to_string());
        let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

const START: Time = Time::from_secs(1_768_000_000);

struct World {
    clock: Clock,
    control: Control,
    store: Arc<SqliteStore>,
    upstream: Arc<Upstream>,
    /// Time stands still while a story looks around.
    still: Mutex<Option<Busy>>,
}

impl World {
    /// Lets time pass until then.
    async fn at(&self, seconds: i64) {
        self.still.lock().expect("lock").take();
        self.clock.sleep_until(START + Span::secs(seconds)).await;
        *self.still.lock().expect("lock") = self.clock.busy();
    }

    async fn keys(&self) -> Vec<String> {
        let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
        let rows = self.store.targets(&filter).await.expect("targets");
        let mut keys: Vec<String> =
            rows.into_iter().map(|r| r.spec.key).filter(|k| k != "catalogue").collect();
        keys.sort();
        keys
    }
}

fn in_world<T>(
    budget: Option<f64>,
    says: impl Fn(&str, Time) -> Result<Value, FailureClass> + Send + Sync + 'static,
    story: impl AsyncFnOnce(&World) -> T,
) -> T {
    in_world_of(library(budget), says, story)
}

fn in_world_of<T>(
    source: Arc<dyn Source>,
    says: impl Fn(&str, Time) -> Result<Value, FailureClass> + Send + Sync + 'static,
    story: impl AsyncFnOnce(&World) -> T,
) -> T {
    let (runtime, clock) = virtual_runtime(START).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let upstream = Arc::new(Upstream { says: Box::new(says), asked: Mutex::default() });
    let mut config = EngineConfig::new(store.clone(), vec![source], upstream.clone());
    config.clock = clock.clone();
    runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        let still = Mutex::default();
        let world = World { clock, control: engine.control(), store, upstream, still };
        let result = story(&world).await;
        engine.shutdown().await.expect("stop");
        result
    })
}

fn numbered(keys: &[u32]) -> Value {
    json!(keys.iter().map(|n| format!("doc/{n}")).collect::<Vec<_>>())
}

#[test]
fn a_listing_makes_and_retires_targets_and_an_admins_switch_survives() {
    let says = |path: &str, now: Time| {
        let listed = if now - START < Span::secs(90) { numbered(&[1, 2, 3]) } else { numbered(&[2, 3, 4]) };
        Ok(if path == "catalogue" { listed } else { json!(7) })
    };
    in_world(None, says, async |world| {
        world.at(30).await;
        assert_eq!(world.keys().await, ["doc/1", "doc/2", "doc/3"]);
        assert_eq!(world.store.stats().await.expect("stats").records, 3);
        world.control.set_enabled("library", "doc/2", false).await.expect("disable");
        world.at(170).await;
        assert_eq!(world.keys().await, ["doc/2", "doc/3", "doc/4"]);
        let two = world.store.target("library", "doc/2").await.expect("read").expect("exists");
        assert!(!two.enabled, "discovery does not undo what a person switched off");
        assert_eq!(
            world.store.stats().await.expect("stats").records,
            3,
            "the retired target let go of its record"
        );
        let asked = world.upstream.asked.lock().expect("lock").clone();
        assert!(asked["doc/2"] < asked["doc/3"], "{asked:?}");
    });
}

#[test]
fn failed_and_doubtful_listings_retire_nothing() {
    let all: Vec<u32> = (0..10).collect();
    let says = move |path: &str, now: Time| match (path, (now - START).as_us() / 60_000_000) {
        ("catalogue", 1) => Err(FailureClass::ServerError),
        // One empty listing is an accident…
        ("catalogue", 3) => Ok(numbered(&[])),
        // …two in a row are the truth.
        ("catalogue", 6..) => Ok(numbered(&[4])),
        ("catalogue", _) => Ok(numbered(&all)),
        _ => Ok(json!(1)),
    };
    in_world(None, says, async |world| {
        for (minute, expected) in [(0, 10), (1, 10), (2, 10), (3, 10), (5, 10), (6, 10), (8, 1)] {
            world.at(minute * 60 + 55).await;
            assert_eq!(world.keys().await.len(), expected, "minute {minute}");
        }
    });
}

#[test]
fn what_a_person_switched_off_stays_off_when_it_is_listed_again() {
    let says = |path: &str, now: Time| {
        let dropped = (now - START).as_us() / 60_000_000 == 2;
        let listed = if dropped { numbered(&[1]) } else { numbered(&[1, 2]) };
        Ok(if path == "catalogue" { listed } else { json!(1) })
    };
    in_world(None, says, async |world| {
        world.at(50).await;
        world.control.set_enabled("library", "doc/2", false).await.expect("disable");
        world.at(179).await;
        assert_eq!(world.keys().await, ["doc/1"]);
        world.at(300).await;
        let back = world.store.target("library", "doc/2").await.expect("read").expect("listed again");
        assert_eq!((back.enabled, back.poll_no), (false, 0));
        world.control.set_enabled("library", "doc/2", true).await.expect("enable");
        world.at(330).await;
        let on = world.store.target("library", "doc/2").await.expect("read").expect("exists");
        assert!(on.enabled && on.poll_no > 0);
    });
}

#[test]
fn an_unchanged_listing_writes_nothing() {
    let says = |path: &str, _: Time| Ok(if path == "catalogue" { numbered(&[1, 2]) } else { json!(1) });
    in_world(None, says, async |world| {
        world.at(130).await;
        let row = world.store.target("library", "catalogue").await.expect("read").expect("exists");
        assert_eq!((row.state.memory.version, row.poll_no >= 3), (1, true));
        let one = world.store.target("library", "doc/1").await.expect("read").expect("exists");
        assert_eq!(one.plan_version, 0, "nobody touched it");
    });
}

#[test]
fn one_empty_listing_retires_nothing_even_when_a_new_baseline_is_wanted() {
    let says = |path: &str, now: Time| {
        let outage = (Span::secs(115)..Span::secs(125)).contains(&(now - START));
        let listed = if outage { numbered(&[]) } else { numbered(&[0, 1, 2, 3, 4, 5, 6, 7]) };
        Ok(if path == "catalogue" { listed } else { json!(1) })
    };
    in_world(None, says, async |world| {
        world.at(116).await;
        world.control.rebaseline("library", "catalogue").await.expect("rebaseline");
        world.control.poll_now("library", "catalogue").await.expect("poll now");
        world.at(124).await;
        assert_eq!(world.keys().await.len(), 8, "during the outage");
        world.at(300).await;
        assert_eq!(world.keys().await.len(), 8, "after it");
    });
}

#[test]
fn two_targets_that_see_one_record_change_at_once_tell_it_once_and_lose_nothing() {
    let says = |path: &str, now: Time| {
        let (number, own) = if now - START > Span::secs(100) { (2, 20) } else { (1, 10) };
        Ok(match path {
            "catalogue" => json!(["shared/left", "shared/right"]),
            "shared/left" => json!({"number": number, "left": own}),
            _ => json!({"number": number, "right": own}),
        })
    };
    in_world(None, says, async |world| {
        world.at(300).await;
        let print = Fingerprint::of("library_documents", &["shared"]);
        let record = world.store.records("library", &[print]).await.expect("read").remove(0);
        assert_eq!(record.body, json!({"number": 2, "left": 20, "right": 20}));
        let events = world.store.events(0, &EventFilter::default(), 100).await.expect("events");
        let told = events.iter().filter(|event| {
            event.data["changes"]
                .as_array()
                .is_some_and(|changes| changes.iter().any(|c| c["field"] == "number"))
        });
        assert_eq!(told.count(), 1, "{events:?}");
    });
}

#[test]
fn what_a_listing_no_longer_has_is_not_asked_once_more() {
    // Documents are due every five minutes, 200 s after the start for the first time, and stay claimed in between.
    let source = library_asked_every(Span::mins(5), None);
    let says = |path: &str, now: Time| {
        let listed = if now - START < Span::secs(250) { numbered(&[1, 2]) } else { numbered(&[2]) };
        Ok(if path == "catalogue" { listed } else { json!(7) })
    };
    in_world_of(source, says, async |world| {
        world.at(240).await;
        assert_eq!(world.control.looks().taken, 3, "the catalogue and two documents");
        world.at(700).await;
        assert_eq!(world.keys().await, ["doc/2"]);
        let asked = world.upstream.asked.lock().expect("lock").clone();
        assert_eq!((asked.get("doc/1"), asked.get("doc/2")), (Some(&1), Some(&2)), "{asked:?}");
        assert_eq!(world.control.looks().taken, 3, "who stays on the list stays claimed");
    });
}

#[test]
fn what_a_claim_remembers_is_not_believed_once_another_target_has_changed_it() {
    // Both are polled every ten seconds, so their claims are kept and remember what they wrote.
    let says = |path: &str, now: Time| {
        let since = |seconds: i64| i64::from(now - START > Span::secs(seconds));
        Ok(match path {
            "catalogue" => json!(["shared/left", "shared/right"]),
            "shared/left" => json!({"number": 1, "left": since(100) + since(200)}),
            _ => json!({"number": 1, "right": since(150)}),
        })
    };
    in_world(None, says, async |world| {
        world.at(300).await;
        let print = Fingerprint::of("library_documents", &["shared"]);
        let record = world.store.records("library", &[print]).await.expect("read").remove(0);
        assert_eq!(record.body, json!({"number": 1, "left": 2, "right": 1}), "nothing is undone");
        let events = world.store.events(0, &EventFilter::default(), 100).await.expect("events");
        let told: Vec<&Value> = events.iter().map(|event| &event.data["changes"]).collect();
        let moved = |field: &str, old: i64| json!([{"field": field, "old": old, "new": old + 1}]);
        let expected = [moved("left", 0), moved("right", 0), moved("left", 1)];
        assert!(told.iter().copied().rev().take(3).rev().eq(&expected), "{told:?}");
    });
}

#[test]
fn the_budget_goes_where_things_happen_and_is_kept() {
    // doc/0 changes every 20 s, the other nine never; two requests a second for all.
    let says = |path: &str, now: Time| {
        let tick = (now - START).as_us() / 20_000_000;
        Ok(match path {
            "catalogue" => numbered(&(0..10).collect::<Vec<u32>>()),
            "doc/0" => json!(tick),
            _ => json!(0),
        })
    };
    let asked = in_world(Some(2.0), says, async |world| {
        world.at(3_600).await;
        let before = world.upstream.asked.lock().expect("lock").clone();
        world.at(7_200).await;
        let after = world.upstream.asked.lock().expect("lock").clone();
        after.into_iter().map(|(key, n)| (key.clone(), n - before[&key])).collect::<BTreeMap<_, _>>()
    });
    let documents: u64 = asked.iter().filter(|(key, _)| *key != "catalogue").map(|(_, n)| n).sum();
    let cold = asked["doc/1"].max(1);
    assert!(asked["doc/0"] > 5 * cold, "hot {} against cold {cold}", asked["doc/0"]);
    assert!(
        (6_000..=7_500).contains(&documents),
        "{documents} requests in an hour of 2 per second: {asked:?}"
    );
}

/// A race meeting with one race, listed with a start and a status, about which its own answer says what `race` does.
fn race_day(path: &str, (start, status): (Time, &str), race: Value) -> Value {
    if path.contains("/events/") {
        let runner = json!({"entrant_id": "a", "name": "A", "runner_number": 1, "is_scratched": false});
        return json!({"data": {"race": race, "runners": [runner]}});
    }
    let races = json!([{"id": "r", "race_number": 1, "name": "R", "start_time": start.to_string(),
        "status": status}]);
    let meeting = json!({"meeting": "m", "name": "M", "date": "2026-01-10T00:00:00Z", "country": "NZ",
        "category": "T", "races": races});
    let is_its_day = path.contains("date_from=2026-01-10");
    json!({"data": {"meetings": if is_its_day { vec![meeting] } else { vec![] }}})
}

fn racing() -> Arc<dyn Source> {
    let identity = Identity { from: "ops@example.org".into(), partner: "E".into(), partner_id: "e".into() };
    let config: RacingConfig = serde_json::from_value(json!({})).expect("a configuration");
    Arc::new(RacingSource::new("nz", &config, identity).expect("a source"))
}

/// The types of everything that was told.
async fn told(world: &World) -> Vec<String> {
    let events = world.store.events(0, &EventFilter::default(), 100).await.expect("events");
    events.into_iter().map(|event| event.event_type).collect()
}

#[test]
fn a_listing_that_lags_behind_a_race_turns_nothing_back_and_tells_nothing_twice() {
    // The race itself is interim at 00:29:45; the catalogue, read at half past, still has it closed.
    let start = Time::parse("2026-01-10T00:25:00Z").expect("a time");
    let says = move |path: &str, now: Time| {
        let status = |now: Time| match now - start {
            late if late >= Span::mins(12) => "Final",
            late if late >= Span::secs(280) => "Interim",
            late if late >= Span::mins(4) => "Closed",
            _ => "Open",
        };
        let race = json!({"event_id": "r", "meeting_id": "m", "status": status(now),
            "advertised_start": start.to_string()});
        Ok(race_day(path, (start, status(now - Span::secs(30))), race))
    };
    let minutes = move |after: i64| (start - START).as_ms() / 1_000 + after * 60;
    in_world_of(racing(), says, async |world| {
        let status = async || {
            let race = Fingerprint::of("racing_races", &["r"]);
            world.store.records("nz", &[race]).await.expect("read").remove(0).body["status"].clone()
        };
        world.at(minutes(8)).await;
        assert_eq!(status().await, json!("Interim"), "half past was three minutes ago");
        world.at(minutes(40)).await;
        assert_eq!(status().await, json!("Final"));
        let once = ["closed", "started", "interim", "final"].map(|word| format!("racing.race.{word}"));
        assert_eq!(told(world).await, once);
    });
}

#[test]
fn a_start_that_jumps_ahead_and_back_between_two_listings_puts_no_race_to_sleep() {
    // The catalogue is read on the hour and half past; the jump is over before it is read again.
    let start = Time::parse("2026-01-10T00:20:00Z").expect("a time");
    let asked: Arc<Mutex<Vec<i64>>> = Arc::default();
    let log = Arc::clone(&asked);
    let says = move |path: &str, now: Time| {
        if path.contains("/events/") {
            log.lock().expect("lock").push((now - start).as_ms().div_euclid(1_000));
        }
        let jumped = now >= start - Span::mins(18) && now < start - Span::mins(6);
        let advertised = if jumped { start + Span::hours(3) } else { start };
        let (status, actual) = match now {
            now if now >= start + Span::mins(10) => ("Final", json!((start + Span::secs(40)).to_string())),
            now if now >= start + Span::mins(1) => ("Closed", json!((start + Span::secs(40)).to_string())),
            _ => ("Open", json!(0)),
        };
        Ok(race_day(
            path,
            (start, "Open"),
            json!({"event_id": "r", "meeting_id": "m", "status": status,
            "advertised_start": advertised.to_string(), "actual_start": actual}),
        ))
    };
    in_world_of(racing(), says, async |world| {
        world.at((start - START).as_ms() / 1_000 + 1_200).await;
        let asked = asked.lock().expect("lock").clone();
        let after = |second: i64| asked.iter().copied().filter(|s| *s >= second).take(5).collect::<Vec<_>>();
        assert_eq!(after(-18 * 60), [-1_080, -960, -840, -720, -600], "while it seems far away");
        assert_eq!(after(-30), [-30, -15, 0, 15, 30], "{asked:?}");
        let events = world.store.events(0, &EventFilter::default(), 100).await.expect("events");
        let told: Vec<&str> = events.iter().map(|event| event.event_type.as_str()).collect();
        let retimed = "racing.race.retimed";
        assert_eq!(
            told,
            [retimed, retimed, "racing.race.started", "racing.race.closed", "racing.race.final"]
        );
    });
}
