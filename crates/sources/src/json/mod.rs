//! The declarative source: anything that answers JSON, read as its configuration says.
//!
//! `config` is what can be written down, `reading` the same made ready, `normalize` what an answer says.

mod config;
mod normalize;
mod path;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::cadence::Fixed;
use stakeout_core::compare::DoubtPolicy;
use stakeout_core::{
    Exchange, Facts, Failure, FailureClass, Kind, KnownSetting, Limits, Observation, Plan, PollContext,
    Request, Rule, SettingRefused, Source, Span, TargetSpec, Time,
};

pub use config::{DoubtConfig, EventsConfig, FieldConfig, Fields, Holds, JsonConfig, Key, LimitsConfig};
pub use path::Path;
use reading::{FAMILY, Reading};

use crate::ConfigRefused;

/// The key and role of the only target of a source without ids.
const MAIN: &str = "main";

const EVERY_MIN: Span = Span::ms(10);
const EVERY_MAX: Span = Span::hours(24 * 365);
const IDS_MAX: usize = 1_000_000;

/// Anything that answers JSON.
#[derive(Clone)]
pub struct JsonSource {
    name: String,
    url: String,
    ids: Vec<String>,
    every: Span,
    priority: u8,
    headers: Vec<(String, String)>,
    reading: Reading,
    /// What an answer means; the same for every target.
    meaning: u64,
    kinds: Vec<Arc<Kind>>,
    rules: Vec<Rule>,
    limits: Limits,
    doubt: DoubtPolicy,
}

impl JsonSource {
    /// A source by its configuration. `headers` are those of the configuration with their secrets in place.
    pub fn new(
        name: &str,
        config: &JsonConfig,
        headers: Vec<(String, String)>,
    ) -> Result<JsonSource, ConfigRefused> {
        check(config)?;
        for (name, value) in &headers {
            check_header(name, value)?;
        }
        let reading = Reading::new(name, config)?;
        Ok(JsonSource {
            name: name.to_owned(),
            url: config.url.clone(),
            ids: config.ids.clone(),
            every: config.every.0,
            priority: config.priority,
            headers: with_accept(headers),
            kinds: vec![Arc::clone(&reading.kind)],
            rules: reading::rules(&config.events, &reading.kind),
            limits: config.limits.over(Limits::default()),
            doubt: config.doubt.policy(),
            meaning: reading.meaning(&config.url),
            reading,
        })
    }

    /// Requests per second that the cadence asks for; more than the limits allow makes polls late.
    pub fn requests_per_second(&self) -> f64 {
        self.ids.len().max(1) as f64 / self.every.as_secs_f64()
    }

    fn spec(&self, key: &str) -> TargetSpec {
        TargetSpec {
            // The url stays out: it may carry a token, and the store keeps no secrets.
            meaning: self.meaning,
            priority: self.priority,
            ..TargetSpec::new(key, "document")
        }
    }
}

impl Source for JsonSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        FAMILY
    }

    fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn doubt(&self) -> DoubtPolicy {
        self.doubt
    }

    fn roots(&self, _now: Time) -> Vec<TargetSpec> {
        match self.ids.is_empty() {
            true => vec![self.spec(MAIN)],
            false => self.ids.iter().map(|id| self.spec(id)).collect(),
        }
    }

    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        if !so_far.is_empty() {
            return Vec::new();
        }
        let url = match self.ids.is_empty() {
            true => self.url.clone(),
            false => self.url.replace("{id}", &percent_encoded(&target.key)),
        };
        vec![Request { headers: self.headers.clone(), ..Request::get(url) }]
    }

    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        _: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        match exchanges {
            [exchange] => {
                let response = exchange.result.as_ref().map_err(Failure::clone)?;
                self.reading.normalize(&target.key, &response.body)
            }
            _ => Err(Failure::new(
                FailureClass::Internal,
                format!("expected one exchange, found {}", exchanges.len()),
            )),
        }
    }

    fn repeats_mean_nothing_new(&self, _target: &TargetSpec) -> bool {
        true
    }

    fn plan(&self, _: &TargetSpec, _: &Facts) -> Plan {
        // A lone target answers at once; many keep to their places, so that a start is no burst.
        Plan::Fixed(Fixed { every: self.every, eager: self.ids.len() <= 1, place: None })
    }

    fn known_settings(&self) -> Vec<KnownSetting> {
        let mut known =
            vec![KnownSetting::new("every_ms", self.every.as_ms(), "ms", "How often it is looked at")];
        known.extend(self.limits.settings());
        known
    }

    fn configured(&self, settings: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        let mut source = self.clone();
        for (name, value) in settings {
            if name == "every_ms" {
                source.every = every_setting(name, value)?;
            } else if !source.limits.apply(name, value)? {
                return Err(SettingRefused::new(
                    name,
                    value,
                    "there is no such setting. Known are every_ms, requests_per_second, burst, concurrency, min_gap_ms, timeout_ms and jitter_ms",
                ));
            }
        }
        Ok(Arc::new(source))
    }
}

fn every_setting(name: &str, value: &Json) -> Result<Span, SettingRefused> {
    let span = value.as_i64().filter(|ms| *ms <= EVERY_MAX.as_ms()).map(Span::ms);
    span.filter(|every| *every >= EVERY_MIN).ok_or_else(|| {
        let expected = format!("give whole milliseconds from {} to {}", EVERY_MIN.as_ms(), EVERY_MAX.as_ms());
        SettingRefused::new(name, value, expected)
    })
}

fn check(config: &JsonConfig) -> Result<(), ConfigRefused> {
    check_url(config)?;
    check_ids(config)?;
    check_limits(&config.limits)?;
    if !(EVERY_MIN..=EVERY_MAX).contains(&config.every.0) {
        let found = config.every.0;
        return Err(ConfigRefused::new(
            "every",
            format!("expected {EVERY_MIN} to {EVERY_MAX}, found {found}"),
        ));
    }
    if config.priority > 100 {
        return Err(ConfigRefused::new("priority", format!("expected 0 to 100, found {}", config.priority)));
    }
    if !(0.0..=1.0).contains(&config.doubt.share) {
        let message = format!("expected a share from 0 to 1, found {}", config.doubt.share);
        return Err(ConfigRefused::new("doubt.share", message));
    }
    if config.events.first_of_group && config.group.is_none() {
        let message = "needs `group`, the path of what groups the records";
        return Err(ConfigRefused::new("events.first_of_group", message));
    }
    Ok(())
}

fn check_limits(limits: &LimitsConfig) -> Result<(), ConfigRefused> {
    let refused = |key: &str, message: &str| Err(ConfigRefused::new(format!("limits.{key}"), message));
    if limits.requests_per_second.is_some_and(|rate| !(rate > 0.0 && rate <= 100_000.0)) {
        return refused("requests_per_second", "expected a number above 0, at most 100000");
    }
    if limits.burst.is_some_and(|burst| !(1..=100_000).contains(&burst)) {
        return refused("burst", "expected 1 to 100000");
    }
    if limits.concurrency.is_some_and(|n| !(1..=10_000).contains(&n)) {
        return refused("concurrency", "expected 1 to 10000");
    }
    let positive = [("timeout", limits.timeout), ("connect_timeout", limits.connect_timeout)];
    for (key, given) in positive {
        if given.is_some_and(|d| d.0 <= Span::ZERO || d.0 > Span::mins(10)) {
            return refused(key, "expected more than nothing and at most 10 min");
        }
    }
    if limits.max_body.is_some_and(|size| size.0 == 0) {
        return refused("max_body", "expected at least 1B");
    }
    Ok(())
}

fn check_url(config: &JsonConfig) -> Result<(), ConfigRefused> {
    // An id in place of `{id}`: braces are no part of a URL.
    let url = config.url.replace("{id}", "id");
    let refused = |message: &str| Err(ConfigRefused::new("url", message));
    // The URL itself is not shown: its query may hold a token.
    let expected = "expected an absolute URL such as \"https://example.org/items.json\"";
    match url.parse::<http::Uri>() {
        Ok(uri) => match (uri.scheme_str(), uri.authority()) {
            (Some("http" | "https"), Some(host)) if !host.as_str().contains('@') => Ok(()),
            (Some("http" | "https"), Some(_)) => {
                refused("a name or password in a URL would reach logs: send it as a header instead")
            }
            _ => refused(expected),
        },
        Err(error) => refused(&format!("{expected} ({error})")),
    }
}

fn check_ids(config: &JsonConfig) -> Result<(), ConfigRefused> {
    let refused = |key: &str, message: String| Err(ConfigRefused::new(key, message));
    match (config.url.contains("{id}"), config.ids.is_empty()) {
        (true, true) => {
            return refused("ids", "`url` has {id}: list what to put there, ids = [\"…\"]".into());
        }
        (false, false) => return refused("url", "`ids` are given: say where they go with {id}".into()),
        _ => {}
    }
    if config.ids.len() > IDS_MAX {
        return refused("ids", format!("expected at most {IDS_MAX}, found {}", config.ids.len()));
    }
    let mut seen = BTreeSet::new();
    for id in &config.ids {
        if id.is_empty() || id.len() > 200 || id.chars().any(char::is_control) {
            return refused(
                "ids",
                format!("expected 1 to 200 bytes without control characters, found {id:?}"),
            );
        }
        if !seen.insert(id) {
            return refused("ids", format!("{id:?} is there twice"));
        }
    }
    Ok(())
}

fn check_header(name: &str, value: &str) -> Result<(), ConfigRefused> {
    let key = format!("headers.{name}");
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(ConfigRefused::new(key, format!("expected a header name, found {name:?}")));
    }
    if http::HeaderValue::from_str(value).is_err() {
        // The value may be a secret: it is not shown.
        let message = "the value has a line end or another character that no header may have";
        return Err(ConfigRefused::new(key, message));
    }
    Ok(())
}

fn with_accept(mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
        headers.push(("accept".to_owned(), "application/json".to_owned()));
    }
    headers
}

/// An id as one segment of a path or one value of a query (RFC 3986: all but unreserved characters encoded).
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
