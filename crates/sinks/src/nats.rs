//! NATS JetStream: one subject per source and type, the event's id as `Nats-Msg-Id`.
//!
//! An event counts as delivered when the stream has acknowledged it. What was acknowledged without our hearing of it is
//! sent again under the same id: the stream drops it within its duplicate window, and a consumer that keeps ids at any
//! time. While no server can be connected to, nothing is counted as failed.
//!
//! It connects to the servers that `url` names and to no others, each time at an address that was looked up once and
//! checked (`connect.rs`). The server is asked for by its name, and its certificate has to be for that name. What it is
//! told and how it is understood is our own (`wire.rs`, `connection.rs`, `jetstream.rs`), because everything that a broker
//! sends has to have a limit: a line, a message, an answer, how many answers are waited for, and what nobody asked for.
//! The client library that exists keeps whatever comes, resolves names by itself, and does a hundred things besides.

mod config;
mod connect;
mod connection;
mod jetstream;
mod login;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use tokio::sync::Mutex;
use tracing::{debug, info, warn};

pub use self::config::NatsConfig;
use self::config::safe;
use self::connect::Servers;
use self::connection::{Awaited, Connection};
use self::jetstream::Fault;
use crate::address::{Guard, Names, System};
use crate::cloud_event::cloud_event;
use crate::{Found, Refused};

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
    connection: Option<Arc<Connection>>,
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
        let servers = Servers::new(config, found, guard)?;
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
    async fn connection(&self) -> Result<Arc<Connection>, SinkError> {
        let mut link = self.link.lock().await;
        if let Some(connection) = link.connection.take() {
            match connection.ended() {
                None => return Ok(Arc::clone(link.connection.insert(connection))),
                Some(words) => {
                    let words = self.servers.quoted(&words);
                    info!(sink = self.name, words, "the connection to the broker has ended");
                }
            }
        }
        match self.servers.connect().await {
            Ok(connection) => {
                info!(sink = self.name, "connected to the broker");
                link.failed = None;
                Ok(Arc::clone(link.connection.insert(Arc::new(connection))))
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

    fn error(&self, fault: &Fault) -> SinkError {
        match fault {
            Fault::Refused(words) => SinkError::Refused(self.servers.quoted(words)),
            Fault::NoStream(words) => {
                // Somebody removed it, or the broker forgot it.
                self.stream_known.store(false, Ordering::Relaxed);
                SinkError::Down(self.servers.quoted(words))
            }
            Fault::Down(words) => SinkError::Down(self.servers.quoted(words)),
        }
    }

    /// Makes sure that somebody keeps what we publish.
    async fn ensure_stream(&self, broker: &Connection) -> Result<(), SinkError> {
        if self.stream_known.load(Ordering::Relaxed) {
            return Ok(());
        }
        let stream = &self.config.stream;
        match jetstream::find(broker, stream).await.map_err(|fault| self.error(&fault))? {
            jetstream::Found::There => {}
            jetstream::Found::Missing(_) if self.config.create => {
                let made = jetstream::create(broker, stream, &self.config.subject).await;
                made.map_err(|fault| self.error(&fault))?;
                info!(sink = self.name, stream, "the stream was made");
            }
            jetstream::Found::Missing(words) => return Err(self.error(&Fault::Down(words))),
        }
        self.stream_known.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn publish(&self, broker: &Connection, event: &Event) -> Result<Awaited, SinkError> {
        let (subject, id) = (self.subject(event), event.id.to_string());
        let sent = jetstream::publish(broker, &subject, &id, &cloud_event(event).to_string()).await;
        sent.map_err(|fault| self.error(&fault))
    }

    async fn acknowledged(&self, broker: &Connection, awaited: Awaited) -> Result<(), SinkError> {
        jetstream::acknowledged(broker, awaited).await.map_err(|fault| self.error(&fault))
    }
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
            let broker = self.connection().await?;
            self.ensure_stream(&broker).await?;
            Ok::<Arc<Connection>, SinkError>(broker)
        };
        let broker = match ready.await {
            Ok(broker) => broker,
            Err(error) => return vec![Err(error)],
        };
        let mut sent = Vec::with_capacity(events.len());
        for event in events {
            let published = self.publish(&broker, event).await;
            let over = matches!(published, Err(SinkError::Down(_)));
            sent.push(published);
            if over {
                break;
            }
        }
        let mut outcomes = Vec::with_capacity(sent.len());
        for published in sent {
            let outcome = match published {
                Ok(awaited) => self.acknowledged(&broker, awaited).await,
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
