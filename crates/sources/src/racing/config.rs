//! What a `racing` source can be told in the configuration.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value as Json, json};
use stakeout_core::cadence::{CadenceError, Countdown, Phase};
use stakeout_core::{KnownSetting, Limits, SettingRefused, Span};

use super::kinds::Thresholds;
use super::listing::{Filter, country_code};
use super::plan::Rhythm;
use crate::ConfigRefused;
use crate::json::LimitsConfig;
use crate::written::{Duration, Secret};

const CATALOGUE_EVERY: (Span, Span) = (Span::secs(10), Span::hours(1));

/// The catalogue is read on a grid that every full hour is on, so that one look is the day's import at 06:00 in New
/// Zealand, summer and winter.
fn meets_the_hours(every: Span) -> bool {
    let (least, most) = CATALOGUE_EVERY;
    (least..=most).contains(&every) && Span::hours(1).as_us() % every.as_us() == 0
}

/// The upstream shows its own changes about every 15 s.
const REFRESH: Span = Span::secs(15);
/// The words that choose a table.
const PRESETS: &str = "expected \"seed\", \"tight\" or a table { before = [{ from = \"60m\", every = \"5m\" }], overdue = \"15s\", after = \"5m\" }";

/// What is refused when a live setting has a name that none has.
pub(super) const NO_SUCH_SETTING: &str = "there is no such setting. Known are cadence, catalogue_every_ms, odds_moved_percent, money_moved_points, requests_per_second, burst, concurrency, min_gap_ms, timeout_ms and jitter_ms";

/// Watches the races of the NZTAB affiliates API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RacingConfig {
    /// Where the API is.
    pub base_url: String,
    /// How often a race is looked at as its start nears: `"seed"` (the table as first asked for), `"tight"` (the same,
    /// but every 30s after the start until the result is final), or a table of one's own.
    pub cadence: CadenceConfig,
    /// Who asks: an e-mail address, sent as the header `From`.
    pub from: Secret,
    /// Sent as the header `X-Partner`.
    pub partner: Secret,
    /// Sent as the header `X-Partner-ID`.
    pub partner_id: Secret,
    /// The countries whose meetings are watched, as the upstream writes them: `NZ`, `AUS` (or `AU`), …
    pub countries: Vec<String>,
    /// The categories that are watched: `T` gallops, `H` harness, `G` greyhounds.
    pub categories: Vec<String>,
    /// How often the list of meetings is read, to find races that were added, retimed or abandoned.
    pub catalogue_every: Duration,
    /// Which moves become events.
    pub events: RacingEventsConfig,
    /// How hard the upstream may be asked.
    pub limits: LimitsConfig,
}

impl Default for RacingConfig {
    fn default() -> RacingConfig {
        RacingConfig {
            base_url: "https://api.tab.co.nz".to_owned(),
            cadence: CadenceConfig::Seed,
            from: Secret::Env("NZTAB_FROM".to_owned()),
            partner: Secret::Env("NZTAB_PARTNER".to_owned()),
            partner_id: Secret::Env("NZTAB_PARTNER_ID".to_owned()),
            countries: vec!["AUS".to_owned(), "NZ".to_owned()],
            categories: vec!["T".to_owned(), "H".to_owned()],
            catalogue_every: Duration(Span::mins(30)),
            events: RacingEventsConfig::default(),
            limits: LimitsConfig::default(),
        }
    }
}

/// Which moves become events.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RacingEventsConfig {
    /// Tell of a fixed win price that moved by at least so many percent of what it was at the poll before.
    pub odds_moved_percent: f64,
    /// Tell of a runner whose share of the money moved by at least so many percentage points.
    pub money_moved_points: f64,
    /// Silence after such an event about the same runner in the same direction.
    pub quiet: Option<Duration>,
}

impl Default for RacingEventsConfig {
    fn default() -> RacingEventsConfig {
        RacingEventsConfig { odds_moved_percent: 5.0, money_moved_points: 5.0, quiet: None }
    }
}

/// How often a race is looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum CadenceConfig {
    /// The table as first asked for.
    Seed,
    /// The same, but every 30 s after the start.
    Tight,
    /// One's own.
    Table(CadenceTable),
}

/// One's own table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CadenceTable {
    /// The phases before the start, the earliest first.
    pub before: Vec<PhaseConfig>,
    /// Every so often from the advertised start until the real one is confirmed.
    pub overdue: Duration,
    /// Every so often after the start until the result is final.
    pub after: Duration,
}

/// One phase before the start.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseConfig {
    /// How long before the start it begins.
    pub from: Duration,
    /// How often to look within it.
    pub every: Duration,
}

impl CadenceConfig {
    fn preset(word: &str) -> Option<CadenceConfig> {
        match word {
            "seed" => Some(CadenceConfig::Seed),
            "tight" => Some(CadenceConfig::Tight),
            _ => None,
        }
    }

    /// The countdown it stands for.
    pub fn countdown(&self) -> Result<Countdown, CadenceError> {
        match self {
            CadenceConfig::Seed => Ok(Countdown::seed()),
            CadenceConfig::Tight => Ok(Countdown::tight()),
            CadenceConfig::Table(table) => {
                let phases = table.before.iter().map(|phase| Phase::new(phase.from.0, phase.every.0));
                Countdown::new(phases.collect(), table.overdue.0, table.after.0)
            }
        }
    }
}

impl<'de> Deserialize<'de> for CadenceConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CadenceConfig, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = CadenceConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PRESETS.trim_start_matches("expected "))
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<CadenceConfig, E> {
                CadenceConfig::preset(word).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CadenceConfig, A::Error> {
                CadenceTable::deserialize(MapAccessDeserializer::new(map)).map(CadenceConfig::Table)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for CadenceConfig {
    fn schema_name() -> Cow<'static, str> {
        "RacingCadence".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<CadenceTable>();
        json_schema!({ "anyOf": [{ "enum": ["seed", "tight"] }, table] })
    }
}

/// Who asks, as the upstream wants to know it. Never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// An e-mail address.
    pub from: String,
    /// The partner's name.
    pub partner: String,
    /// The partner's id.
    pub partner_id: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

impl Identity {
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let headers = [
            ("Accept", "application/json"),
            ("From", &self.from),
            ("X-Partner", &self.partner),
            ("X-Partner-ID", &self.partner_id),
        ];
        headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// The messages never show a value.
    pub(super) fn check(&self) -> Result<(), ConfigRefused> {
        let named = [("from", &self.from), ("partner", &self.partner), ("partner_id", &self.partner_id)];
        for (key, value) in named {
            let printable = value.chars().all(|c| c.is_ascii_graphic() || c == ' ');
            if value.trim().is_empty() || !printable {
                let message = "expected printable ASCII text for a header, found something else or nothing";
                return Err(ConfigRefused::new(key, message));
            }
        }
        if !looks_like_email(&self.from) {
            let message = "expected an e-mail address such as \"ops@example.org\", found something else";
            return Err(ConfigRefused::new("from", message));
        }
        Ok(())
    }
}

fn looks_like_email(text: &str) -> bool {
    let Some((local, host)) = text.split_once('@') else { return false };
    let label = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    !local.is_empty()
        && !local.contains([' ', '<', '>', ','])
        && host.contains('.')
        && host.split('.').all(label)
}

impl RacingConfig {
    pub(super) fn checked_base_url(&self) -> Result<String, ConfigRefused> {
        let url = self.base_url.trim_end_matches('/');
        let refused = |message: &str| Err(ConfigRefused::new("base_url", message));
        let expected = "expected an absolute URL without a query, such as \"https://api.tab.co.nz\"";
        match url.parse::<http::Uri>() {
            Ok(uri) => match (uri.scheme_str(), uri.authority(), uri.query()) {
                (Some("http" | "https"), Some(host), None) if !host.as_str().contains('@') => {
                    Ok(url.to_owned())
                }
                _ => refused(expected),
            },
            Err(error) => refused(&format!("{expected} ({error})")),
        }
    }

    pub(super) fn filter(&self) -> Result<Filter, ConfigRefused> {
        let countries: BTreeSet<String> =
            self.countries.iter().map(|country| country_code(country)).collect();
        if countries.is_empty() || !countries.iter().all(|c| (2..=3).contains(&c.len()) && is_upper(c)) {
            let message =
                "expected at least one country as the upstream writes it, such as [\"AUS\", \"NZ\"]";
            return Err(ConfigRefused::new("countries", message));
        }
        let categories: BTreeSet<String> =
            self.categories.iter().map(|category| category.trim().to_ascii_uppercase()).collect();
        if categories.is_empty() || !categories.iter().all(|c| matches!(c.as_str(), "T" | "H" | "G")) {
            let message = "expected some of \"T\" (gallops), \"H\" (harness) and \"G\" (greyhounds)";
            return Err(ConfigRefused::new("categories", message));
        }
        Ok(Filter { countries, categories })
    }

    pub(super) fn rhythm(&self) -> Result<Rhythm, ConfigRefused> {
        let countdown =
            self.cadence.countdown().map_err(|error| ConfigRefused::new("cadence", error.to_string()))?;
        let catalogue_every = self.catalogue_every.0;
        if !meets_the_hours(catalogue_every) {
            let (least, most) = CATALOGUE_EVERY;
            let message = format!(
                "expected {least} to {most}, a whole number of times an hour (30min, 20min, 15min …), found {catalogue_every}"
            );
            return Err(ConfigRefused::new("catalogue_every", message));
        }
        Ok(Rhythm { countdown, catalogue_every })
    }

    pub(super) fn thresholds(&self) -> Result<Thresholds, ConfigRefused> {
        let RacingEventsConfig { odds_moved_percent, money_moved_points, quiet } = self.events;
        for (key, value) in
            [("odds_moved_percent", odds_moved_percent), ("money_moved_points", money_moved_points)]
        {
            if !is_threshold(value) {
                let message = format!("expected a number above 0, at most 1000, found {value}");
                return Err(ConfigRefused::new(format!("events.{key}"), message));
            }
        }
        Ok(Thresholds { odds_moved_percent, money_moved_points, quiet: quiet.map(|d| d.0) })
    }

    pub(super) fn checked_limits(&self) -> Result<Limits, ConfigRefused> {
        let limits = self.limits.over(Limits { refresh: REFRESH, ..Limits::default() });
        // The bounds are those of the live settings.
        let given = [
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
            return Err(ConfigRefused::new(
                "limits",
                "connect_timeout and max_body must be more than nothing",
            ));
        }
        Ok(limits)
    }
}

fn is_upper(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_uppercase())
}

fn is_threshold(value: f64) -> bool {
    value > 0.0 && value <= 1_000.0
}

/// This source's own live settings, described.
pub(super) fn known_settings(rhythm: &Rhythm, thresholds: &Thresholds) -> Vec<KnownSetting> {
    let percent = thresholds.odds_moved_percent;
    let points = thresholds.money_moved_points;
    vec![
        KnownSetting {
            name: "cadence",
            value: None,
            unit: "",
            about: "How often a race is looked at: \"seed\", \"tight\", or a table of phases",
        },
        KnownSetting::new(
            "catalogue_every_ms",
            rhythm.catalogue_every.as_ms(),
            "ms",
            "How often the day's races are listed",
        ),
        KnownSetting::new("odds_moved_percent", percent, "%", "A price that moved so far is told"),
        KnownSetting::new(
            "money_moved_points",
            points,
            "points",
            "A share of money that moved so far is told",
        ),
    ]
}

/// Applies one of this source's own live settings; `Ok(false)` when the name is none of them.
pub(super) fn apply(
    rhythm: &mut Rhythm,
    thresholds: &mut Thresholds,
    name: &str,
    value: &Json,
) -> Result<bool, SettingRefused> {
    let refused = |expected: String| SettingRefused::new(name, value, expected);
    let threshold = || {
        let number = value.as_f64().filter(|n| is_threshold(*n));
        number.ok_or_else(|| refused("give a number above 0, at most 1000".to_owned()))
    };
    match name {
        "cadence" => {
            let config = CadenceConfig::deserialize(value).map_err(|error| refused(error.to_string()))?;
            rhythm.countdown = config.countdown().map_err(|error| refused(error.to_string()))?;
        }
        "catalogue_every_ms" => {
            let (least, most) = CATALOGUE_EVERY;
            let every = value.as_i64().map(Span::ms).filter(|every| meets_the_hours(*every));
            rhythm.catalogue_every = every.ok_or_else(|| {
                let (least, most) = (least.as_ms(), most.as_ms());
                refused(format!(
                    "give whole milliseconds from {least} to {most} that an hour is a multiple of"
                ))
            })?;
        }
        "odds_moved_percent" => thresholds.odds_moved_percent = threshold()?,
        "money_moved_points" => thresholds.money_moved_points = threshold()?,
        _ => return Ok(false),
    }
    Ok(true)
}
