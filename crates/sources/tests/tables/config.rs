use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use stakeout_core::{Source, Span};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};

use crate::support::*;

fn refused(config: Json) -> String {
    match serde_json::from_value::<TablesConfig>(config) {
        Err(error) => error.to_string(),
        Ok(config) => TablesSource::new("nyc", &config, credentials()).err().expect("refused").to_string(),
    }
}

#[test]
fn everything_has_a_default_and_nonsense_is_refused_by_its_key() {
    let source = source_with(json!({}));
    assert_eq!((source.name(), source.family()), ("nyc", "tables"));
    for (config, expected) in [
        (
            json!({ "market": { "box": [41.0, -74.0, 40.0, -73.0], "zone": "UTC" } }),
            "market.box: expected [south",
        ),
        (
            json!({ "market": { "box": [40.0, -74.0, 41.0, -73.0], "zone": "Mars" } }),
            "market.zone: expected an IANA",
        ),
        (
            json!({ "more_markets": [{ "box": [40.0, -74.0, 41.0, -73.0], "zone": "UTC" }] }),
            "more_markets.0.name:",
        ),
        (json!({ "days": 0 }), "days: expected 1 to 60"),
        (json!({ "time_slots": ["25:00"] }), "time_slots: expected a time such as"),
        (json!({ "time_slots": [] }), "time_slots: expected at least one"),
        (json!({ "party_sizes": [] }), "party_sizes: expected at least one"),
        (json!({ "per_page": 76 }), "per_page: expected 1 to 75"),
        (json!({ "budget": "60" }), "a rate from"),
        (json!({ "min_interval": "3h", "max_interval": "1h" }), "min_interval: expected at most"),
        (json!({ "max_interval": "5h" }), "max_interval: expected 1 s to 4 h"),
        (json!({ "prime_weight": 0.0 }), "prime_weight: expected"),
        (json!({ "base_url": "ftp://x" }), "base_url: expected an absolute URL"),
        (json!({ "user_agent": " " }), "user_agent: expected"),
        (json!({ "limits": { "burst": 0 } }), "limits.burst: "),
        (json!({ "provider": "opentable" }), "unknown variant"),
    ] {
        let words = refused(config.clone());
        assert!(words.contains(expected), "{config}: {words}");
    }
    let bad = Credentials { auth_token: "s3cret\u{e9}".into(), ..credentials() };
    let words = TablesSource::new("nyc", &TablesConfig::default(), bad).err().expect("refused").to_string();
    assert!(words.starts_with("auth_token: expected") && !words.contains("s3cret"), "{words}");
}

#[test]
fn the_budget_is_the_one_number() {
    let source = source_with(json!({ "budget": "120/min" }));
    assert_eq!(source.limits().requests_per_second, 2.0);
    assert_eq!((source.limits().burst, source.limits().concurrency), (1, 3));
    assert_eq!(source.limits().max_requests_per_poll, 100);
    assert!((source.budget().expect("a budget") - 1.8).abs() < 1e-9, "a tenth is kept for retries");
}

#[test]
fn the_environment_stands_over_the_file() {
    let with = |pairs: &[(&str, &str)]| {
        let pairs: BTreeMap<String, String> =
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        TablesConfig::default().with_environment(|name| pairs.get(name).cloned())
    };
    let config =
        with(&[("DISCOVERY_PARTY_SIZES", " 2, 6 "), ("NOTIFIED_DEDUPE_MINUTES", "45")]).expect("good");
    assert_eq!((config.party_sizes, config.quiet.0), (vec![2, 6], Span::mins(45)));
    let config = with(&[("DISCOVERY_PARTY_SIZES", "")]).expect("an empty variable says nothing");
    assert_eq!(config.party_sizes, [2, 4]);
    let words = with(&[("DISCOVERY_PARTY_SIZES", "two")]).expect_err("refused").to_string();
    assert!(words.contains("expected party sizes such as 2,4"), "{words}");
    assert!(with(&[("NOTIFIED_DEDUPE_MINUTES", "-1")]).is_err());
}

#[test]
fn live_settings_act_and_are_checked() {
    let source = source_with(json!({}));
    let set = |name: &str, value: Json| source.configured(&BTreeMap::from([(name.to_owned(), value)]));
    let changed = set("budget", json!("600/min")).expect("a rate");
    assert_eq!((changed.limits().requests_per_second, changed.limits().concurrency), (10.0, 11));
    assert!(set("follow", json!(["87134", 60029])).is_ok() && set("exclude", json!([])).is_ok());
    // Each alone is out of the other's reach; what counts is where both end up.
    let pair = |min: i64, max: i64| {
        let pair = [("min_interval_ms", min), ("max_interval_ms", max)];
        source.configured(&pair.map(|(name, ms)| (name.to_owned(), json!(ms))).into())
    };
    assert!(pair(2_000, 5_000).is_ok() && pair(3 * 3_600_000, 4 * 3_600_000).is_ok());
    let words = pair(6_000, 5_000).err().expect("refused").to_string();
    assert!(words.contains("min_interval_ms") && words.contains("5000"), "{words}");
    assert!(set("max_interval_ms", json!(5_000)).is_err(), "below the file's shortest");
    assert_eq!(set("quiet_ms", json!(60_000)).expect("a time").rules()[0].quiet, Some(Span::mins(1)));
    for (name, value) in [
        ("budget", json!(60)),
        ("follow", json!("87134")),
        ("exclude", json!([null])),
        ("min_interval_ms", json!(10)),
        ("max_interval_ms", json!(5 * 3_600_000)),
        ("budgte", json!("1/s")),
    ] {
        assert!(set(name, value.clone()).is_err(), "{name} {value}");
    }
}

#[test]
fn a_live_budget_leaves_the_limits_of_the_file_alone() {
    let source =
        source_with(json!({ "limits": { "requests_per_second": 0.5, "burst": 7, "timeout": "9s" } }));
    let settings = [("budget", json!("600/min")), ("timeout_ms", json!(3_000))];
    let changed = source.configured(&settings.map(|(name, value)| (name.to_owned(), value)).into());
    let changed = changed.expect("settings");
    let limits = changed.limits();
    assert_eq!((limits.requests_per_second, limits.burst), (0.5, 7), "given by the file");
    assert_eq!(limits.concurrency, 11, "what is not given follows from the budget");
    assert_eq!(limits.timeout, Span::secs(3), "and what was set live stands over both");
}

#[test]
fn slots_are_remembered_as_long_as_the_retention_says() {
    let config = |ttl: &str| -> TablesConfig {
        serde_json::from_value(json!({ "seen_ttl": ttl })).expect("a configuration")
    };
    let day = Span::hours(24);
    assert!(config("24h").check_retention(day).is_ok());
    assert!(TablesConfig::default().check_retention(Span::mins(1)).is_ok(), "nothing is asked for");
    let words = config("7d").check_retention(day).expect_err("refused").to_string();
    assert!(words.starts_with("seen_ttl: expected at most retention.gone"), "{words}");
}
