//! The live settings of this source: described, and applied.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use stakeout_core::{KnownSetting, Limits, SettingRefused, Span};

use super::config::{FOLLOWED_MAX, INTERVALS, paced};
use super::{Rate, TablesSource};

impl TablesSource {
    pub(super) fn described_settings(&self) -> Vec<KnownSetting> {
        let rhythm = &self.rhythm;
        let mut known = vec![
            KnownSetting::new("budget", self.rate.to_string(), "", "Requests that the buckets share"),
            KnownSetting::new("follow", json!(self.follow), "", "Venues that are followed, by id"),
            KnownSetting::new(
                "exclude",
                json!(self.exclude),
                "",
                "Venues that nobody wants to hear of, by id",
            ),
            KnownSetting::new(
                "quiet_ms",
                self.silence.quiet.as_ms(),
                "ms",
                "Silence after a drop of the same table",
            ),
            KnownSetting::new(
                "min_interval_ms",
                rhythm.min.as_ms(),
                "ms",
                "Shortest time between two scans of a bucket",
            ),
            KnownSetting::new(
                "max_interval_ms",
                rhythm.max.as_ms(),
                "ms",
                "Longest time between two scans of a bucket",
            ),
        ];
        known.extend(self.limits.settings());
        known
    }
}

impl TablesSource {
    /// Applies one of this source's own live settings; `Ok(false)` when the name is none of them.
    pub(super) fn apply(&mut self, name: &str, value: &Json) -> Result<bool, SettingRefused> {
        let refused = |expected: String| SettingRefused::new(name, value, expected);
        let span = |least: Span, most: Span| {
            let given = value.as_i64().map(Span::ms).filter(|span| (least..=most).contains(span));
            given.ok_or_else(|| {
                refused(format!("give whole milliseconds from {} to {}", least.as_ms(), most.as_ms()))
            })
        };
        match name {
            "budget" => {
                let rate = value.as_str().and_then(Rate::parse);
                self.rate = rate.ok_or_else(|| refused("give a rate such as \"60/min\"".to_owned()))?;
                let Limits { requests_per_second, burst, concurrency, .. } = paced(self.rate);
                let paced = Limits { requests_per_second, burst, concurrency, ..self.limits.clone() };
                // It is applied before all other settings, so what the file gives still stands.
                self.limits = self.given_limits.over(paced);
            }
            "follow" => self.follow = venue_ids(value).ok_or_else(|| refused(ID_LIST.to_owned()))?,
            "exclude" => self.exclude = venue_ids(value).ok_or_else(|| refused(ID_LIST.to_owned()))?,
            "quiet_ms" => self.silence.quiet = span(Span::ZERO, Span::hours(24 * 365))?,
            // Whether the two go together is seen when all settings are in.
            "min_interval_ms" => self.rhythm.min = span(INTERVALS.0, INTERVALS.1)?,
            "max_interval_ms" => self.rhythm.max = span(INTERVALS.0, INTERVALS.1)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl TablesSource {
    /// Whether the shortest interval is not longer than the longest, by settings of which one may be the file's.
    pub(super) fn check_intervals(&self, settings: &BTreeMap<String, Json>) -> Result<(), SettingRefused> {
        let (min, max) = (self.rhythm.min.as_ms(), self.rhythm.max.as_ms());
        if min <= max {
            return Ok(());
        }
        let (name, expected) = match settings.contains_key("min_interval_ms") {
            true => ("min_interval_ms", format!("give at most max_interval_ms, {max}")),
            false => ("max_interval_ms", format!("give at least min_interval_ms, {min}")),
        };
        Err(SettingRefused::new(name, &settings[name], expected))
    }
}

const ID_LIST: &str = "give a list of venue ids, such as [\"87134\", 60029]";

/// Ids as a list of texts or numbers.
fn venue_ids(value: &Json) -> Option<BTreeSet<String>> {
    let list = value.as_array().filter(|list| list.len() <= FOLLOWED_MAX)?;
    let id = |value: &Json| match value {
        Json::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Json::Number(n) => n.as_u64().map(|n| n.to_string()),
        _ => None,
    };
    list.iter().map(id).collect()
}
