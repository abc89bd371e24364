//! More tables than fit on a page: none that is open goes missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use serde_json::{Value as Json, json};
use stakeout_core::Span;
use stakeout_engine::Clock;
use stakeout_sim::{Act, Loopback, Seen};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};

use crate::families::Day;
use crate::support::within;

/// A hundred tables each…
const VENUES: usize = 44;
/// …and one venue with a table for every minute of the day.
const LARGE: usize = 99;
const TABLES: usize = 1_100;
const ALL: usize = VENUES * 100 + TABLES;

fn venue(id: usize, day: &str, tables: usize) -> Json {
    let slot = |n: usize| {
        json!({ "date": { "start": format!("{day} {:02}:{:02}:00", 4 + n / 60, n % 60) },
            "config": { "id": 1, "type": "Dining Room" } })
    };
    json!({ "id": id, "name": format!("Venue {id}"),
        "availability": { "slots": (0..tables).map(slot).collect::<Vec<_>>() } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_is_open_is_shown_however_much_it_is() {
    let clock = Clock::scaled(20.0);
    // Whatever the time is here, it is long before that evening.
    let day = (clock.now() + Span::hours(72)).to_string()[..10].to_owned();
    let open = Arc::new(AtomicBool::new(false));
    let (opened, evening) = (Arc::clone(&open), day.clone());
    let upstream = Loopback::start(move |seen: &Seen| {
        let asked: Json = serde_json::from_slice(&seen.body).expect("a JSON body");
        let tonight = asked["slot_filter"]["day"] == *evening && opened.load(SeqCst);
        let tables = |count: usize| if tonight { count } else { 0 };
        let mut hits: Vec<Json> = (1..=VENUES).map(|id| venue(id, &evening, tables(100))).collect();
        hits.extend([venue(LARGE, &evening, tables(TABLES)), venue(98, &evening, 1)]);
        Act::json(&json!({ "meta": { "total": hits.len(), "total_pages": 1 }, "search": { "hits": hits } }))
    });
    let config = json!({
        "base_url": upstream.url("").trim_end_matches('/'), "days": 5, "time_slots": ["19:30"], "party_sizes": [2],
        "slot_cap": 0, "budget": "600/min", "min_interval": "15s", "max_interval": "30s",
        "limits": { "requests_per_second": 100, "burst": 50, "jitter": "0ms", "timeout": "20s" },
    });
    let config: TablesConfig = serde_json::from_value(config).expect("a configuration");
    let credentials = Credentials { api_key: "key".into(), auth_token: "token".into() };
    let source = TablesSource::new("nyc", &config, credentials).expect("a source");
    let there = Day::start(clock, Arc::new(source)).await;
    let key = format!("{day}_19:30");
    let bucket = |buckets: &Json| {
        let mut all = buckets.as_array().into_iter().flatten();
        all.find(|bucket| bucket["bucket_id"] == *key).cloned().unwrap_or_default()
    };
    there.until("/v1/tables/nyc/buckets", |all| bucket(all)["open_slots"] == 1).await;
    open.store(true, SeqCst);
    let mut newest = there.control.newest();
    within(newest.wait_for(|seq| *seq >= ALL as u64)).await.expect("the engine lives");
    assert_eq!(bucket(&there.get("/v1/tables/nyc/buckets").await.1)["drops_open"], ALL);
    let count = |part: &Json| -> usize {
        let venues =
            part.as_array().into_iter().flatten().flat_map(|day| day["venues"].as_array().expect("venues"));
        venues.map(|venue| venue["slots"].as_array().expect("slots").len()).sum()
    };
    let parts = there.parts("/v1/tables/nyc/still-open?limit=1000".to_owned()).await;
    assert_eq!(parts.iter().map(count).collect::<Vec<_>>(), [1_000, 1_000, 1_000, 1_000, 1_000, 500]);

    // Nothing about it has changed since it opened, but it has been looked at again.
    let seen_again = |part: &Json| {
        let slot = &part[0]["venues"][0]["slots"][0];
        slot["last_seen"].as_str().zip(slot["opened_at"].as_str()).is_some_and(|(seen, opened)| seen > opened)
    };
    there.until("/v1/tables/nyc/still-open?limit=1", seen_again).await;

    let view = there.get(&format!("/v1/tables/nyc/venues/{LARGE}")).await.1;
    let starts: Vec<&str> =
        view["slots"].as_array().into_iter().flatten().filter_map(|s| s["start"].as_str()).collect();
    assert_eq!(starts.len(), 1_000);
    assert!(starts.is_sorted_by(|one, next| one > next), "the latest first");
    assert_eq!((starts[0], starts[999]), (&*format!("{day}T22:19"), &*format!("{day}T05:40")));
    assert_eq!(view["drops"].as_array().map(Vec::len), Some(TABLES));
    there.stop().await;
}
