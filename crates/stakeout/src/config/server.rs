//! The HTTP interface, as it is configured.

use std::net::SocketAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_server::{ServerConfig, TokenPolicy};

use super::{ConfigError, Loaded};

/// The HTTP interface and the dashboard.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// An address and a port, or "off". Any address but loopback needs a token: `stakeout token create`.
    pub listen: String,
    /// When a token is needed.
    pub token: TokenNeed,
    /// Names under which the server may be asked besides localhost: that of a proxy in front of it, for instance.
    pub hosts: Vec<String>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings { listen: "127.0.0.1:8484".to_owned(), token: TokenNeed::Auto, hosts: Vec::new() }
    }
}

/// When a token is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenNeed {
    /// Everywhere but on loopback.
    #[default]
    Auto,
    /// Always.
    Always,
}

/// Where to listen, if anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// There.
    At(SocketAddr),
    /// Nowhere.
    Off,
}

impl FromStr for Listen {
    type Err = String;
    fn from_str(text: &str) -> Result<Listen, String> {
        if text == "off" {
            return Ok(Listen::Off);
        }
        text.parse().map(Listen::At).map_err(|_| {
            format!(
                "expected an address and a port such as 127.0.0.1:8484 or [::1]:8484, or \"off\", found {text:?}"
            )
        })
    }
}

impl ServerSettings {
    /// How to serve at `listen`, or at the configured address without it; `None` when switched off.
    pub fn config(&self, listen: Option<Listen>) -> Option<ServerConfig> {
        let listen = listen.or_else(|| self.listen.parse().ok())?;
        let Listen::At(address) = listen else { return None };
        let mut config = ServerConfig::new(address);
        config.token = match self.token {
            TokenNeed::Auto => TokenPolicy::OffLoopback,
            TokenNeed::Always => TokenPolicy::Always,
        };
        config.hosts.clone_from(&self.hosts);
        Some(config)
    }
}

impl Loaded {
    pub(super) fn check_server(&self) -> Result<(), ConfigError> {
        let server = &self.config.server;
        server.listen.parse::<Listen>().map_err(|message| self.refuse(&["server", "listen"], &message))?;
        let bad = |host: &&String| host.is_empty() || host.contains(['/', ' ']);
        match server.hosts.iter().find(bad) {
            Some(host) => {
                let message = format!("expected names such as stakeout.example.org, found {host:?}");
                Err(self.refuse(&["server", "hosts"], &message))
            }
            None => Ok(()),
        }
    }
}
