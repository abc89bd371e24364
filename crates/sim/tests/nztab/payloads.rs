//! The simulated shapes next to recorded real ones, where those are at hand.

use std::collections::BTreeSet;
use std::path::PathBuf;

use stakeout_core::Span;
use stakeout_sim::nztab::Body;

use super::*;

/// What the source reads, as the real upstream names it; `-` stands for any element.
const EVENT_PATHS: [&str; 66] = [
    "header.title",
    "header.generated_time",
    "header.url",
    "params.id",
    "data.error",
    "data.race.event_id",
    "data.race.meeting_id",
    "data.race.meeting_name",
    "data.race.display_meeting_name",
    "data.race.status",
    "data.race.description",
    "data.race.advertised_start",
    "data.race.actual_start",
    "data.race.advertised_start_string",
    "data.race.actual_start_string",
    "data.race.race_date_nz",
    "data.race.start_time_nz",
    "data.race.race_number",
    "data.race.type",
    "data.race.country",
    "data.race.state",
    "data.race.distance",
    "data.race.weather",
    "data.race.track_condition",
    "data.race.field_size",
    "data.runners.-.entrant_id",
    "data.runners.-.name",
    "data.runners.-.runner_number",
    "data.runners.-.barrier",
    "data.runners.-.jockey",
    "data.runners.-.trainer_name",
    "data.runners.-.is_scratched",
    "data.runners.-.is_late_scratched",
    "data.runners.-.scratch_time",
    "data.runners.-.scr_time",
    "data.runners.-.is_emergency",
    "data.runners.-.favourite",
    "data.runners.-.mover",
    "data.runners.-.runner_change",
    "data.runners.-.gear",
    "data.runners.-.flucs",
    "data.runners.-.odds.fixed_win",
    "data.runners.-.odds.fixed_place",
    "data.runners.-.odds.pool_win",
    "data.runners.-.odds.pool_place",
    "data.runners.-.flucs_with_timestamp.open.timestamp",
    "data.runners.-.flucs_with_timestamp.high.fluc",
    "data.runners.-.flucs_with_timestamp.low.fluc",
    "data.runners.-.flucs_with_timestamp.nine_am.fluc",
    "data.runners.-.flucs_with_timestamp.last_six.-.timestamp",
    "data.runners.-.flucs_with_timestamp.last_six.-.fluc",
    "data.runners.-.last_starts.-.stipes",
    "data.money_tracker.entrants.-.entrant_id",
    "data.money_tracker.entrants.-.hold_percentage",
    "data.money_tracker.entrants.-.bet_percentage",
    "data.tote_pools.-.product_type",
    "data.tote_pools.-.total",
    "data.tote_pools.-.status",
    "data.results.-.position",
    "data.results.-.runner_number",
    "data.results.-.entrant_id",
    "data.results.-.margin_length",
    "data.dividends.-.product_name",
    "data.dividends.-.status",
    "data.dividends.-.dividend",
    "data.dividends.-.positions.-.runner_number",
];
const MEETING_PATHS: [&str; 21] = [
    "header.generated_time",
    "params.limit",
    "params.offset",
    "data.meetings.-.meeting",
    "data.meetings.-.name",
    "data.meetings.-.date",
    "data.meetings.-.category",
    "data.meetings.-.category_name",
    "data.meetings.-.country",
    "data.meetings.-.state",
    "data.meetings.-.track_condition",
    "data.meetings.-.tote_meeting_number",
    "data.meetings.-.tote_status",
    "data.meetings.-.quaddie",
    "data.meetings.-.races.-.id",
    "data.meetings.-.races.-.race_number",
    "data.meetings.-.races.-.name",
    "data.meetings.-.races.-.start_time",
    "data.meetings.-.races.-.tote_start_time",
    "data.meetings.-.races.-.status",
    "data.meetings.-.races.-.protest",
];

/// The kinds of JSON value found at a path, over all elements of the lists on the way.
fn kinds(value: &Value, path: &str) -> BTreeSet<&'static str> {
    let Some((step, rest)) = path.split_once('.').or((!path.is_empty()).then_some((path, ""))) else {
        return BTreeSet::from([match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        }]);
    };
    match step {
        "-" => value.as_array().into_iter().flatten().flat_map(|item| kinds(item, rest)).collect(),
        key => value.get(key).map(|inner| kinds(inner, rest)).unwrap_or_default(),
    }
}

#[track_caller]
fn check(paths: &[&str], ours: &[Value], real: Option<&Value>) {
    for path in paths {
        let found: BTreeSet<&str> = ours.iter().flat_map(|body| kinds(body, path)).collect();
        assert!(!found.is_empty(), "{path} is not served");
        let recorded = real.map(|real| kinds(real, path)).unwrap_or_default();
        assert!(recorded.is_subset(&found), "{path} is {recorded:?} in reality, here {found:?}");
    }
}

#[test]
fn every_field_that_is_read_is_served_with_the_real_types() {
    let upstream = upstream(&DayConfig { body: Body::Full, ..DayConfig::new(1, DATE) });
    let races = upstream.days()[0].truth();
    let finals =
        races.iter().filter_map(|race| Some(event(&upstream, &race.id, race.seen_from(race.final_at?))));
    let events: Vec<Value> = finals.take(12).collect();
    let evening = races[95].starts[0].1 + Span::mins(30);
    let listing = json(&get(
        &upstream,
        "/affiliates/v1/racing/meetings?date_from=2026-07-16&date_to=2026-07-16",
        evening,
    ));
    let recorded = std::env::var_os("STAKEOUT_PAYLOADS").map(PathBuf::from);
    let read = |name: &str| -> Option<Value> {
        let text = std::fs::read(recorded.as_ref()?.join("nztab").join(name))
            .expect("the recorded payload is there");
        Some(serde_json::from_slice(&text).expect("the recorded payload is JSON"))
    };
    if recorded.is_none() {
        skipped("STAKEOUT_PAYLOADS is not set, so types are not compared with recorded payloads");
    }
    check(&EVENT_PATHS, &events, read("event-final-8-runners.json").as_ref());
    check(&MEETING_PATHS, &[listing], read("meetings-2025-07-17.json").as_ref());
}

#[expect(clippy::print_stdout, reason = "whoever runs the tests should know what was not compared")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}
