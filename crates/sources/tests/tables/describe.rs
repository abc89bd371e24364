use serde_json::{Value as Json, json};
use stakeout_sources::tables::{DescribeOptions, describe_files};

use crate::support::*;

fn describe(now: &Json, before: Option<&Json>) -> Json {
    let before = before.map(|page| page.to_string().into_bytes());
    let options = DescribeOptions::default();
    describe_files(now.to_string().as_bytes(), before.as_deref(), &options).expect("understood")
}

fn lengths(described: &Json) -> [usize; 4] {
    ["slots", "added", "closed", "drops"].map(|list| described[list].as_array().expect("a list").len())
}

#[test]
fn a_file_alone_says_what_is_open() {
    let seen = describe(&page(&[venue(1, &["20:30", "21:00"]), venue(2, &[])]), None);
    assert_eq!((lengths(&seen), &seen["coverage"]), ([2, 0, 0, 0], &json!("complete")));
    let slot = &seen["slots"][0];
    for field in ["slot_id", "venue_id", "venue_name", "start", "seatings", "party_sizes"] {
        assert!(!slot[field].is_null(), "{field}: {slot}");
    }
    assert_eq!(slot["party_sizes"], json!([2]));
    let part = describe(&page_of(9, 5, &[venue(1, &["20:30"])]), None);
    assert_eq!(part["coverage"], json!("partial"));
    assert!(!part["warnings"].as_array().expect("a list").is_empty());
}

#[test]
fn a_drop_needs_a_venue_that_was_seen_with_nothing() {
    let before = page(&[venue(1, &[]), venue(2, &["18:00"])]);
    let now = page(&[venue(1, &["20:30"]), venue(2, &["18:00", "19:00"]), venue(3, &["20:00"])]);
    let seen = describe(&now, Some(&before));
    assert_eq!(lengths(&seen), [4, 3, 0, 1], "{seen}");
    let drop = seen["slots"].as_array().expect("slots").iter().find(|s| s["slot_id"] == seen["drops"][0]);
    assert_eq!(
        drop.expect("its slot")["venue_id"],
        json!("1"),
        "not one that had others, nor one absent only once"
    );
}

#[test]
fn what_is_gone_is_closed_where_that_is_proven() {
    let before =
        page(&[venue(1, &["18:00", "20:30"]), venue(2, &["20:30"]), venue(3, &["17:00", "18:00", "19:00"])]);
    let now = page(&[venue(1, &["20:30"]), venue(2, &["20:30"]), venue(3, &["18:00", "19:00", "20:00"])]);
    let seen = describe(&now, Some(&before));
    assert_eq!(lengths(&seen), [5, 1, 1, 0], "17:00 may only have been pushed out of the list: {seen}");
}

#[test]
fn a_mass_closing_is_doubted() {
    let before = page(&(1..=8).map(|id| venue(id, &["20:30"])).collect::<Vec<_>>());
    let now = page(&(1..=8).map(|id| venue(id, &[])).collect::<Vec<_>>());
    let seen = describe(&now, Some(&before));
    assert_eq!(lengths(&seen), [0, 0, 0, 0]);
    assert_eq!(seen["warnings"][0]["code"], json!("doubted"));
}

#[test]
fn a_part_is_no_baseline_and_closes_nothing() {
    let whole = page(&[venue(1, &[]), venue(2, &["20:30"])]);
    let part = page_of(9, 5, &[venue(1, &["20:30"])]);
    let seen = describe(&part, Some(&whole));
    assert_eq!(lengths(&seen), [1, 1, 0, 1], "what was seen is added and told: {seen}");
    let seen = describe(&whole, Some(&part));
    assert_eq!(
        (lengths(&seen)[2..].to_vec(), &seen["warnings"][0]["code"]),
        (vec![1, 0], &json!("previous_is_no_baseline"))
    );
}

#[test]
fn the_first_opening_after_nothing_at_all_is_a_drop() {
    let seen = describe(&page(&[venue(1, &["20:30"])]), Some(&page(&[venue(1, &[])])));
    assert_eq!(lengths(&seen), [1, 1, 0, 1]);
}
