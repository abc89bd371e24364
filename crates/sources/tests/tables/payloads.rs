//! The real answer, where it is at hand: the directory named by `STAKEOUT_PAYLOADS` has it under `resy/`.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use stakeout_sources::tables::{DescribeOptions, describe_files};

#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn payload(name: &str) -> Option<Vec<u8>> {
    let Some(directory) = std::env::var_os("STAKEOUT_PAYLOADS") else {
        eprintln!("skipped: STAKEOUT_PAYLOADS is not set");
        return None;
    };
    let path = PathBuf::from(directory).join("resy").join(name);
    Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[test]
fn a_real_page_is_read_whole() {
    let Some(body) = payload("venuesearch-response-7-hits.json") else { return };
    let seen = describe_files(&body, None, &DescribeOptions::default()).expect("understood");
    // Seven of 2,722 venues; two of their 18 ways to sit share a time with another.
    assert_eq!((seen["coverage"].as_str(), seen["venues"].as_u64()), (Some("partial"), Some(6)));
    let slots = seen["slots"].as_array().expect("slots");
    assert_eq!(slots.len(), 13);
    let of = |venue: &str| -> Vec<&Json> { slots.iter().filter(|s| s["venue_id"] == venue).collect() };
    let starts: Vec<&Json> = of("72993").iter().map(|slot| &slot["start"]).collect();
    assert_eq!(starts, [&json!("2026-10-22T12:00"), &json!("2026-10-22T17:00")]);
    let seatings: Vec<&Json> =
        of("72993")[1]["seatings"].as_array().expect("seatings").iter().map(|s| &s["type"]).collect();
    assert_eq!(seatings, [&json!("Dinner"), &json!("Patio")]);
    let icca = of("24492");
    assert_eq!(
        (icca[0]["venue_name"].as_str(), icca[0]["seatings"][0]["type"].is_null()),
        (Some("icca"), true)
    );
    let late = of("68244");
    assert_eq!(late[1]["seatings"][0]["end"], json!("2026-10-23T00:15"), "an end on the next day");
    assert_eq!(late[1]["starts_at"], json!("2026-10-23T02:45:00.000Z"));
    let codes: Vec<&Json> =
        seen["warnings"].as_array().expect("warnings").iter().map(|w| &w["code"]).collect();
    assert_eq!(codes, [&json!("missing_page"), &json!("venues_do_not_add_up")]);
}

#[test]
fn the_same_real_page_again_is_nothing_new() {
    let Some(body) = payload("venuesearch-response-7-hits.json") else { return };
    let seen = describe_files(&body, Some(&body), &DescribeOptions::default()).expect("understood");
    assert_eq!((&seen["added"], &seen["closed"], &seen["drops"]), (&json!([]), &json!([]), &json!([])));
}
