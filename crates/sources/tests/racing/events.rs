//! What is told, each thing once.

use serde_json::{Value as Json, json};

use crate::support::*;

/// The event types and their data when `after` follows `before`.
fn told(before: &Json, after: &Json, now: &str) -> Vec<(String, Json)> {
    let mut watch = Watch::new(source());
    watch.poll(at("-30m"), before);
    let seen = watch.poll(at(now), after);
    let again = watch.poll(at(now), after);
    assert!(again.drafts.is_empty(), "told twice: {:?}", again.types());
    seen.drafts.into_iter().map(|draft| (draft.event_type, draft.data)).collect()
}

fn types(before: &Json, after: &Json, now: &str) -> Vec<String> {
    told(before, after, now).into_iter().map(|(event_type, _)| event_type).collect()
}

fn status(status: &str) -> Json {
    answer_with(json!({ "status": status }))
}

fn with_odds(index: usize, win: f64) -> Json {
    let mut answer = answer();
    answer["data"]["runners"][index]["odds"]["fixed_win"] = json!(win);
    answer
}

fn with_hold(percent: f64) -> Json {
    let mut answer = answer();
    answer["data"]["money_tracker"]["entrants"][1]["hold_percentage"] = json!(percent);
    answer
}

#[test]
fn every_turn_of_a_races_life_is_told() {
    let off = answer_with(json!({ "status": "Closed", "actual_start": START_SECS + 60 }));
    for (before, after, now, expected) in [
        (status("Open"), status("Closed"), "+1m", vec!["racing.race.closed"]),
        (status("Closed"), off.clone(), "+2m", vec!["racing.race.started"]),
        (status("Open"), off, "+2m", vec!["racing.race.started", "racing.race.closed"]),
        (status("Closed"), status("Interim"), "+2m", vec!["racing.race.started", "racing.race.interim"]),
        (status("Interim"), status("Final"), "+7m", vec!["racing.race.final"]),
        (status("Open"), status("Final"), "+7m", vec!["racing.race.started", "racing.race.final"]),
        (status("Open"), status("Abandoned"), "-5m", vec!["racing.race.abandoned"]),
        (status("Interim"), status("Open"), "+7m", vec!["racing.race.reopened"]),
        (status("Open"), status("open"), "+7m", vec![]),
        (status("Open"), status("Postponed"), "+7m", vec![]),
    ] {
        assert_eq!(
            types(&before, &after, now),
            expected,
            "{} → {}",
            before["data"]["race"],
            after["data"]["race"]
        );
    }
}

#[test]
fn a_start_that_time_alone_confirms_is_told_too() {
    // Closed with an actual start that is still ahead: nothing in the answer changes, only the clock.
    let ahead = answer_with(json!({ "status": "Closed", "actual_start": START_SECS + 60 }));
    assert_eq!(types(&ahead, &ahead, "+61s"), ["racing.race.started"]);
}

#[test]
fn a_moved_start_is_told_and_a_first_one_is_not() {
    let moved = answer_with(json!({ "advertised_start": START_SECS + 300 }));
    let told_of = told(&answer(), &moved, "-20m");
    assert_eq!(told_of[0].0, "racing.race.retimed");
    assert_eq!(
        told_of[0].1["changes"],
        json!([{ "field": "start_time", "old": "2026-01-10T02:00:00.000Z", "new": "2026-01-10T02:05:00.000Z" }])
    );
    assert_eq!(
        types(&answer_with(json!({ "advertised_start": null })), &answer(), "-20m"),
        Vec::<String>::new()
    );
}

#[test]
fn a_scratching_is_told_with_whether_it_was_late() {
    for (late, expected) in [(json!(null), false), (json!(false), false), (json!(true), true)] {
        let mut scratched = answer();
        scratched["data"]["runners"][2]["is_scratched"] = json!(true);
        scratched["data"]["runners"][2]["is_late_scratched"] = late;
        scratched["data"]["runners"][2]["scratch_time"] = json!(START_SECS - 600);
        let told_of = told(&answer(), &scratched, "-9m");
        assert_eq!(told_of.len(), 1);
        assert_eq!(
            (told_of[0].0.as_str(), &told_of[0].1["late"]),
            ("racing.runner.scratched", &json!(expected))
        );
        assert_eq!(told_of[0].1["record"]["scratch_time"], json!("2026-01-10T01:50:00.000Z"));
    }
}

#[test]
fn odds_are_told_from_five_percent_on_in_both_directions() {
    for (win, expected) in [(4.19, 0), (4.2, 1), (3.81, 0), (3.8, 1)] {
        assert_eq!(types(&answer(), &with_odds(1, win), "-20m").len(), expected, "4.0 → {win}");
    }
    assert_eq!(types(&answer(), &with_odds(1, 4.4), "-20m"), ["racing.odds.moved"]);
}

#[test]
fn money_is_told_from_five_points_on() {
    assert_eq!(types(&answer(), &with_hold(9.9), "-20m"), Vec::<String>::new());
    assert_eq!(types(&answer(), &with_hold(10.0), "-20m"), ["racing.money.moved"]);
    assert_eq!(types(&answer(), &with_hold(0.0), "-20m"), ["racing.money.moved"]);
}

#[test]
fn nothing_is_told_about_the_odds_of_a_scratched_runner() {
    let mut before = answer();
    before["data"]["runners"][1]["is_scratched"] = json!(true);
    let mut after = before.clone();
    after["data"]["runners"][1]["odds"]["fixed_win"] = json!(1.01);
    after["data"]["money_tracker"]["entrants"][1]["hold_percentage"] = json!(60);
    assert_eq!(types(&before, &after, "-20m"), Vec::<String>::new());
}

#[test]
fn another_favourite_is_told_of_the_race() {
    let told_of = told(&answer(), &with_odds(2, 2.4), "-20m");
    let (event_type, data) = &told_of[1];
    assert_eq!(event_type, "racing.favourite.changed");
    assert_eq!(data["before"], json!({ "entrant_id": "entrant-1", "name": "Horse 1", "runner_number": 1 }));
    assert_eq!(
        data["now"],
        json!({ "entrant_id": "entrant-3", "name": "Horse 3", "runner_number": 3, "win_odds": 2.4 })
    );
    // A tie keeps the one that was; so do a race that is off and an answer without prices.
    assert_eq!(types(&answer(), &with_odds(2, 2.5), "-20m"), ["racing.odds.moved"]);
    let mut off = with_odds(2, 2.4);
    off["data"]["race"]["status"] = json!("Interim");
    assert!(!types(&answer(), &off, "+2m").contains(&"racing.favourite.changed".to_owned()));
}

#[test]
fn the_favourite_changes_when_it_is_scratched() {
    let mut scratched = answer();
    scratched["data"]["runners"][0]["is_scratched"] = json!(true);
    assert_eq!(types(&answer(), &scratched, "-20m"), ["racing.runner.scratched", "racing.favourite.changed"]);
}

#[test]
fn thresholds_are_configurable() {
    let mut watch =
        Watch::new(source_with(json!({ "events": { "odds_moved_percent": 20, "quiet": "10m" } })));
    watch.poll(at("-30m"), &answer());
    assert!(watch.poll(at("-29m"), &with_odds(1, 4.5)).types().is_empty());
    let seen = watch.poll(at("-28m"), &with_odds(1, 3.0));
    assert_eq!(seen.types(), ["racing.odds.moved"]);
    assert_eq!(seen.drafts[0].quiet, stakeout_core::Span::parse("10m"));
}

/// The types told by each answer after the first, in order.
fn story(answers: &[Json]) -> Vec<Vec<String>> {
    let mut watch = Watch::new(source());
    let polls = answers.iter().enumerate().map(|(n, answer)| {
        let seen = watch.poll(at("-20m") + stakeout_core::Span::mins(n as i64), answer);
        seen.drafts.into_iter().map(|draft| draft.event_type).collect()
    });
    polls.skip(1).collect()
}

#[test]
fn a_status_that_nobody_knows_makes_no_event_of_what_was_known() {
    let none = Vec::<String>::new();
    let word = status("Suspended");
    assert_eq!(story(&[status("Closed"), word.clone(), status("Closed")]), [none.clone(), none.clone()]);
    assert_eq!(story(&[status("Open"), word.clone(), status("Open")]), [none.clone(), none.clone()]);
    assert_eq!(
        story(&[status("Open"), word, status("Closed")]),
        [none, vec!["racing.race.closed".to_owned()]],
        "what changed behind it is told"
    );
}

#[test]
fn a_status_that_becomes_known_reopens_nothing() {
    assert_eq!(story(&[status("Postponed"), status("Open")]), [Vec::<String>::new()]);
}

#[test]
fn a_scratching_that_one_answer_does_not_mention_is_told_once() {
    let mut scratched = answer();
    scratched["data"]["runners"][1]["is_scratched"] = json!(true);
    let mut silent = answer();
    silent["data"]["runners"][1].as_object_mut().expect("a runner").remove("is_scratched");
    let told = story(&[answer(), scratched.clone(), silent, scratched]);
    assert_eq!(told, [vec!["racing.runner.scratched".to_owned()], vec![], vec![]]);
}

#[test]
fn a_favourite_whose_price_is_missing_is_still_the_favourite() {
    let mut silent = answer();
    silent["data"]["runners"][0]["odds"] = json!({});
    assert_eq!(story(&[answer(), silent, answer()]), [Vec::<String>::new(), vec![]]);
}

#[test]
fn a_favourite_whose_row_cannot_be_read_is_still_the_favourite() {
    let mut torn = with_odds(1, 3.9);
    torn["data"]["runners"][0]["entrant_id"] = Json::Null;
    assert_eq!(story(&[answer(), torn, answer()]), [Vec::<String>::new(), vec![]]);
}

#[test]
fn a_scratched_runner_of_whom_nothing_is_said_does_not_lead_again() {
    let mut scratched = answer();
    scratched["data"]["runners"][0]["is_scratched"] = json!(true);
    let mut silent = with_odds(1, 3.9);
    silent["data"]["runners"][0].as_object_mut().expect("a runner").remove("is_scratched");
    let told = story(&[answer(), scratched.clone(), silent, scratched]);
    assert_eq!(told[1..], [Vec::<String>::new(), vec![]]);
}
