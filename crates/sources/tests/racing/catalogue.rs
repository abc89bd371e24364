//! The catalogue: which dates and pages are asked for, which races become targets, when they retire.

use serde_json::{Value as Json, json};
use stakeout_core::compare::Verdict;
use stakeout_core::{
    Coverage, Exchange, Facts, Failure, FailureClass, Fingerprint, Observation, PollContext, Request, Scope,
    Source, Span, TargetSpec, Time,
};
use stakeout_sources::racing::RacingSource;

use crate::support::*;

const NOW: &str = "2025-07-16T20:00:00Z";

fn race(id: &str, start: &str, status: &str) -> Json {
    json!({ "id": id, "race_number": 1, "name": "Race 1", "start_time": start, "distance": 1200, "country": "NZ",
        "weather": "FINE", "track_condition": "Good4", "status": status })
}

fn meeting(id: &str, country: &str, category: &str, races: Vec<Json>) -> Json {
    json!({ "meeting": id, "name": format!("Meeting {id}"), "date": "2025-07-17T00:00:00Z", "country": country,
        "category": category, "category_name": "Racing", "track_condition": "Good4", "races": races })
}

fn page(meetings: Vec<Json>) -> String {
    json!({ "header": { "generated_time": NOW }, "data": { "meetings": meetings } }).to_string()
}

fn requests(source: &RacingSource, so_far: &[Exchange]) -> Vec<Request> {
    let facts = Facts::default();
    let now = Time::parse(NOW).expect("a time");
    source.requests(&source.roots(now)[0], so_far, &PollContext { now, facts: &facts })
}

/// A listing of today's page and an empty yesterday, given what was known before.
fn list(today: Vec<Json>, facts: &Facts) -> Result<Observation, Failure> {
    let source = source();
    let asked = requests(&source, &[]);
    let pages = [page(today), page(vec![])];
    let exchanges: Vec<Exchange> = asked.into_iter().zip(pages).map(|(r, body)| exchange(r, body)).collect();
    normalize(&source, &exchanges, facts)
}

fn normalize(source: &RacingSource, exchanges: &[Exchange], facts: &Facts) -> Result<Observation, Failure> {
    let now = Time::parse(NOW).expect("a time");
    source.normalize(&source.roots(now)[0], exchanges, &PollContext { now, facts })
}

fn keys(observation: &Observation) -> Vec<&str> {
    let targets: &[TargetSpec] = observation.targets.as_deref().expect("a listing");
    targets.iter().map(|target| target.key.as_str()).collect()
}

#[test]
fn both_new_zealand_dates_are_asked_for() {
    // 20:00 UTC on the 16th is the morning of the 17th in New Zealand.
    let urls: Vec<String> = requests(&source(), &[]).into_iter().map(|r| r.url).collect();
    let url = |date: &str| {
        format!(
            "https://api.tab.co.nz/affiliates/v1/racing/meetings?date_from={date}&date_to={date}&limit=200&offset=0"
        )
    };
    assert_eq!(urls, [url("2025-07-17"), url("2025-07-16")]);
    let narrow =
        source_with(json!({ "countries": ["AU"], "categories": ["h"], "base_url": "http://localhost:1/" }));
    let url = &requests(&narrow, &[])[0].url;
    assert!(
        url.starts_with("http://localhost:1/affiliates/") && url.ends_with("&country=AUS&category=H"),
        "{url}"
    );
}

#[test]
fn a_full_page_is_followed_by_the_next_one() {
    let source = source();
    let full = || page((0..200).map(|n| meeting(&format!("m{n}"), "USA", "T", vec![])).collect());
    let first = requests(&source, &[]);
    let mut so_far: Vec<Exchange> =
        first.into_iter().zip([full(), page(vec![])]).map(|(r, body)| exchange(r, body)).collect();
    let second = requests(&source, &so_far);
    assert_eq!(second.len(), 1);
    assert!(second[0].url.contains("date_from=2025-07-17") && second[0].url.contains("offset=200"));
    so_far.push(exchange(
        second[0].clone(),
        page(vec![meeting("last", "NZ", "T", vec![race("r", NOW, "Open")])]),
    ));
    assert!(requests(&source, &so_far).is_empty());
    let seen = normalize(&source, &so_far, &Facts::default()).expect("a listing");
    assert_eq!((seen.coverage.clone(), keys(&seen)), (Coverage::Complete, vec!["race/r"]));
}

#[test]
fn pages_without_end_have_a_limit() {
    let source = source();
    let full = page((0..200).map(|n| meeting(&format!("m{n}"), "USA", "T", vec![])).collect());
    let mut so_far = Vec::new();
    loop {
        let more = requests(&source, &so_far);
        if more.is_empty() {
            break;
        }
        so_far.extend(more.into_iter().map(|r| exchange(r, full.clone())));
        assert!(so_far.len() <= 20, "it never ends");
    }
    let seen = normalize(&source, &so_far, &Facts::default()).expect("a listing");
    assert_eq!((seen.coverage.name(), codes(&seen)), ("partial", vec!["too_many_pages"]));
}

#[test]
fn only_gallops_and_harness_of_australia_and_new_zealand_are_kept() {
    let wanted = [("nz-t", "NZ", "T"), ("nz-g", "NZ", "G"), ("aus-h", "AUS", "H"), ("uk-t", "UK", "T")];
    let meetings =
        wanted.map(|(id, country, category)| meeting(id, country, category, vec![race(id, NOW, "Open")]));
    let seen = list(meetings.to_vec(), &Facts::default()).expect("a listing");
    assert_eq!(keys(&seen), ["race/nz-t", "race/aus-h"]);
    assert_eq!((of(&seen, "meetings").len(), of(&seen, "races").len()), (2, 2));
    let race = one(&seen, "races", "nz-t");
    assert_eq!(race.parent, Some(one(&seen, "meetings", "nz-t").fingerprint));
    assert_eq!((get(race, "meeting"), get(race, "type")), (json!("nz-t"), json!("T")));
    assert_eq!(get(one(&seen, "meetings", "nz-t"), "date"), json!("2025-07-17"));
    let target = &seen.targets.as_ref().expect("targets")[0];
    assert_eq!((target.start, target.role.as_str()), (Time::parse(NOW), "race"));
}

#[test]
fn a_race_that_was_over_before_it_was_seen_is_recorded_and_not_watched() {
    let races = vec![race("done", NOW, "Final"), race("off", NOW, "Abandoned"), race("on", NOW, "Interim")];
    let seen = list(vec![meeting("m", "NZ", "T", races)], &Facts::default()).expect("a listing");
    assert_eq!(keys(&seen), ["race/on"]);
    assert_eq!(of(&seen, "races").len(), 3);
    assert_eq!(get(one(&seen, "races", "done"), "start_confirmed"), json!(true));
}

#[test]
fn a_target_stays_after_its_race_is_over_and_retires_with_its_date() {
    let meeting = |status: &str| vec![meeting("m", "NZ", "T", vec![race("r", NOW, status)])];
    let first = list(meeting("Open"), &Facts::default()).expect("a listing");
    let second = list(meeting("Final"), &first.facts).expect("a listing");
    assert_eq!(keys(&second), ["race/r"], "its own last poll brings the result");
    assert_eq!(first.targets, second.targets, "nothing to write");
    // Two days later neither date lists it, and a complete listing is proof.
    let third = list(vec![], &second.facts).expect("a listing");
    assert_eq!((&third.coverage, keys(&third)), (&Coverage::Complete, vec![]));
    let ends = one(&second, "races", "r").ends.expect("an end");
    assert!(ends <= Time::parse("2025-07-18T12:00:00Z").expect("midnight"), "so that nobody doubts it");
}

#[test]
fn a_failed_page_retires_nothing() {
    let source = source();
    let first = list(vec![meeting("m", "NZ", "T", vec![race("r", NOW, "Open")])], &Facts::default())
        .expect("a listing");
    let mut exchanges: Vec<Exchange> =
        requests(&source, &[]).into_iter().map(|r| exchange(r, page(vec![]))).collect();
    exchanges[0].result = Err(Failure::new(FailureClass::Timeout, "10 s"));
    let seen = normalize(&source, &exchanges, &first.facts).expect("half a listing");
    assert_eq!((seen.coverage.name(), codes(&seen)), ("partial", vec!["bad_page"]));
    assert_eq!(seen.facts.notes, first.facts.notes, "what is a target is not forgotten");
    exchanges[1].result = Err(Failure::new(FailureClass::Unavailable, "503"));
    assert_eq!(
        normalize(&source, &exchanges, &first.facts).expect_err("nothing").class,
        FailureClass::Timeout
    );
}

#[test]
fn a_page_with_an_error_or_without_a_list_is_a_failure() {
    let source = source();
    for body in [r#"{"data":{"error":"no"}}"#, r#"{"data":{"meetings":null}}"#, "[]", "<html>"] {
        let asked = requests(&source, &[]);
        let exchanges: Vec<Exchange> = asked.into_iter().map(|r| exchange(r, body.to_owned())).collect();
        assert!(normalize(&source, &exchanges, &Facts::default()).is_err(), "{body}");
    }
}

#[test]
fn damaged_races_and_meetings_are_counted_and_prove_nothing() {
    let bad_id = race("../events", NOW, "Open");
    let no_start = race("s", "soon", "Open");
    let meetings = vec![
        meeting("m", "NZ", "T", vec![bad_id, no_start, race("good", NOW, "Open"), json!(5)]),
        json!({ "name": "nobody" }),
    ];
    let seen = list(meetings, &Facts::default()).expect("a listing");
    assert_eq!((&seen.coverage, keys(&seen)), (&retires_nothing(), vec!["race/good"]));
    assert_eq!(codes(&seen), ["bad_race", "bad_meeting"]);
}

/// A listing that was read whole, in which a row may have been any of those that are known.
fn retires_nothing() -> Coverage {
    Coverage::CompleteBut(Scope([Fingerprint::default()].into()))
}

#[test]
fn a_damaged_meeting_that_nobody_asked_for_costs_nothing() {
    let mut without_id = meeting("x", "USA", "T", vec![]);
    without_id["meeting"] = Json::Null;
    let mut without_country = meeting("y", "NZ", "G", vec![]);
    without_country["country"] = Json::Null;
    let good = || meeting("m", "NZ", "T", vec![race("good", NOW, "Open")]);
    let seen = list(vec![without_id, without_country, good()], &Facts::default()).expect("a listing");
    assert_eq!((&seen.coverage, codes(&seen)), (&Coverage::Complete, vec![]));
    let mut without_category = meeting("z", "NZ", "T", vec![]);
    without_category["category"] = Json::Null;
    let seen = list(vec![without_category, good()], &Facts::default()).expect("a listing");
    assert_eq!((&seen.coverage, codes(&seen)), (&retires_nothing(), vec!["bad_meeting"]), "it may be ours");
}

#[test]
fn rows_that_are_bad_in_every_listing_do_not_silence_the_others() {
    let source = source();
    let mut watch = Watch::new(source.clone());
    watch.target = source.roots(start()).remove(0);
    let mut look = |hours: i64, mut races: Vec<Json>| {
        races.push(race("bad", "soon", "Open"));
        let listing =
            list(vec![meeting("m", "NZ", "T", races), json!({ "name": "nobody" })], &Facts::default());
        watch.take(Time::parse(NOW).expect("a time") + Span::hours(hours), &listing.expect("a listing"))
    };
    let (early, late) = ("2025-07-17T00:50:00Z", "2025-07-17T00:55:00Z");
    let first = look(0, vec![race("r", early, "Open"), race("s", early, "Open"), race("t", early, "Open")]);
    assert_eq!(first.verdict, Verdict::Baseline);
    let seen = look(1, vec![race("r", late, "Open"), race("s", early, "Abandoned")]);
    assert_eq!(seen.types(), ["racing.race.retimed", "racing.race.abandoned"]);
    assert_eq!(seen.removed, 0, "the one that is missing may be the one that could not be read");
}

#[test]
fn a_retimed_race_is_another_target_content_and_the_same_target() {
    let at = |start: &str| {
        let listing = list(vec![meeting("m", "NZ", "T", vec![race("r", start, "Open")])], &Facts::default());
        listing.expect("a listing").targets.expect("targets").remove(0)
    };
    let (one, other) = (at("2025-07-17T00:50:00Z"), at("2025-07-17T00:55:00Z"));
    assert_eq!(one.key, other.key);
    assert_eq!(other.start.zip(one.start).map(|(b, a)| b - a), Some(Span::mins(5)));
    assert_ne!(one.content(), other.content());
}

#[test]
fn what_a_race_itself_has_just_said_is_newer_than_the_catalogue() {
    let seen = list(vec![meeting("m", "NZ", "T", vec![race("r", NOW, "Closed")])], &Facts::default());
    let seen = seen.expect("a listing");
    assert_eq!(one(&seen, "races", "r").seen, Time::parse("2025-07-16T19:59:30Z"));
    assert_eq!(one(&seen, "meetings", "m").seen, None, "of its meeting a race knows less");
}

#[test]
fn what_the_race_itself_knows_survives_the_catalogue() {
    let listing = list(vec![meeting("m", "NZ", "T", vec![race(RACE, NOW, "Closed")])], &Facts::default());
    let listing = listing.expect("a listing");
    let own = read(&answer_with(json!({ "status": "Closed", "actual_start": START_SECS - 7_000 })))
        .expect("an answer");
    let known = one(&own, "races", RACE).body();
    let merged = one(&listing, "races", RACE).merged_with(Some(&known)).into_owned();
    assert_eq!((get(&merged, "start_confirmed"), get(&merged, "status")), (json!(true), json!("Closed")));
    assert_eq!(get(&merged, "actual_start"), json!(known["actual_start"]));
}
