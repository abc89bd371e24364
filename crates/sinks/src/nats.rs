//! NATS JetStream: one subject per source and type, the event's id as `Nats-Msg-Id`.
//!
//! An event counts as delivered when the stream has acknowledged it. What was acknowledged without our hearing of it is
//! sent again under the same id: the stream drops it within its duplicate window, and a consumer that keeps ids at any
//! time. The client reconnects by itself; until then nothing is counted as failed.
//!
//! It connects to the servers that `url` names and to no others, each time after a look at where they are. The client
//! resolves their names once more, and can be given no address without losing the name that a certificate is checked for.
//! Without TLS only hosts that are allowed whatever their addresses are can be named; with TLS a name that has come to lead
//! elsewhere since the look gets a connection and the first word of a handshake, and whoever is there has to prove to be
//! the host that was meant before anything else is sent.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{GetStreamErrorKind, PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::{Context, ErrorCode, stream};
use async_nats::{ConnectOptions, HeaderMap, ReconnectToServer, Server, ServerAddr};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sources::written::Secret;
use tokio::sync::OnceCell;
use tracing::{info, warn};

use crate::address::{AddressRefused, Guard};
use crate::cloud_event::{CONTENT_TYPE, cloud_event};
use crate::takes::Takes;
use crate::{Found, Refused};

/// How long an acknowledgement may take.
const ACK_LIMIT: Duration = Duration::from_secs(5);
/// How long a stream that we make remembers ids.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(60 * 60);

/// How soon servers that may not be connected to are looked up again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Where events go.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// `nats://host:4222` or `tls://…`; several servers of a cluster are separated by commas.
    pub url: String,
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
            ("user", &self.user),
            ("password", &self.password),
            ("token", &self.token),
            ("credentials", &self.credentials),
        ];
        named.into_iter().filter_map(|(key, secret)| Some((key.to_owned(), secret.as_ref()?))).collect()
    }
}

/// How to get in.
#[derive(Clone, Default)]
pub enum Access {
    /// Anybody may.
    #[default]
    Open,
    /// With a name and a password.
    Password(String, String),
    /// With a token.
    Token(String),
    /// With the content of a credentials file.
    Credentials(String),
}

impl Access {
    /// How to get in, by the secrets that were found.
    pub fn of(found: &Found) -> Result<Access, Refused> {
        let get = |key: &str| Some(found.get(key).to_owned()).filter(|value| !value.is_empty());
        match (get("user"), get("password"), get("token"), get("credentials")) {
            (None, None, None, None) => Ok(Access::Open),
            (Some(user), Some(password), None, None) => Ok(Access::Password(user, password)),
            (None, None, Some(token), None) => Ok(Access::Token(token)),
            (None, None, None, Some(credentials)) => Ok(Access::Credentials(credentials)),
            _ => {
                let message =
                    "expected user and password, or token, or credentials, or none of them".to_owned();
                Err(Refused::new("user", message))
            }
        }
    }
}

/// Hands events to a JetStream stream.
pub struct NatsSink {
    name: String,
    config: NatsConfig,
    servers: Vec<ServerAddr>,
    guard: Guard,
    access: Access,
    context: OnceCell<Context>,
    /// Whether the stream was there when we last looked.
    stream_known: AtomicBool,
}

impl NatsSink {
    /// A sink of that name; it connects when there is something to deliver.
    pub fn new(name: &str, config: &NatsConfig, access: Access) -> Result<NatsSink, Refused> {
        let guard = Guard::allowing(&config.allow);
        let servers = config.url.split(',').map(|server| address(server.trim(), &guard));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if config.subject.split('.').any(|token| token.is_empty() || token != safe(token)) {
            let message = "expected words joined by dots, without spaces, * and >".to_owned();
            return Err(Refused::new("subject", message));
        }
        if config.stream.is_empty() || config.stream.contains('.') || config.stream != safe(&config.stream) {
            let message = "expected a name without dots, spaces, * and >".to_owned();
            return Err(Refused::new("stream", message));
        }
        config.events.check()?;
        Ok(NatsSink {
            name: name.to_owned(),
            config: config.clone(),
            servers,
            guard,
            access,
            context: OnceCell::new(),
            stream_known: AtomicBool::new(false),
        })
    }

    /// Where an event goes.
    fn subject(&self, event: &Event) -> String {
        let source = safe(&event.source).replace('.', "_");
        format!("{}.{source}.{}", self.config.subject, safe(&event.event_type))
    }

    async fn context(&self) -> Result<&Context, SinkError> {
        let connect = async || {
            // What a broker says of others is not followed: nobody has named or checked those.
            let options =
                ConnectOptions::new().name("stakeout").retry_on_initial_connect().ignore_discovered_servers();
            let options = match &self.access {
                Access::Open => options,
                Access::Password(user, password) => options.user_and_password(user.clone(), password.clone()),
                Access::Token(token) => options.token(token.clone()),
                Access::Credentials(text) => options.credentials(text).map_err(|e| down(&e))?,
            };
            let name = self.name.clone();
            let options = options.event_callback(move |event| {
                let name = name.clone();
                async move { info!(sink = name, "the broker: {event}") }
            });
            let (guard, name) = (self.guard.clone(), self.name.clone());
            let options = options.reconnect_to_server_callback(move |servers, _| {
                let (guard, name) = (guard.clone(), name.clone());
                async move { Some(choose(servers, &guard, &name).await) }
            });
            let client = options.connect(&self.servers[..]).await.map_err(|e| down(&e))?;
            let mut context = async_nats::jetstream::new(client);
            context.set_timeout(ACK_LIMIT);
            Ok(context)
        };
        let context = self.context.get_or_try_init(connect).await?;
        if context.client().connection_state() == State::Connected {
            return Ok(context);
        }
        for server in &self.servers {
            check(server, &self.guard).await.map_err(|refused| down(&refused))?;
        }
        Err(SinkError::Down("not connected to the broker".to_owned()))
    }

    /// Makes sure that somebody keeps what we publish.
    async fn ensure_stream(&self, context: &Context) -> Result<(), SinkError> {
        if self.stream_known.load(Ordering::Relaxed) {
            return Ok(());
        }
        let name = &self.config.stream;
        match context.get_stream(name).await {
            Ok(_) => {}
            Err(error) if self.config.create && matches!(error.kind(), GetStreamErrorKind::JetStream(_)) => {
                let wanted = stream::Config {
                    name: name.clone(),
                    subjects: vec![format!("{}.>", self.config.subject)],
                    duplicate_window: DUPLICATE_WINDOW,
                    ..stream::Config::default()
                };
                context.create_stream(wanted).await.map_err(|e| down(&e))?;
                info!(sink = self.name, stream = name, "the stream was made");
            }
            Err(error) => return Err(down(&error)),
        }
        self.stream_known.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn publish(&self, context: &Context, event: &Event) -> Result<PublishAckFuture, SinkError> {
        let mut headers = HeaderMap::new();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, event.id.to_string().as_str());
        headers.insert("Content-Type", CONTENT_TYPE);
        let body = cloud_event(event).to_string();
        let sent = context.publish_with_headers(self.subject(event), headers, body.into()).await;
        sent.map_err(|error| match error.kind() {
            // Body and headers together, as the client counts them.
            PublishErrorKind::MaxPayloadExceeded => SinkError::Refused(error.to_string()),
            _ => down(&error),
        })
    }

    async fn acknowledged(&self, ack: PublishAckFuture) -> Result<(), SinkError> {
        ack.await.map(|_| ()).map_err(|error| {
            if error.kind() == PublishErrorKind::StreamNotFound {
                // Somebody removed it, or the broker forgot it.
                self.stream_known.store(false, Ordering::Relaxed);
            }
            if refuses_this_one(&error) { SinkError::Refused(error.to_string()) } else { down(&error) }
        })
    }
}

/// Whether the stream has something against this event (it is too large for it, say) and would take another. What it
/// cannot do for anybody (no space, no leader) is not the event's fault, and everything waits.
fn refuses_this_one(error: &PublishError) -> bool {
    /// The stream's word for a bad request, as in HTTP.
    const BAD_REQUEST: usize = 400;
    let said = error.source().and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>());
    said.is_some_and(|said| {
        said.code() == BAD_REQUEST && said.error_code() != ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
    })
}

/// One of the servers of a URL.
fn address(server: &str, guard: &Guard) -> Result<ServerAddr, Refused> {
    let refused = |message: String| Refused::new("url", message);
    if server.contains('@') {
        return Err(refused("expected no user in it: write user and password beside it".to_owned()));
    }
    let expected = "expected nats://HOST:PORT or tls://HOST:PORT";
    let secured = match server.split_once("://") {
        Some(("tls", _)) => true,
        Some(("nats", _)) => false,
        _ => return Err(refused(expected.to_owned())),
    };
    let address: ServerAddr = server.parse().map_err(|_| refused(expected.to_owned()))?;
    let host = address.host();
    if !secured && !guard.allows(host) {
        return Err(refused(format!("expected tls://…; allow = [\"{host}\"] permits nats:// there")));
    }
    guard.check_literal(host).map_err(|error| refused(error.to_string()))?;
    Ok(address)
}

async fn check(server: &ServerAddr, guard: &Guard) -> Result<(), AddressRefused> {
    guard.resolve(server.host(), server.port()).await.map(drop)
}

/// The server to connect to next: of those that may be connected to, the one that has failed least. While there is none,
/// nothing is connected to.
async fn choose(mut servers: Vec<Server>, guard: &Guard, sink: &str) -> ReconnectToServer {
    servers.sort_by_key(|server| server.failed_attempts);
    loop {
        for server in &servers {
            match check(&server.addr, guard).await {
                Ok(()) => return ReconnectToServer { addr: server.addr.clone(), delay: None },
                Err(refused) => warn!(sink, %refused, "the broker is not connected to"),
            }
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// A part of a subject: what has a meaning in subjects is replaced.
fn safe(text: &str) -> String {
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '*' | '>' | '$' | '/' | '\\');
    text.replace(bad, "_")
}

fn down(error: &dyn std::fmt::Display) -> SinkError {
    SinkError::Down(error.to_string())
}

#[async_trait]
impl Sink for NatsSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "nats"
    }

    fn takes(&self, event_type: &str) -> bool {
        self.config.events.includes(event_type)
    }

    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        self.deliver_all(&[event]).await.pop().unwrap_or(Ok(()))
    }

    /// All are on their way before the first acknowledgement is waited for; the stream keeps their order.
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        let ready = async {
            let context = self.context().await?;
            self.ensure_stream(context).await?;
            Ok::<&Context, SinkError>(context)
        };
        let context = match ready.await {
            Ok(context) => context,
            Err(error) => return vec![Err(error)],
        };
        let mut sent = Vec::with_capacity(events.len());
        for event in events {
            let published = self.publish(context, event).await;
            let over = matches!(published, Err(SinkError::Down(_)));
            sent.push(published);
            if over {
                break;
            }
        }
        let mut outcomes = Vec::with_capacity(sent.len());
        for published in sent {
            let outcome = match published {
                Ok(ack) => self.acknowledged(ack).await,
                Err(error) => Err(error),
            };
            if let Err(SinkError::Down(error)) = &outcome {
                warn!(sink = self.name, error, "not acknowledged");
                outcomes.push(outcome);
                // The others wait as long for nothing; they are sent again.
                break;
            }
            outcomes.push(outcome);
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, subject: &str, stream: &str) -> NatsConfig {
        let (url, subject, stream) = (url.to_owned(), subject.to_owned(), stream.to_owned());
        let create = true;
        NatsConfig {
            url,
            subject,
            stream,
            create,
            user: None,
            password: None,
            token: None,
            credentials: None,
            events: Takes::all(),
            allow: vec!["h".to_owned(), "a".to_owned()],
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let refused = |url, subject, stream| {
            NatsSink::new("n", &config(url, subject, stream), Access::Open)
                .err()
                .map(|refused| refused.key.into_owned())
        };
        let key = |key: &str| Some(key.to_owned());
        assert_eq!(refused("nats://h:4222", "stakeout", "S"), None);
        assert_eq!(refused("nats://a:4222, tls://b:4222", "our.events", "S"), None);
        assert_eq!(refused("http://h", "stakeout", "S"), key("url"));
        assert_eq!(refused("nats://u:secret@h", "stakeout", "S"), key("url"));
        assert_eq!(refused("nats://elsewhere:4222", "stakeout", "S"), key("url"), "without TLS");
        assert_eq!(refused("nats://h, tls://169.254.169.254", "stakeout", "S"), key("url"), "metadata");
        assert_eq!(refused("tls://[::1]:4222", "stakeout", "S"), key("url"), "loopback");
        assert_eq!(refused("tls://10.1.2.3", "stakeout", "S"), key("url"), "private");
        assert_eq!(refused("nats://h", "a..b", "S"), key("subject"));
        assert_eq!(refused("nats://h", "a.>", "S"), key("subject"));
        assert_eq!(refused("nats://h", "a", "S.T"), key("stream"));
        let half = Access::of(&Found::from_iter([("user".to_owned(), "me".to_owned())]));
        assert_eq!(half.err().map(|refused| refused.key.into_owned()), key("user"));
    }

    #[test]
    fn a_subject_has_the_source_and_the_type() {
        assert_eq!(safe("racing.race.final"), "racing.race.final");
        assert_eq!(safe("a b>*"), "a_b__");
    }
}
