//! What can be written down, and what is refused.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use stakeout_core::{Source, Span};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_sources::written::Secret;

use crate::support::*;

fn refused_with(config: Json, identity: Identity) -> String {
    let config: RacingConfig = match serde_json::from_value(config) {
        Ok(config) => config,
        Err(error) => return error.to_string(),
    };
    RacingSource::new("nz", &config, identity)
        .err()
        .map_or("accepted".to_owned(), |refused| refused.to_string())
}

fn refused(config: Json) -> String {
    refused_with(config, identity())
}

#[test]
fn everything_has_a_default() {
    let config: RacingConfig = serde_json::from_value(json!({})).expect("a configuration");
    assert_eq!(config.from, Secret::Env("NZTAB_FROM".into()));
    assert_eq!(config.partner, Secret::Env("NZTAB_PARTNER".into()));
    assert_eq!(config.partner_id, Secret::Env("NZTAB_PARTNER_ID".into()));
    let source = source();
    let limits = source.limits();
    assert_eq!((limits.requests_per_second, limits.concurrency), (5.0, 4));
    assert_eq!((limits.timeout, limits.refresh), (Span::secs(10), Span::secs(15)));
    assert_eq!((source.name(), source.family()), ("nz", "racing"));
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    for (config, expected) in [
        (json!({ "base_url": "api.tab.co.nz" }), "base_url: expected an absolute URL without a query"),
        (json!({ "base_url": "https://me:pw@x.nz" }), "base_url: expected an absolute URL"),
        (json!({ "countries": [] }), "countries: expected at least one country"),
        (json!({ "countries": ["Australia"] }), "countries: expected at least one country"),
        (json!({ "categories": ["X"] }), "categories: expected some of"),
        (
            json!({ "catalogue_every": "1s" }),
            "catalogue_every: expected 10 s to 1 h, a whole number of times an hour (30min, 20min, 15min …), found 1 s",
        ),
        (
            json!({ "catalogue_every": "45min" }),
            "catalogue_every: expected 10 s to 1 h, a whole number of times an hour (30min, 20min, 15min …), found 45 min",
        ),
        (
            json!({ "cadence": "fast" }),
            "invalid value: string \"fast\", expected \"seed\", \"tight\" or a table",
        ),
        (
            json!({ "cadence": { "before": [], "overdue": "5s", "after": "5s" } }),
            "cadence: expected 1 to 16 phases",
        ),
        (json!({ "cadence": { "before": [] } }), "missing field `overdue`"),
        (
            json!({ "events": { "odds_moved_percent": 0 } }),
            "events.odds_moved_percent: expected a number above 0",
        ),
        (
            json!({ "limits": { "concurrency": 0 } }),
            "limits.concurrency: give a whole number from 1 to 10000",
        ),
        (json!({ "limits": { "timeout": "0s" } }), "limits.timeout: give a whole number"),
        (json!({ "cadense": "seed" }), "unknown field `cadense`"),
    ] {
        let found = refused(config.clone());
        assert!(found.starts_with(expected), "{config}: {found}");
    }
    assert_eq!(refused(json!({ "countries": ["AU", "nz"], "categories": ["t"] })), "accepted");
}

#[test]
fn who_asks_is_checked_and_never_shown() {
    for (from, partner, partner_id, key) in [
        ("nobody", "p", "i", "from"),
        ("a@b", "p", "i", "from"),
        ("Me <a@b.nz>", "p", "i", "from"),
        ("a@b.nz", "", "i", "partner"),
        ("a@b.nz", "secret\r\nX: y", "i", "partner"),
        ("a@b.nz", "p", "  ", "partner_id"),
        ("a@b.nz", "p", "geheim\u{7f}", "partner_id"),
    ] {
        let identity = Identity { from: from.into(), partner: partner.into(), partner_id: partner_id.into() };
        assert!(!format!("{identity:?}").contains("a@b"));
        let found = refused_with(json!({}), identity);
        assert!(found.starts_with(&format!("{key}: expected")), "{found}");
        assert!(
            !found.contains("nobody") && !found.contains("secret") && !found.contains("geheim"),
            "{found}"
        );
    }
}

#[test]
fn live_settings_apply_or_are_refused() {
    let source = source();
    let apply = |name: &str, value: Json| source.configured(&BTreeMap::from([(name.to_owned(), value)]));
    let tight = apply("cadence", json!("tight")).expect("applied");
    let facts = stakeout_core::Facts::default();
    assert_ne!(tight.plan(&race_target(), &facts), source.plan(&race_target(), &facts));
    assert_eq!(apply("concurrency", json!(9)).map(|s| s.limits().concurrency), Ok(9));
    assert_ne!(apply("odds_moved_percent", json!(50)).expect("applied").rules(), source.rules());
    for (name, value) in [
        ("cadence", json!("fast")),
        ("catalogue_every_ms", json!(5)),
        ("money_moved_points", json!(-1)),
        ("x", json!(1)),
    ] {
        assert!(apply(name, value).is_err(), "{name}");
    }
}

#[test]
fn the_schema_names_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(RacingConfig)).expect("a schema");
    let keys: Vec<&String> = schema["properties"].as_object().expect("properties").keys().collect();
    for key in [
        "base_url",
        "cadence",
        "from",
        "partner",
        "partner_id",
        "countries",
        "categories",
        "events",
        "limits",
    ] {
        assert!(keys.iter().any(|k| *k == key), "{key}");
    }
}
