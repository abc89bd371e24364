//! More races than are kept for one answer: today's are among them.

use std::sync::Arc;

use serde_json::json;
use stakeout_engine::Clock;
use stakeout_sim::{Act, Loopback};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_store::conformance::story::{Poll, SOURCE, World, after};
use stakeout_store::sqlite::SqliteStore;

use crate::families::Day;

#[tokio::test]
async fn todays_race_is_shown_however_many_there_were() {
    let upstream = Loopback::start(|_| Act::json(&json!({})));
    let base_url = upstream.url("").trim_end_matches('/').to_owned();
    let config = RacingConfig { base_url, ..RacingConfig::default() };
    let identity = Identity { from: "a@example.org".into(), partner: "p".into(), partner_id: "i".into() };
    let source = RacingSource::new(SOURCE, &config, identity).expect("a source");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let day = Day::on(store.clone(), Clock::system(), Arc::new(source)).await;

    let world = World::with(store, &["a"]).await;
    let claim = world.claim_one(0).await;
    let past: Vec<String> = (0..5_000).map(|n| format!("past-{n:04}")).collect();
    let mut seen: Vec<(&str, i64)> = past.iter().map(|id| (id.as_str(), 1)).collect();
    let poll = |claim: &_, secs, seen: &[(&str, i64)], start: &str| {
        Poll::of(claim, secs).holding(claim).sees(claim, seen).with(|poll| {
            poll.history.clear();
            for race in &mut poll.records {
                race.kind = "racing_races".into();
                race.body = json!({ "race_id": race.key, "status": "Open", "start_time": start }).to_string();
            }
        })
    };
    let first = poll(&claim, 1, &seen, "2026-12-01T03:00:00Z");
    world.done(first.clone()).await;
    seen.push(("today", 1));
    world.done(poll(&after(&claim, &first), 2, &seen, "2027-01-15T08:00:00Z")).await;

    let (status, shown) = day.get(&format!("/v1/racing/{SOURCE}/races?from=2027-01-01T00:00:00Z")).await;
    let ids: Vec<_> = shown.as_array().into_iter().flatten().map(|race| race["key"].clone()).collect();
    assert_eq!((status, ids), (200, vec![json!("today")]));
    day.stop().await;
}
