//! Real answers, where they are at hand: the directory named by `STAKEOUT_PAYLOADS` has them under `nztab/`.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use stakeout_core::{
    Coverage, Exchange, Facts, PollContext, Request, Response, Source, Span, Stage, TargetSpec, Time,
};
use stakeout_sources::racing::describe_file;

use crate::support::*;

/// The bytes of a real answer; `None` (and a word why) when there are none.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn payload(name: &str) -> Option<Vec<u8>> {
    let Some(directory) = std::env::var_os("STAKEOUT_PAYLOADS") else {
        eprintln!("skipped: STAKEOUT_PAYLOADS is not set");
        return None;
    };
    let path = PathBuf::from(directory).join("nztab").join(name);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn exchange_of(url: &str, body: Vec<u8>) -> Exchange {
    let response = Response { status: 200, body: body.into(), content_type: None, age: Span::ZERO };
    Exchange { request: Request::get(url), result: Ok(response), sent: Time(0), ended: Time(1) }
}

#[test]
fn a_real_finished_race_is_read_whole() {
    let Some(body) = payload("event-final-8-runners.json") else { return };
    let id = "0f57e087-00d9-4c61-9549-835abe2ae2ed";
    let target =
        TargetSpec { params: json!({ "event_id": id }), ..TargetSpec::new(format!("race/{id}"), "race") };
    let facts = Facts::default();
    let now = Time::parse("2025-07-17T11:17:00Z").expect("a time");
    let exchanges = [exchange_of("x", body)];
    let seen =
        source().normalize(&target, &exchanges, &PollContext { now, facts: &facts }).expect("an answer");

    assert_eq!((&seen.coverage, codes(&seen)), (&Coverage::Complete, vec![]));
    assert_eq!((seen.facts.stage, seen.facts.start), (Stage::Over, Time::parse("2025-07-17T00:50:00Z")));
    assert_eq!(seen.as_of, Time::parse("2025-07-17T11:16:59.189042Z"));
    let count = |collection: &str| of(&seen, collection).len();
    // 6 pools, one of them over several races; 14 dividends, half of them superseded.
    assert_eq!(
        ["meetings", "races", "entrants", "race_pools", "race_results", "dividends"].map(count),
        [1, 1, 8, 5, 8, 7]
    );
    let race = one(&seen, "races", id);
    assert_eq!(get(race, "actual_start"), json!("2025-07-17T00:52:46.000Z"));
    let tickford = one(&seen, "entrants", "61181b8c-a540-43a8-900c-83ebe680e218");
    let fields = ["name", "win_odds", "pool_win", "hold_percentage", "bet_percentage", "win_pool_amount"];
    assert_eq!(
        fields.map(|field| get(tickford, field)),
        [json!("Tickford"), json!(5), json!(4.4), json!(18), json!(14), json!(1647.25)]
    );
    assert_eq!((tickford.points.len(), tickford.told.len()), (4, 1));
    assert!(of(&seen, "entrants").iter().all(|r| !r.told.is_empty()), "the newest fluc is always the price");
    assert_eq!(get(one(&seen, "entrants", "7346bd2c-c03d-41c3-bcb9-2b085c4e72cd"), "favourite"), json!(true));
    let note = seen.facts.notes["favourite"].to_json();
    assert_eq!(note["name"], json!("Ruji"), "the lowest price is the upstream's favourite too");
}

#[test]
fn a_real_file_is_described() {
    let Some(body) = payload("event-final-8-runners.json") else { return };
    let described = describe_file(&body, Time(i64::MAX)).expect("a description");
    assert_eq!(described["race"]["status"], json!("Final"));
    assert_eq!(described["entrants"].as_array().map(Vec::len), Some(8));
    assert_eq!(described["odds_history"].as_array().map(Vec::len), Some(29));
    assert_eq!(described["warnings"], json!([]));
}

#[test]
fn a_real_day_lists_the_races_of_two_countries() {
    let Some(body) = payload("meetings-2025-07-17.json") else { return };
    let source = source();
    let url = |date: &str| format!("https://x/meetings?date_from={date}&date_to={date}&limit=200&offset=0");
    let empty = br#"{"data":{"meetings":[]}}"#.to_vec();
    let exchanges = [exchange_of(&url("2025-07-17"), body), exchange_of(&url("2025-07-16"), empty)];
    let now = Time::parse("2025-07-17T10:48:12Z").expect("a time");
    let facts = Facts::default();
    let root = source.roots(now).remove(0);
    let seen = source.normalize(&root, &exchanges, &PollContext { now, facts: &facts }).expect("a listing");

    assert_eq!((&seen.coverage, codes(&seen)), (&Coverage::Complete, vec![]));
    assert_eq!((of(&seen, "meetings").len(), of(&seen, "races").len()), (12, 96));
    let over = |record: &&&stakeout_core::Record| {
        matches!(get(record, "status").as_str(), Some("Final" | "Abandoned"))
    };
    let over = of(&seen, "races").iter().filter(over).count();
    assert_eq!(seen.targets.as_ref().map(Vec::len), Some(96 - over));
    let dates: Vec<Json> = of(&seen, "meetings").iter().map(|m| get(m, "date")).collect();
    assert!(dates.iter().all(|date| *date == json!("2025-07-17")));
}
