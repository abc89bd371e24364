//! What a stream overlay shows.

use serde_json::{Value as Json, json};
use stakeout_core::{Span, Time};
use stakeout_sources::fpv::overlay::overlay;
use stakeout_sources::fpv::picture::Picture;

use crate::support::*;

fn shown(world: &mut World) -> Json {
    shown_at(world, START)
}

fn shown_at(world: &mut World, now: Time) -> Json {
    world.round();
    overlay(&Picture::of(&world.held()).expect("a picture"), now)
}

/// Race, state and the pilots' names with their laps, the leader first.
fn brief(race: &Json) -> Json {
    let pilots = race["pilots"].as_array().into_iter().flatten();
    let pilots: Vec<Json> = pilots.map(|pilot| json!([pilot["name"], pilot["laps"]])).collect();
    json!([race["order"], race["state"], pilots])
}

#[test]
fn an_overlay_shows_the_last_the_current_and_the_next_race() {
    let mut world = World::new(4);
    world.set(1, Some(0), Some(60));
    world.edit(1, |file| fly(file, 2, 1, 0, 20, 18.25));
    world.set(2, Some(100), None);
    world.edit(2, |file| {
        for (pilot, number, end, seconds) in
            [(1, 0, 3, 3.0), (2, 0, 4, 4.0), (1, 1, 13, 10.0), (1, 2, 25, 12.0)]
        {
            fly(file, pilot, number, 100, end, seconds);
        }
    });
    let shown = shown(&mut world);
    assert_eq!(brief(&shown["last"]), json!([1, "finished", [["Joe", 1], ["Bob", 0]]]));
    assert_eq!(brief(&shown["current"]), json!([2, "racing", [["Bob", 2], ["Joe", 0]]]));
    assert_eq!(brief(&shown["next"]), json!([3, "waiting", [["Bob", 0], ["Joe", 0]]]));
    let joe = &shown["last"]["pilots"][0];
    assert_eq!(
        (&joe["channel"], &joe["colour"], &joe["last_lap_seconds"], &joe["position"]),
        (&json!("Blue"), &json!("#0000FF"), &json!(18.25), &json!(1))
    );
    let bob = &shown["current"]["pilots"][0];
    assert_eq!((&bob["last_lap_seconds"], &bob["best_lap_seconds"]), (&json!(12.0), &json!(10.0)));
    assert_eq!((&shown["races"], &shown["event"]["name"]), (&json!(4), &json!("Event 1")));
    assert_eq!(shown["leaderboard"][0]["name"], json!("Bob"), "two laps in a row beat one");
    assert_eq!(shown["pilots"][0]["readiness"], json!("racing"));
    assert_eq!(shown["pilots"][0]["races_away"], json!(0));
}

#[test]
fn an_overlay_before_and_after_everything() {
    let mut world = World::new(2);
    let before = shown(&mut world);
    assert_eq!(before["last"], Json::Null);
    assert_eq!(
        (brief(&before["current"])[1].clone(), brief(&before["next"])[0].clone()),
        (json!("staging"), json!(2))
    );
    world.set(1, Some(0), Some(60));
    world.set(2, Some(100), Some(160));
    let after = shown(&mut world);
    // The last race stays the current one; it has a race before it and none after it.
    assert_eq!(
        (&after["last"]["order"], &after["current"]["order"], &after["next"]),
        (&json!(1), &json!(2), &Json::Null)
    );
    assert_eq!(after["current"]["state"], json!("finished"));
    assert_eq!(after["pilots"], json!([]));
}

#[test]
fn the_time_flown_is_shown_where_the_venues_clock_has_a_zone() {
    let mut world = World::new(1);
    world.set(1, Some(0), None);
    world.edit(1, |file| file["TotalPausedTime"] = json!("00:00:02.5000000"));
    // 9:59 at the venue.
    let now = Time::parse("2025-01-28T22:59:10Z").expect("a time");
    assert_eq!(shown_at(&mut world, now)["current"]["elapsed_seconds"], Json::Null);
    world.edit_file("Event.json", |file| file[0]["TimeZone"] = json!("Australia/Sydney"));
    world.round();
    assert_eq!(shown_at(&mut world, now)["current"]["elapsed_seconds"], json!(7.5));
    // A clock that is behind the venue's does not count backwards.
    assert_eq!(shown_at(&mut world, now - Span::mins(5))["current"]["elapsed_seconds"], Json::Null);
}

#[test]
fn a_whole_field_fits_into_a_few_kilobytes() {
    let mut world = World::new(6);
    let pilots: Vec<Json> =
        (1..=24).map(|n| json!({ "ID": pilot(n), "Name": format!("Pilot {n}") })).collect();
    world.edit_file("Pilots.json", |file| *file = json!(pilots));
    for n in 1..=6 {
        let seats: Vec<Json> = (1..=4)
            .map(|seat| json!({ "Pilot": pilot((n - 1) * 4 + seat), "Channel": channel(seat) }))
            .collect();
        world.edit(n, |file| file["PilotChannels"] = json!(seats));
    }
    let shown = shown(&mut world);
    let away: Vec<u64> =
        shown["pilots"].as_array().expect("pilots").iter().filter_map(|p| p["races_away"].as_u64()).collect();
    assert_eq!(away, (0..6).flat_map(|n| [n; 4]).collect::<Vec<_>>(), "the soonest first");
    assert!(shown.to_string().len() < 10_000, "{} bytes", shown.to_string().len());
}
