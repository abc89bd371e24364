//! What a source says can be set, can be set: each described setting takes the value it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use stakeout_core::Source;
use stakeout_sources::fpv::FpvSource;
use stakeout_sources::json::JsonSource;
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};

fn check(source: &Arc<dyn Source>, least: usize) {
    let known = source.known_settings();
    assert!(known.len() >= least, "{}: only {} settings", source.family(), known.len());
    for setting in known {
        let Some(value) = setting.value.clone() else { continue };
        let taken = source.configured(&BTreeMap::from([(setting.name.to_owned(), value)]));
        let again = taken.unwrap_or_else(|refused| panic!("{}: {refused}", source.family())).known_settings();
        let same = again.iter().find(|again| again.name == setting.name);
        assert_eq!(same, Some(&setting), "{}", source.family());
        assert!(!setting.about.is_empty(), "{}", setting.name);
    }
}

#[test]
fn every_described_setting_takes_its_own_value() {
    let identity = Identity { from: "a@example.org".into(), partner: "p".into(), partner_id: "i".into() };
    let racing = RacingSource::new("nz", &RacingConfig::default(), identity).expect("a source");
    check(&(Arc::new(racing) as Arc<dyn Source>), 10);
    let config = serde_json::from_value(json!({ "url": "http://127.0.0.1:1" })).expect("a configuration");
    check(&(Arc::new(FpvSource::new("track", &config).expect("a source")) as Arc<dyn Source>), 17);
    let credentials = Credentials { api_key: "key".into(), auth_token: "token".into() };
    let tables = TablesSource::new("nyc", &TablesConfig::default(), credentials).expect("a source");
    check(&(Arc::new(tables) as Arc<dyn Source>), 12);
    let config = json!({ "url": "http://127.0.0.1:1", "every": "30s" });
    let config = serde_json::from_value(config).expect("a configuration");
    check(&(Arc::new(JsonSource::new("s", &config, vec![]).expect("a source")) as Arc<dyn Source>), 7);
}
