//! Live settings as a source describes them, for people who want to change one.

use serde_json::{Value as Json, json};

use crate::Limits;

/// A live setting that a source knows.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownSetting {
    /// Its name, without the source's.
    pub name: &'static str,
    /// What it is now; `None` where the configuration says it in a way that is no single value.
    pub value: Option<Json>,
    /// The unit of a number, or nothing.
    pub unit: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
}

impl KnownSetting {
    /// A setting with its present value.
    pub fn new(
        name: &'static str,
        value: impl Into<Json>,
        unit: &'static str,
        about: &'static str,
    ) -> KnownSetting {
        KnownSetting { name, value: Some(value.into()), unit, about }
    }
}

impl Limits {
    /// The settings that every source has: those that [`Limits::apply`] takes.
    pub fn settings(&self) -> Vec<KnownSetting> {
        // A whole number looks like one.
        let rate = self.requests_per_second;
        let rate = if rate.fract() == 0.0 { json!(rate as u64) } else { json!(rate) };
        vec![
            KnownSetting::new("requests_per_second", rate, "per s", "Requests per second over all targets"),
            KnownSetting::new("burst", self.burst, "", "Requests at once before the rate binds"),
            KnownSetting::new("concurrency", self.concurrency, "", "Polls in flight at once"),
            KnownSetting::new("min_gap_ms", self.min_gap.as_ms(), "ms", "Least time between two requests"),
            KnownSetting::new("timeout_ms", self.timeout.as_ms(), "ms", "Longest a request may take"),
            KnownSetting::new("jitter_ms", self.max_jitter.as_ms(), "ms", "Most that is added to a due time"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_that_is_described_takes_its_own_value() {
        let limits = Limits::default();
        for setting in limits.settings() {
            let mut same = limits.clone();
            let value = setting.value.expect("limits always have one");
            assert_eq!(same.apply(setting.name, &value), Ok(true), "{}", setting.name);
            assert_eq!(same, limits, "{}", setting.name);
        }
    }
}
