//! From configuration to sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stakeout_core::{Kind, Source};
use stakeout_sources::ConfigRefused;
use stakeout_sources::fpv::{FpvConfig, FpvSource};
use stakeout_sources::json::{JsonConfig, JsonSource};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};
use stakeout_sources::written::Secret;

use super::{ConfigError, Loaded, Secrets, SourceConfig};

/// The sources that a configuration makes.
pub struct Wired {
    /// In the order of their names.
    pub sources: Vec<Arc<dyn Source>>,
    /// What works, but not as it seems.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// The sources, with their secrets in place.
    pub fn sources(&self, secrets: &Secrets) -> Result<Wired, ConfigError> {
        let mut sources: Vec<Arc<dyn Source>> = Vec::with_capacity(self.config.source.len());
        let mut warnings = Vec::new();
        for (name, config) in &self.config.source {
            let source = match config {
                SourceConfig::Json(config) => self.json(name, config, secrets, &mut warnings)?,
                SourceConfig::Racing(config) => self.racing(name, config, secrets)?,
                SourceConfig::Fpv(config) => self.fpv(name, config)?,
                SourceConfig::Tables(config) => self.tables(name, config, secrets)?,
            };
            sources.push(source);
        }
        self.check_views(&sources)?;
        self.check_one_event(&sources)?;
        Ok(Wired { sources, warnings })
    }

    /// As [`Loaded::sources`], refusing a configuration that watches nothing.
    pub fn some_sources(&self, secrets: &Secrets) -> Result<Wired, ConfigError> {
        if self.config.source.is_empty() {
            return Err(ConfigError {
                file: self.file.clone(),
                line: None,
                message: "no source is configured, so there is nothing to watch: add a [source.NAME] table (stakeout.example.toml shows how)".to_owned(),
            });
        }
        self.sources(secrets)
    }

    /// The full names of all kinds of records, without any secret: to look at what is stored, none is needed.
    pub(crate) fn kind_names(&self) -> BTreeSet<String> {
        let nobody = "nobody@example.org".to_owned();
        let identity = Identity { from: nobody.clone(), partner: nobody.clone(), partner_id: nobody };
        // Their kinds do not depend on what is configured.
        let racing = RacingSource::new("racing", &RacingConfig::default(), identity);
        let fpv = FpvSource::new("fpv", &FpvConfig::at("http://localhost:8080"));
        let nobody = Credentials { api_key: "none".to_owned(), auth_token: "none".to_owned() };
        let tables = TablesSource::new("tables", &TablesConfig::default(), nobody);
        let racing = racing.iter().flat_map(|source| source.kinds());
        let fpv = fpv.iter().flat_map(|source| source.kinds());
        let tables = tables.iter().flat_map(|source| source.kinds());
        let mut names: BTreeSet<String> =
            racing.chain(fpv).chain(tables).map(|kind| kind.full_name()).collect();
        for (name, config) in &self.config.source {
            if let SourceConfig::Json(config) = config {
                let collection = config.collection.clone().unwrap_or_else(|| name.replace('-', "_"));
                names.insert(format!("json_{collection}"));
            }
        }
        names
    }

    fn json(
        &self,
        name: &str,
        config: &JsonConfig,
        secrets: &Secrets,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<dyn Source>, ConfigError> {
        let mut headers = Vec::with_capacity(config.headers.len());
        for (header, secret) in &config.headers {
            let value = secrets
                .resolve(secret)
                .map_err(|message| self.refuse(&["source", name, "headers", header], &message))?;
            headers.push((header.clone(), value));
        }
        let source =
            JsonSource::new(name, config, headers).map_err(|refused| self.refuse_source(name, &refused))?;
        let (needed, allowed) = (source.requests_per_second(), source.limits().requests_per_second);
        if needed > allowed {
            warnings.push(format!(
                "source {name} asks for {needed:.1} requests per second, its limit is {allowed}: polls will be late. Raise limits.requests_per_second or `every`"
            ));
        }
        Ok(Arc::new(source))
    }

    fn racing(
        &self,
        name: &str,
        config: &RacingConfig,
        secrets: &Secrets,
    ) -> Result<Arc<dyn Source>, ConfigError> {
        let resolve = |key: &str, secret: &Secret| {
            secrets.resolve(secret).map_err(|message| self.refuse(&["source", name, key], &message))
        };
        let identity = Identity {
            from: resolve("from", &config.from)?,
            partner: resolve("partner", &config.partner)?,
            partner_id: resolve("partner_id", &config.partner_id)?,
        };
        let source = RacingSource::new(name, config, identity).map_err(|refused| {
            let secret = match refused.key.as_str() {
                "from" => &config.from,
                "partner" => &config.partner,
                "partner_id" => &config.partner_id,
                _ => return self.refuse_source(name, &refused),
            };
            self.refuse_secret(name, &refused, secret)
        })?;
        Ok(Arc::new(source))
    }

    fn fpv(&self, name: &str, config: &FpvConfig) -> Result<Arc<dyn Source>, ConfigError> {
        let source = FpvSource::new(name, config).map_err(|refused| self.refuse_source(name, &refused))?;
        Ok(Arc::new(source))
    }

    /// A tables source's configuration with what the environment says over it, checked.
    pub(crate) fn tables_config(
        &self,
        name: &str,
        config: &TablesConfig,
        secrets: &Secrets,
    ) -> Result<TablesConfig, ConfigError> {
        let config = config.clone().with_environment(|variable| secrets.variable(variable));
        let config = config.map_err(|refused| self.refuse_source(name, &refused))?;
        let nobody = Credentials { api_key: "none".to_owned(), auth_token: "none".to_owned() };
        let sound = TablesSource::new(name, &config, nobody).map(drop);
        let sound = sound.and_then(|()| config.check_retention(self.config.retention.gone.0));
        sound.map_err(|refused| self.refuse_source(name, &refused))?;
        Ok(config)
    }

    fn tables(
        &self,
        name: &str,
        config: &TablesConfig,
        secrets: &Secrets,
    ) -> Result<Arc<dyn Source>, ConfigError> {
        let resolve = |key: &str, secret: &Secret| {
            secrets.resolve(secret).map_err(|message| self.refuse(&["source", name, key], &message))
        };
        let credentials = Credentials {
            api_key: resolve("api_key", &config.api_key)?,
            auth_token: resolve("auth_token", &config.auth_token)?,
        };
        let config = self.tables_config(name, config, secrets)?;
        let source = TablesSource::new(name, &config, credentials).map_err(|refused| {
            let secret = match refused.key.as_str() {
                "api_key" => &config.api_key,
                "auth_token" => &config.auth_token,
                _ => return self.refuse_source(name, &refused),
            };
            self.refuse_secret(name, &refused, secret)
        })?;
        Ok(Arc::new(source))
    }

    /// Whoever reads the message has to mend the variable, not the file.
    fn refuse_secret(&self, name: &str, refused: &ConfigRefused, secret: &Secret) -> ConfigError {
        let message = match secret {
            Secret::Text(_) => refused.message.clone(),
            Secret::Env(variable) => {
                format!("the environment variable {variable} is malformed: {}", refused.message)
            }
            Secret::File(path) => format!("the secret file {path} is malformed: {}", refused.message),
        };
        self.refuse(&["source", name, &refused.key], &message)
    }

    fn refuse_source(&self, name: &str, refused: &ConfigRefused) -> ConfigError {
        let mut path = vec!["source", name];
        path.extend(refused.key.split('.'));
        self.refuse(&path, &refused.message)
    }

    /// Two events would take turns in saying which race is the current one, under one name.
    fn check_one_event(&self, sources: &[Arc<dyn Source>]) -> Result<(), ConfigError> {
        let mut events = sources.iter().filter(|source| source.family() == stakeout_sources::fpv::FAMILY);
        match (events.next(), events.next()) {
            (Some(first), Some(second)) => {
                let message = format!(
                    "one Stakeout watches one FPVTrackside, and source `{}` is one already: both would publish race/currentOrder. Run a second Stakeout with a configuration and a database of its own",
                    first.name()
                );
                Err(self.refuse(&["source", second.name(), "kind"], &message))
            }
            _ => Ok(()),
        }
    }

    /// Two sources may share a view only if its columns are the same.
    fn check_views(&self, sources: &[Arc<dyn Source>]) -> Result<(), ConfigError> {
        let mut seen: BTreeMap<String, (&str, &Kind)> = BTreeMap::new();
        for source in sources {
            for kind in source.kinds() {
                let streams = kind.streams.iter().map(|stream| format!("{}_{}", kind.family, stream.name));
                let more = kind.views.iter().map(|view| format!("{}_{}", kind.family, view.name));
                for view in std::iter::once(kind.full_name()).chain(streams).chain(more) {
                    let (owner, first) = *seen.entry(view.clone()).or_insert((source.name(), kind));
                    if first != kind.as_ref() {
                        let message = format!(
                            "the SQL view `{view}` would be another than that of source `{owner}`: give one of them another `collection`"
                        );
                        return Err(self.refuse(&["source", source.name(), "collection"], &message));
                    }
                }
            }
        }
        Ok(())
    }
}
