//! From configuration to the book of alerts.

use std::sync::Arc;

use stakeout_core::alert::Alerts;
use stakeout_sources::alert::RuleBook;

use super::{ConfigError, Loaded};

impl Loaded {
    /// The rules of the configuration, each of which can ring, for sources and sinks that there are.
    pub fn alerts(&self) -> Result<Arc<dyn Alerts>, ConfigError> {
        for (name, rule) in &self.config.alert {
            let refuse = |key: &str, message: &str| {
                let path: Vec<&str> = ["alert", name].into_iter().chain(key.split('.')).collect();
                self.refuse(&path, message)
            };
            rule.check(name).map_err(|refused| refuse(&refused.key, &refused.message))?;
            if let Some(source) = rule.source.as_ref().filter(|name| !self.config.source.contains_key(*name))
            {
                return Err(refuse(
                    "source",
                    &format!("there is no source {source:?}: add [source.{source}]"),
                ));
            }
            if let Some(sink) = rule.sinks.iter().find(|name| !self.config.sink.contains_key(*name)) {
                return Err(refuse("sinks", &format!("there is no sink {sink:?}: add [sink.{sink}]")));
            }
        }
        let book = RuleBook::new(self.config.alert.clone());
        let book = book.map_err(|refused| self.refuse(&["alert"], &refused.to_string()))?;
        Ok(Arc::new(book))
    }
}
