//! The simulated racing upstream: what it serves is what is true, in the real one's shapes.

mod faults;
mod matches;
mod payloads;
mod server;
mod shapes;
mod story;

use jiff::civil::Date;
use serde_json::Value;
use stakeout_core::Time;
use stakeout_sim::nztab::{Answer, Day, DayConfig, Upstream};

const DATE: Date = Date::constant(2026, 7, 16);
const EVENT_FLAGS: &str =
    "with_money_tracker=true&with_tote_trends_data=true&with_will_pays=true&with_big_bets=false";

fn config(seed: u64) -> DayConfig {
    DayConfig { others: 6, ..DayConfig::new(seed, DATE) }
}

fn upstream(config: &DayConfig) -> Upstream {
    Upstream::new([Day::new(config)])
}

fn identified() -> Vec<(String, String)> {
    [("From", "tests@example.invalid"), ("X-Partner", "Tests"), ("X-Partner-ID", "tests")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

fn event_path(id: &str) -> String {
    format!("/affiliates/v1/racing/events/{id}?{EVENT_FLAGS}")
}

fn get(upstream: &Upstream, path: &str, now: Time) -> Answer {
    upstream.honest(path, &identified(), now)
}

#[track_caller]
fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("the body is JSON")
}

fn event(upstream: &Upstream, id: &str, now: Time) -> Value {
    json(&get(upstream, &event_path(id), now))
}

fn meetings(upstream: &Upstream, query: &str, now: Time) -> Vec<Value> {
    let body = json(&get(upstream, &format!("/affiliates/v1/racing/meetings?{query}"), now));
    body["data"]["meetings"].as_array().cloned().expect("a list of meetings")
}
