//! 7.5 of the seed: what each status means for the polling.

use serde_json::{Value as Json, json};
use stakeout_core::{Facts, Stage};

use crate::support::*;

/// The stage after an answer with this status and actual start, read `now`, when the stage before was `before`.
fn stage(status: Json, actual_start: Json, now: &str, before: Stage) -> Stage {
    let facts = Facts { stage: before, ..Facts::default() };
    let answer = answer_with(json!({ "status": status, "actual_start": actual_start }));
    read_at(&answer, at(now), &facts).expect("an answer").facts.stage
}

#[test]
fn a_start_is_confirmed_by_a_result_or_by_closed_with_a_start_that_has_been() {
    use Stage::{Over, Pending, Started};
    for (status, actual_start, now, expected) in [
        ("Open", json!(0), "+5m", Pending),
        ("", json!(null), "-5m", Pending),
        ("open", json!(START_SECS), "+1m", Pending),
        ("CLOSED", json!(0), "+5m", Pending),
        ("Closed", json!(null), "+5m", Pending),
        ("Closed", json!(START_SECS + 60), "+59s", Pending),
        ("Closed", json!(START_SECS + 60), "+60s", Started),
        ("closed", json!("2026-01-10T02:00:30Z"), "+5m", Started),
        ("Interim", json!(null), "+5m", Started),
        ("INTERIM", json!(START_SECS + 9_999), "+5m", Started),
        ("Final", json!(null), "+5m", Over),
        ("Finalized", json!(null), "+5m", Over),
        ("Abandoned", json!(0), "-30m", Over),
    ] {
        assert_eq!(stage(json!(status), actual_start, now, Pending), expected, "{status:?} at {now}");
    }
}

#[test]
fn a_return_to_open_undoes_a_start_and_closed_alone_does_not() {
    assert_eq!(stage(json!("Open"), json!(0), "+5m", Stage::Started), Stage::Pending);
    assert_eq!(stage(json!("Closed"), json!(0), "+5m", Stage::Started), Stage::Started);
    assert_eq!(stage(json!("Interim"), json!(0), "+5m", Stage::Over), Stage::Started);
}

#[test]
fn a_return_to_open_forgets_when_the_race_started() {
    let mut watch = Watch::new(source());
    let off = answer_with(json!({ "status": "Closed", "actual_start": START_SECS + 60 }));
    watch.poll(at("-1m"), &answer());
    watch.poll(at("+2m"), &off);
    watch.poll(at("+3m"), &answer_with(json!({ "status": "Interim", "actual_start": null })));
    assert_eq!(
        watch.stored(RACE, "actual_start"),
        json!("2026-01-10T02:01:00.000Z"),
        "silence changes nothing"
    );
    watch.poll(at("+4m"), &answer());
    assert_eq!(watch.stored(RACE, "actual_start"), Json::Null);
    assert_eq!(watch.stored(RACE, "start_confirmed"), json!(false));
}

#[test]
fn seed_7_5_an_unknown_status_keeps_the_schedule_and_is_counted() {
    for status in [json!("Postponed"), json!(null), json!(7), json!({ "a": 1 })] {
        for before in [Stage::Pending, Stage::Started] {
            assert_eq!(stage(status.clone(), json!(START_SECS), "+5m", before), before, "{status}");
        }
        let seen = read(&answer_with(json!({ "status": status }))).expect("an answer");
        assert_eq!(codes(&seen), ["unknown_status"], "{status}");
    }
    let seen = read(&answer_with(json!({ "status": "Postponed" }))).expect("an answer");
    assert_eq!(get(one(&seen, "races", RACE), "status"), json!(null), "what was known stays");
    assert!(seen.warnings[0].detail.contains("Postponed"), "{:?}", seen.warnings);
}

#[test]
fn seed_7_5_nothing_is_polled_after_final_or_abandoned() {
    for status in ["Final", "finalised", "ABANDONED"] {
        let mut watch = Watch::new(source());
        watch.poll(at("+10m"), &answer_with(json!({ "status": status })));
        assert_eq!(watch.next().due, None, "{status}");
    }
}

#[test]
fn seed_7_5_interim_is_polled_every_five_minutes() {
    let mut watch = Watch::new(source());
    watch.poll(at("-1m"), &answer());
    watch.poll(at("+2m"), &answer_with(json!({ "status": "Interim" })));
    assert_eq!(watch.next().due, Some(at("+7m")));
    watch.poll(at("+7m"), &answer_with(json!({ "status": "Interim" })));
    assert_eq!(watch.next().due, Some(at("+12m")));
}

#[test]
fn seed_7_5_known_statuses_are_stored_by_one_name() {
    for (status, name) in
        [("CLOSED", "Closed"), ("", "Open"), ("finalized", "Final"), (" interim ", "Interim")]
    {
        let seen = read(&answer_with(json!({ "status": status }))).expect("an answer");
        assert_eq!(get(one(&seen, "races", RACE), "status"), json!(name));
    }
}
