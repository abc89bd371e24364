//! A captured directory, described; the real one where it is at hand, under `fpvtrackside/` of `STAKEOUT_PAYLOADS`.

use std::path::PathBuf;

use serde_json::json;
use stakeout_sources::fpv::describe_dir;

use crate::support::*;

#[test]
fn a_capture_is_described_without_storing_it() {
    let mut world = World::new(3);
    world.set(1, Some(0), Some(60));
    world.edit(1, |file| fly(file, 2, 1, 0, 20, 18.0));
    world.files.remove(&race_path(3));
    let read = |path: &str| world.files.get(path).map(|body| body.clone().into_bytes());
    let seen = describe_dir(&[event(1)], None, read).expect("a description");
    assert_eq!(seen["event"]["name"], json!("Event 1"));
    assert_eq!(
        seen["order"],
        json!([{ "race_id": race(101), "order": 1 }, { "race_id": race(102), "order": 2 }])
    );
    assert_eq!(seen["current"], json!({ "race_id": race(102), "order": 2, "rule": "next" }));
    assert_eq!(
        (&seen["leaderboard"][0]["name"], &seen["leaderboard"][0]["laps"]),
        (&json!("Joe"), &json!(1))
    );
    assert_eq!(seen["warnings"], json!([{ "code": "no_file", "detail": race_path(3) }]));
    assert!(describe_dir(&[], None, read).is_err());
    assert!(describe_dir(&[event(1), event(2)], None, read).is_err());
    let paged = |path: &str| if path == "index.html" { read("") } else { read(path) };
    assert_eq!(describe_dir(&[event(1), event(2)], None, paged).expect("the page decides"), seen);
}

/// The real capture; `None` (and a word why) when there is none.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn real() -> Option<PathBuf> {
    let Some(directory) = std::env::var_os("STAKEOUT_PAYLOADS") else {
        eprintln!("skipped: STAKEOUT_PAYLOADS is not set");
        return None;
    };
    Some(PathBuf::from(directory).join("fpvtrackside/event-14-races"))
}

#[test]
fn a_real_event_of_fourteen_races_is_read_whole() {
    let Some(directory) = real() else { return };
    let names = std::fs::read_dir(directory.join("events")).expect("a directory");
    let events: Vec<String> =
        names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    let read = |path: &str| std::fs::read(directory.join(path)).ok();
    let seen = describe_dir(&events, Some("Australia/Sydney"), read).expect("a description");
    assert_eq!(seen["warnings"], json!([]));
    assert_eq!(seen["event"]["name"], json!("New Event (Jan 29)"));
    assert_eq!(seen["event"]["zone"], json!("Australia/Sydney"));
    // Three of the fourteen are not valid.
    let order = seen["order"].as_array().expect("an order");
    assert_eq!(order.len(), 11);
    let first: Vec<&str> =
        order.iter().take(5).map(|o| &o["race_id"].as_str().expect("an id")[..8]).collect();
    assert_eq!(first, ["6e46456c", "04724197", "d3e05282", "d3ade44c", "b9e533e8"]);
    assert_eq!(seen["current"]["rule"], json!("next"));
    assert_eq!((&seen["current"]["order"], &seen["current"]["race_id"]), (&json!(5), &order[4]["race_id"]));
    let board = seen["leaderboard"].as_array().expect("a board");
    let joe = &board[0];
    // Valid laps in three races, without the holeshots; sums over them, 8 min 31 s of pause taken off.
    assert_eq!((&joe["name"], &joe["laps"]), (&json!("Joe"), &json!(19)));
    let seconds = |name: &str| joe[name].as_f64().map(|seconds| (seconds * 1e3).round() / 1e3);
    let names = ["best_consecutive_seconds", "best_lap_seconds", "holeshot_seconds", "total_seconds"];
    assert_eq!(names.map(seconds), [Some(15.575), Some(5.007), Some(3.969), Some(202.967)]);
    assert_eq!((&board[1]["name"], &board[1]["laps"]), (&json!("Bob"), &json!(16)));
}
