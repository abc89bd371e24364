//! What a configuration says of a broker: where it is, how to get in, what goes there.

use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_sources::written::Secret;

use super::login::Credentials;
use crate::address::{Guard, plain};
use crate::takes::Takes;
use crate::unsaid::Unsaid;
use crate::{Found, Refused};

/// Where a broker listens unless it is said.
const DEFAULT_PORT: u16 = 4222;

/// Where events go.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// `nats://host:4222` or `tls://…`; several servers of a cluster are separated by commas, and tried in this order.
    pub url: String,
    /// A certificate in PEM that is trusted besides the system's: `{ file = "/etc/stakeout/nats.pem" }`.
    pub ca: Option<Secret>,
    /// The first part of the subject; an event goes to SUBJECT.SOURCE.TYPE, such as `stakeout.nz.racing.race.final`.
    #[serde(default = "default_subject")]
    pub subject: String,
    /// The JetStream stream that takes them.
    #[serde(default = "default_stream")]
    pub stream: String,
    /// Whether to make the stream when it is not there.
    #[serde(default = "default_create")]
    pub create: bool,
    /// Who we are, with `password`.
    pub user: Option<Secret>,
    /// The password of `user`.
    pub password: Option<Secret>,
    /// A token, where the server asks for one.
    pub token: Option<Secret>,
    /// The content of a credentials file: `{ file = "/etc/stakeout/nats.creds" }`.
    pub credentials: Option<Secret>,
    /// The types of events it takes: `["racing.*", "alert.raised"]`; all by default.
    #[serde(default = "Takes::all")]
    pub events: Takes,
    /// Hosts that may be on this machine or in the local network, and that may be spoken to without TLS (`nats://`).
    #[serde(default)]
    pub allow: Vec<String>,
}

fn default_subject() -> String {
    "stakeout".to_owned()
}

fn default_stream() -> String {
    "STAKEOUT".to_owned()
}

fn default_create() -> bool {
    true
}

impl NatsConfig {
    /// What is fetched from the environment or from files at start, by its key.
    pub fn secrets(&self) -> Vec<(String, &Secret)> {
        let named = [
            ("ca", &self.ca),
            ("user", &self.user),
            ("password", &self.password),
            ("token", &self.token),
            ("credentials", &self.credentials),
        ];
        named.into_iter().filter_map(|(key, secret)| Some((key.to_owned(), secret.as_ref()?))).collect()
    }

    /// The servers of the URL.
    pub(super) fn servers(&self, guard: &Guard) -> Result<Vec<Server>, Refused> {
        self.url.split(',').map(|server| address(server.trim(), guard)).collect()
    }

    /// Whether events can go to that subject and stream.
    pub(super) fn check(&self) -> Result<(), Refused> {
        if self.subject.split('.').any(|token| token.is_empty() || token != safe(token)) {
            return Err(Refused::new("subject", "expected words joined by dots, without spaces, * and >"));
        }
        if self.stream.is_empty() || self.stream.contains('.') || self.stream != safe(&self.stream) {
            return Err(Refused::new("stream", "expected a name without dots, spaces, * and >"));
        }
        self.events.check()
    }
}

/// A server that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// Its name or address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Whether it is spoken to only over TLS.
    pub(super) is_secured: bool,
}

/// One of the servers of a URL.
fn address(server: &str, guard: &Guard) -> Result<Server, Refused> {
    let refused = |message: String| Refused::new("url", message);
    if server.contains('@') {
        return Err(refused("expected no user in it: write user and password beside it".to_owned()));
    }
    let expected = || refused("expected nats://HOST:PORT or tls://HOST:PORT".to_owned());
    let url = Url::parse(server).map_err(|_| expected())?;
    let is_secured = match url.scheme() {
        "tls" => true,
        "nats" => false,
        _ => return Err(expected()),
    };
    let host = url.host_str().filter(|host| !host.is_empty()).map(plain).ok_or_else(expected)?;
    if !is_secured && !guard.allows(&host) {
        return Err(refused(format!("expected tls://…; allow = [\"{host}\"] permits nats:// there")));
    }
    guard.check_literal(&host).map_err(|error| refused(error.to_string()))?;
    Ok(Server { host, port: url.port().unwrap_or(DEFAULT_PORT), is_secured })
}

/// A part of a subject: what has a meaning in subjects is replaced.
pub(super) fn safe(text: &str) -> String {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '*' | '>' | '$' | '/' | '\\');
    text.replace(bad, "_")
}

/// How to get in.
pub(super) enum Access {
    /// Anybody may.
    Open,
    /// With a name and a password.
    Password(String, String),
    /// With a token.
    Token(String),
    /// With what a credentials file has.
    Credentials(Credentials),
}

impl Access {
    /// How to get in, by the secrets that were found.
    pub(super) fn of(found: &Found) -> Result<Access, Refused> {
        let get = |key: &str| Some(found.get(key).to_owned()).filter(|value| !value.is_empty());
        match (get("user"), get("password"), get("token"), get("credentials")) {
            (None, None, None, None) => Ok(Access::Open),
            (Some(user), Some(password), None, None) => Ok(Access::Password(user, password)),
            (None, None, Some(token), None) => Ok(Access::Token(token)),
            (None, None, None, Some(file)) => Ok(Access::Credentials(Credentials::of_file(&file)?)),
            _ => Err(Refused::new(
                "user",
                "expected user and password, or token, or credentials, or none of them",
            )),
        }
    }

    /// What a broker is told of it, and must not be quoted with.
    pub(super) fn unsaid(&self) -> Unsaid {
        match self {
            Access::Open => Unsaid::default(),
            Access::Password(user, password) => Unsaid::of_login(user, password),
            Access::Token(token) => Unsaid::of([token.as_str()]),
            Access::Credentials(credentials) => Unsaid::of(credentials.secrets()),
        }
    }
}
