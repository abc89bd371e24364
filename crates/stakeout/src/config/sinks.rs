//! From configuration to sinks.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_engine::Sink;
use stakeout_sinks::http::{HttpConfig, HttpSink};
use stakeout_sinks::mail::{MailConfig, MailSink};
use stakeout_sinks::nats::{NatsConfig, NatsSink};
use stakeout_sinks::webhook::{WebhookConfig, WebhookSink};
use stakeout_sinks::{Found, Refused};
use stakeout_sources::written::Secret;

use super::{ConfigError, Loaded, Secrets};

/// Who is told, besides those who ask.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SinkConfig {
    /// NATS JetStream.
    Nats(Box<NatsConfig>),
    /// Signed webhooks by the Standard Webhooks specification.
    Webhook(Box<WebhookConfig>),
    /// Any HTTP interface, by a template.
    Http(Box<HttpConfig>),
    /// E-mail.
    Mail(Box<MailConfig>),
}

impl SinkConfig {
    /// What is fetched from the environment or from files at start, by its key within the sink's table.
    fn secrets(&self) -> Vec<(String, &Secret)> {
        match self {
            SinkConfig::Nats(config) => config.secrets(),
            SinkConfig::Webhook(config) => config.secrets(),
            SinkConfig::Http(config) => config.secrets(),
            SinkConfig::Mail(config) => config.secrets(),
        }
    }

    fn sink(&self, name: &str, found: &Found) -> Result<Arc<dyn Sink>, Refused> {
        Ok(match self {
            SinkConfig::Nats(config) => Arc::new(NatsSink::new(name, config, found)?),
            SinkConfig::Webhook(config) => Arc::new(WebhookSink::new(name, config, found)?),
            SinkConfig::Http(config) => Arc::new(HttpSink::new(name, config, found)?),
            SinkConfig::Mail(config) => Arc::new(MailSink::new(name, config, found)?),
        })
    }
}

impl Loaded {
    /// The sinks, with their secrets in place. None of them connects before there is something to tell.
    pub fn sinks(&self, secrets: &Secrets) -> Result<Vec<Arc<dyn Sink>>, ConfigError> {
        self.config.sink.iter().map(|(name, config)| self.sink(name, config, secrets)).collect()
    }

    fn sink(&self, name: &str, config: &SinkConfig, secrets: &Secrets) -> Result<Arc<dyn Sink>, ConfigError> {
        let refuse = |key: &str, message: &str| self.refuse(&["sink", name, key], message);
        let found = config.secrets().into_iter().map(|(key, secret)| {
            let value = secrets.resolve(secret).map_err(|message| refuse(&key, &message))?;
            Ok((key, value))
        });
        let found = found.collect::<Result<Found, ConfigError>>()?;
        config.sink(name, &found).map_err(|refused| refuse(&refused.key, &refused.message))
    }
}
