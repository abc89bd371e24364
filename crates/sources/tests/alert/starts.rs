//! The bell before a start.

use serde_json::json;
use stakeout_core::alert::Alerts;
use stakeout_core::{Facts, Span, Stage};

use crate::look::{Look, at, book};

#[test]
fn the_bell_rings_before_the_start_once_per_start_and_not_after_it() {
    let rule = json!({ "when": { "on": "start", "before": "1m" } });
    let bell = book(rule);
    assert!(Look::at(-61).rings(&bell).is_empty());
    let rings = Look::at(-60).rings(&bell);
    assert_eq!(rings[0].data["title"], "race/r starts in 1 min");
    assert_eq!(rings[0].dedupe_key, Look::at(-20).rings(&bell)[0].dedupe_key, "the same bell");
    let mut retimed = Look::at(240);
    retimed.facts.start = Some(at(300));
    assert_ne!(retimed.rings(&bell)[0].dedupe_key, rings[0].dedupe_key, "another start is another bell");
    let mut started = Look::at(-20);
    started.facts.stage = Stage::Started;
    assert!(started.rings(&bell).is_empty() && Look::at(0).rings(&bell).is_empty());
    // The engine is told when to look.
    let facts = Facts { start: Some(at(0)), ..Facts::default() };
    assert_eq!(bell.bell("nz", &facts, at(-90)), Some(at(-60)));
    assert_eq!(bell.bell("nz", &facts, at(-60)), None, "that was it");
}

#[test]
fn a_bell_that_repeats_is_another_one_each_time() {
    let rule = json!({ "when": { "on": "start", "before": "1m" }, "repeat": "20s" });
    let bell = book(rule);
    let ring = |secs: i64| Look::at(secs).rings(&bell).remove(0);
    let once = Look::at(-60).rings(&book(json!({ "when": { "on": "start", "before": "1m" } }))).remove(0);
    assert_eq!(ring(-60).dedupe_key, once.dedupe_key, "the first one is that of a rule that does not repeat");
    assert_eq!((ring(-40).dedupe_key, ring(-40).quiet), (ring(-21).dedupe_key, Some(Span::secs(18))));
    assert_ne!(ring(-41).dedupe_key, ring(-40).dedupe_key);
    assert!(Look::at(0).rings(&bell).is_empty());
    let facts = Facts { start: Some(at(0)), ..Facts::default() };
    let next = |secs: i64| bell.bell("nz", &facts, at(secs));
    assert_eq!(
        [-90, -60, -41, -40, -20].map(next),
        [Some(-60), Some(-40), Some(-40), Some(-20), None].map(|s| s.map(at))
    );
}
