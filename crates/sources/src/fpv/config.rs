//! What an `fpv` source can be told in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use stakeout_core::{Limits, SettingRefused, Span};

use super::scalar;
use super::settings::Settings;
use crate::ConfigRefused;
use crate::json::LimitsConfig;

/// Watches the event that an FPVTrackside has open.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FpvConfig {
    /// Where FPVTrackside's web server is, such as `"http://trackside.local:8080"`.
    pub url: String,
    /// The venue's time zone (IANA name, such as `"Australia/Sydney"`), for events that do not say theirs. Without any,
    /// times are kept as the venue's clock shows them.
    #[serde(default)]
    pub zone: Option<String>,
    /// How often what is looked at; the same names can be changed while it runs.
    #[serde(default)]
    pub scheduler: SchedulerConfig,
    /// How hard the upstream may be asked. It has one thread: by default one request at a time, at least 5ms apart,
    /// each for at most 1s.
    #[serde(default)]
    pub limits: LimitsConfig,
}

/// How often what is looked at, in milliseconds. An interval of 0 or less switches that sort of target off.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SchedulerConfig {
    /// The longest time between two looks for due targets; 200 by default.
    pub worker_interval_ms: Option<i64>,
    /// The most targets taken per look; 2 by default.
    pub burst: Option<i64>,
    /// Requests in flight; 1 by default.
    pub concurrency: Option<i64>,
    /// The most jitter added to a due time, and at most a tenth of the interval; 150 by default.
    pub jitter_ms: Option<i64>,
    /// The current race; 200 by default.
    pub race_active_ms: Option<i64>,
    /// The other races; 5000 by default.
    pub race_idle_ms: Option<i64>,
    /// The results; 2000 by default.
    pub results_ms: Option<i64>,
    /// Page, event, pilots and rounds; 10000 by default.
    pub full_interval_ms: Option<i64>,
    /// The channels; as `fullIntervalMs` by default.
    pub channels_ms: Option<i64>,
    /// How often the current race is determined without any news; 1000 by default.
    pub active_check_ms: Option<i64>,
    /// Whether anything is polled; true by default.
    pub enabled: Option<bool>,
}

impl FpvConfig {
    /// Watches the FPVTrackside at this address; everything else as it is by default.
    pub fn at(url: impl Into<String>) -> FpvConfig {
        FpvConfig {
            url: url.into(),
            zone: None,
            scheduler: SchedulerConfig::default(),
            limits: LimitsConfig::default(),
        }
    }

    pub(super) fn checked_url(&self) -> Result<String, ConfigRefused> {
        let url = self.url.trim_end_matches('/');
        let expected = "expected an absolute URL without a query, such as \"http://trackside.local:8080\"";
        let refused = |message: String| Err(ConfigRefused::new("url", message));
        match url.parse::<http::Uri>() {
            Ok(uri) => match (uri.scheme_str(), uri.authority(), uri.query()) {
                (Some("http" | "https"), Some(host), None) if !host.as_str().contains('@') => {
                    Ok(url.to_owned())
                }
                _ => refused(expected.to_owned()),
            },
            Err(error) => refused(format!("{expected} ({error})")),
        }
    }

    pub(super) fn checked_zone(&self) -> Result<Option<String>, ConfigRefused> {
        match &self.zone {
            Some(name) if scalar::zone(name).is_none() => {
                let message = format!("expected an IANA time zone such as \"Europe/Berlin\", found {name:?}");
                Err(ConfigRefused::new("zone", message))
            }
            zone => Ok(zone.clone()),
        }
    }

    /// The settings and limits as configured, within the bounds of the live settings.
    pub(super) fn checked_settings(&self) -> Result<(Settings, Limits), ConfigRefused> {
        let mut limits = self.checked_limits()?;
        let mut settings = Settings::default();
        let given = serde_json::to_value(&self.scheduler).unwrap_or_default();
        let given = given.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        for (name, value) in given {
            let key = format!("scheduler.{name}");
            let refused =
                |r: SettingRefused| ConfigRefused::new(r.name, format!("{}, found {}", r.expected, r.found));
            settings.apply(&mut limits, &key, value).map_err(refused)?;
        }
        Ok((settings, limits))
    }

    fn checked_limits(&self) -> Result<Limits, ConfigRefused> {
        let limits = self.limits.over(Limits {
            // The gap binds long before the rate does.
            requests_per_second: 1_000.0,
            burst: 1_000,
            concurrency: 1,
            min_gap: Span::ms(5),
            timeout: Span::secs(1),
            connect_timeout: Span::secs(1),
            read_timeout: Span::secs(1),
            max_jitter: Span::ms(150),
            ..Limits::default()
        });
        let given: [(&str, &str, Json); 6] = [
            ("requests_per_second", "requests_per_second", json!(limits.requests_per_second)),
            ("burst", "burst", json!(limits.burst)),
            ("concurrency", "concurrency", json!(limits.concurrency)),
            ("min_gap", "min_gap_ms", json!(limits.min_gap.as_ms())),
            ("timeout", "timeout_ms", json!(limits.timeout.as_ms())),
            ("jitter", "jitter_ms", json!(limits.max_jitter.as_ms())),
        ];
        let mut probe = limits.clone();
        for (key, setting, value) in given {
            let refused = |r: SettingRefused| ConfigRefused::new(format!("limits.{key}"), r.expected);
            probe.apply(setting, &value).map_err(refused)?;
        }
        if limits.connect_timeout <= Span::ZERO || limits.max_body_bytes == 0 {
            let message = "connect_timeout and max_body must be more than nothing";
            return Err(ConfigRefused::new("limits", message));
        }
        Ok(limits)
    }
}
