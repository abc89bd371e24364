//! What was told is remembered: flaps, restarts, new baselines, the end of a day.

use serde_json::{Value as Json, json};
use stakeout_core::Span;
use stakeout_engine::Control;

use crate::support::*;

const NONE: [&str; 0] = [];

/// A venue that is open in the given minutes, beside one that always is.
fn open_in(minutes: &'static [(i64, i64)]) -> impl Fn(i64) -> Json + Send + Sync + 'static {
    move |m| {
        let open = minutes.iter().any(|(from, to)| (*from..*to).contains(&m));
        page(&[venue(1, if open { &["20:30"] } else { &[] }), venue(2, &["19:00"])])
    }
}

fn drops(config: &Json, minutes: i64, open: &'static [(i64, i64)]) -> Vec<String> {
    let scene = open_in(open);
    World::new().watch(config, Span::mins(minutes), move |m, _| Ok(scene(m))).drops()
}

#[test]
fn a_flap_across_a_minute_boundary_is_told_once() {
    assert_eq!(drops(&every_minute(json!({})), 10, &[(2, 3), (4, 5), (6, 7)]), ["2 1@20:30"]);
}

#[test]
fn what_closes_and_reopens_inside_the_quiet_time_is_silent_and_does_not_extend_it() {
    // Told at 2; silent at 12 and 25, which do not count; due again at 32.
    assert_eq!(
        drops(&every_minute(json!({})), 40, &[(2, 4), (12, 14), (25, 27), (33, 35)]),
        ["2 1@20:30", "33 1@20:30"]
    );
    assert_eq!(drops(&every_minute(json!({})), 34, &[(2, 4), (31, 34)]), ["2 1@20:30"], "a minute too early");
    let impatient = every_minute(json!({ "quiet": "5min" }));
    assert_eq!(drops(&impatient, 12, &[(2, 3), (5, 6), (8, 9)]), ["2 1@20:30", "8 1@20:30"]);
}

#[test]
fn a_slot_that_stays_open_longer_than_the_quiet_time_is_told_once() {
    assert_eq!(drops(&every_minute(json!({})), 70, &[(2, 100)]), ["2 1@20:30"]);
}

#[test]
fn with_a_seen_ttl_a_slot_is_new_again_only_after_a_day() {
    let config = |ttl: Json| {
        every_minute(json!({ "days": 4, "min_interval": "10min", "max_interval": "10min", "seen_ttl": ttl }))
    };
    let opens_thrice = |hour: i64, question: &Question| {
        let open = [1..2, 4..5, 30..31].iter().any(|range: &std::ops::Range<i64>| range.contains(&hour));
        let times: &[&str] = if open && question.day == "2026-03-01" { &["20:30"] } else { &[] };
        Ok(page(&[venue_on(&question.day, 1, times), venue_on(&question.day, 2, &["19:00"])]))
    };
    let told = |ttl: Json| {
        World::new().watch(&config(ttl), Span::hours(32), move |m, q| opens_thrice(m / 60, q)).drops().len()
    };
    assert_eq!(told(json!(null)), 3);
    assert_eq!(told(json!("24h")), 2, "silent three hours later, told again a day later");
}

#[test]
fn a_restart_keeps_what_was_told_and_what_was_there() {
    let mut world = World::new();
    let config = every_minute(json!({}));
    let scene = open_in(&[(2, 4)]);
    assert_eq!(world.watch(&config, Span::mins(6), move |m, _| Ok(scene(m))).drops(), ["2 1@20:30"]);
    // Another process, five minutes later: the slot is back.
    world.now += Span::mins(5);
    let scene = open_in(&[(0, 50)]);
    let watched = world.watch(&config, Span::mins(10), move |m, _| Ok(scene(m)));
    assert_eq!(watched.drops(), ["2 1@20:30"], "still quiet");
    world.now += Span::mins(5);
    let scene = open_in(&[(8, 50)]);
    let watched = world.watch(&config, Span::mins(12), move |m, _| Ok(scene(m)));
    assert_eq!(watched.drops().len(), 2, "the quiet time is over: {:?}", watched.drops());
}

#[test]
fn another_box_is_a_new_baseline_and_not_a_burst_of_drops() {
    let mut world = World::new();
    world.watch(&every_minute(json!({})), Span::mins(5), |_, _| {
        Ok(page(&[venue(1, &["19:00"]), venue(2, &[])]))
    });
    let market = json!({ "box": [40.60, -74.03, 40.77, -73.97], "zone": "America/New_York" });
    let config = every_minute(json!({ "market": market }));
    let watched = world.watch(&config, Span::mins(30), |m, _| {
        let more = (3..30).map(|id| venue(id, &["20:30"]));
        let own =
            [venue(1, &["19:00"]), venue(2, &["20:30"]), venue(99, if m < 25 { &[] } else { &["21:00"] })];
        Ok(page(&more.chain(own).collect::<Vec<_>>()))
    });
    let drops = watched.drops();
    assert!(drops.len() == 1 && drops[0].ends_with("99@21:00"), "only what opened afterwards: {drops:?}");
}

#[test]
fn a_wanted_baseline_is_taken_silently() {
    let mut world = World::new();
    let rebaseline = async |control: Control| {
        let mut polled = control.polled();
        polled.wait_for(|n| *n >= 6).await.expect("the engine lives");
        control.rebaseline("nyc", &format!("{TODAY}_20:30")).await.expect("rebaseline");
    };
    // The window is looked at every minute, too: six polls are three of the bucket.
    let scene = |now: stakeout_core::Time, _: &Question| {
        let m = (now - start()).as_us() / 60_000_000;
        Ok(page(&[venue(1, if m < 3 { &[] } else { &["20:30"] }), venue(2, &["19:00"])]))
    };
    let watched = world.watch_with(&every_minute(json!({})), Span::mins(8), scene, rebaseline);
    assert_eq!(watched.drops(), NONE);
    let ids =
        |column: &str| world.column(&format!("SELECT json_array_length({column}) FROM discovery_buckets"));
    assert_eq!(
        (ids("baseline_slot_ids_json"), ids("prev_slot_ids_json")),
        (vec!["2".to_owned()], vec!["2".to_owned()])
    );
}

#[test]
fn a_time_that_passed_is_not_booked() {
    // Half past six in the evening.
    let mut world = World::at("2026-02-26T23:30:00Z");
    world.watch(&every_minute(json!({})), Span::mins(60), |m, _| {
        let mut times = vec!["21:00"];
        times.extend((m < 30).then_some("19:00"));
        times.extend((m < 20).then_some("20:30"));
        let times: Vec<&str> = times.into_iter().collect();
        Ok(page(&[venue(1, &times), venue(2, &["21:30"])]))
    });
    let states =
        world.column("SELECT substr(start, 12) || ' ' || state FROM slot_availability ORDER BY start");
    assert_eq!(states, ["19:00 passed", "20:30 closed", "21:00 open", "21:30 open"]);
}

#[test]
fn the_window_rolls_at_local_midnight_on_the_day_the_clocks_change() {
    // 8 March 2026 has 23 hours in New York. Ten in the evening before it.
    let mut world = World::at("2026-03-08T03:00:00Z");
    let config = every_minute(json!({ "days": 2, "min_interval": "5min", "max_interval": "5min" }));
    let scene = |_: i64, question: &Question| Ok(page(&[venue_on(&question.day, 1, &["20:30"])]));
    let keys = |watched: &Watched| -> Vec<String> {
        watched.targets.keys().filter(|key| *key != "window").cloned().collect()
    };
    let watched = world.watch(&config, Span::mins(119), scene);
    assert_eq!(keys(&watched), ["2026-03-07_20:30", "2026-03-08_20:30"]);
    let watched = world.watch(&config, Span::mins(2), scene);
    assert_eq!(keys(&watched), ["2026-03-08_20:30", "2026-03-09_20:30"], "05:00 UTC");
    // What the expired bucket held is over, its state is gone.
    assert_eq!(world.column("SELECT count(*) FROM snapshots"), ["2"]);
    let passed = world.column("SELECT date FROM slot_availability WHERE state = 'passed'");
    assert_eq!(passed, ["2026-03-07"]);
    let watched = world.watch(&config, Span::hours(23), scene);
    assert_eq!(keys(&watched)[0], "2026-03-09_20:30", "04:00 UTC, an hour less");
    assert_eq!(watched.drops(), NONE, "a new bucket begins with a baseline");
    assert_eq!(watched.log.iter().filter(|(_, q)| q.day == "2026-03-07").count(), 0);
}
