//! NATS JetStream: one subject per source and type, the event's id as `Nats-Msg-Id`.
//!
//! An event counts as delivered when the stream has acknowledged it. What was acknowledged without our hearing of it is
//! sent again under the same id: the stream drops it within its duplicate window, and a consumer that keeps ids at any
//! time. While no server can be connected to, nothing is counted as failed.
//!
//! It connects to the servers that `url` names and to no others, each time at an address that was looked up once and
//! checked (`connect.rs`); a certificate has to be good for the name. The name itself is not sent: the client is given an
//! address, and TLS has no way to ask an address for a name (SNI). A server that has several certificates answers with its
//! first.

mod config;
mod connect;

use std::error::Error as _;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::connection::State;
use async_nats::jetstream::context::{GetStreamErrorKind, PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::{Context, ErrorCode, stream};
use async_trait::async_trait;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use tokio::sync::Mutex;
use tracing::{debug, info, warn};

pub use self::config::NatsConfig;
use self::config::safe;
use self::connect::Servers;
use crate::address::{Guard, Names, System};
use crate::cloud_event::{CONTENT_TYPE, cloud_event};
use crate::{Found, Refused};

/// How long an acknowledgement may take.
const ACK_LIMIT: Duration = Duration::from_secs(5);
/// How long a stream that we make remembers ids.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(60 * 60);

/// Hands events to a JetStream stream.
pub struct NatsSink {
    name: String,
    config: NatsConfig,
    servers: Servers,
    link: Mutex<Link>,
    /// Whether the stream was there when we last looked.
    stream_known: AtomicBool,
}

/// The connection, or why there is none.
#[derive(Default)]
struct Link {
    context: Option<Context>,
    failed: Option<String>,
}

impl NatsSink {
    /// A sink of that name, with the secrets that were found; it connects when there is something to deliver.
    pub fn new(name: &str, config: &NatsConfig, found: &Found) -> Result<NatsSink, Refused> {
        NatsSink::asking(name, config, found, Arc::new(System))
    }

    /// The same, but `names` are asked where its host is.
    pub fn asking(
        name: &str,
        config: &NatsConfig,
        found: &Found,
        names: Arc<dyn Names>,
    ) -> Result<NatsSink, Refused> {
        let guard = Guard::new(&config.allow, names);
        let servers = Servers::new(name, config, found, guard)?;
        config.check()?;
        Ok(NatsSink {
            name: name.to_owned(),
            config: config.clone(),
            servers,
            link: Mutex::default(),
            stream_known: AtomicBool::new(false),
        })
    }

    /// Where an event goes.
    fn subject(&self, event: &Event) -> String {
        let source = safe(&event.source).replace('.', "_");
        format!("{}.{source}.{}", self.config.subject, safe(&event.event_type))
    }

    /// The connection; a new one where it was lost.
    async fn context(&self) -> Result<Context, SinkError> {
        let mut link = self.link.lock().await;
        let is_connected = |context: &Context| context.client().connection_state() == State::Connected;
        if let Some(context) = link.context.take().filter(is_connected) {
            return Ok(link.context.insert(context).clone());
        }
        match self.servers.connect().await {
            Ok(client) => {
                let mut context = async_nats::jetstream::new(client);
                context.set_timeout(ACK_LIMIT);
                link.failed = None;
                Ok(link.context.insert(context).clone())
            }
            Err(words) => {
                // It is tried every second; people are told when there is something new to tell.
                match link.failed.replace(words.clone()) == Some(words.clone()) {
                    true => debug!(sink = self.name, words, "still not connected to the broker"),
                    false => warn!(sink = self.name, words, "not connected to the broker"),
                }
                Err(SinkError::Down(format!("not connected to the broker: {words}")))
            }
        }
    }

    fn down(&self, error: &dyn Display) -> SinkError {
        SinkError::Down(self.servers.quoted(error))
    }

    fn refused(&self, error: &dyn Display) -> SinkError {
        SinkError::Refused(self.servers.quoted(error))
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
                context.create_stream(wanted).await.map_err(|error| self.down(&error))?;
                info!(sink = self.name, stream = name, "the stream was made");
            }
            Err(error) => return Err(self.down(&error)),
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
            PublishErrorKind::MaxPayloadExceeded => self.refused(&error),
            _ => self.down(&error),
        })
    }

    async fn acknowledged(&self, ack: PublishAckFuture) -> Result<(), SinkError> {
        ack.await.map(|_| ()).map_err(|error| {
            if error.kind() == PublishErrorKind::StreamNotFound {
                // Somebody removed it, or the broker forgot it.
                self.stream_known.store(false, Ordering::Relaxed);
            }
            if refuses_this_one(&error) { self.refused(&error) } else { self.down(&error) }
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
            self.ensure_stream(&context).await?;
            Ok::<Context, SinkError>(context)
        };
        let context = match ready.await {
            Ok(context) => context,
            Err(error) => return vec![Err(error)],
        };
        let mut sent = Vec::with_capacity(events.len());
        for event in events {
            let published = self.publish(&context, event).await;
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

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let refused = |key: &str, value: &str| {
            let mut config = serde_json::json!({ "url": "nats://h:4222", "allow": ["h", "a"] });
            config[key] = value.into();
            let config: NatsConfig = serde_json::from_value(config).expect("a configuration");
            let found = config.secrets().into_iter().map(|(key, _)| (key, value.to_owned())).collect();
            let made = NatsSink::new("n", &config, &found);
            made.err().map(|refused| refused.key.into_owned())
        };
        let check = |key: &str, value: &str, expected: Option<&str>| {
            assert_eq!(refused(key, value).as_deref(), expected, "{key} = {value}");
        };
        check("url", "nats://h:4222", None);
        check("url", "nats://a:4222, tls://b:4222", None);
        check("url", "http://h", Some("url"));
        check("url", "nats://u:secret@h", Some("url"));
        // Without TLS, metadata, loopback, private.
        check("url", "nats://elsewhere:4222", Some("url"));
        check("url", "nats://h, tls://169.254.169.254", Some("url"));
        check("url", "tls://[::1]:4222", Some("url"));
        check("url", "tls://10.1.2.3", Some("url"));
        check("subject", "our.events", None);
        check("subject", "a..b", Some("subject"));
        check("subject", "a.>", Some("subject"));
        check("stream", "S.T", Some("stream"));
        check("user", "me", Some("user"));
        check("ca", "no certificate", Some("ca"));
    }

    #[test]
    fn a_subject_has_the_source_and_the_type() {
        assert_eq!(safe("racing.race.final"), "racing.race.final");
        assert_eq!(safe("a b>*"), "a_b__");
    }
}
