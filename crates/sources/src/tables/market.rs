//! Markets: where is looked, and by whose clock.

use jiff::Span as Days;
use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use stakeout_core::{TargetSpec, Time, spread};

use super::clock;
use super::provider::PartySizes;

/// The role of a bucket's target.
pub(super) const BUCKET: &str = "bucket";
/// The key and the role of the one target that exists by configuration: the calendar.
pub(super) const WINDOW: &str = "window";

/// A rectangle on the map, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) south: f64,
    pub(super) west: f64,
    pub(super) north: f64,
    pub(super) east: f64,
}

/// Where is looked, and by whose clock.
#[derive(Clone, Debug)]
pub(super) struct Market {
    /// The prefix of its buckets' keys; the first market has none.
    pub(super) prefix: Option<String>,
    pub(super) area: Area,
    pub(super) zone: TimeZone,
}

/// Which buckets there are: the days from today on, each with every time slot.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) markets: Vec<Market>,
    pub(super) days: u32,
    /// `HH:MM`
    pub(super) time_slots: Vec<String>,
    pub(super) prime: Vec<String>,
    /// Whatever else decides what a bucket's answer means.
    pub(super) meaning: u64,
}

/// A bucket by its target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bucket<'a> {
    pub(super) market: &'a str,
    pub(super) date: &'a str,
    pub(super) time_slot: &'a str,
}

impl Window {
    /// The buckets that should exist at this moment.
    pub(super) fn buckets(&self, now: Time) -> Vec<TargetSpec> {
        let each = self.markets.iter().flat_map(|market| {
            let today = clock::date_at(now, &market.zone);
            let days = (0..self.days).filter_map(move |n| today?.checked_add(Days::new().days(n)).ok());
            days.flat_map(move |date| {
                self.time_slots.iter().filter_map(move |slot| self.bucket(market, date, slot))
            })
        });
        each.collect()
    }

    fn bucket(&self, market: &Market, date: jiff::civil::Date, slot: &str) -> Option<TargetSpec> {
        let prefix = market.prefix.as_deref();
        let day = date.strftime("%Y-%m-%d").to_string();
        let key = match prefix {
            Some(prefix) => format!("{prefix}_{day}_{slot}"),
            None => format!("{day}_{slot}"),
        };
        let over = clock::begins(date.tomorrow().ok()?, &market.zone)?;
        let priority = if self.prime.iter().any(|prime| prime == slot) { 60 } else { 50 };
        let params = json!({ "market": prefix.unwrap_or_default(), "date": day, "time_slot": slot });
        Some(TargetSpec {
            params,
            priority,
            meaning: self.meaning_of(market),
            ends: Some(over),
            ..TargetSpec::new(key, BUCKET)
        })
    }

    /// Another box, clock or party size shows other tables: then there is nothing to compare with.
    pub(super) fn meaning_of(&self, market: &Market) -> u64 {
        let area = format!("{:?}", market.area);
        let zone = market.zone.iana_name().unwrap_or_default();
        spread(&[BUCKET, &area, zone, &self.meaning.to_string()])
    }

    pub(super) fn market(&self, bucket: &Bucket<'_>) -> Option<&Market> {
        self.markets.iter().find(|market| market.prefix.as_deref().unwrap_or_default() == bucket.market)
    }
}

impl<'a> Bucket<'a> {
    pub(super) fn of(target: &'a TargetSpec) -> Option<Bucket<'a>> {
        let text = |name: &str| target.params.get(name).and_then(Json::as_str);
        Some(Bucket { market: text("market")?, date: text("date")?, time_slot: text("time_slot")? })
    }
}

/// What besides the market decides what a bucket's answers mean.
pub(super) fn meaning(provider: &str, base_url: &str, party_sizes: &PartySizes, slot_cap: u32) -> u64 {
    let sizes: Vec<String> = party_sizes.iter().map(u32::to_string).collect();
    spread(&[provider, base_url, &sizes.join(","), &slot_cap.to_string()])
}
