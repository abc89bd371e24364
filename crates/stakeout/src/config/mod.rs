//! The configuration: one TOML file, everything with a default, nothing unknown accepted.
//!
//! `read` turns text into a [`Config`] with errors that name the line, `secret` fetches what must not be written
//! down, `wire` makes sources of it and `sinks` sinks, `schema` describes it to editors.

mod alerts;
mod read;
mod schema;
mod secret;
mod server;
mod sinks;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_core::Span;
use stakeout_sources::alert::AlertConfig;
use stakeout_sources::fpv::FpvConfig;
use stakeout_sources::json::JsonConfig;
use stakeout_sources::racing::RacingConfig;
use stakeout_sources::tables::TablesConfig;
use stakeout_sources::written::{Duration, Secret};
use stakeout_store::Retention;

pub use read::ConfigError;
pub use schema::{example_is_complete, schema};
pub use secret::Secrets;
pub use server::{Listen, ServerSettings, TokenNeed};
pub use sinks::SinkConfig;
pub use wire::Wired;

/// Stakeout's configuration file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where everything is kept.
    pub store: StoreConfig,
    /// How the engine runs.
    pub engine: EngineSettings,
    /// How long things are kept.
    pub retention: RetentionConfig,
    /// The HTTP interface and the dashboard.
    pub server: ServerSettings,
    /// What is logged, and how.
    pub log: LogConfig,
    /// What is watched, by name.
    pub source: BTreeMap<String, SourceConfig>,
    /// Who is told, by name.
    pub sink: BTreeMap<String, SinkConfig>,
    /// What somebody wants to be told, by name.
    pub alert: BTreeMap<String, AlertConfig>,
}

/// Where everything is kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// `sqlite:PATH`, where a relative path is relative to the working directory, or `postgres://…`, which any number of
    /// nodes share.
    pub url: String,
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig { url: "sqlite:stakeout.db".to_owned() }
    }
}

/// How the engine runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EngineSettings {
    /// This process's name, as targets and logs show it. Nodes that share a database are told apart by it; where it is
    /// left at its default there, a node is called after its host and process.
    pub node: String,
    /// How long a claimed target stays this process's own if it is never heard of again.
    pub lease: Duration,
    /// How far ahead of their due time targets are claimed.
    pub claim_ahead: Duration,
    /// How long polls under way may take to finish when the process is asked to stop; at most 4s.
    pub shutdown_grace: Duration,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            node: "main".to_owned(),
            lease: Duration(Span::secs(60)),
            claim_ahead: Duration(Span::secs(2)),
            shutdown_grace: Duration(Span::secs(3)),
        }
    }
}

/// How long things are kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// Events, once delivered everywhere.
    pub events: Duration,
    /// Rows of history.
    pub history: Duration,
    /// The log of notable polls, and what is known about the regular ones.
    pub polls: Duration,
    /// Records that are gone, once their history is.
    pub gone: Duration,
}

impl Default for RetentionConfig {
    fn default() -> RetentionConfig {
        let days = |n: i64| Duration(Span::hours(24 * n));
        RetentionConfig { events: days(90), history: days(400), polls: days(14), gone: days(30) }
    }
}

impl From<&RetentionConfig> for Retention {
    fn from(config: &RetentionConfig) -> Retention {
        Retention {
            events: config.events.0,
            history: config.history.0,
            polls: config.polls.0,
            gone_records: config.gone.0,
        }
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`) or a filter such as `info,stakeout_engine=debug`.
    pub level: String,
    /// Lines for people, or one JSON object per line.
    pub format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig { level: "info".to_owned(), format: LogFormat::Text }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// What is watched.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SourceConfig {
    /// Anything that answers JSON.
    Json(Box<JsonConfig>),
    /// Horse races: the NZTAB affiliates API.
    Racing(Box<RacingConfig>),
    /// Drone races: the event that an FPVTrackside has open.
    Fpv(Box<FpvConfig>),
    /// Restaurant tables: Resy's venue search.
    Tables(Box<TablesConfig>),
}

impl SourceConfig {
    /// What is fetched from the environment or from files at start, by its key within the source's table.
    pub fn secrets(&self) -> Vec<(String, &Secret)> {
        match self {
            SourceConfig::Json(config) => {
                config.headers.iter().map(|(name, secret)| (format!("headers.{name}"), secret)).collect()
            }
            SourceConfig::Racing(config) => {
                let RacingConfig { from, partner, partner_id, .. } = &**config;
                let named = [("from", from), ("partner", partner), ("partner_id", partner_id)];
                named.map(|(key, secret)| (key.to_owned(), secret)).to_vec()
            }
            SourceConfig::Fpv(_) => Vec::new(),
            SourceConfig::Tables(config) => {
                let named = [("api_key", &config.api_key), ("auth_token", &config.auth_token)];
                named.map(|(key, secret)| (key.to_owned(), secret)).to_vec()
            }
        }
    }
}

/// A configuration with its text, so that whatever is found wrong later still names the line.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub config: Config,
    file: String,
    text: String,
}

impl Loaded {
    /// Reads a configuration file.
    pub fn from_file(path: &Path) -> Result<Loaded, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::unreadable(&file, error.kind(), &error.to_string()))?;
        Loaded::from_text(&file, &text)
    }

    /// Reads a configuration; `file` is what messages call it.
    pub fn from_text(file: &str, text: &str) -> Result<Loaded, ConfigError> {
        let config = read::read(file, text)?;
        let loaded = Loaded { config, file: file.to_owned(), text: text.to_owned() };
        loaded.check()?;
        Ok(loaded)
    }

    /// The defaults, without a file.
    pub fn defaults() -> Loaded {
        Loaded { config: Config::default(), file: "the defaults".to_owned(), text: String::new() }
    }

    /// What messages call the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// An error at a key of the file: `["source", "x", "every"]`.
    fn refuse(&self, path: &[&str], message: &str) -> ConfigError {
        read::at_key(&self.file, &self.text, path, message)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let engine = &self.config.engine;
        if engine.node.is_empty() || engine.node.len() > 64 || engine.node.chars().any(char::is_control) {
            return Err(self.refuse(&["engine", "node"], "expected 1 to 64 bytes without control characters"));
        }
        let spans = [
            ("lease", engine.lease, Span::secs(1), Span::hours(1)),
            ("claim_ahead", engine.claim_ahead, Span::ZERO, Span::mins(1)),
            ("shutdown_grace", engine.shutdown_grace, Span::ZERO, Span::secs(4)),
        ];
        for (key, Duration(found), least, most) in spans {
            if !(least..=most).contains(&found) {
                let message = format!("expected {least} to {most}, found {found}");
                return Err(self.refuse(&["engine", key], &message));
            }
        }
        self.check_server()?;
        let retention = &self.config.retention;
        let kept = [
            ("events", retention.events),
            ("history", retention.history),
            ("polls", retention.polls),
            ("gone", retention.gone),
        ];
        for (key, Duration(found)) in kept {
            if found < Span::mins(1) {
                let message = format!("expected at least 1 min, found {found}");
                return Err(self.refuse(&["retention", key], &message));
            }
        }
        Ok(())
    }
}
