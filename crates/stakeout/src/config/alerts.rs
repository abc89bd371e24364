//! From configuration to the book of alerts.

use std::sync::Arc;

use stakeout_core::Source;
use stakeout_core::alert::{Alerts, is_type};
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

    /// The rules about events that none of these sources tells, in words. No error: a live setting may yet have it told.
    pub fn untold(&self, sources: &[Arc<dyn Source>]) -> Vec<String> {
        let mut untold = Vec::new();
        for (name, rule) in &self.config.alert {
            let Some(pattern) = rule.event_type() else { continue };
            let is_meant = |known: &str| rule.source.as_ref().is_none_or(|wanted| wanted == known);
            // A source that cannot be made here, because a secret is not there, may tell anything.
            let all = self.config.source.keys().filter(|source| is_meant(source)).count();
            let meant: Vec<_> = sources.iter().filter(|source| is_meant(source.name())).collect();
            let is_told = |source: &Arc<dyn Source>| {
                source.event_types().iter().any(|event_type| is_type(event_type, pattern))
            };
            if meant.len() == all && !meant.iter().any(|source| is_told(source)) {
                untold.push(format!("alert {name} waits for {pattern:?}, which no source tells"));
            }
        }
        untold
    }
}
