//! Repeats in virtual time: what lasts is told again after the rule's time, by one of several engines and beyond a crash,
//! and no longer than it lasts.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use stakeout_core::alert::EVENT_TYPE;
use stakeout_core::cadence::Fixed;
use stakeout_core::derive::{Derived, Derives, Holdings, Published};
use stakeout_core::judge::{Draft, Effect, Trigger};
use stakeout_core::{
    Failure, FieldType, Fingerprint, Kind, Observation, Plan, Record, Rule, Source, Span, TargetSpec, Time,
};
use stakeout_engine::{Clock, Engine, EngineConfig, EngineHandle, virtual_runtime};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, EventWrite, ReadMark, Store};

use support::source::{MadeUp, kind};
use support::telling::{event, tell};
use support::upstream::{Stretch, T, Upstream, book, is_within, minute, under};

/// A place that is looked at every minute and has one table at times. While it has, a pilot is to fly next.
fn place() -> Arc<dyn Source> {
    let slots = kind("tables", "slots", &[("name", FieldType::Text)], vec![]);
    let every_minute = Fixed { every: Span::mins(1), eager: true, place: Some(Span::ZERO) };
    let (kinds, published) = (vec![slots.full_name()], vec![("upcoming".to_owned(), "nyc".to_owned())]);
    let bucket = TargetSpec::new("bucket/b", "bucket");
    Arc::new(MadeUp {
        rules: vec![Rule::new("drop", "tables.drop", "tables_slots", Trigger::Added)],
        derives: Some(Derives { every: Span::hours(100), kinds, published }),
        derive: who_flies,
        ..MadeUp::new("nyc", vec![slots], bucket, tables, move |_| Plan::Fixed(every_minute.clone()))
    })
}

fn tables(kinds: &[Arc<Kind>], _: &TargetSpec, body: &[u8]) -> Result<Observation, Failure> {
    let slot = || Record::new(&kinds[0], &["s"], vec!["Carbone".into()]);
    Ok(Observation::complete(if body == b"open" { vec![slot()] } else { vec![] }))
}

fn who_flies(holdings: &Holdings<'_>) -> Derived {
    let line = json!({ "pilot": "p1", "name": "Alex", "race_id": "r9", "races_away": 1 });
    let upcoming = if holdings.records.is_empty() { json!([]) } else { json!([line]) };
    let value = json!({ "upcoming": upcoming });
    let draft = Draft {
        rule: "current_changed".to_owned(),
        event_type: "fpv.race.current_changed".to_owned(),
        subject: Fingerprint::of("race", &["r8"]),
        subject_key: "r8".to_owned(),
        at: None,
        data: value.clone(),
        dedupe_key: None,
        requires: Effect::Any,
        quiet: None,
        unseen_for: None,
    };
    let (namespace, key) = ("upcoming".to_owned(), "nyc".to_owned());
    let published = vec![Published { namespace, key, value, stamp: None }];
    Derived { published, drafts: vec![draft], ..Derived::default() }
}

/// Has a table in one stretch.
fn open_in(stretch: Stretch) -> Upstream {
    Upstream::serving(move |now| if is_within(stretch, now) { "open" } else { "none" }.to_owned())
}

/// What happens, and which rule is in force.
struct Story {
    store: Arc<SqliteStore>,
    upstream: Arc<Upstream>,
    rules: Value,
}

impl Story {
    /// A table from minute 10 to minute 62, and one rule.
    fn of(rule: Value) -> Story {
        let store = Arc::new(SqliteStore::in_memory().expect("store"));
        let upstream = Arc::new(open_in((10, 62)));
        Story { store, upstream, rules: json!({ "rule": rule }) }
    }

    fn config(&self, clock: &Clock, node: &str) -> EngineConfig {
        let mut config = under(book(&self.rules), &self.store, place(), &self.upstream, clock);
        node.clone_into(&mut config.node);
        config
    }

    async fn engine(&self, clock: &Clock, node: &str) -> EngineHandle {
        Engine::start(self.config(clock, node)).await.expect("start")
    }

    /// Runs until minute 200; `meanwhile` is done on the way.
    fn run(&self, meanwhile: impl AsyncFnOnce(&Clock, &EngineHandle)) {
        let (runtime, clock) = virtual_runtime(T).expect("runtime");
        runtime.block_on(async {
            let engine = self.engine(&clock, "a").await;
            meanwhile(&clock, &engine).await;
            clock.sleep_until(minute(200)).await;
            engine.shutdown().await.expect("stop");
        });
    }

    /// The minutes at which it rang.
    fn rung(&self) -> Vec<i64> {
        self.told().iter().map(|event| (event.at - T).as_ms() / 60_000).collect()
    }

    fn told(&self) -> Vec<stakeout_core::Event> {
        let alerts = EventFilter { event_type: Some(EVENT_TYPE.to_owned()), ..EventFilter::default() };
        let runtime = tokio::runtime::Runtime::new().expect("runtime");
        runtime.block_on(self.store.events(0, &alerts, 10_000)).expect("events")
    }
}

/// Runs it until a minute without touching anything, and tells the minutes at which it rang.
fn rung(story: &Story, until: i64) -> Vec<i64> {
    let (runtime, clock) = virtual_runtime(T).expect("runtime");
    runtime.block_on(async {
        let engine = story.engine(&clock, "a").await;
        clock.sleep_until(minute(until)).await;
        engine.shutdown().await.expect("stop");
    });
    story.rung()
}

fn drops() -> Value {
    json!({ "when": { "on": "drop" }, "repeat": "15m" })
}

#[test]
fn a_table_is_told_again_while_it_is_open() {
    let story = Story::of(drops());
    assert_eq!(rung(&story, 200), [10, 25, 40, 55], "and it was gone at minute 62");
    let told = story.told();
    let texts: Vec<&str> = told.iter().filter_map(|event| event.data["text"].as_str()).collect();
    assert!(!texts[0].contains("still so") && texts[3].ends_with(" – still so"), "{texts:?}");
    assert_eq!(texts[1], texts[3], "an ending does not pile up");
    assert_eq!((&told[3].data["repeat"]["number"], told[3].subject), (&json!(3), told[0].subject));
    assert_eq!(rung(&Story::of(json!({ "when": { "on": "drop" } })), 200), [10], "only if somebody asked");
}

#[test]
fn a_repeat_is_never_shorter_than_the_quiet_time_and_keeps_to_the_hours() {
    let mut rule = drops();
    rule["quiet"] = json!("20m");
    assert_eq!(rung(&Story::of(rule), 200), [10, 30, 50]);
    let mut rule = drops();
    // Always but from 08:20 to 08:30.
    rule["hours"] = json!({ "from": "08:30", "to": "08:20", "zone": "UTC" });
    assert_eq!(rung(&Story::of(rule), 200), [10, 30, 45, 60], "it waits until the hours begin");
}

#[test]
fn a_repeat_is_told_at_its_moment_whatever_else_is_told() {
    let drops = |repeat: &str| json!({ "when": { "on": "drop" }, "repeat": repeat });
    // The one rings half a second before the other.
    let rules = json!({ "one": drops("10s"), "other": drops("10500ms") });
    let story = Story { rules, ..Story::of(json!(null)) };
    rung(&story, 11);
    let told = story.told().into_iter().filter(|event| event.rule == "alert:other");
    let after: Vec<i64> = told.map(|event| (event.at - minute(10)).as_ms()).collect();
    assert_eq!(after, [0, 10_500, 21_000, 31_500, 42_000, 52_500]);
}

#[test]
fn a_pilot_is_called_again_while_they_are_to_fly() {
    let story =
        Story::of(json!({ "when": { "on": "pilot", "pilot": "alex", "within": 2 }, "repeat": "15m" }));
    assert_eq!(rung(&story, 200), [10, 25, 40, 55]);
    assert_eq!(story.told()[2].data["title"], "Alex flies next");
}

#[test]
fn an_event_is_told_again_until_somebody_has_read_it() {
    let rule = json!({ "when": { "on": "event", "type": "tables.drop" }, "repeat": "15m" });
    let story = Story::of(rule);
    story.run(async |clock, _| {
        // That the table is gone at minute 62 does not matter.
        clock.sleep_until(minute(80)).await;
        let told = story.store.notifications(u64::MAX, &Default::default(), 100).await.expect("told");
        // Any of them will do.
        let mark = ReadMark::One(told[2].event.seq);
        assert_eq!(story.store.mark_read(&mark, clock.now()).await.expect("marked"), 1);
    });
    assert_eq!(story.rung(), [10, 25, 40, 55, 70]);
}

#[test]
fn an_event_that_nobody_reads_is_told_for_a_day() {
    let rule = json!({ "when": { "on": "event", "type": "tables.drop" }, "repeat": "6h" });
    let hours: Vec<i64> = rung(&Story::of(rule), 50 * 60).iter().map(|minute| minute / 60).collect();
    assert_eq!(hours, [0, 6, 12, 18, 24]);
}

#[test]
fn missed_polls_are_told_again_until_one_comes_in_time() {
    // More often than it would ring about polls that are missed now and then.
    let rule = json!({ "when": { "on": "missed", "polls": 5 }, "repeat": "8m" });
    let mut story = Story::of(rule.clone());
    story.upstream = Arc::new(Upstream { away: vec![(20, 50)], ..open_in((0, 0)) });
    assert_eq!(rung(&story, 200), [20, 28, 36, 44], "it is asked again at minute 50");
    let mut once = Story::of(json!({ "when": rule["when"] }));
    once.upstream = story.upstream;
    assert_eq!(rung(&once, 200), [20]);
}

#[test]
fn a_pass_tells_what_is_due_again_by_then() {
    let story = Story::of(drops());
    for pass in [0, 10, 20, 30, 40, 50, 70] {
        let (runtime, clock) = virtual_runtime(minute(pass)).expect("runtime");
        let pass = Engine::pass(story.config(&clock, "a"), Span::mins(1));
        runtime.block_on(pass).expect("a pass");
    }
    assert_eq!(story.rung(), [10, 30, 50]);
}

#[test]
fn several_engines_tell_a_repeat_once() {
    let story = Story::of(drops());
    let (runtime, clock) = virtual_runtime(T).expect("runtime");
    runtime.block_on(async {
        let one = story.engine(&clock, "a").await;
        clock.sleep_until(minute(20)).await;
        // It finds in the log what rang.
        let other = story.engine(&clock, "b").await;
        clock.sleep_until(minute(45)).await;
        // One is gone without a word.
        drop(one);
        clock.sleep_until(minute(100)).await;
        other.shutdown().await.expect("stop");
    });
    assert_eq!(story.rung(), [10, 25, 40, 55]);
}

#[test]
fn a_crash_neither_loses_nor_doubles_a_repeat() {
    let story = Story::of(drops());
    for (from, until) in [(0, 25), (25, 26), (26, 39), (41, 100)] {
        let (runtime, clock) = virtual_runtime(minute(from)).expect("runtime");
        runtime.block_on(async {
            let engine = story.engine(&clock, "a").await;
            clock.sleep_until(minute(until)).await;
            drop(engine);
        });
    }
    let told = story.told();
    let numbers: Vec<_> = told.iter().filter_map(|event| event.data["repeat"]["number"].as_u64()).collect();
    assert_eq!(numbers, [0, 1, 2, 3], "each once");
    assert_eq!(story.rung(), [10, 25, 41, 56], "what was due while nobody was there comes at the start");
}

/// So many notifications of a rule that rings all the time.
async fn noise(store: &SqliteStore, count: u32, at: Time) -> usize {
    let event = |n: u32| EventWrite {
        event_type: EVENT_TYPE.to_owned(),
        rule: "alert:noise".to_owned(),
        data: json!({ "alert": "noise" }),
        ..event("nyc", &n.to_string(), at)
    };
    tell(store, "nyc", at, (0..count).map(event).collect()).await.len()
}

#[test]
fn what_lasts_is_found_after_a_restart_however_much_rang_since() {
    let story = Story::of(drops());
    for (from, until) in [(0, 12), (14, 100)] {
        let (runtime, clock) = virtual_runtime(minute(from)).expect("runtime");
        runtime.block_on(async {
            let engine = story.engine(&clock, "a").await;
            clock.sleep_until(minute(until)).await;
            engine.shutdown().await.expect("stop");
            if from == 0 {
                assert_eq!(noise(&story.store, 2_600, minute(13)).await, 2_600);
            }
        });
    }
    let told = story.told().into_iter().filter(|event| event.rule == "alert:rule");
    let minutes: Vec<i64> = told.map(|event| (event.at - T).as_ms() / 60_000).collect();
    assert_eq!(minutes, [10, 25, 40, 55]);
}

#[test]
fn what_rang_longer_ago_than_two_days_is_not_looked_for() {
    let story = Story::of(drops());
    for (from, until) in [(0, 12), (49 * 60, 50 * 60)] {
        let (runtime, clock) = virtual_runtime(minute(from)).expect("runtime");
        runtime.block_on(async {
            let engine = story.engine(&clock, "a").await;
            clock.sleep_until(minute(until)).await;
            engine.shutdown().await.expect("stop");
        });
    }
    assert_eq!(story.rung(), [10]);
}

#[test]
fn a_rule_that_is_removed_or_changed_tells_nothing_again() {
    for change in [json!({ "when": { "on": "drop" }, "repeat": "15m", "severity": "critical" }), json!(null)]
    {
        let story = Story { rules: json!({}), ..Story::of(json!(null)) };
        let change = Some(change).filter(|change| !change.is_null());
        story.run(async |clock, engine| {
            let control = engine.control();
            control.set_setting("alert.rule", Some(drops())).await.expect("accepted");
            clock.sleep_until(minute(30)).await;
            control.set_setting("alert.rule", change.clone()).await.expect("accepted");
        });
        assert_eq!(story.rung(), [10, 25], "{change:?}");
    }
}
