//! What is a drop and what is not.

use serde_json::{Value as Json, json};
use stakeout_core::{FailureClass, Span, Time};
use stakeout_store::PollOutcome;

use crate::support::*;

const NONE: [&str; 0] = [];

/// Watches one bucket minute by minute; the scene says which venues are shown, and the drops come back.
fn drops(minutes: i64, scene: impl Fn(i64) -> Vec<Json> + Send + Sync + 'static) -> Vec<String> {
    World::new().watch(&every_minute(json!({})), Span::mins(minutes), move |m, _| Ok(page(&scene(m)))).drops()
}

#[test]
fn a_venue_that_was_seen_with_nothing_and_opens_is_a_drop() {
    let mut world = World::new();
    let watched = world.watch(&every_minute(json!({})), Span::mins(5), |m, _| {
        let times: &[&str] = if m < 3 { &[] } else { &["20:30"] };
        Ok(page(&[venue(1, times), venue(2, &["19:00"])]))
    });
    assert_eq!(watched.drops(), ["3 1@20:30"]);
    let event = &watched.events[0];
    assert_eq!(event.data["evidence"], json!("nonempty_prev"));
    let expected = format!("{TODAY}_20:30|{}|2026-02-26T19:03", event.subject);
    assert_eq!(event.dedupe_key.as_deref(), Some(expected.as_str()));
    assert_eq!(event.target, format!("{TODAY}_20:30"));
}

#[test]
fn the_first_complete_answer_is_a_baseline_and_more_times_are_no_drop() {
    let scene = |m: i64| {
        let times: &[&str] = if m < 2 { &["19:00"] } else { &["19:00", "20:30"] };
        vec![venue(1, times), venue(2, &["20:30"])]
    };
    assert_eq!(drops(5, scene), NONE);
}

#[test]
fn several_times_that_open_together_are_all_drops() {
    let scene = |m: i64| vec![venue(1, if m < 2 { &[] } else { &["19:00", "20:30"] }), venue(2, &["18:00"])];
    let mut told = drops(5, scene);
    told.sort();
    assert_eq!(told, ["2 1@19:00", "2 1@20:30"]);
}

#[test]
fn an_empty_first_answer_waits_for_a_second_and_what_opens_then_is_a_drop() {
    let mut world = World::new();
    let watched = world.watch(&every_minute(json!({})), Span::mins(5), |m, _| {
        Ok(page(&[venue(1, if m < 3 { &[] } else { &["20:30"] })]))
    });
    assert_eq!(watched.drops(), ["3 1@20:30"]);
    assert_eq!(watched.events[0].data["evidence"], json!("empty_prev"));
    // An answer that was empty by mistake is no baseline for what the second one has.
    assert_eq!(drops(5, |m| vec![venue(1, if m < 1 { &[] } else { &["20:30"] })]), NONE);
}

#[test]
fn a_venue_that_was_absent_once_is_no_drop_and_one_absent_twice_is() {
    let scene = |m: i64| match m {
        2 | 5 | 6 => vec![venue(2, &["19:00"])],
        _ => vec![venue(1, &["20:30"]), venue(2, &["19:00"])],
    };
    assert_eq!(drops(4, scene), NONE, "a page that shifted while it was read");
    assert_eq!(drops(9, scene), ["7 1@20:30"]);
    // A venue nobody ever heard of, right after the baseline and later.
    let new = |from: i64| {
        move |m: i64| {
            [vec![venue(2, &["19:00"])], vec![venue(3, &["20:30"]); usize::from(m >= from)]].concat()
        }
    };
    assert_eq!(drops(5, new(1)), NONE);
    assert_eq!(drops(5, new(2)), ["2 3@20:30"]);
}

#[test]
fn a_part_of_an_answer_adds_and_closes_nothing() {
    let mut world = World::new();
    let scene = |m: i64, question: &Question| {
        let part = (2..4).contains(&m);
        match (part, question.size) {
            (true, 4) => Err(failure(FailureClass::ServerError)),
            (true, _) => Ok(page(&[venue(1, &["20:30"]), venue(2, &[])])),
            (false, _) if m < 2 => Ok(page(&[venue(1, &[]), venue(2, &["19:00"])])),
            (false, _) => Ok(page(&[venue(1, &["20:30"]), venue(2, &["19:00"])])),
        }
    };
    let watched = world.watch(&every_minute(json!({ "party_sizes": [2, 4] })), Span::mins(6), scene);
    assert_eq!(
        watched.drops(),
        ["2 1@20:30"],
        "what was seen is added and told; what was not seen is still open"
    );
    assert_eq!(world.column("SELECT state FROM slot_availability ORDER BY venue_id"), ["open", "open"]);
    let why = world.column("SELECT error_class FROM polls WHERE outcome = 'partial'");
    assert_eq!(why, ["server_error", "server_error"]);
}

#[test]
fn one_empty_answer_closes_nothing_and_a_confirmed_one_brings_no_false_alerts() {
    let full = || (1..=40).map(|id| venue(id, &["19:00", "20:30"])).collect::<Vec<_>>();
    let none = || (1..=40).map(|id| venue(id, &[])).collect::<Vec<_>>();
    assert_eq!(drops(6, move |m| if m == 2 { none() } else { full() }), NONE);
    let mut world = World::new();
    let watched = world.watch(&every_minute(json!({})), Span::mins(3), move |m, _| {
        Ok(page(&if m == 2 { none() } else { full() }))
    });
    assert_eq!(watched.targets[&format!("{TODAY}_20:30")].last_outcome, Some(PollOutcome::Doubted));
    assert_eq!(world.column("SELECT count(*) FROM slot_availability WHERE state = 'open'"), ["80"]);
    for outage in 2..=5 {
        let scene = move |m: i64| if (2..2 + outage).contains(&m) { none() } else { full() };
        assert_eq!(drops(12, scene), NONE, "an outage of {outage} answers");
    }
    assert_eq!(
        drops(12, move |m| if (2..4).contains(&m) { vec![] } else { full() }),
        NONE,
        "not even a venue"
    );
}

#[test]
fn what_another_bucket_held_on_to_for_longer_is_not_told_either_when_an_outage_ends() {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    // One bucket sees the outage a minute before the other and is back a minute before it: by then the other has let
    // go of what both had, later than the first did.
    let scene = |m: i64, question: &Question| {
        let late = question.time == "20:30";
        let outage = if late { 3..8 } else { 4..9 };
        let shown = |id: i64| match (id, late) {
            _ if outage.contains(&m) => venue(id, &[]),
            (1..=6, _) => venue(id, &["19:15"]),
            // What appears beside what returns did not open where nothing was.
            (7, true) if m >= 8 => venue(id, &["21:00", "22:00"]),
            (_, true) => venue(id, &["21:00"]),
            (_, false) => venue(id, &["17:00"]),
        };
        Ok(page(&(1..=20).map(shown).collect::<Vec<_>>()))
    };
    let mut world = World::new();
    let watched = world.watch(&config, Span::mins(12), scene);
    assert_eq!(watched.drops(), NONE);
    assert_eq!(world.column("SELECT DISTINCT state FROM slot_availability"), ["open"]);
}

#[test]
fn what_only_a_blind_bucket_still_holds_is_not_told_either_when_an_outage_ends() {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    // The early bucket fails for more than four hours: what it holds no longer counts. All that time the late bucket has
    // the same tables, but for an outage near the end.
    let scene = |m: i64, question: &Question| match (question.time.as_str(), m) {
        ("18:00", 3..) => Err(failure(FailureClass::ServerError)),
        ("20:30", 270..274) => Ok(page(&(1..=20).map(|id| venue(id, &[])).collect::<Vec<_>>())),
        _ => Ok(page(&(1..=20).map(|id| venue(id, &["19:15"])).collect::<Vec<_>>())),
    };
    let watched = World::new().watch(&config, Span::mins(290), scene);
    assert_eq!(watched.drops(), NONE);
}

#[test]
fn what_an_outage_took_and_two_answers_after_it_do_not_have_is_a_drop_when_it_opens() {
    // Everything is back at minute 6 but for one venue's table, which was really taken, and opens again at `opens`.
    let told = |opens: i64| {
        drops(16, move |m| {
            let shown = |id: i64| match m {
                2..6 => venue(id, &[]),
                6.. if id == 1 && m < opens => venue(id, &[]),
                _ => venue(id, &["20:30"]),
            };
            (1..=20).map(shown).collect()
        })
    };
    assert_eq!(told(7), NONE, "the outage may only have lasted longer there");
    assert_eq!(told(12), ["12 1@20:30"]);
}

#[test]
fn what_took_the_place_of_another_while_nobody_could_see_is_not_told_when_an_outage_ends() {
    // During the outage venue 1 books one table and opens another: by the answers around it, it always had one.
    let told = drops(16, |m| {
        let shown = |id: i64| match (m, id) {
            (2..6, _) => venue(id, &[]),
            (6.., 1) => venue(id, &["21:00"]),
            _ => venue(id, &["20:30"]),
        };
        (1..=20).map(shown).collect()
    });
    assert_eq!(told, NONE);
}

#[test]
fn an_outage_that_ends_in_part_is_over_all_the_same() {
    // The first answer after it lacks a page; venue 1's table was really taken and opens again at minute 14.
    let mut world = World::new();
    let watched = world.watch(&every_minute(json!({})), Span::mins(18), |m, _| {
        let shown = |id: i64| match m {
            2..6 => venue(id, &[]),
            6..14 if id == 1 => venue(id, &[]),
            _ => venue(id, &["20:30"]),
        };
        let mut page = page(&(1..=20).map(shown).collect::<Vec<_>>());
        if m == 6 {
            page["meta"]["total"] = json!(21);
        }
        Ok(page)
    });
    assert_eq!(world.column("SELECT count(*) FROM polls WHERE outcome = 'partial'"), ["1"]);
    assert_eq!(watched.drops(), ["14 1@20:30"]);
}

#[test]
fn a_failed_or_malformed_poll_changes_nothing_and_leaves_a_sample_without_secrets() {
    let mut world = World::new();
    let watched = world.watch(&every_minute(json!({})), Span::mins(6), |m, _| match m {
        2 => Ok(json!("{\"search\": {\"hits\": [ t0ken-s3cret")),
        3 => Err(failure(FailureClass::Timeout)),
        _ => Ok(page(&[venue(1, &["20:30"]), venue(2, &[])])),
    });
    assert_eq!(watched.drops(), NONE);
    assert_eq!(world.column("SELECT count(*) FROM slots"), ["1"]);
    let sample = world.column("SELECT CAST(body AS TEXT) FROM samples");
    assert!(sample[0].contains("[redacted]") && !sample[0].contains("s3cret"), "{sample:?}");
    let failures = world.column("SELECT DISTINCT error_class FROM polls WHERE outcome = 'failed' ORDER BY 1");
    assert_eq!(failures, ["malformed", "timeout"]);
}

#[test]
fn a_sample_is_of_the_page_that_was_not_understood() {
    let mut world = World::new();
    let config = every_minute(json!({ "party_sizes": [2, 4] }));
    world.watch(&config, Span::mins(2), |_, question| match question.size {
        2 => Ok(json!("<html>down for maintenance</html>")),
        _ => Ok(page(&[venue(1, &["20:30"])])),
    });
    let samples = world.column("SELECT DISTINCT CAST(body AS TEXT) FROM samples");
    assert_eq!(samples, ["<html>down for maintenance</html>"]);
}

#[test]
fn a_slot_is_first_seen_when_its_own_page_is_read() {
    let mut world = World::new();
    // Three pages, a second apart.
    let config = every_minute(json!({ "budget": "60/min" }));
    let watched = world.watch(&config, Span::mins(5), |m, question| {
        let opens: &[&str] = if m >= 3 { &["20:30"] } else { &[] };
        let venues = [venue(1, &["19:00"]), venue(2, &["19:00"]), venue(3, opens)];
        Ok(page_of(3, 3, &venues[question.page as usize - 1..question.page as usize]))
    });
    let drop = watched.events.iter().find(|event| event.event_type == "tables.drop").expect("a drop");
    let opened = drop.data["opened_at"].as_str().expect("a time").to_owned();
    let first_seen = "SELECT first_seen FROM slot_availability WHERE venue_id = '3'";
    // The view shows milliseconds.
    assert_eq!(world.column(first_seen)[0][..23], opened[..23]);
    let asked: Vec<String> = watched
        .log
        .iter()
        .filter(|(at, question)| question.page == 1 && *at < Time::parse(&opened).expect("a time"))
        .map(|(at, _)| at.to_string())
        .collect();
    assert!(asked.last().is_some_and(|began| *began < opened), "later than its poll began");
}

#[test]
fn a_list_that_was_cut_off_closes_nothing_of_its_venue() {
    let mut world = World::new();
    world.watch(&every_minute(json!({})), Span::mins(4), |m, _| {
        let shown: &[&str] = if m < 2 { &["18:00", "19:00", "20:00"] } else { &["19:00", "20:00", "21:00"] };
        Ok(page(&[venue(1, shown), venue(2, if m < 2 { &["20:30", "21:00"] } else { &["21:00"] })]))
    });
    let open =
        "SELECT venue_id || '@' || substr(start, 12) FROM slot_availability WHERE state = 'open' ORDER BY 1";
    assert_eq!(world.column(open), ["1@18:00", "1@19:00", "1@20:00", "1@21:00", "2@21:00"]);
}

#[test]
fn the_same_slot_in_two_overlapping_buckets_is_one_alert() {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    let watched = World::new().watch(&config, Span::mins(6), |m, _| {
        Ok(page(&[venue(1, if m < 3 { &[] } else { &["19:15"] }), venue(2, &["19:00"])]))
    });
    assert_eq!(watched.drops(), ["3 1@19:15"]);
}

#[test]
fn a_venue_that_is_open_through_another_bucket_of_that_date_is_no_drop() {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    let watched = World::new().watch(&config, Span::mins(6), |m, question| {
        let times: &[&str] = match (question.time.as_str(), m) {
            ("18:00", _) => &["17:30"],
            (_, 0..3) => &[],
            _ => &["21:00"],
        };
        Ok(page(&[venue(1, times), venue(2, &["19:00"])]))
    });
    assert_eq!(watched.drops(), NONE);
    // On another date it is one.
    let config = every_minute(json!({ "days": 2 }));
    let watched = World::new().watch(&config, Span::mins(6), |m, question| {
        let times: &[&str] = match (question.day.as_str(), m) {
            (TODAY, _) => &["17:30"],
            (_, 0..3) => &[],
            _ => &["21:00"],
        };
        Ok(page(&[venue_on(&question.day, 1, times), venue_on(&question.day, 2, &["19:00"])]))
    });
    assert_eq!(watched.drops(), ["3 1@21:00"]);
}

#[test]
fn duplicates_across_party_sizes_and_pages_are_told_once() {
    let config = every_minute(json!({ "party_sizes": [2, 4, 6], "per_page": 1 }));
    let watched = World::new().watch(&config, Span::mins(6), |m, question| {
        let times: &[&str] = if m < 3 { &[] } else { &["20:30"] };
        let all = [venue(1, times), venue(2, &["19:00"])];
        let hit = all[question.page as usize - 1].clone();
        Ok(json!({ "meta": { "total": 2, "total_pages": 2 }, "search": { "hits": [hit] } }))
    });
    assert_eq!(watched.drops(), ["3 1@20:30"]);
    assert_eq!(watched.events[0].data["party_sizes"], json!([2, 4, 6]));
}

#[test]
fn excluded_venues_are_silent_and_followed_ones_are_marked() {
    let config = every_minute(json!({ "follow": ["1"], "exclude": ["2"] }));
    let watched = World::new().watch(&config, Span::mins(5), |m, _| {
        let times: &[&str] = if m < 3 { &[] } else { &["20:30"] };
        Ok(page(&[venue(1, times), venue(2, times), venue(3, times), venue(4, &["19:00"])]))
    });
    let told: Vec<(&Json, &Json)> =
        watched.events.iter().map(|e| (&e.data["venue_id"], &e.data["followed"])).collect();
    assert_eq!(told.len(), 2);
    assert!(told.contains(&(&json!("1"), &json!(true))) && told.contains(&(&json!("3"), &json!(false))));
}
