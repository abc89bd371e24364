//! Outages that only one of two overlapping buckets sees: what they took there is still open, whoever shows it. And
//! outages that come and go in steps.

use serde_json::{Value as Json, json};
use stakeout_core::Span;

use crate::support::{Question, World, every_minute, page, venue};

const NONE: [&str; 0] = [];

/// What is told when the late bucket has an outage from minute 3 to `until`. `early` and `late` say what the buckets show
/// of venues 1 and 2 at a minute; all other venues always have a table.
fn told(
    minutes: i64,
    until: i64,
    early: impl Fn(i64) -> Vec<Json> + Send + Sync + 'static,
    late: impl Fn(i64) -> Vec<Json> + Send + Sync + 'static,
) -> Vec<String> {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    let watched = World::new().watch(&config, Span::mins(minutes), move |m, question: &Question| {
        let is_late = question.time == "20:30";
        let mut venues = if is_late { late(m) } else { early(m) };
        venues.extend((3..=20).map(|id| venue(id, if is_late { &["22:00"] } else { &["17:00"] })));
        if is_late && (3..until).contains(&m) {
            venues = (1..=20).map(|id| venue(id, &[])).collect();
        }
        Ok(page(&venues))
    });
    watched.drops()
}

#[test]
fn what_the_outage_of_one_bucket_took_is_no_drop_where_another_shows_it() {
    let open = |_| vec![venue(1, &["19:15"]), venue(2, &["21:00"])];
    // Venue 1's own table comes into the early bucket's sight, and beside that of venue 2 another one opens.
    let early = |m| match m {
        0..7 => vec![venue(1, &[]), venue(2, &[])],
        _ => vec![venue(1, &["19:15"]), venue(2, &["17:30"])],
    };
    assert_eq!(told(16, 10, early, open), NONE);
}

#[test]
fn what_is_gone_when_the_outage_of_one_bucket_is_over_is_a_drop_where_another_shows_it() {
    // Both venues' tables were really taken while the late bucket was blind.
    let taken = |m| {
        if m < 3 {
            vec![venue(1, &["19:15"]), venue(2, &["21:00"])]
        } else {
            vec![venue(1, &[]), venue(2, &[])]
        }
    };
    let early = |m| match m {
        0..14 => vec![venue(1, &[]), venue(2, &[])],
        _ => vec![venue(1, &["19:15"]), venue(2, &["17:30"])],
    };
    let mut told = told(18, 8, early, taken);
    told.sort();
    assert_eq!(told, ["14 1@19:15", "14 2@17:30"]);
}

#[test]
fn where_a_bucket_stays_empty_for_good_another_tells_again_after_a_while() {
    let open = |_| vec![venue(1, &["19:15"]), venue(2, &["21:00"])];
    let early = |m| match m {
        0..7 => vec![venue(1, &[]), venue(2, &[])],
        7..80 => vec![venue(1, &["17:15"]), venue(2, &[])],
        _ => vec![venue(1, &["17:15"]), venue(2, &["17:30"])],
    };
    assert_eq!(told(84, i64::MAX, early, open), ["80 2@17:30"]);
}

#[test]
fn a_bucket_whose_evening_is_over_keeps_nobody_quiet_once_its_times_have_passed() {
    // Four in the afternoon. The tables for half past four are taken off together, half an hour before their time.
    let mut world = World::at("2026-02-26T21:00:00Z");
    let config = every_minute(json!({ "time_slots": ["15:00", "20:30"] }));
    let watched = world.watch(&config, Span::mins(40), |m, question: &Question| {
        let shown = |id: i64| match (question.time.as_str(), id) {
            ("15:00", 1..=20) if m < 3 => venue(id, &["16:30"]),
            // Until half past it may have been an outage.
            ("20:30", 1) if (20..25).contains(&m) => venue(id, &["20:00"]),
            ("20:30", 2) if m >= 32 => venue(id, &["20:00"]),
            ("20:30", 21) => venue(id, &["20:30"]),
            _ => venue(id, &[]),
        };
        Ok(page(&(1..=21).map(shown).collect::<Vec<_>>()))
    });
    assert_eq!(watched.drops(), ["152 2@20:00"]);
    let early = &watched.targets["2026-02-26_15:00"];
    assert_eq!(early.state.memory.removals.len(), 1, "it went as a mass, and never came back");
}

#[test]
fn an_evening_that_passes_is_never_doubted() {
    // Half past three in the afternoon; every table stays until its own time has come, the last for six.
    let mut world = World::at("2026-02-26T20:30:00Z");
    let config = every_minute(json!({ "time_slots": ["15:00"] }));
    let watched = world.watch(&config, Span::mins(200), |m, _: &Question| {
        let left = |clock: &&str| {
            let hours: i64 = clock[..2].parse().expect("hours");
            let minutes: i64 = clock[3..].parse().expect("minutes");
            hours * 60 + minutes > 15 * 60 + 30 + m
        };
        let times: Vec<&str> = ["15:45", "16:30", "17:15", "18:00"].into_iter().filter(left).collect();
        Ok(page(&(1..=20).map(|id| venue(id, &times)).collect::<Vec<_>>()))
    });
    assert_eq!(watched.drops(), NONE);
    assert_eq!(world.column("SELECT count(*) FROM polls WHERE outcome = 'doubted'"), ["0"]);
    let states = world.column("SELECT DISTINCT state FROM slot_availability");
    assert_eq!(states, ["passed"], "not one of them was taken away");
    assert!(watched.targets["2026-02-26_15:00"].state.memory.removals.is_empty());
}

#[test]
fn a_bucket_that_is_over_when_it_is_first_looked_at_has_an_empty_baseline_after_two_answers() {
    // Nine in the evening: the afternoon's tables are all gone, its venues are still listed.
    let mut world = World::at("2026-02-27T02:00:00Z");
    let config = every_minute(json!({ "time_slots": ["15:00"] }));
    let nothing = |_: i64, _: &Question| Ok(page(&(1..=20).map(|id| venue(id, &[])).collect::<Vec<_>>()));
    world.watch(&config, Span::mins(5), nothing);
    let of = "target_id = (SELECT id FROM targets WHERE key = '2026-02-26_15:00')";
    let outcomes = world.column(&format!("SELECT outcome FROM polls WHERE {of} ORDER BY poll_no"));
    assert_eq!(outcomes, ["doubted", "baseline"], "and afterwards nothing that is notable");
}

/// What one bucket of twenty venues tells that shows tables of so many of them, from those minutes on.
fn told_in_steps(steps: &'static [(i64, i64)], minutes: i64) -> Vec<String> {
    let watched =
        World::new().watch(&every_minute(json!({})), Span::mins(minutes), move |m, _: &Question| {
            let shown = steps.iter().rev().find(|(from, _)| *from <= m).map_or(20, |(_, shown)| *shown);
            let times = |id: i64| if id <= shown { &["20:00"][..] } else { &[] };
            Ok(page(&(1..=20).map(|id| venue(id, times(id))).collect::<Vec<_>>()))
        });
    watched.drops()
}

#[test]
fn an_outage_that_grows_and_is_over_at_once_tells_nothing() {
    assert_eq!(told_in_steps(&[(3, 8), (8, 0), (13, 20)], 20), NONE);
}

#[test]
fn an_outage_that_grows_and_shrinks_in_steps_tells_nothing() {
    assert_eq!(told_in_steps(&[(3, 8), (8, 0), (13, 8), (25, 20)], 32), NONE);
}

#[test]
fn the_few_that_are_seen_between_two_outages_are_no_drops_when_they_are_seen_again() {
    assert_eq!(told_in_steps(&[(3, 0), (8, 2), (9, 0), (14, 2), (20, 20)], 26), NONE);
}

#[test]
fn what_was_really_taken_in_an_outage_that_came_in_steps_is_a_drop_when_it_opens() {
    assert_eq!(told_in_steps(&[(3, 8), (8, 0), (13, 19), (20, 20)], 24), ["20 20@20:00"]);
}

#[test]
fn what_another_bucket_lost_in_the_first_of_two_outages_is_no_drop_either() {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    let watched = World::new().watch(&config, Span::mins(20), move |m, question: &Question| {
        let is_late = question.time == "20:30";
        // The late bucket loses venue 1 with most others, then the rest, too; meanwhile the early one comes to see it.
        let shown = match (is_late, m) {
            (true, 3..8) => 13..=20,
            (true, 8..14) => 0..=0,
            (true, _) => 1..=20,
            (false, 0..10) => 2..=20,
            (false, _) => 1..=20,
        };
        let time = |id: i64| if id == 1 || is_late { "19:15" } else { "17:00" };
        let times = |id: i64| if shown.contains(&id) { vec![time(id)] } else { vec![] };
        Ok(page(&(1..=20).map(|id| venue(id, &times(id))).collect::<Vec<_>>()))
    });
    assert_eq!(watched.drops(), NONE);
}
