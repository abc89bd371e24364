//! Who is ahead, and who flies next.

use serde_json::json;
use stakeout_sources::fpv::leaderboard::{
    Readiness, Standing, consecutive_laps, event_leaderboard, next_races, race_leaderboard,
};
use stakeout_sources::fpv::picture::Picture;

use crate::support::*;

fn picture(world: &mut World) -> Picture {
    world.round();
    Picture::of(&world.held()).expect("a picture")
}

/// Bob flies laps of 10, 12, 9 s after a holeshot of 3 s; Joe of 11, 10 s after 2 s.
fn first_race(world: &mut World) {
    world.set(1, Some(0), Some(60));
    world.edit(1, |file| {
        for (p, number, end, seconds) in [
            (2, 0, 2, 2.0),
            (1, 0, 3, 3.0),
            (1, 1, 13, 10.0),
            (2, 1, 14, 11.0),
            (2, 2, 24, 10.0),
            (1, 2, 25, 12.0),
            (1, 3, 34, 9.0),
        ] {
            fly(file, p, number, 0, end, seconds);
        }
    });
}

fn brief(board: &[Standing]) -> Vec<(usize, i64, &str, usize)> {
    let line = |s: &'_ Standing| (s.position, s.position_change, s.laps);
    board.iter().map(|s| (line(s).0, line(s).1, s.name.as_deref().unwrap_or("?"), line(s).2)).collect()
}

#[test]
fn a_race_is_led_by_laps_and_then_by_time() {
    let mut world = World::new(2);
    first_race(&mut world);
    let picture = picture(&mut world);
    let board = race_leaderboard(&picture, &race(101), 2);
    assert_eq!(brief(&board), [(1, 1, "Bob", 3), (2, -1, "Joe", 2)], "the last lap put Bob ahead");
    let bob = &board[0];
    assert_eq!(
        (bob.holeshot_seconds, bob.best_lap_seconds, bob.best_consecutive_seconds, bob.total_seconds),
        (Some(3.0), Some(9.0), Some(21.0), Some(34.0))
    );
    assert_eq!(race_leaderboard(&picture, &race(101), 4)[0].best_consecutive_seconds, None);
    assert_eq!(brief(&race_leaderboard(&picture, &race(102), 2)), [(1, 0, "Bob", 0), (2, 0, "Joe", 0)]);
    assert_eq!(race_leaderboard(&picture, "nobody", 2), []);
}

#[test]
fn pauses_are_taken_off_the_total() {
    let mut world = World::new(1);
    first_race(&mut world);
    world.edit(1, |file| file["TotalPausedTime"] = json!("00:00:04.5000000"));
    let board = race_leaderboard(&picture(&mut world), &race(101), 2);
    assert_eq!(board.iter().map(|s| s.total_seconds).collect::<Vec<_>>(), [Some(29.5), Some(19.5)]);
}

#[test]
fn laps_in_a_row_have_no_gap_and_invalid_laps_do_not_count() {
    let mut world = World::new(1);
    first_race(&mut world);
    world.edit(1, |file| {
        // Bob's second lap is taken out: the first and the third are not in a row.
        let detections = file["Detections"].as_array_mut().expect("detections");
        detections
            .iter_mut()
            .filter(|d| d["ID"] == json!(guid("d", 1_002)))
            .for_each(|d| d["Valid"] = json!(false));
    });
    let board = race_leaderboard(&picture(&mut world), &race(101), 2);
    let bob = board.iter().find(|s| s.pilot == pilot(1)).expect("Bob");
    assert_eq!((bob.laps, bob.best_consecutive_seconds), (2, None));
}

#[test]
fn the_event_is_led_by_the_fastest_laps_in_a_row() {
    let mut world = World::new(3);
    first_race(&mut world);
    let first = picture(&mut world);
    assert_eq!(consecutive_laps(&first), 2);
    assert_eq!(brief(&event_leaderboard(&first, 2)), [(1, 0, "Bob", 3), (2, 0, "Joe", 2)]);
    // In the second race Joe is faster.
    world.set(2, Some(100), Some(160));
    world.edit(2, |file| {
        for (number, end, seconds) in [(5, 12, 8.0), (6, 20, 8.0)] {
            fly(file, 2, number, 100, end, seconds);
        }
    });
    let second = picture(&mut world);
    let board = event_leaderboard(&second, 2);
    assert_eq!(brief(&board), [(1, 1, "Joe", 4), (2, -1, "Bob", 3)]);
    assert_eq!((board[0].best_consecutive_seconds, board[0].total_seconds), (Some(16.0), Some(44.0)));
    // Who was taken out of the event is not on its board.
    world.edit_file("Event.json", |file| file[0]["RemovedPilots"] = json!([pilot(2)]));
    assert_eq!(brief(&event_leaderboard(&picture(&mut world), 2)), [(1, 0, "Bob", 3)]);
}

#[test]
fn you_race_in_n() {
    let mut world = World::new(6);
    world.edit(2, |file| file["PilotChannels"] = json!([{ "Pilot": pilot(9), "Channel": null }]));
    world.edit(3, |file| file["PilotChannels"] = json!([{ "Pilot": pilot(2), "Channel": channel(2) }]));
    let away = |picture: &Picture, p: u32| {
        let next = next_races(picture, &pilot(p), 8);
        next.iter().map(|race| (race.order, race.races_away, race.readiness)).collect::<Vec<_>>()
    };
    let staging = picture(&mut world);
    use Readiness::{Racing, Staging, Waiting};
    assert_eq!(away(&staging, 1), [(1, 0, Staging), (4, 3, Waiting), (5, 4, Waiting), (6, 5, Waiting)]);
    assert_eq!(away(&staging, 9), [(2, 1, Waiting)]);
    world.set(1, Some(5), None);
    assert_eq!(away(&picture(&mut world), 1)[0], (1, 0, Racing));
    world.set(1, Some(5), Some(9));
    let after = picture(&mut world);
    assert_eq!(away(&after, 1)[0], (4, 2, Waiting));
    let joe = &next_races(&after, &pilot(2), 1)[0];
    assert_eq!(
        (joe.order, joe.channel_name.as_deref(), joe.colour.as_deref()),
        (3, Some("Blue"), Some("#0000FF"))
    );
    assert_eq!(away(&after, 77), []);
}
