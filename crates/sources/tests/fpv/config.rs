//! The configuration and the settings that can be changed while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::cadence::{self, Fixed, Focus, Last, Seat};
use stakeout_core::{Facts, Plan, SettingRefused, Source, Span, TargetSpec};
use stakeout_sources::fpv::{FpvConfig, FpvSource, Settings};

use crate::support::*;

fn configured(settings: &[(&str, Json)]) -> Result<Arc<dyn Source>, SettingRefused> {
    let settings: BTreeMap<String, Json> =
        settings.iter().map(|(name, value)| (format!("scheduler.{name}"), value.clone())).collect();
    source_with(json!({})).configured(&settings)
}

fn plan_of(source: &dyn Source, role: &str) -> Plan {
    source.plan(&TargetSpec::new(role, role), &Facts::default())
}

fn every(source: &dyn Source, role: &str) -> Span {
    match plan_of(source, role) {
        Plan::Fixed(Fixed { every, .. }) => every,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_url_is_a_whole_configuration() {
    let source = source_with(json!({}));
    assert_eq!(source.settings(), &Settings::default());
    let limits = source.limits();
    assert_eq!(
        (limits.concurrency, limits.min_gap, limits.timeout, limits.max_jitter),
        (1, Span::ms(5), Span::secs(1), Span::ms(150))
    );
    let focus = Focus { active: Span::ms(200), idle: Span::ms(5_000) };
    assert_eq!(plan_of(&source, "race"), Plan::Focus(focus));
    for (role, ms) in
        [("event", 10_000), ("pilots", 10_000), ("rounds", 10_000), ("channels", 10_000), ("results", 2_000)]
    {
        assert_eq!(every(&source, role), Span::ms(ms), "{role}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_its_place() {
    for (config, key) in [
        (json!({ "url": "trackside" }), "url"),
        (json!({ "url": "ftp://trackside/" }), "url"),
        (json!({ "url": "http://me:secret@trackside/" }), "url"),
        (json!({ "url": "http://t", "zone": "Mars/Olympus" }), "zone"),
        (json!({ "url": "http://t", "scheduler": { "burst": 0 } }), "scheduler.burst"),
        (json!({ "url": "http://t", "scheduler": { "workerIntervalMs": -5 } }), "scheduler.workerIntervalMs"),
        (json!({ "url": "http://t", "limits": { "concurrency": 0 } }), "limits.concurrency"),
    ] {
        let config: FpvConfig = serde_json::from_value(config).expect("it can be read");
        assert_eq!(FpvSource::new("track", &config).err().map(|refused| refused.key).as_deref(), Some(key));
    }
    assert!(serde_json::from_value::<FpvConfig>(json!({})).is_err(), "the URL has no default");
    assert!(serde_json::from_value::<FpvConfig>(json!({ "url": "http://t", "uri": 1 })).is_err());
    let given = source_with(json!({ "scheduler": { "raceActiveMs": 100, "concurrency": 3 } }));
    assert_eq!((given.settings().race_active, given.limits().concurrency), (Span::ms(100), 3));
}

#[test]
fn every_setting_shows_its_effect() {
    let live = configured(&[
        ("raceActiveMs", json!(100)),
        ("raceIdleMs", json!(3_000)),
        ("resultsMs", json!(1_500)),
        ("fullIntervalMs", json!(20_000)),
        ("activeCheckMs", json!(700)),
        ("concurrency", json!(4)),
        ("jitterMs", json!(30)),
    ])
    .expect("good settings");
    assert_eq!(plan_of(&*live, "race"), Plan::Focus(Focus { active: Span::ms(100), idle: Span::ms(3_000) }));
    for (role, ms) in
        [("results", 1_500), ("event", 20_000), ("page", 20_000), ("channels", 20_000), ("current", 700)]
    {
        assert_eq!(every(&*live, role), Span::ms(ms), "{role}");
    }
    assert_eq!(live.derives().map(|derives| derives.every), Some(Span::ms(700)));
    assert_eq!((live.limits().concurrency, live.limits().max_jitter), (4, Span::ms(30)));
    let channels = configured(&[("channelsMs", json!(60_000))]).expect("a good setting");
    assert_eq!((every(&*channels, "channels"), every(&*channels, "event")), (Span::secs(60), Span::secs(10)));

    let worker = json!({ "scheduler": { "workerIntervalMs": 50, "burst": 9 } });
    let worker = source_with(worker);
    assert_eq!((worker.settings().worker_interval, worker.settings().burst), (Span::ms(50), 9));
}

#[test]
fn an_interval_of_nothing_switches_off_and_leaves_the_records_alone() {
    let due_within_a_day = |source: &dyn Source, role: &str, focused: bool| {
        let facts = Facts { focused, ..Facts::default() };
        let plan = source.plan(&TargetSpec::new(role, role), &facts);
        let last = Last { slot: Some(START), ..Last::default() };
        let seat = Seat { spread: 4_711, priority: 10, budgeted: None, bell: None };
        let next = cadence::next(&plan, &facts, &last, START, &seat);
        next.due.is_some_and(|due| due < START + Span::hours(24))
    };
    let all = ["page", "event", "pilots", "rounds", "channels", "results", "current", "race"];
    for (name, value, off) in [
        ("resultsMs", json!(0), vec!["results"]),
        ("resultsMs", json!(-1), vec!["results"]),
        ("channelsMs", json!(0), vec!["channels"]),
        ("raceIdleMs", json!(0), vec!["race"]),
        ("activeCheckMs", json!(0), vec!["current"]),
        ("fullIntervalMs", json!(0), vec!["page", "event", "pilots", "rounds", "channels"]),
        ("enabled", json!(false), all.to_vec()),
    ] {
        let source = configured(&[(name, value)]).expect("a good setting");
        for role in all {
            assert_eq!(due_within_a_day(&*source, role, false), !off.contains(&role), "{name} {role}");
        }
        assert_eq!(source.roots(START).len(), 2, "{name}");
    }
    let active = configured(&[("raceActiveMs", json!(0))]).expect("a good setting");
    assert!(!due_within_a_day(&*active, "race", true) && due_within_a_day(&*active, "race", false));
    let off = configured(&[("activeCheckMs", json!(0))]).expect("a good setting");
    assert!(off.derives().is_some_and(|derives| derives.every > Span::hours(24)), "changes still count");
}

#[test]
fn wrong_values_and_unknown_names_are_refused() {
    for (name, value) in [
        ("workerIntervalMs", json!(0)),
        ("workerIntervalMs", json!(-1)),
        ("burst", json!(0)),
        ("burst", json!(1.5)),
        ("concurrency", json!(0)),
        ("concurrency", json!("two")),
        ("jitterMs", json!(-1)),
        ("raceActiveMs", json!("fast")),
        ("raceActiveMs", json!(1e15)),
        ("enabled", json!(1)),
        ("speed", json!(1)),
    ] {
        let refused = configured(&[(name, value.clone())]).err().expect(name);
        assert_eq!(refused.name, format!("scheduler.{name}"), "{value}");
        assert!(refused.to_string().contains("give") || refused.to_string().contains("no such"), "{refused}");
    }
    let common = BTreeMap::from([("min_gap_ms".to_owned(), json!(20))]);
    let live =
        source_with(json!({})).configured(&common).map_err(|e| e.to_string()).expect("a common setting");
    assert_eq!(live.limits().min_gap, Span::ms(20));
}

#[test]
fn the_requests_are_the_upstreams_paths() {
    let mut world = World::new(1);
    world.round();
    let context = stakeout_core::PollContext { now: START, facts: &Facts::default() };
    let path = |key: &str| world.source.requests(world.spec(key), &[], &context)[0].url.clone();
    let base = "http://trackside.local:8080";
    let e = event(1);
    for (key, expected) in [
        ("page".to_owned(), String::new()),
        ("current".to_owned(), "current".to_owned()),
        ("channels".to_owned(), "httpfiles/Channels.json".to_owned()),
        (format!("event/{e}"), format!("events/{e}/Event.json")),
        (format!("pilots/{e}"), format!("events/{e}/Pilots.json")),
        (format!("rounds/{e}"), format!("events/{e}/Rounds.json")),
        (format!("results/{e}"), format!("events/{e}/Results.json")),
        (race_target(1), format!("events/{e}/{}/Race.json", race(101))),
    ] {
        assert_eq!(path(&key), format!("{base}/{expected}"), "{key}");
    }
}
