//! The fan-out over party sizes and pages, and what its holes mean.

use serde_json::json;
use stakeout_core::{Coverage, Failure, FailureClass, Source};

use crate::support::*;

fn two_sizes() -> stakeout_sources::tables::TablesSource {
    source_with(json!({ "party_sizes": [4, 2], "per_page": 2 }))
}

#[test]
fn every_page_of_every_party_size_is_asked_for_once() {
    let source = two_sizes();
    let target = bucket(&source);
    let mut asked = Vec::new();
    let exchanges = fetch(&source, &target, |size, n| {
        asked.push((size, n));
        Ok(page_of(9, if size == 2 { 5 } else { 1 }, &[]))
    });
    assert_eq!(asked, [(2, 1), (4, 1), (2, 2), (2, 3), (2, 4), (2, 5)]);
    let body: serde_json::Value = serde_json::from_slice(&exchanges[2].request.body).expect("JSON");
    assert_eq!(
        body,
        json!({ "availability": true, "page": 2, "per_page": 2,
            "slot_filter": { "day": "2026-02-28", "party_size": 2, "time_filter": "20:30" },
            "types": ["venue"], "order_by": "availability",
            "geo": { "bounding_box": [40.69, -74.03, 40.77, -73.97] }, "query": "" })
    );
    assert_eq!(exchanges[0].request.url, "https://api.resy.com/3/venuesearch/search");
}

#[test]
fn a_failed_page_makes_it_a_part_and_ends_the_asking() {
    let source = two_sizes();
    let target = bucket(&source);
    let mut asked = 0;
    let exchanges = fetch(&source, &target, |size, n| {
        asked += 1;
        match (size, n) {
            (2, 2) => Err(Failure::new(FailureClass::ServerError, "500")),
            _ => {
                Ok(page_of(40, 20, &[venue(i64::from(size * 100 + n), &["20:30"]), venue(i64::from(n), &[])]))
            }
        }
    });
    // The batch that was under way is not called back, nothing else is asked.
    assert!(asked <= 6, "{asked} requests");
    let seen = look(&source, &target, &exchanges).expect("a part");
    assert!(matches!(&seen.coverage, Coverage::Partial(scope) if scope.0.is_empty()), "nothing is closed");
    assert!(codes(&seen).contains(&"failed_page"));
    assert!(!of(&seen, "slots").is_empty(), "what was seen is added");
    assert_eq!(
        of(&seen, "venues").len(),
        of(&seen, "slots").len(),
        "a part does not prove that a venue has nothing"
    );
}

#[test]
fn a_total_that_moved_and_venues_that_do_not_add_up_make_it_a_part() {
    let source = source_with(json!({ "party_sizes": [2], "per_page": 1 }));
    let target = bucket(&source);
    let moved = fetch(&source, &target, |_, n| {
        Ok(page_of(if n == 1 { 2 } else { 3 }, 2, &[venue(i64::from(n), &[])]))
    });
    let seen = look(&source, &target, &moved).expect("seen");
    assert_eq!((seen.coverage.name(), codes(&seen)), ("partial", vec!["total_moved"]));
    // The second page begins with the last venue of the first: somebody moved up, somebody was jumped over.
    let shifted = fetch(&source, &target, |_, _| Ok(page_of(2, 2, &[venue(1, &["20:30"])])));
    let seen = look(&source, &target, &shifted).expect("seen");
    assert_eq!((seen.coverage.name(), codes(&seen)), ("partial", vec!["venues_do_not_add_up"]));
    assert_eq!(of(&seen, "slots").len(), 1);
    let silent = see(&source, &json!({ "search": { "hits": [] } }));
    assert_eq!((silent.coverage.name(), codes(&silent)), ("partial", vec!["no_total"]));
}

#[test]
fn more_pages_than_allowed_are_a_part() {
    let source = source_with(json!({ "party_sizes": [2], "per_page": 1, "max_pages": 2 }));
    let target = bucket(&source);
    let exchanges = fetch(&source, &target, |_, n| Ok(page_of(9, 9, &[venue(i64::from(n), &["20:30"])])));
    assert_eq!(exchanges.len(), 2);
    let seen = look(&source, &target, &exchanges).expect("seen");
    assert_eq!(codes(&seen), ["too_many_pages", "venues_do_not_add_up"]);
    assert_eq!(seen.coverage.name(), "partial");
}

#[test]
fn refused_credentials_and_malformed_pages_fail_the_whole_poll() {
    let source = two_sizes();
    let target = bucket(&source);
    for class in [FailureClass::Redirect, FailureClass::Forbidden] {
        let exchanges = fetch(&source, &target, |size, n| match (size, n) {
            (4, 1) => Err(Failure::new(class, "no")),
            _ => Ok(page_of(1, 1, &[venue(1, &[])])),
        });
        let failure = look(&source, &target, &exchanges).expect_err("a failed poll");
        assert!(failure.class == class && source.is_refused(&failure));
    }
    assert!(!source.is_refused(&Failure::new(FailureClass::RateLimited, "429")));
    let exchanges = fetch(&source, &target, |size, _| match size {
        4 => Ok(json!("<html>")),
        _ => Ok(page_of(1, 1, &[venue(1, &[])])),
    });
    assert_eq!(exchanges.len(), 2, "nothing is asked after a page that is not understood");
    let failure = look(&source, &target, &exchanges).expect_err("a failed poll");
    assert_eq!(failure.class, FailureClass::Malformed);
}
