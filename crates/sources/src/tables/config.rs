//! What a `tables` source can be told in the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use stakeout_core::{Limits, SettingRefused, Span};

use super::clock;
use super::kinds::Silence;
use super::market::{Area, Market, Window, meaning};
use super::plan::{Asking, Rhythm};
use super::provider::{PartySizes, Provider};
use super::rate::Rate;
use super::resy::{Credentials, Resy};
use crate::ConfigRefused;
use crate::json::LimitsConfig;
use crate::written::{Duration, Secret};

/// What is refused when a live setting has a name that none has.
pub(super) const NO_SUCH_SETTING: &str = "there is no such setting. Known are budget, follow, exclude, quiet_ms, min_interval_ms, max_interval_ms, requests_per_second, burst, concurrency, min_gap_ms, timeout_ms and jitter_ms";

/// The most venues that the provider shows on a page.
const PER_PAGE_MAX: u32 = 75;
const DAYS_MAX: u32 = 60;
const PAGES_MAX: u32 = 500;
const SLOTS_MAX: usize = 24;
const PARTY_MAX: u32 = 50;
pub(super) const FOLLOWED_MAX: usize = 10_000;
/// A bucket that was not scanned for this long is stale: no interval may be longer.
pub(super) const INTERVALS: (Span, Span) = (Span::secs(1), Span::hours(4));
const WEIGHTS: (f64, f64) = (0.01, 1_000.0);
const BASE_URL: &str = "https://api.resy.com";
/// Resy's own site, where its users come from.
const ORIGIN: &str = "https://resy.com";

/// The variables that stand over the file, by the names they always had.
pub(super) const PARTY_SIZES_VARIABLE: &str = "DISCOVERY_PARTY_SIZES";
pub(super) const QUIET_VARIABLE: &str = "NOTIFIED_DEDUPE_MINUTES";

/// Watches restaurants for tables that open where there were none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TablesConfig {
    /// Who books the tables.
    pub provider: ProviderName,
    /// Where the provider's API is.
    pub base_url: String,
    /// The key of the application; by default from the environment, `RESY_API_KEY`.
    pub api_key: Secret,
    /// The token of a user; by default from the environment, `RESY_AUTH_TOKEN`.
    pub auth_token: Secret,
    /// The browser that the upstream is told it talks to; without any, it answers 500.
    pub user_agent: String,
    /// Where is looked, and by whose clock.
    pub market: MarketConfig,
    /// More markets; each has a name, which is the prefix of its buckets.
    pub more_markets: Vec<MarketConfig>,
    /// How many days from today on, by the market's clock.
    pub days: u32,
    /// Around which times of the day is looked; each is one bucket a day.
    pub time_slots: Vec<String>,
    /// For how many people; the environment's `DISCOVERY_PARTY_SIZES` ("2,4") stands over it.
    pub party_sizes: Vec<u32>,
    /// Venues per page, at most 75.
    pub per_page: u32,
    /// The most pages asked for per party size; beyond them the answer is only a part.
    pub max_pages: u32,
    /// The most slots that the provider shows of one venue: a list that long may have been cut off. 0 if it shows all.
    pub slot_cap: u32,
    /// How often the provider may be asked, over all buckets. The one number that has to fit the market.
    pub budget: Rate,
    /// No bucket is polled more often than this.
    pub min_interval: Duration,
    /// No bucket is polled less often than this, if the budget allows.
    pub max_interval: Duration,
    /// Time slots where a drop is worth more.
    pub prime: Vec<String>,
    /// How much more.
    pub prime_weight: f64,
    /// How much more a drop is worth in a bucket where a followed venue has no table.
    pub follow_weight: f64,
    /// Venues that are followed, by id: their drops are marked and their buckets weigh more.
    pub follow: Vec<String>,
    /// Venues whose drops are not told, by id.
    pub exclude: Vec<String>,
    /// Silence after a drop of the same slot; the environment's `NOTIFIED_DEDUPE_MINUTES` stands over it.
    pub quiet: Duration,
    /// A slot that was open within this time is not told when it opens again; off by default. At most `retention.gone`.
    pub seen_ttl: Option<Duration>,
    /// How hard the upstream may be asked; what is not given follows from the budget.
    pub limits: LimitsConfig,
}

/// Who books tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    /// Resy.
    #[default]
    Resy,
}

/// Where is looked, and by whose clock.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarketConfig {
    /// A short name; the first market needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// South, west, north and east, in degrees.
    #[serde(rename = "box")]
    pub area: [f64; 4],
    /// The IANA name of its time zone.
    pub zone: String,
}

impl Default for TablesConfig {
    fn default() -> TablesConfig {
        TablesConfig {
            provider: ProviderName::Resy,
            base_url: BASE_URL.to_owned(),
            api_key: Secret::Env("RESY_API_KEY".to_owned()),
            auth_token: Secret::Env("RESY_AUTH_TOKEN".to_owned()),
            user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned(),
            market: MarketConfig {
                name: None,
                area: [40.69, -74.03, 40.77, -73.97],
                zone: "America/New_York".to_owned(),
            },
            more_markets: Vec::new(),
            days: 14,
            time_slots: vec!["15:00".to_owned(), "20:30".to_owned()],
            party_sizes: vec![2, 4],
            per_page: PER_PAGE_MAX,
            max_pages: 50,
            slot_cap: 3,
            budget: Rate::per_minute(60.0),
            min_interval: Duration(Span::secs(10)),
            max_interval: Duration(Span::hours(2)),
            prime: vec!["20:30".to_owned()],
            prime_weight: 2.0,
            follow_weight: 3.0,
            follow: Vec::new(),
            exclude: Vec::new(),
            quiet: Duration(Span::mins(30)),
            seen_ttl: None,
            limits: LimitsConfig::default(),
        }
    }
}

fn refuse<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigRefused> {
    Err(ConfigRefused::new(key, message))
}

/// The messages never show a value.
pub(super) fn check_credentials(credentials: &Credentials) -> Result<(), ConfigRefused> {
    for (key, value) in [("api_key", &credentials.api_key), ("auth_token", &credentials.auth_token)] {
        if !is_header(value) || value.contains('"') {
            return refuse(
                key,
                "expected printable ASCII text for a header, found something else or nothing",
            );
        }
    }
    Ok(())
}

fn is_header(value: &str) -> bool {
    !value.trim().is_empty() && value.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}

/// Ids without surrounding space, each once.
pub(super) fn ids(given: &[String]) -> BTreeSet<String> {
    given.iter().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect()
}

impl TablesConfig {
    /// This configuration with what the environment says over it.
    pub fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<TablesConfig, ConfigRefused> {
        let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(text) = given(PARTY_SIZES_VARIABLE) {
            let sizes: Option<Vec<u32>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
            let message = format!(
                "the environment's {PARTY_SIZES_VARIABLE} is {text:?}: expected party sizes such as 2,4"
            );
            self.party_sizes = sizes.ok_or_else(|| ConfigRefused::new("party_sizes", message))?;
        }
        if let Some(text) = given(QUIET_VARIABLE) {
            let minutes = text.trim().parse::<i64>().ok().filter(|n| (0..=525_600).contains(n));
            let message =
                format!("the environment's {QUIET_VARIABLE} is {text:?}: expected whole minutes such as 30");
            self.quiet = Duration(Span::mins(minutes.ok_or_else(|| ConfigRefused::new("quiet", message))?));
        }
        Ok(self)
    }

    pub(super) fn provider(&self, credentials: Credentials) -> Result<Arc<dyn Provider>, ConfigRefused> {
        let url = self.base_url.trim_end_matches('/');
        let sound = url.parse::<http::Uri>().is_ok_and(|uri| {
            let web = matches!(uri.scheme_str(), Some("http" | "https"));
            let host = uri.authority().is_some_and(|host| !host.as_str().contains('@'));
            web && host && uri.query().is_none()
        });
        if !sound {
            return refuse(
                "base_url",
                format!("expected an absolute URL without a query, such as {BASE_URL:?}"),
            );
        }
        if !is_header(&self.user_agent) {
            return refuse(
                "user_agent",
                "expected printable ASCII text: without it, the upstream answers 500",
            );
        }
        let (base_url, user_agent) = (url.to_owned(), self.user_agent.clone());
        match self.provider {
            ProviderName::Resy => {
                Ok(Arc::new(Resy { base_url, origin: ORIGIN.to_owned(), user_agent, credentials }))
            }
        }
    }

    pub(super) fn asking(&self) -> Result<Asking, ConfigRefused> {
        let party_sizes: PartySizes = self.party_sizes.iter().copied().collect();
        if party_sizes.is_empty() || !party_sizes.iter().all(|n| (1..=PARTY_MAX).contains(n)) {
            return refuse("party_sizes", format!("expected at least one party size from 1 to {PARTY_MAX}"));
        }
        whole("per_page", self.per_page, 1, PER_PAGE_MAX)?;
        whole("max_pages", self.max_pages, 1, PAGES_MAX)?;
        Ok(Asking { party_sizes, per_page: self.per_page, max_pages: self.max_pages })
    }

    pub(super) fn window(&self, provider: &str, asking: &Asking) -> Result<Window, ConfigRefused> {
        whole("days", self.days, 1, DAYS_MAX)?;
        whole("slot_cap", self.slot_cap, 0, 1_000)?;
        let time_slots = times("time_slots", &self.time_slots)?;
        if time_slots.is_empty() {
            return refuse("time_slots", "expected at least one time, such as [\"20:30\"]");
        }
        let base_url = self.base_url.trim_end_matches('/');
        Ok(Window {
            markets: self.markets()?,
            days: self.days,
            time_slots,
            prime: times("prime", &self.prime)?,
            meaning: meaning(provider, base_url, &asking.party_sizes, self.slot_cap),
        })
    }

    fn markets(&self) -> Result<Vec<Market>, ConfigRefused> {
        let mut markets = vec![market("market", &self.market, None)?];
        let mut names: BTreeSet<&str> = self.market.name.as_deref().into_iter().collect();
        for (n, more) in self.more_markets.iter().enumerate() {
            let key = format!("more_markets.{n}");
            let name = more.name.as_deref().unwrap_or_default();
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            if name.is_empty() || name.len() > 32 || !name.bytes().all(plain) || !names.insert(name) {
                let message = "expected a name of its own: small letters, digits and `-`, at most 32";
                return refuse(format!("{key}.name"), message);
            }
            markets.push(market(&key, more, Some(name.to_owned()))?);
        }
        Ok(markets)
    }

    pub(super) fn rhythm(&self) -> Result<Rhythm, ConfigRefused> {
        let (Duration(min), Duration(max)) = (self.min_interval, self.max_interval);
        for (key, found) in [("min_interval", min), ("max_interval", max)] {
            if !(INTERVALS.0..=INTERVALS.1).contains(&found) {
                return refuse(key, format!("expected {} to {}, found {found}", INTERVALS.0, INTERVALS.1));
            }
        }
        if min > max {
            return refuse("min_interval", format!("expected at most max_interval, {max}, found {min}"));
        }
        for (key, weight) in [("prime_weight", self.prime_weight), ("follow_weight", self.follow_weight)] {
            if !(WEIGHTS.0..=WEIGHTS.1).contains(&weight) {
                return refuse(key, format!("expected {} to {}, found {weight}", WEIGHTS.0, WEIGHTS.1));
            }
        }
        Ok(Rhythm {
            min,
            max,
            prime: times("prime", &self.prime)?,
            prime_weight: self.prime_weight,
            follow_weight: self.follow_weight,
        })
    }

    pub(super) fn silence(&self) -> Silence {
        Silence { quiet: self.quiet.0, seen_ttl: self.seen_ttl.map(|ttl| ttl.0) }
    }

    /// Whether slots that are gone are remembered as long as is asked for: what is forgotten is new when it returns.
    pub fn check_retention(&self, gone: Span) -> Result<(), ConfigRefused> {
        match self.seen_ttl {
            Some(Duration(ttl)) if ttl > gone => {
                let message = format!(
                    "expected at most retention.gone, {gone}, found {ttl}: slots that are gone are not remembered longer"
                );
                refuse("seen_ttl", message)
            }
            _ => Ok(()),
        }
    }

    /// What is not given follows from the budget: one request after the other, and as many polls at once as it takes
    /// to spend it while answers are slow.
    pub(super) fn checked_limits(&self, asking: &Asking) -> Result<Limits, ConfigRefused> {
        let limits = self.limits.over(Limits {
            refresh: Span::secs(5),
            timeout: Span::secs(15),
            read_timeout: Span::secs(10),
            max_body_bytes: 16 << 20,
            max_jitter: Span::secs(3),
            max_requests_per_poll: asking.max_pages * asking.party_sizes.len() as u32,
            ..paced(self.budget)
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
            return refuse("limits", "connect_timeout and max_body must be more than nothing");
        }
        Ok(limits)
    }
}

/// The limits that a budget means by itself.
pub(super) fn paced(budget: Rate) -> Limits {
    let per_second = budget.per_second();
    Limits {
        requests_per_second: per_second,
        burst: 1,
        concurrency: 1 + per_second.ceil().clamp(1.0, 64.0) as u32,
        ..Limits::default()
    }
}

fn whole(key: &str, found: u32, least: u32, most: u32) -> Result<(), ConfigRefused> {
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => refuse(key, format!("expected {least} to {most}, found {found}")),
    }
}

/// Times of the day in their one form, `HH:MM`.
fn times(key: &str, given: &[String]) -> Result<Vec<String>, ConfigRefused> {
    let mut times: Vec<String> = Vec::new();
    for text in given {
        let Some(time) = clock::clock_of(text.trim()).filter(|time| time.second() == 0) else {
            return refuse(key, format!("expected a time such as \"20:30\", found {text:?}"));
        };
        let written = time.strftime("%H:%M").to_string();
        if !times.contains(&written) {
            times.push(written);
        }
    }
    match times.len() <= SLOTS_MAX {
        true => Ok(times),
        false => refuse(key, format!("expected at most {SLOTS_MAX} times")),
    }
}

fn market(key: &str, config: &MarketConfig, prefix: Option<String>) -> Result<Market, ConfigRefused> {
    let [south, west, north, east] = config.area;
    let on_earth = |latitude: f64, longitude: f64| latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
    if !(on_earth(south, west) && on_earth(north, east) && south < north && west < east) {
        let message = "expected [south, west, north, east] in degrees, south below north and west of east";
        return refuse(format!("{key}.box"), message);
    }
    let Ok(zone) = TimeZone::get(&config.zone) else {
        let message =
            format!("expected an IANA time zone such as \"America/New_York\", found {:?}", config.zone);
        return refuse(format!("{key}.zone"), message);
    };
    Ok(Market { prefix, area: Area { south, west, north, east }, zone })
}
