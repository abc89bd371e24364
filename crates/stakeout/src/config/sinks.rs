//! From configuration to sinks.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_engine::Sink;
use stakeout_sinks::nats::{Access, NatsConfig, NatsSink};

use super::{ConfigError, Loaded, Secrets};

/// Who is told, besides those who ask.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SinkConfig {
    /// NATS JetStream.
    Nats(Box<NatsConfig>),
}

impl Loaded {
    /// The sinks, with their secrets in place. None of them connects before there is something to tell.
    pub fn sinks(&self, secrets: &Secrets) -> Result<Vec<Arc<dyn Sink>>, ConfigError> {
        self.config.sink.iter().map(|(name, config)| self.sink(name, config, secrets)).collect()
    }

    fn sink(&self, name: &str, config: &SinkConfig, secrets: &Secrets) -> Result<Arc<dyn Sink>, ConfigError> {
        let SinkConfig::Nats(config) = config;
        let mut found = Vec::new();
        for (key, secret) in config.secrets() {
            let value = secrets.resolve(secret);
            found.push((key, value.map_err(|message| self.refuse(&["sink", name, key], &message))?));
        }
        let made = Access::of(&found).and_then(|access| NatsSink::new(name, config, access));
        let sink = made.map_err(|refused| self.refuse(&["sink", name, refused.key], &refused.message))?;
        Ok(Arc::new(sink))
    }
}
