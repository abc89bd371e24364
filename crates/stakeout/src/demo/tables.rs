//! The restaurants: how the searches are doing, and what was told of them in words.

use std::sync::Arc;

use anyhow::Result;
use stakeout_core::{Event, Source, Span, Time};
use stakeout_sources::json::LimitsConfig;
use stakeout_sources::tables::{Credentials, DROP, Rate, TablesConfig, TablesSource};
use stakeout_sources::written::Duration;
use stakeout_store::TargetRow;

use super::TABLES;

/// The dates on which the simulated market opens its tables: today and three more.
const DAYS: u32 = 4;
/// Soon enough that a table which opens in the first minute is seen in it, at the speed of life, too.
const INTERVALS: (Span, Span) = (Span::secs(5), Span::secs(15));
const BUDGET_PER_MINUTE: f64 = 120.0;
/// The budget alone would send one request after the other, and what is due together would be late: so few dates looked at
/// so often come in bunches.
const REQUESTS_AT_ONCE: u32 = 16;

/// The tables source, pointed at the simulated upstream, which takes any credentials.
pub(super) fn source(base_url: &str) -> Result<Arc<dyn Source>> {
    let config = TablesConfig {
        base_url: base_url.trim_end_matches('/').to_owned(),
        days: DAYS,
        budget: Rate::per_minute(BUDGET_PER_MINUTE),
        min_interval: Duration(INTERVALS.0),
        max_interval: Duration(INTERVALS.1),
        limits: LimitsConfig {
            requests_per_second: Some(f64::from(REQUESTS_AT_ONCE)),
            burst: Some(REQUESTS_AT_ONCE),
            ..LimitsConfig::default()
        },
        ..TablesConfig::default()
    };
    let anybody = Credentials { api_key: "demo".to_owned(), auth_token: "demo".to_owned() };
    Ok(Arc::new(TablesSource::new(TABLES, &config, anybody)?))
}

/// What was told of tables so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    buckets: usize,
    polls: u64,
    drops: u64,
    last: Option<(Time, String)>,
}

impl Tables {
    /// Adds what is new.
    pub(super) fn look(&mut self, rows: &[TargetRow], news: &[Event]) {
        let buckets = || rows.iter().filter(|row| row.source == TABLES && row.spec.role == "bucket");
        self.buckets = buckets().count();
        self.polls = buckets().map(|row| row.poll_no).sum();
        for drop in news.iter().filter(|event| event.event_type == DROP) {
            self.drops += 1;
            self.last = Some((drop.at, told(drop)));
        }
    }

    /// One line: how much is watched, and the last table that opened.
    pub(super) fn line(&self, now: Time) -> String {
        let last = self.last.as_ref().map(|(at, words)| {
            format!(", the last {} s ago: {words}", (now - *at).max(Span::ZERO).as_ms() / 1_000)
        });
        format!(
            "Tables: {} dates and times looked at {} times, {} drops{}",
            self.buckets,
            self.polls,
            self.drops,
            last.unwrap_or_default()
        )
    }
}

/// A drop in words: where, when and for how many, not which ids.
pub(super) fn told(event: &Event) -> String {
    let text = |field: &str| event.data[field].as_str().unwrap_or_default();
    let sizes = event.data["party_sizes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let when = text("start").replace('T', " ");
    match event.event_type.as_str() {
        DROP => format!("{}, {when} for {}", text("venue_name"), sizes.join(" or ")),
        _ => String::new(),
    }
}
