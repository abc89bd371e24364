//! The life of a race: started, flown, ended, reset, resumed, taken out; and its results.

use serde_json::{Value as Json, json};
use stakeout_core::compare::Verdict;
use stakeout_core::{Coverage, Span};

use crate::support::*;

/// One race, seen once.
fn world() -> World {
    let mut world = World::new(2);
    world.round();
    world.news();
    world
}

fn laps(world: &mut World, count: i64) {
    world.edit(1, |file| {
        for lap in 0..count {
            fly(file, 1, lap, 10, 5 + lap as u32 * 10, 10.0);
        }
    });
}

#[test]
fn laps_are_told_once_each_as_they_come() {
    let mut world = world();
    world.set(1, Some(10), None);
    world.edit(1, |file| fly(file, 1, 0, 10, 3, 3.0));
    world.round();
    assert_eq!(world.news(), ["fpv.race.started", "fpv.lap.completed"]);
    world.edit(1, |file| {
        fly(file, 1, 1, 10, 14, 11.0);
        fly(file, 2, 0, 10, 14, 4.0);
    });
    world.round();
    // Edge case 12: two detections in the same millisecond are two.
    assert_eq!(world.news(), ["fpv.lap.completed", "fpv.lap.completed"]);
    assert_eq!((world.count("fpv_laps"), world.count("fpv_detections")), (3, 3));
    world.round();
    assert_eq!(world.news(), Vec::<String>::new());
    let lap = world.body("fpv_laps", &guid("d", 1_001)).clone();
    assert_eq!(
        (&lap["pilot"], &lap["lap_number"], &lap["valid"]),
        (&json!(pilot(1)), &json!(1), &json!(true))
    );

    // The program computes its laps again: new ids, the same laps.
    world.edit(1, |file| {
        for (n, lap) in file["Laps"].as_array_mut().expect("laps").iter_mut().enumerate() {
            lap["ID"] = json!(guid("l", 9_000 + n as u32));
        }
    });
    world.round();
    assert_eq!((world.news(), world.count("fpv_laps")), (vec![], 3));
}

#[test]
fn a_lap_whose_detection_is_not_valid_is_kept_and_not_told_until_it_is() {
    let mut world = world();
    world.set(1, Some(10), None);
    world.edit(1, |file| {
        fly(file, 1, 0, 10, 3, 3.0);
        file["Detections"][0]["Valid"] = json!(false);
    });
    world.round();
    assert_eq!(world.news(), ["fpv.race.started"]);
    assert_eq!(world.body("fpv_laps", &guid("d", 1_000))["valid"], json!(false));
    world.edit(1, |file| file["Detections"][0]["Valid"] = json!(true));
    world.round();
    assert_eq!(world.news(), ["fpv.lap.completed"]);
}

/// Edge case 7.
#[test]
fn a_reset_removes_the_laps_without_doubt() {
    let mut world = world();
    world.set(1, Some(10), None);
    laps(&mut world, 8);
    world.round();
    world.news();
    world.set(1, None, None);
    world.edit(1, |file| {
        file["Laps"] = json!([]);
        file["Detections"] = json!([]);
    });
    assert_eq!(world.poll(&race_target(1)).expect("an answer"), Verdict::Changed);
    assert_eq!((world.count("fpv_laps"), world.count("fpv_detections")), (0, 0));
    assert_eq!(world.body("fpv_races", &race(101))["start"], Json::Null);
    assert_eq!(world.news(), ["fpv.race.reset"]);
}

#[test]
fn laps_that_vanish_from_a_race_that_still_runs_are_doubted_first() {
    let mut world = world();
    world.set(1, Some(10), None);
    laps(&mut world, 8);
    world.round();
    world.edit(1, |file| {
        file["Laps"] = json!([]);
        file["Detections"] = json!([]);
    });
    assert_eq!(world.poll(&race_target(1)).expect("an answer"), Verdict::Doubted);
    assert_eq!(world.count("fpv_laps"), 8);
    world.now += Span::ms(200);
    assert_eq!(world.poll(&race_target(1)).expect("an answer"), Verdict::Changed);
    assert_eq!(world.count("fpv_laps"), 0);
}

/// Edge case 8.
#[test]
fn a_race_that_is_resumed_is_active_again() {
    let mut world = world();
    world.set(1, Some(10), Some(60));
    world.round();
    assert_eq!(world.current().0, Some(2));
    world.news();
    world.set(1, Some(10), None);
    world.round();
    assert_eq!(world.news(), ["fpv.race.resumed", "fpv.race.current_changed"]);
    assert_eq!(world.focused, Some(race_target(1)));
}

/// Edge case 10.
#[test]
fn a_result_set_by_hand_ends_a_race_that_never_ran() {
    let mut world = world();
    world.set(1, Some(10), Some(10));
    world.round();
    assert_eq!(world.news(), ["fpv.race.ended", "fpv.race.current_changed"]);
    assert_eq!(world.current().0, Some(2));
}

#[test]
fn a_race_that_was_reset_and_started_again_between_two_looks_says_both() {
    let mut world = world();
    world.set(1, Some(10), None);
    world.round();
    world.news();
    world.set(1, Some(40), None);
    world.round();
    assert_eq!(world.news(), ["fpv.race.reset", "fpv.race.started"]);
}

/// Edge case 3.
#[test]
fn a_deleted_race_is_still_listed_and_not_valid() {
    let mut world = world();
    world.edit(1, |file| file["Valid"] = json!(false));
    world.round();
    assert_eq!(world.news(), ["fpv.race.invalidated", "fpv.race.current_changed"]);
    assert_eq!(world.order(1), Json::Null);
    assert_eq!(world.current(), (Some(2), Some(1)));
}

fn result(n: u32, p: u32, position: i64) -> Json {
    json!({
        "ID": guid("s", n), "Race": race(101), "Pilot": pilot(p), "Position": position, "Points": 10, "DNF": false,
        "Valid": true, "LapsFinished": 4, "Time": "00:01:02.5000000",
    })
}

/// Edge case 17.
#[test]
fn results_that_are_saved_again_replace_the_old_ones() {
    let mut world = world();
    let path = format!("events/{}/Results.json", event(1));
    let key = format!("results/{}", event(1));
    assert!(world.poll(&key).is_err(), "before the first result there is no file");
    world.put(&path, &json!([result(1, 1, 1)]));
    world.poll(&key).expect("an answer");
    assert_eq!(world.news(), Vec::<String>::new(), "a first sight");
    world.put(&path, &json!([result(1, 1, 1), result(2, 2, 2)]));
    world.poll(&key).expect("an answer");
    assert_eq!(world.news(), ["fpv.result.changed"]);
    world.put(&path, &json!([result(11, 1, 1), result(12, 2, 2)]));
    world.poll(&key).expect("an answer");
    assert_eq!((world.count("fpv_results"), world.news()), (2, vec![]));
    let record = format!("{}|{}", race(101), pilot(1));
    assert_eq!(world.body("fpv_results", &record)["result_id"], json!(guid("s", 11)));
    assert_eq!(world.body("fpv_results", &record)["time_seconds"], json!(62.5));
    world.put(&path, &json!([result(11, 1, 2), result(12, 2, 1)]));
    world.poll(&key).expect("an answer");
    assert_eq!(world.news(), ["fpv.result.changed", "fpv.result.changed"]);
    // Both the old and the new one, for a moment: the valid one counts.
    let mut old = result(11, 1, 2);
    old["Valid"] = json!(false);
    world.put(&path, &json!([result(21, 1, 2), old, result(12, 2, 1)]));
    world.poll(&key).expect("an answer");
    assert_eq!(world.body("fpv_results", &record)["result_id"], json!(guid("s", 21)));
    assert_eq!((world.count("fpv_results"), world.news()), (2, vec![]));
}

/// Edge case 16.
#[test]
fn the_all_zero_guid_is_none() {
    let mut world = world();
    world.edit(1, |file| {
        file["Round"] = json!("00000000-0000-0000-0000-000000000000");
        file["PilotChannels"] = json!([
            { "Pilot": "00000000-0000-0000-0000-000000000000", "Channel": channel(1) },
            { "Pilot": pilot(1).to_uppercase(), "Channel": "00000000-0000-0000-0000-000000000000" },
        ]);
    });
    world.round();
    let body = world.body("fpv_races", &race(101));
    assert_eq!(body["round"], Json::Null);
    assert_eq!(body["pilots"], json!([{ "pilot": pilot(1), "channel": null }]));
}

/// Edge case 18: what the source can promise of it.
#[test]
fn hours_without_the_upstream_change_nothing_and_what_happened_meanwhile_is_told() {
    let mut world = world();
    let held = world.held();
    world.now += Span::hours(5);
    world.derive();
    assert_eq!((world.held(), world.news()), (held, vec![]));
    world.set(1, Some(10), Some(60));
    laps(&mut world, 3);
    world.round();
    // Its end comes after its last lap.
    let told = world.news();
    assert_eq!(told[..4], ["fpv.lap.completed", "fpv.lap.completed", "fpv.lap.completed", "fpv.race.ended"]);
}

#[test]
fn a_lap_without_an_id_proves_nothing_about_the_others() {
    let mut world = world();
    world.set(1, Some(10), None);
    laps(&mut world, 3);
    world.round();
    world.edit(1, |file| {
        file["Laps"] = json!([{ "LapNumber": 1 }]);
        file["Detections"] = json!([null]);
    });
    let seen = world.observe(&race_target(1)).expect("an answer");
    assert!(matches!(seen.coverage, Coverage::Partial(_)));
    world.round();
    assert_eq!(world.count("fpv_laps"), 3);
}

#[test]
fn a_zone_makes_instants_of_the_venues_clock_and_a_new_one_is_no_news() {
    let mut world = world();
    world.set(1, Some(0), None);
    world.round();
    assert_eq!(world.body("fpv_races", &race(101))["start"], json!("2025-01-29T09:59:00.000"));
    world.news();
    world.edit_file("Event.json", |file| file[0]["TimeZone"] = json!("America/New_York"));
    world.round();
    assert_eq!(world.body("fpv_races", &race(101))["start"], json!("2025-01-29T14:59:00.000Z"));
    assert_eq!(world.body("fpv_events", &event(1))["zone"], json!("America/New_York"));
    assert_eq!(world.news(), Vec::<String>::new());

    let configured = source_with(json!({ "zone": "Europe/Berlin" }));
    let mut world = World::with(configured, 1);
    world.set(1, Some(0), None);
    world.round();
    assert_eq!(world.body("fpv_races", &race(101))["start"], json!("2025-01-29T08:59:00.000Z"));
}

#[test]
fn another_race_or_another_event_in_the_file_is_no_answer() {
    let mut world = world();
    world.edit(1, |file| file["ID"] = json!(race(102)));
    assert!(world.poll(&race_target(1)).is_err());
    world.edit_file("Event.json", |file| file[0]["ID"] = json!(event(2)));
    assert!(world.poll(&format!("event/{}", event(1))).is_err());
    world.edit(1, |file| {
        file.as_object_mut().expect("an object").remove("ID");
    });
    assert!(world.poll(&race_target(1)).is_ok(), "every field is optional");
}
