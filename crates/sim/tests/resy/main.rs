//! The simulated restaurant tables upstream: what it serves is what is true, in the real one's shapes.

mod demo;
mod drops;
mod faults;
mod matches;
mod paging;
mod payloads;
mod server;
mod skew;
mod stories;

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime, Time as Clock};
use serde_json::{Value, json};
use stakeout_core::{Span, Time};
use stakeout_sim::resy::{Answer, Asked, Bucket, Market, MarketConfig, Slot, Upstream};

const PATH: &str = "/3/venuesearch/search";

/// What a complete poll of one bucket and party size found.
#[derive(Debug, Default, PartialEq)]
struct Found {
    slots: BTreeSet<Slot>,
    /// Venues listed without a slot.
    unbookable: BTreeSet<u64>,
    /// Hits in all, one venue counted as often as it came.
    hits: usize,
    totals: BTreeSet<u64>,
}

fn headers() -> Vec<(String, String)> {
    [("User-Agent", "tests"), ("Authorization", "ResyAPI api_key=\"tests\"")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

fn body(bucket: Bucket, party: u8, page: u32) -> Vec<u8> {
    let time = format!("{:02}:{:02}", bucket.time.hour(), bucket.time.minute());
    json!({
        "availability": true, "page": page, "per_page": 75, "types": ["venue"], "order_by": "availability",
        "slot_filter": {"day": bucket.day.to_string(), "party_size": party, "time_filter": time},
        "geo": {"bounding_box": [40.0, -75.0, 41.0, -73.0]}, "query": "",
    })
    .to_string()
    .into_bytes()
}

fn ask(upstream: &Upstream, body: &[u8], now: Time) -> Answer {
    upstream.honest(Asked { path: PATH, headers: &headers(), body }, now)
}

fn parse(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("the body is JSON")
}

/// Both forms of ids.
fn id(hit: &Value) -> Option<u64> {
    hit["id"].as_u64().or_else(|| hit["id"]["resy"].as_u64())
}

/// Every form of times.
fn starts(hit: &Value) -> Vec<DateTime> {
    let slots = hit["availability"]["slots"].as_array().map(Vec::as_slice).unwrap_or_default();
    slots.iter().map(|slot| slot["date"]["start"].as_str().expect("text").parse().expect("a time")).collect()
}

fn add(found: &mut Found, page: &Value) {
    found.totals.insert(page["meta"]["total"].as_u64().expect("a total"));
    for hit in page["search"]["hits"].as_array().expect("hits") {
        found.hits += 1;
        let Some(venue) = id(hit) else { continue };
        let starts = starts(hit);
        if starts.is_empty() {
            found.unbookable.insert(venue);
        }
        found.slots.extend(starts.into_iter().map(|start| Slot { venue, start }));
    }
}

/// All pages, `step` apart.
fn poll(upstream: &Upstream, bucket: Bucket, party: u8, now: Time, step: Span) -> Found {
    let mut found = Found::default();
    for page in 1.. {
        let answer = ask(upstream, &body(bucket, party, page), now + step.times(i64::from(page) - 1));
        let json = parse(&answer);
        add(&mut found, &json);
        if u64::from(page) >= json["meta"]["total_pages"].as_u64().expect("pages") {
            break;
        }
    }
    found
}

fn upstream(config: MarketConfig) -> Upstream {
    Upstream::new(Market::new(config))
}

fn date(n: usize, market: &Market) -> Date {
    market.dates().nth(n).expect("the market has that date")
}

fn evening(day: Date) -> Bucket {
    Bucket::new(day, Clock::constant(20, 30, 0, 0))
}

fn afternoon(day: Date) -> Bucket {
    Bucket::new(day, Clock::constant(15, 0, 0, 0))
}

fn keys(shown: BTreeMap<Slot, Vec<u8>>) -> BTreeSet<Slot> {
    shown.into_keys().collect()
}
