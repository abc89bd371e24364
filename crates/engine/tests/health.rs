//! A source that does not answer, in virtual time: told once for all of its targets, once for each outage, and not once it is
//! well again.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use stakeout_core::cadence::Fixed;
use stakeout_core::{Failure, FieldType, Kind, Observation, Plan, Record, Source, Span, TargetSpec};
use stakeout_engine::{Engine, virtual_runtime};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store};

use support::source::{MadeUp, kind};
use support::upstream::{T, Upstream, book, minute, under};

/// Three places that are looked at every minute, and one every quarter of an hour.
fn places() -> Arc<dyn Source> {
    let slots = kind("tables", "slots", &[("name", FieldType::Text)], vec![]);
    let every = |spec: &TargetSpec| {
        let every = if spec.key == "d" { Span::mins(15) } else { Span::mins(1) };
        Plan::Fixed(Fixed { every, eager: true, place: Some(Span::ZERO) })
    };
    let roots = ["a", "b", "c", "d"].map(|key| TargetSpec::new(key, "place")).to_vec();
    Arc::new(MadeUp { roots, ..MadeUp::new("nyc", vec![slots], TargetSpec::new("a", "place"), shown, every) })
}

fn shown(kinds: &[Arc<Kind>], spec: &TargetSpec, _: &[u8]) -> Result<Observation, Failure> {
    Ok(Observation::complete(vec![Record::new(&kinds[0], &[&spec.key], vec!["Carbone".into()])]))
}

/// The minutes at which a rule rings in five hours.
fn rung(rule: Value, outages: &[(i64, i64)]) -> Vec<i64> {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let (runtime, clock) = virtual_runtime(T).expect("runtime");
    let upstream = Upstream { fails: outages.to_vec(), ..Upstream::serving(|_| "x".to_owned()) };
    let rules = book(&json!({ "rule": rule }));
    let config = under(rules, &store, places(), &Arc::new(upstream), &clock);
    runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        clock.sleep_until(minute(300)).await;
        engine.shutdown().await.expect("stop");
        let told = store.events(0, &EventFilter::default(), 1_000).await.expect("events");
        told.iter().map(|event| (event.at - T).as_ms() / 60_000).collect()
    })
}

fn unhealthy() -> Value {
    json!({ "when": { "on": "unhealthy", "failures": 3 } })
}

#[test]
fn an_outage_is_told_once_for_the_source_and_not_when_it_is_over() {
    let rung = rung(unhealthy(), &[(10, 200)]);
    assert_eq!(rung.len(), 1, "four targets, three hours: {rung:?}");
    assert!((10..20).contains(&rung[0]), "{rung:?}");
}

#[test]
fn a_few_failures_are_no_outage() {
    let rung = rung(json!({ "when": { "on": "unhealthy", "failures": 30 } }), &[(10, 12), (20, 22)]);
    assert!(rung.is_empty(), "{rung:?}");
}

#[test]
fn an_outage_in_the_quiet_time_of_another_is_told_when_that_is_over() {
    let rung = rung(unhealthy(), &[(10, 30), (40, 250)]);
    assert_eq!(rung.len(), 2, "each once: {rung:?}");
    assert!((60..90).contains(&(rung[1] - rung[0])), "with the next poll that fails: {rung:?}");
}

#[test]
fn an_outage_that_ends_in_the_quiet_time_of_another_is_not_told() {
    let rung = rung(unhealthy(), &[(10, 30), (40, 60)]);
    assert_eq!(rung.len(), 1, "{rung:?}");
}

#[test]
fn an_outage_is_told_again_only_if_somebody_asked_for_that() {
    let mut rule = unhealthy();
    rule["repeat"] = json!("30m");
    let rung = rung(rule, &[(10, 130)]);
    assert!((3..=5).contains(&rung.len()), "{rung:?}");
    assert!(rung.iter().all(|minute| *minute < 131), "it ends with the outage: {rung:?}");
}
