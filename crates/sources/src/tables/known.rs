//! The live settings of this source, described.

use serde_json::json;
use stakeout_core::KnownSetting;

use super::TablesSource;

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
