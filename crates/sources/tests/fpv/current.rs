//! The order of the races, the current one, and what follows: focus, published value, written rows.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use stakeout_core::{Source, Span, Value};
use stakeout_sources::fpv::order::{CurrentRule, current_race, numbers, race_order};
use stakeout_sources::fpv::picture::{Moment, Picture, Race, Round, Seat};

use crate::support::*;

/// A race of a picture: round, number, start and end in seconds, pilots.
fn a_race(n: u32, round_n: u32, number: i64, times: (Option<i64>, Option<i64>), pilots: u32) -> Race {
    Race {
        id: race(n),
        number: Some(number),
        round: Some(round(round_n)),
        start: times.0.map(Moment),
        end: times.1.map(Moment),
        paused_seconds: 0.0,
        valid: true,
        seats: (0..pilots).map(|p| Seat { pilot: pilot(p), channel: None }).collect(),
        stored_order: None,
    }
}

/// Four races in two rounds with these times.
fn picture(times: [(Option<i64>, Option<i64>); 4]) -> Picture {
    let races =
        (1..).zip(times).map(|(n, times)| a_race(n, n.div_ceil(2), i64::from((n - 1) % 2 + 1), times, 2));
    let round_of = |n: u32| (round(n), Round { order: Some(i64::from(n) * 100), number: None, valid: true });
    Picture { races: races.collect(), rounds: [1, 2].map(round_of).into(), ..Picture::default() }
}

const NOT: (Option<i64>, Option<i64>) = (None, None);
fn running(start: i64) -> (Option<i64>, Option<i64>) {
    (Some(start), None)
}
fn over(start: i64, end: i64) -> (Option<i64>, Option<i64>) {
    (Some(start), Some(end))
}

fn check(picture: &Picture, expected: u32, rule: CurrentRule) {
    let current = current_race(picture).expect("a current race");
    assert_eq!((current.race_id, current.rule), (race(expected), rule));
}

#[test]
fn the_four_rules_in_their_order() {
    check(&picture([NOT, NOT, NOT, NOT]), 1, CurrentRule::First);
    check(&picture([running(5), NOT, NOT, NOT]), 1, CurrentRule::Active);
    check(&picture([over(5, 9), NOT, NOT, NOT]), 2, CurrentRule::Next);
    check(&picture([over(5, 9), over(10, 15), running(20), NOT]), 3, CurrentRule::Active);
    check(&picture([over(5, 9), over(10, 15), over(20, 25), over(30, 35)]), 4, CurrentRule::LastCompleted);
    assert_eq!(current_race(&Picture::default()), None);
}

/// Edge case 5.
#[test]
fn races_flown_out_of_order_go_on_after_the_last_one_in_the_order() {
    check(&picture([NOT, NOT, over(1, 2), NOT]), 4, CurrentRule::Next);
    check(&picture([over(5, 6), NOT, over(1, 2), NOT]), 4, CurrentRule::Next);
    check(&picture([over(5, 6), running(8), over(1, 2), NOT]), 2, CurrentRule::Active);
    // What was left out is no reason to look five times a second for the rest of the day.
    check(&picture([over(5, 6), NOT, over(1, 2), over(8, 9)]), 4, CurrentRule::LastCompleted);
}

/// Edge case 6.
#[test]
fn of_several_active_races_the_one_that_started_last_counts() {
    check(&picture([running(5), running(9), running(7), NOT]), 2, CurrentRule::Active);
    check(&picture([running(5), running(5), NOT, NOT]), 2, CurrentRule::Active);
}

#[test]
fn races_without_pilots_are_skipped_unless_no_other_is_left() {
    let mut empty = picture([NOT, NOT, NOT, NOT]);
    empty.races[0].seats.clear();
    check(&empty, 2, CurrentRule::First);
    empty.races.iter_mut().for_each(|race| race.seats.clear());
    check(&empty, 1, CurrentRule::First);
    let mut next = picture([over(1, 2), NOT, NOT, NOT]);
    next.races[1].seats.clear();
    check(&next, 3, CurrentRule::Next);
    next.races[2].seats.clear();
    next.races[3].seats.clear();
    check(&next, 2, CurrentRule::Next);
    let mut active = picture([running(1), NOT, NOT, NOT]);
    active.races[0].seats.clear();
    check(&active, 1, CurrentRule::Active);
}

/// Edge cases 3 and 4.
#[test]
fn invalid_races_have_no_number_and_rounds_of_equal_order_share_the_race_numbers() {
    let ids = |picture: &Picture| race_order(picture).iter().map(|race| race.id.clone()).collect::<Vec<_>>();
    let mut picture = picture([NOT, NOT, NOT, NOT]);
    assert_eq!(ids(&picture), [1, 2, 3, 4].map(race));
    picture.rounds.insert(round(2), Round { order: Some(100), number: None, valid: true });
    assert_eq!(ids(&picture), [1, 3, 2, 4].map(race), "by number, then by id");
    picture.races[2].valid = false;
    assert_eq!(ids(&picture), [1, 2, 4].map(race));
    picture.rounds.insert(round(2), Round { order: Some(100), number: None, valid: false });
    assert_eq!(ids(&picture), [1, 2].map(race));
    picture.races[3].start = Some(Moment(5));
    check(&picture, 1, CurrentRule::First);
    picture.races[0].valid = false;
    picture.races[0].start = Some(Moment(5));
    check(&picture, 2, CurrentRule::First);
}

#[test]
fn a_round_without_an_order_stands_where_its_number_says() {
    let mut picture = picture([NOT, NOT, NOT, NOT]);
    picture.rounds.insert(round(1), Round { order: None, number: Some(3), valid: true });
    assert_eq!(race_order(&picture)[0].id, race(3));
}

#[test]
fn the_focus_goes_from_race_to_race_and_nothing_is_written_twice() {
    let mut world = World::new(4);
    world.round();
    assert_eq!(world.current(), (Some(1), Some(1)));
    assert_eq!(world.focused, Some(race_target(1)));
    assert_eq!((world.derived_writes, world.news()), (4, vec!["fpv.race.current_changed".to_owned()]));
    for (n, at) in [(1, 10), (2, 100), (3, 200), (4, 300)] {
        world.set(n, Some(at), None);
        world.round();
        assert_eq!((world.current().0, &world.focused), (Some(n), &Some(race_target(n))));
        assert_eq!(world.news(), ["fpv.race.started"]);
        world.set(n, Some(at), Some(at + 50));
        world.round();
        if n < 4 {
            assert_eq!(world.current(), (Some(n + 1), Some(i64::from(n) + 1)));
            assert_eq!(world.news(), ["fpv.race.ended", "fpv.race.current_changed"]);
        }
    }
    // Edge case 11.
    assert_eq!(world.current(), (Some(4), Some(4)));
    assert_eq!(world.focused, None, "nobody looks at it every 200 ms any more");
    assert_eq!(world.news(), ["fpv.race.ended"], "it is still the current one");
    world.round();
    assert_eq!((world.derived_writes, world.news()), (4, vec![]));
}

/// Edge case 13.
#[test]
fn a_race_that_comes_before_its_round_is_kept_and_numbered_when_the_round_arrives() {
    let mut world = World::new(4);
    world.edit_file("Rounds.json", |rounds| drop(rounds.as_array_mut().expect("a list").remove(0)));
    world.round();
    assert_eq!([1, 2, 3, 4].map(|n| world.order(n)), [json!(null), json!(null), json!(1), json!(2)]);
    assert_eq!(world.current(), (Some(3), Some(1)));
    world.set(1, Some(5), None);
    world.round();
    assert_eq!(world.current(), (Some(1), None), "an active race is never skipped");
    world.edit_file("Rounds.json", |rounds| rounds.as_array_mut().expect("a list").push(round_file(1, 100)));
    world.round();
    assert_eq!(world.current(), (Some(1), Some(1)));
    assert_eq!([1, 2, 3, 4].map(|n| world.order(n)), [json!(1), json!(2), json!(3), json!(4)]);
}

/// Edge case 14.
#[test]
fn renumbering_and_inserted_rounds_write_only_what_moved() {
    let mut world = World::new(6);
    world.round();
    assert_eq!(world.derived_writes, 6);
    // The second round goes to the end.
    world.edit_file("Rounds.json", |rounds| rounds[1]["Order"] = json!(350));
    world.round();
    assert_eq!(world.derived_writes, 10);
    assert_eq!([1, 2, 3, 4, 5, 6].map(|n| world.order(n)), [1, 2, 5, 6, 3, 4].map(|n| json!(n)));
    // A race is taken out: those behind it move up, it has no number.
    world.edit(1, |file| file["Valid"] = json!(false));
    world.round();
    assert_eq!(world.derived_writes, 16);
    assert_eq!(
        (world.order(1), world.order(2), world.current()),
        (json!(null), json!(1), (Some(2), Some(1)))
    );
}

#[test]
fn a_new_event_is_numbered_when_all_of_it_has_been_seen() {
    let mut world = World::new(4);
    for key in
        ["page".to_owned(), format!("event/{}", event(1)), format!("rounds/{}", event(1)), race_target(3)]
    {
        world.poll(&key).expect("an answer");
        world.derive();
    }
    assert_eq!((&world.focused, &world.published, world.derived_writes), (&None, &None, 0));
    world.set(4, Some(10), None);
    world.poll(&race_target(4)).expect("an answer");
    world.derive();
    assert_eq!(world.focused, Some(race_target(4)), "what is being flown is looked at from the start");
    world.round();
    assert_eq!((world.current(), world.derived_writes), ((Some(4), Some(4)), 4));
}

#[test]
fn the_published_value_is_the_seeds() {
    let mut world = World::new(1);
    world.poll_all();
    let derived = world.derived();
    let published = &derived.published[0];
    assert_eq!((published.namespace.as_str(), published.key.as_str()), ("race", "currentOrder"));
    assert_eq!(published.value, json!({ "order": 1, "raceId": race(101), "computedAt": START }));
    assert_eq!(published.stamp.as_deref(), Some("computedAt"));
    assert_eq!(derived.records[0].get("race_order"), Some(&Value::Int(1)));
    let mut told = derived.drafts[0].data.clone();
    let upcoming = told.as_object_mut().and_then(|told| told.remove("upcoming")).expect("who flies when");
    assert_eq!(told, json!({ "race_id": race(101), "order": 1, "rule": "first", "before": null }));
    let line = |line: &Json| (line["name"].clone(), line["race_id"].clone(), line["races_away"].clone());
    let upcoming: Vec<_> = upcoming.as_array().into_iter().flatten().map(line).collect();
    assert_eq!(
        upcoming,
        [(json!("Bob"), json!(race(101)), json!(0)), (json!("Joe"), json!(race(101)), json!(0))]
    );
    assert_eq!(world.source.derives().map(|derives| derives.every), Some(Span::ms(1_000)));
}

#[test]
fn who_is_seated_in_another_race_is_told_although_the_current_race_is_the_same() {
    let mut world = World::new(4);
    world.round();
    world.news();
    let seats = |world: &mut World, pilots: &[u32]| {
        let seat = |n: &u32| json!({ "Pilot": pilot(*n), "Channel": channel(*n) });
        world.edit(1, |file| file["PilotChannels"] = pilots.iter().map(seat).collect());
        world.round();
        world.news()
    };
    assert_eq!(seats(&mut world, &[1]), ["fpv.race.reseated"], "the second pilot flies in the second race");
    let upcoming = world.upcoming.as_ref().expect("published").value["upcoming"].clone();
    assert_eq!((&upcoming[1]["pilot"], &upcoming[1]["races_away"]), (&json!(pilot(2)), &json!(1)));
    assert_eq!(seats(&mut world, &[1]), [""; 0], "told once");
    assert_eq!(seats(&mut world, &[1, 2]), ["fpv.race.reseated"], "and in the first again");
    assert_eq!(world.current(), (Some(1), Some(1)));
    // Who is in no race any more waits for no call.
    for n in 1..=4 {
        world.edit(n, |file| file["PilotChannels"] = json!([{ "Pilot": pilot(1), "Channel": channel(1) }]));
    }
    world.round();
    assert_eq!(world.news(), [""; 0]);
    assert_eq!(
        world.upcoming.as_ref().expect("published").value["upcoming"].as_array().map(Vec::len),
        Some(1)
    );
}

/// Edge case 15: on the venue's clock 9:59 is before 10:00.
#[test]
fn unpadded_hours_do_not_sort_as_text() {
    let mut world = World::new(3);
    assert!(clock(10) > clock(70), "as text it is the wrong way round");
    world.set(1, Some(70), None);
    world.set(3, Some(10), None);
    world.round();
    assert_eq!(world.current().0, Some(1), "it started last");
}

fn any_times() -> impl Strategy<Value = (Option<i64>, Option<i64>)> {
    (prop::option::of(0..5_i64), prop::option::of(0..5_i64))
}

prop_compose! {
    fn any_picture()(
        races in prop::collection::vec((0..6_u32, prop::option::of(0..4_i64), any_times(), 0..3_u32, any::<bool>()), 0..12),
        rounds in prop::collection::vec((prop::option::of(0..3_i64), any::<bool>()), 0..5),
    ) -> Picture {
        let rounds = (0..).zip(rounds).map(|(n, (order, valid))| (round(n), Round { order, number: Some(i64::from(n)), valid }));
        let races = (0..).zip(races).map(|(n, (round_n, number, times, pilots, valid))| {
            Race { number, valid, ..a_race(n, round_n, 0, times, pilots) }
        });
        Picture { races: races.collect(), rounds: rounds.collect(), ..Picture::default() }
    }
}

proptest! {
    #[test]
    fn the_order_is_total_and_does_not_depend_on_how_the_races_came_in(
        picture in any_picture(), seed in any::<prop::sample::Index>(),
    ) {
        let order: Vec<&str> = race_order(&picture).iter().map(|race| race.id.as_str()).collect();
        let mut shuffled = picture.clone();
        if !shuffled.races.is_empty() {
            let by = seed.index(shuffled.races.len());
            shuffled.races.rotate_left(by);
            shuffled.races.reverse();
        }
        let again: Vec<&str> = race_order(&shuffled).iter().map(|race| race.id.as_str()).collect();
        prop_assert_eq!(&order, &again);
        prop_assert_eq!(current_race(&picture), current_race(&shuffled));
        let races = race_order(&picture);
        let numbers: Vec<i64> = races.iter().map(|race| numbers(&races)[race.id.as_str()]).collect();
        prop_assert_eq!(numbers, (1..=order.len() as i64).collect::<Vec<_>>());
    }

    #[test]
    fn there_is_a_current_race_whenever_one_is_numbered_and_active_ones_come_first(picture in any_picture()) {
        let current = current_race(&picture);
        prop_assert!(current.is_some() || race_order(&picture).is_empty());
        if let Some(current) = current {
            let race = picture.race(&current.race_id).expect("a race");
            prop_assert!(race.valid);
            let numbered_active = race_order(&picture).iter().any(|race| race.is_running());
            prop_assert!(!numbered_active || current.rule == CurrentRule::Active);
            prop_assert_eq!(current.rule == CurrentRule::Active, race.is_running());
            prop_assert_eq!(current.rule == CurrentRule::LastCompleted, race.is_completed());
        }
    }
}
