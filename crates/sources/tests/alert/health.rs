//! Sources that fail, and polls that are missed.

use serde_json::{Value as Json, json};
use stakeout_core::Span;

use crate::look::{Look, book};

#[test]
fn missed_polls_that_go_on_are_left_to_the_clock() {
    let rings = |repeat: bool, before: u64| {
        let mut look = Look::at(0);
        (look.went.missed, look.went.missed_before) = (3, before);
        let mut rule = json!({ "when": { "on": "missed", "polls": 2 } });
        if repeat {
            rule["repeat"] = json!("1h");
        }
        look.rings(&book(rule)).len()
    };
    assert_eq!([rings(true, 0), rings(true, 1), rings(true, 2), rings(false, 2)], [1, 1, 0, 1]);
}

#[test]
fn a_source_that_fails_rings_once_and_missed_polls_ring() {
    let failed = |failures: u32, rule: Json| {
        // Two hours without a good look.
        let mut look = Look::at(0).after(-7_200);
        look.went.failures = failures;
        look.rings(&book(rule))
    };
    let rule = json!({ "when": { "on": "unhealthy" } });
    assert!(failed(2, rule.clone()).is_empty());
    let rings = failed(3, rule.clone());
    assert_eq!((rings[0].subject_key.as_str(), rings[0].quiet), ("nz", Some(Span::hours(1))));
    let later = failed(4, rule);
    assert_eq!(later[0].quiet, Some(Span::hours(2)), "unless something was told since the last good look");
    let patient = failed(4, json!({ "when": { "on": "unhealthy" }, "quiet": "3h" }));
    assert_eq!(patient[0].quiet, Some(Span::hours(3)), "and not within the quiet time");
    let again = failed(9, json!({ "when": { "on": "unhealthy" }, "repeat": "15m" }));
    assert_eq!(again[0].quiet, Some(Span::mins(15)));
    let rule = json!({ "when": { "on": "unhealthy" }, "repeat": "15m", "quiet": "20m" });
    assert_eq!(failed(9, rule)[0].quiet, Some(Span::mins(20)), "never shorter than the quiet time");
    let mut late = Look::at(0);
    late.went.missed = 2;
    assert_eq!(
        late.titles(&book(json!({ "when": { "on": "missed" } }))),
        ["race/r was not looked at in time"]
    );
    assert!(late.rings(&book(json!({ "when": { "on": "missed", "polls": 3 } }))).is_empty());
}

#[test]
fn refused_credentials_ring_at_once() {
    let data = json!({ "source": "nz", "class": "unauthorized", "message": "401" });
    let mut look = Look::at(0).telling("racing.credentials", data);
    look.went.failures = 1;
    let rings = look.rings(&book(json!({ "when": { "on": "unhealthy" } })));
    assert_eq!(rings[0].data["text"], "nz does not take our credentials: 401");
}
