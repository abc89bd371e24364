//! The window of buckets, and how often each is looked at.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use stakeout_core::cadence::{self, Last, Seat};
use stakeout_core::{Facts, Plan, PollContext, Source, Span, TargetSpec, Time, Value};
use stakeout_sources::tables::TablesSource;

use crate::support::*;

fn buckets(source: &TablesSource, now: Time) -> Vec<TargetSpec> {
    let facts = Facts::default();
    let root = source.roots(now).remove(0);
    assert_eq!(
        source.requests(&root, &[], &PollContext { now, facts: &facts }),
        [],
        "a calendar asks nobody"
    );
    let seen = source.normalize(&root, &[], &PollContext { now, facts: &facts }).expect("a window");
    seen.targets.expect("targets")
}

fn keys(targets: &[TargetSpec]) -> Vec<&str> {
    targets.iter().map(|target| target.key.as_str()).collect()
}

#[test]
fn two_weeks_of_two_times_begin_today_by_the_markets_clock() {
    let source = source_with(json!({}));
    let targets = buckets(&source, time("2026-02-26T04:59:59Z"));
    assert_eq!(targets.len(), 28);
    assert_eq!(keys(&targets)[..3], ["2026-02-25_15:00", "2026-02-25_20:30", "2026-02-26_15:00"]);
    let targets = buckets(&source, time("2026-02-26T05:00:00Z"));
    assert_eq!(keys(&targets)[..2], ["2026-02-26_15:00", "2026-02-26_20:30"]);
    assert_eq!(targets[27].key, "2026-03-11_20:30");
    assert_eq!(targets[0].ends, Some(time("2026-02-27T05:00:00Z")), "over at local midnight");
}

#[test]
fn the_window_rolls_at_local_midnight_when_the_clocks_change_too() {
    let source = source_with(json!({ "days": 3, "time_slots": ["20:30"] }));
    for midnight in
        ["2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"]
    {
        let midnight = time(midnight);
        let (before, after) = (buckets(&source, midnight - Span::us(1)), buckets(&source, midnight));
        assert_eq!(before[1..], after[..2], "one goes, one comes, the others are as they were");
        assert_eq!(before[0].ends, Some(midnight), "and the one that goes is over");
        // The calendar is due at that very moment.
        let root = source.roots(midnight).remove(0);
        let plan = source.plan(&root, &Facts::default());
        let seat = Seat { spread: root.spread("nyc"), priority: root.priority, budgeted: None, bell: None };
        let last = Last { slot: Some(midnight - Span::mins(1)), ..Last::default() };
        let next = cadence::next(&plan, &Facts::default(), &last, midnight - Span::secs(59), &seat);
        assert_eq!(next.due, Some(midnight));
    }
}

#[test]
fn the_first_market_has_no_prefix_and_the_others_do() {
    let boston = json!({ "name": "boston", "box": [42.3, -71.1, 42.4, -71.0], "zone": "America/New_York" });
    let la = json!({ "name": "la", "box": [33.9, -118.5, 34.1, -118.2], "zone": "America/Los_Angeles" });
    let source = source_with(json!({ "days": 1, "time_slots": ["20:30"], "more_markets": [boston, la] }));
    let targets = buckets(&source, time("2026-02-26T06:00:00Z"));
    assert_eq!(keys(&targets), ["2026-02-26_20:30", "boston_2026-02-26_20:30", "la_2026-02-25_20:30"]);
    let request =
        source.requests(&targets[1], &[], &PollContext { now: now(), facts: &Facts::default() }).remove(0);
    let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(body["geo"]["bounding_box"], json!([42.3, -71.1, 42.4, -71.0]));
}

#[test]
fn what_decides_what_is_seen_is_a_new_meaning_and_the_rest_is_not() {
    let meaning = |config| bucket(&source_with(config)).meaning;
    let plain = meaning(json!({}));
    assert_eq!(plain, meaning(json!({ "budget": "5/min", "per_page": 20, "follow": ["7"], "quiet": "1h" })));
    let other_box = json!({ "box": [40.69, -74.03, 40.77, -73.96], "zone": "America/New_York" });
    for config in
        [json!({ "market": other_box }), json!({ "party_sizes": [2] }), json!({ "base_url": "http://x" })]
    {
        assert_ne!(plain, meaning(config.clone()), "{config}");
    }
}

fn weight(source: &TablesSource, key: &str, facts: &Facts) -> f64 {
    match source.plan(&bucket_of(source, key), facts) {
        Plan::Adaptive(plan) => plan.weight,
        other => panic!("{other:?}"),
    }
}

#[test]
fn prime_times_and_buckets_where_a_followed_venue_is_full_weigh_more() {
    let source = source_with(
        json!({ "party_sizes": [2], "follow": ["1"], "prime_weight": 2.0, "follow_weight": 3.0 }),
    );
    let nothing = Facts::default();
    assert_eq!(weight(&source, "2026-02-28_15:00", &nothing), 1.0);
    assert_eq!(weight(&source, "2026-02-28_20:30", &nothing), 2.0);
    let full = see(&source, &page(&[venue(1, &[]), venue(2, &["20:30"])]));
    assert_eq!(full.facts.notes.get("waited_for"), Some(&Value::Int(1)));
    assert_eq!(weight(&source, "2026-02-28_20:30", &full.facts), 6.0);
    let unlisted = see(&source, &page(&[venue(2, &["20:30"])]));
    assert_eq!(
        weight(&source, "2026-02-28_20:30", &unlisted.facts),
        6.0,
        "some are not listed while they are full"
    );
    let open = see(&source, &page(&[venue(1, &["20:30"])]));
    assert_eq!(weight(&source, "2026-02-28_20:30", &open.facts), 2.0);
}

#[test]
fn the_buckets_spread_over_the_whole_interval() {
    let source = source_with(json!({ "max_interval": "10min" }));
    let facts = Facts::default();
    let at = now();
    let mut per_minute: BTreeMap<i64, u32> = BTreeMap::new();
    for target in buckets(&source, at) {
        let plan = source.plan(&target, &facts);
        let seat =
            Seat { spread: target.spread("nyc"), priority: target.priority, budgeted: None, bell: None };
        let first = cadence::next(&plan, &facts, &Last::default(), at, &seat).due.expect("due");
        *per_minute.entry((first - at).as_us() / 60_000_000).or_default() += 1;
        let jitter = cadence::jitter(seat.spread, first, Span::mins(10), source.limits().max_jitter);
        assert!(jitter <= Span::secs(3));
    }
    assert!(per_minute.len() >= 8, "28 buckets in 10 minutes: {per_minute:?}");
    assert!(per_minute.values().all(|n| *n <= 7), "{per_minute:?}");
}

#[test]
fn a_followed_venue_of_another_market_is_not_waited_for() {
    let boston = json!({ "name": "boston", "box": [42.2, -71.2, 42.4, -71.0], "zone": "America/New_York" });
    let config =
        json!({ "party_sizes": [2], "follow": ["1"], "follow_weight": 3.0, "more_markets": [boston] });
    let source = source_with(config);
    let target = bucket(&source);
    let see_after = |facts: &Facts, venues: &[Json]| {
        let exchanges = fetch(&source, &target, |_, _| Ok(page(venues)));
        let context = PollContext { now: now(), facts };
        source.normalize(&target, &exchanges, &context).expect("an observation").facts
    };
    let waits = |facts: &Facts| facts.notes.contains_key("waited_for");
    let never = see_after(&Facts::default(), &[venue(2, &["20:30"])]);
    assert!(!waits(&never), "it may be anywhere");
    let listed = see_after(&never, &[venue(1, &["20:30"]), venue(2, &["20:30"])]);
    assert!(!waits(&listed), "it has a table");
    let full = see_after(&listed, &[venue(2, &["20:30"])]);
    assert!(waits(&full), "it is of this market, and not listed while it is full");
    assert!(waits(&see_after(&full, &[venue(2, &["20:30"])])), "that is remembered");
    assert!(waits(&see_after(&never, &[venue(1, &[])])), "or listed with nothing");
}
