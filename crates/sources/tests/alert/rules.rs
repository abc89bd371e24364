//! Rules that keep silent, and rules that are refused.

use serde_json::{Value as Json, json};
use stakeout_sources::alert::AlertConfig;

use crate::look::{Look, book, refused};

#[test]
fn a_rule_keeps_silent_outside_its_hours_for_other_sources_and_when_switched_off() {
    let rule = |more: Json| {
        let mut rule = json!({ "when": { "on": "missed" } });
        rule.as_object_mut().expect("a rule").extend(more.as_object().expect("fields").clone());
        let mut look = Look::at(0);
        look.went.missed = 1;
        look.rings(&book(rule)).len()
    };
    assert_eq!(rule(json!({ "source": "nz" })), 1);
    assert_eq!(rule(json!({ "source": "tables" })), 0);
    assert_eq!(rule(json!({ "enabled": false })), 0);
    // 02:00 in the world is 15:00 in New Zealand.
    assert_eq!(rule(json!({ "hours": { "from": "15:00", "to": "16:00", "zone": "Pacific/Auckland" } })), 1);
    assert_eq!(rule(json!({ "hours": { "from": "16:00", "to": "22:00", "zone": "Pacific/Auckland" } })), 0);
}

#[test]
fn rules_that_cannot_ring_are_refused_with_the_key_at_fault() {
    for (rule, key) in [
        (
            json!({ "when": { "on": "odds", "direction": "shortened", "percent": 0, "within": "5m" } }),
            "when.percent",
        ),
        (json!({ "when": { "on": "money", "points": 5, "within": "3d" } }), "when.within"),
        (json!({ "when": { "on": "indicator", "of": "odds", "percent": 7 } }), "when.percent"),
        (json!({ "when": { "on": "drop", "from_date": "tomorrow" } }), "when.from_date"),
        (json!({ "when": { "on": "drop", "to_time": "7pm" } }), "when.to_time"),
        (json!({ "when": { "on": "drop", "from_date": "20260110" } }), "when.from_date"),
        (json!({ "when": { "on": "drop", "to_date": "2026-1-10" } }), "when.to_date"),
        (
            json!({ "when": { "on": "drop", "from_date": "2026-01-11", "to_date": "2026-01-10" } }),
            "when.to_date",
        ),
        (json!({ "when": { "on": "event", "type": "" } }), "when.type"),
        (json!({ "when": { "on": "event", "type": "racing.*.final" } }), "when.type"),
        (json!({ "when": { "on": "event", "type": "racing.**" } }), "when.type"),
        (
            json!({ "when": { "on": "missed" }, "hours": { "from": "08:00", "to": "08:00", "zone": "UTC" } }),
            "hours.to",
        ),
        (json!({ "when": { "on": "unhealthy", "failures": 0 } }), "when.failures"),
        (json!({ "when": { "on": "missed" }, "quiet": "0s" }), "quiet"),
        (json!({ "when": { "on": "missed" }, "repeat": "0s" }), "repeat"),
        (json!({ "when": { "on": "start", "before": "1m" }, "repeat": "9s" }), "repeat"),
        (json!({ "when": { "on": "drop" }, "repeat": "25h" }), "repeat"),
        (json!({ "when": { "on": "pilot", "pilot": "Alex", "within": 11 } }), "when.within"),
    ] {
        assert!(refused(rule.clone()).starts_with(key), "{rule}: {}", refused(rule.clone()));
    }
    let unknown = json!({ "when": { "on": "missed", "pols": 1 } });
    assert!(serde_json::from_value::<AlertConfig>(unknown).is_err(), "nothing unknown is accepted");
}
