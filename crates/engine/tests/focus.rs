//! What follows from all records together: one leg of a relay has the focus, and nobody keeps it waiting.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value as Json, json};
use stakeout_core::cadence::{Fixed, Focus};
use stakeout_core::derive::{Derived, Derives, Holdings, Published};
use stakeout_core::judge::{Draft, Effect};
use stakeout_core::{
    Exchange, Facts, Failure, FailureClass, Field, FieldType, Fingerprint, Kind, Limits, Looks, Observation,
    Plan, PollContext, Record, Request, Response, Rule, SettingRefused, Source, Span, TargetSpec, Time,
    Value,
};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::virtual_time::Busy;
use stakeout_engine::{Clock, Control, Engine, EngineConfig, EngineError, Fetch, virtual_runtime};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store, TargetFilter, TargetRow, Validators};

/// A relay of legs; the first one that runs has the focus, and each has its rank among those that run.
#[derive(Clone)]
struct Relay {
    kinds: Vec<Arc<Kind>>,
    limits: Limits,
    legs: u32,
    active: Span,
    every: Span,
    looks: Looks,
}

impl Relay {
    fn new(legs: u32) -> Relay {
        let kind = Kind {
            family: "relay".into(),
            collection: "legs".into(),
            version: 1,
            fields: vec![
                Field::new("running", FieldType::Bool),
                Field::new("laps", FieldType::Int),
                Field::new("rank", FieldType::Int).derived(),
            ],
            streams: vec![],
            merges: false,
            views: vec![],
            layout: Default::default(),
        };
        let limits = Limits {
            requests_per_second: 1e4,
            burst: 1_000,
            concurrency: 1,
            min_gap: Span::ms(5),
            max_jitter: Span::ZERO,
            ..Limits::default()
        };
        let (active, every) = (Span::ms(200), Span::secs(1));
        Relay { kinds: vec![Arc::new(kind)], limits, legs, active, every, looks: Looks::default() }
    }

    fn leg(n: &str) -> TargetSpec {
        TargetSpec { priority: 10, ..TargetSpec::new(format!("leg/{n}"), "leg") }
    }
}

impl Source for Relay {
    fn name(&self) -> &str {
        "relay"
    }
    fn family(&self) -> &str {
        "relay"
    }
    fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }
    fn rules(&self) -> &[Rule] {
        &[]
    }
    fn limits(&self) -> &Limits {
        &self.limits
    }
    fn roots(&self, _: Time) -> Vec<TargetSpec> {
        let mut roots: Vec<_> = (0..self.legs).map(|n| Relay::leg(&n.to_string())).collect();
        roots.push(TargetSpec { priority: 20, ..TargetSpec::new("board", "board") });
        roots
    }
    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        if so_far.is_empty() { vec![Request::get(target.key.clone())] } else { vec![] }
    }
    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        _: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        let response = exchanges[0].result.as_ref().map_err(Clone::clone)?;
        let body: Json =
            serde_json::from_slice(&response.body).map_err(|e| Failure::malformed(e.to_string()))?;
        let mut observation = Observation::complete(vec![]);
        if let Some(n) = target.key.strip_prefix("leg/") {
            let field = |name: &str| Value::from_json(&body[name]);
            let values = vec![field("running"), field("laps"), Value::Null];
            observation.records.push(Record::new(&self.kinds[0], &[n], values));
        } else {
            observation.facts.notes.insert("named".into(), Value::from_json(&body["named"]));
        }
        Ok(observation)
    }
    fn plan(&self, target: &TargetSpec, _: &Facts) -> Plan {
        match target.role.as_str() {
            "leg" => Plan::Focus(Focus { active: self.active, idle: Span::secs(5) }),
            _ => Plan::Fixed(Fixed { every: Span::secs(1), eager: true, place: None }),
        }
    }
    fn looks(&self) -> Looks {
        self.looks
    }
    fn due_now(&self, _: &TargetSpec, before: &Facts, now: &Facts) -> Option<String> {
        let named = |facts: &Facts| facts.notes.get("named").and_then(Value::as_text).map(str::to_owned);
        named(now).filter(|key| named(before).as_ref() != Some(key))
    }
    fn derives(&self) -> Option<Derives> {
        Some(Derives {
            every: self.every,
            kinds: vec!["relay_legs".into()],
            published: vec![("relay".into(), "current".into())],
        })
    }
    fn derive(&self, holdings: &Holdings<'_>) -> Derived {
        let mut running: Vec<_> = holdings.records.iter().filter(|r| r.body["running"] == true).collect();
        running.sort_by_key(|record| record.key.clone());
        let current = running.first().map(|record| record.key.clone());
        let ranked = holdings.records.iter().map(|record| {
            let rank = running.iter().position(|other| other.key == record.key).map(|n| n as i64);
            let value = |name: &str| Value::from_json(&record.body[name]);
            Record::new(&self.kinds[0], &[&record.key], vec![value("running"), value("laps"), rank.into()])
        });
        let stored = holdings.value("relay", "current").map(|value| value["leg"].clone());
        let told = current.clone().filter(|leg| stored != Some(json!(leg))).map(|leg| Draft {
            rule: "current".into(),
            event_type: "relay.current".into(),
            subject: Fingerprint::of("relay_legs", &[&leg]),
            subject_key: leg.clone(),
            at: None,
            data: json!({ "leg": leg }),
            dedupe_key: None,
            requires: Effect::Any,
            quiet: None,
            unseen_for: None,
        });
        Derived {
            focus: current.as_deref().map(Relay::leg),
            published: vec![Published {
                namespace: "relay".into(),
                key: "current".into(),
                value: json!({ "leg": current, "at": holdings.now }),
                stamp: Some("at".into()),
            }],
            records: ranked.collect(),
            drafts: told.into_iter().collect(),
        }
    }
    fn open_settings(&self) -> Option<&str> {
        Some("relay.")
    }
    fn configured(&self, settings: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        let mut source = self.clone();
        for (name, value) in settings {
            let ms = value.as_i64().filter(|ms| *ms > 0);
            let ms = ms.ok_or_else(|| SettingRefused::new(name, value, "give milliseconds above 0"))?;
            match name.as_str() {
                "relay.activeMs" => source.active = Span::ms(ms),
                "relay.everyMs" => source.every = Span::ms(ms),
                "relay.lookMs" => source.looks.every = Span::ms(ms),
                "relay.most" => source.looks.most = ms as u32,
                _ => return Err(SettingRefused::new(name, value, "there is no such setting")),
            }
        }
        Ok(Arc::new(source))
    }
}

type Says = dyn Fn(&str, Span) -> Result<Json, FailureClass> + Send + Sync;

/// An upstream that takes its time, and notes who asked when and how many at once.
struct Upstream {
    says: Box<Says>,
    takes: fn(&str) -> Span,
    asked: Mutex<Vec<(Time, String)>>,
    at_once: AtomicU32,
    most_at_once: AtomicU32,
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
        let now = clock.now();
        self.asked.lock().expect("lock").push((now, request.url.clone()));
        let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        clock.sleep_until(now + (self.takes)(&request.url)).await;
        self.at_once.fetch_sub(1, Ordering::Relaxed);
        let said = (self.says)(&request.url, clock.now() - START);
        let body = Bytes::from(said.map_err(|class| Failure::new(class, "simulated"))?.to_string());
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
    still: Mutex<Option<Busy>>,
}

impl World {
    async fn at(&self, seconds: f64) {
        self.still.lock().expect("lock").take();
        self.clock.sleep_until(START + Span::from_secs_f64(seconds)).await;
        *self.still.lock().expect("lock") = self.clock.busy();
    }

    async fn rows(&self) -> Vec<TargetRow> {
        let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
        self.store.targets(&filter).await.expect("targets")
    }

    async fn focused(&self) -> Vec<String> {
        let rows = self.rows().await;
        rows.into_iter().filter(|row| row.state.facts.focused).map(|row| row.spec.key).collect()
    }

    async fn published(&self) -> Json {
        self.store.kv("relay", "current").await.expect("kv").map_or(Json::Null, |row| row.value)
    }

    /// When a target was asked, in milliseconds from the start, within a window.
    fn asked(&self, key: &str, from: f64, to: f64) -> Vec<i64> {
        let window = START + Span::from_secs_f64(from)..START + Span::from_secs_f64(to);
        let asked = self.upstream.asked.lock().expect("lock");
        let times = asked.iter().filter(|(at, url)| url == key && window.contains(at));
        times.map(|(at, _)| (*at - START).as_ms()).collect()
    }
}

fn in_world<T>(
    relay: Relay,
    takes: fn(&str) -> Span,
    says: impl Fn(&str, Span) -> Result<Json, FailureClass> + Send + Sync + 'static,
    story: impl AsyncFnOnce(&World) -> T,
) -> T {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    in_world_with(store, START, relay, takes, says, story)
}

fn in_world_with<T>(
    store: Arc<SqliteStore>,
    from: Time,
    relay: Relay,
    takes: fn(&str) -> Span,
    says: impl Fn(&str, Span) -> Result<Json, FailureClass> + Send + Sync + 'static,
    story: impl AsyncFnOnce(&World) -> T,
) -> T {
    let (runtime, clock) = virtual_runtime(from).expect("runtime");
    let upstream = Arc::new(Upstream {
        says: Box::new(says),
        takes,
        asked: Mutex::default(),
        at_once: AtomicU32::new(0),
        most_at_once: AtomicU32::new(0),
    });
    let mut config = EngineConfig::new(store.clone(), vec![Arc::new(relay)], upstream.clone());
    config.clock = clock.clone();
    runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        let still = Mutex::default();
        let world = World { clock, control: engine.control(), store, upstream, still };
        let result = story(&world).await;
        drop(world.still.lock().expect("lock").take());
        engine.shutdown().await.expect("stop");
        result
    })
}

fn quick(_: &str) -> Span {
    Span::ms(5)
}

/// Leg `current` runs; the board says nothing.
fn running(path: &str, current: &str) -> Json {
    if path == "board" { json!({}) } else { json!({ "running": path == current, "laps": 0 }) }
}

#[test]
fn the_focus_follows_the_records_touches_two_rows_and_is_told_once() {
    let says = |path: &str, at: Span| Ok(running(path, if at < Span::secs(30) { "leg/3" } else { "leg/7" }));
    in_world(Relay::new(20), quick, says, async |world| {
        world.at(25.0).await;
        assert_eq!(world.focused().await, ["leg/3"]);
        assert_eq!(world.published().await["leg"], "3");
        let before: BTreeMap<String, u64> =
            world.rows().await.into_iter().map(|row| (row.spec.key, row.plan_version)).collect();
        let mut published = world.control.published();

        world.at(60.0).await;
        assert_eq!(world.focused().await, ["leg/7"]);
        // Nobody was running for a moment, and then the other one.
        assert_eq!(published.try_recv().expect("announced").value["leg"], json!(null));
        assert_eq!(published.try_recv().expect("announced").value["leg"], "7");
        assert!(published.try_recv().is_err(), "what does not change is not published");
        let rows = world.rows().await;
        let touched: Vec<&str> = rows
            .iter()
            .filter(|row| row.plan_version != before[&row.spec.key])
            .map(|row| row.spec.key.as_str())
            .collect();
        assert_eq!(touched, ["leg/3", "leg/7"]);
        let events = world.store.events(0, &EventFilter::default(), 100).await.expect("events");
        let told: Vec<&str> = events.iter().map(|event| event.subject_key.as_str()).collect();
        assert_eq!(told, ["3", "7"]);
        let polls = |key, from, to| world.asked(key, from, to).len();
        assert_eq!((polls("leg/3", 40.0, 60.0), polls("leg/7", 40.0, 60.0)), (4, 100));
    });
}

#[test]
fn a_restart_writes_and_tells_nothing_again() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let says = |path: &str, _: Span| Ok(running(path, "leg/1"));
    in_world_with(store.clone(), START, Relay::new(3), quick, says, async |world| world.at(20.0).await);
    let events = |store: &SqliteStore| {
        let counters = store.counters();
        counters.durable_transactions()
    };
    let before = events(&store);
    in_world_with(store.clone(), START + Span::secs(21), Relay::new(3), quick, says, async |world| {
        world.at(60.0).await;
        assert_eq!(world.focused().await, ["leg/1"]);
        let events = world.store.events(0, &EventFilter::default(), 100).await.expect("events");
        assert_eq!(events.len(), 1);
    });
    // The roots are reconciled once, durably; nothing else had to reach the disk.
    assert_eq!(events(&store) - before, 1);
}

#[test]
fn a_derived_field_outlives_the_polls_of_its_record() {
    let says = |path: &str, at: Span| {
        let laps = at.as_us() / 10_000_000;
        Ok(match path {
            "leg/1" | "leg/2" => json!({ "running": true, "laps": laps }),
            other => running(other, ""),
        })
    };
    in_world(Relay::new(3), quick, says, async |world| {
        for seconds in [29.0, 59.0] {
            world.at(seconds).await;
            let prints = ["1", "2"].map(|n| Fingerprint::of("relay_legs", &[n]));
            let records = world.store.records("relay", &prints).await.expect("records");
            let ranks: Vec<_> =
                records.iter().map(|r| (r.body["rank"].clone(), r.body["laps"].clone())).collect();
            let laps = json!(seconds as i64 / 10);
            assert_eq!(ranks, [(json!(0), laps.clone()), (json!(1), laps)]);
        }
    });
}

#[test]
fn idle_targets_never_delay_the_focus() {
    // Forty idle legs, each of which takes 80 ms: most of the upstream's time.
    let takes = |path: &str| if path == "leg/0" { Span::ms(20) } else { Span::ms(80) };
    let says = |path: &str, _: Span| Ok(running(path, "leg/0"));
    in_world(Relay::new(40), takes, says, async |world| {
        world.at(120.0).await;
        let asked = world.asked("leg/0", 30.0, 120.0);
        let late = asked.windows(2).map(|pair| pair[1] - pair[0] - 200).filter(|late| *late != 0).count();
        assert_eq!((asked.len(), late), (450, 0), "200 ms means 200 ms");
        let idle: usize = (1..40).map(|n| world.asked(&format!("leg/{n}"), 30.0, 120.0).len()).sum();
        assert!(idle >= 39 * 17, "{idle} idle polls of 702: they are not starved either");
        assert_eq!(world.upstream.most_at_once.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn an_upstream_that_is_too_slow_delays_the_focus_by_one_request_at_most() {
    let takes = |path: &str| if path == "leg/0" { Span::ms(20) } else { Span::ms(300) };
    let says = |path: &str, _: Span| Ok(running(path, "leg/0"));
    in_world(Relay::new(4), takes, says, async |world| {
        world.at(120.0).await;
        let asked = world.asked("leg/0", 30.0, 120.0);
        let longest = asked.windows(2).map(|pair| pair[1] - pair[0]).max().expect("asked");
        assert!(longest <= 200 + 300 + 5, "{longest} ms between two looks");
        let idle = world.asked("leg/1", 30.0, 120.0).len();
        assert!(idle >= 17, "{idle} looks at an idle leg in 90 s");
    });
}

#[test]
fn a_hint_makes_another_target_due_at_once() {
    let says = |path: &str, at: Span| {
        Ok(match path {
            "board" if at > Span::ms(22_500) => json!({ "named": "leg/2" }),
            other => running(other, ""),
        })
    };
    in_world(Relay::new(3), quick, says, async |world| {
        world.at(40.0).await;
        let board = world.asked("board", 22.5, 24.0)[0];
        let leg = world.asked("leg/2", 0.0, 40.0);
        let extra: Vec<i64> = leg.iter().copied().filter(|at| (board..board + 50).contains(at)).collect();
        assert_eq!(extra.len(), 1, "{leg:?} after the hint at {board}");
        assert_eq!(leg.iter().filter(|at| **at >= 20_000).count(), 5, "once, and then as planned: {leg:?}");
    });
}

#[test]
fn settings_by_their_plain_name_hold_at_once_and_wrong_ones_are_refused() {
    let says = |path: &str, _: Span| Ok(running(path, "leg/0"));
    in_world(Relay::new(2), quick, says, async |world| {
        world.at(20.0).await;
        world.control.set_setting("relay.activeMs", Some(json!(500))).await.expect("accepted");
        world.at(40.0).await;
        assert_eq!(world.asked("leg/0", 21.0, 31.0).len(), 20);
        let refused = world.control.set_setting("relay.activeMs", Some(json!(-1))).await;
        assert!(matches!(refused, Err(EngineError::Setting(_))), "{refused:?}");
        // The source's own goes before what holds for all.
        world.control.set_setting("source.relay.relay.activeMs", Some(json!(100))).await.expect("accepted");
        world.at(60.0).await;
        assert_eq!(world.asked("leg/0", 41.0, 51.0).len(), 100);
        world.control.set_setting("source.relay.relay.activeMs", None).await.expect("removed");
        world.at(80.0).await;
        assert_eq!(world.asked("leg/0", 61.0, 71.0).len(), 20);
        let unknown = world.control.set_setting("nobody.knows", Some(json!(1))).await;
        assert!(matches!(unknown, Err(EngineError::UnknownSetting { .. })), "{unknown:?}");
    });
}

#[test]
fn the_longest_time_between_two_looks_is_kept() {
    let noticed = |look_ms: i64| {
        let says = |path: &str, _: Span| Ok(running(path, ""));
        let relay = Relay { looks: Looks { every: Span::ms(look_ms), ..Looks::default() }, ..Relay::new(1) };
        // The board keeps a claim all the time; without it, the claimer would have nothing to wait for.
        in_world(relay, quick, says, async |world| {
            world.at(10.0).await;
            let row = world.store.target("relay", "leg/0").await.expect("read").expect("exists");
            world.control.set_enabled("relay", "leg/0", false).await.expect("off");
            world.at(20.0).await;
            // Switched on behind the engine's back: nobody announces it.
            world.store.set_enabled(row.id, true, world.clock.now()).await.expect("on");
            world.at(30.0).await;
            world.asked("leg/0", 20.0, 30.0)[0] - 20_000
        })
    };
    let (soon, late) = (noticed(100), noticed(900));
    assert!(soon <= 100 && late > 100 && late <= 900, "noticed after {soon} ms and {late} ms");
}

#[test]
fn a_look_takes_no_more_than_allowed_and_goes_on_at_once() {
    let most = |most: u32| {
        let says = |path: &str, _: Span| Ok(running(path, ""));
        let relay = Relay { looks: Looks { most, ..Looks::default() }, ..Relay::new(30) };
        in_world(relay, quick, says, async |world| {
            world.at(60.0).await;
            (world.control.looks().most, world.asked("leg/7", 30.0, 60.0).len())
        })
    };
    assert_eq!(most(2), (2, 6));
    let (taken, asked) = most(500);
    assert!(taken > 2 && asked == 6, "{taken} at once");
}

#[test]
fn without_news_the_whole_is_looked_at_every_so_often() {
    // The focus is taken away behind the engine's back; only the regular look can notice.
    let healed = |every: Span| {
        let says = |path: &str, _: Span| Ok(running(path, "leg/0"));
        in_world(Relay { every, ..Relay::new(2) }, quick, says, async |world| {
            world.at(20.0).await;
            let row = world.store.target("relay", "leg/0").await.expect("read").expect("exists");
            let lost = stakeout_store::DeriveCommit {
                source: "relay".into(),
                now: world.clock.now(),
                focused_before: vec![row.id],
                create: None,
                refocus: vec![stakeout_store::Refocus {
                    key: "leg/0".into(),
                    schedule: row.schedule,
                    focused: false,
                }],
                kv: vec![],
                records: vec![],
                events: vec![],
                sinks: vec![],
            };
            world.store.derive(lost).await.expect("taken away");
            assert!(world.focused().await.is_empty());
            world.at(21.5).await;
            world.focused().await.len()
        })
    };
    assert_eq!((healed(Span::secs(1)), healed(Span::hours(1))), (1, 0));
}

#[test]
fn a_setting_that_changes_while_a_poll_is_under_way_holds_from_its_end_on() {
    let takes = |path: &str| if path == "leg/0" { Span::secs(2) } else { Span::ms(5) };
    let says = |path: &str, _: Span| Ok(running(path, "leg/0"));
    in_world(Relay { active: Span::secs(20), ..Relay::new(1) }, takes, says, async |world| {
        world.at(70.0).await;
        let sent = *world.asked("leg/0", 0.0, 70.0).last().expect("asked");
        let seconds = |ms: i64| (sent + ms) as f64 / 1e3;
        world.at(seconds(21_000)).await;
        assert_eq!(world.asked("leg/0", seconds(19_999), seconds(21_000)).len(), 1, "it is under way");
        world.control.set_setting("relay.activeMs", Some(json!(4_000))).await.expect("accepted");
        world.at(seconds(27_000)).await;
        assert_eq!(world.asked("leg/0", seconds(21_000), seconds(27_000)).len(), 1, "not after 20 s");
    });
}
