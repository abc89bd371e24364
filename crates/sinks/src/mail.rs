//! E-mail over SMTP with TLS: text and HTML, one mail per event or one for all within a time.
//!
//! A conversation has a limit in time (`timeout`) and in what the server may say (`measured.rs`).

mod connect;
mod measured;

use std::sync::Arc;

use async_trait::async_trait;
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{MailBodyParameter, MailParameter};
use lettre::{Address, Message};
use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_core::{Event, Span};
use stakeout_engine::{Sink, SinkError};
use stakeout_sources::written::{Duration, Secret};
use tracing::warn;

use self::connect::{NotConnected, Security, said};
use crate::address::{Guard, Names, System};
use crate::letter::Letter;
use crate::outgoing;
use crate::takes::Takes;
use crate::unsaid::Unsaid;
use crate::{Found, Refused};

/// Receivers of one mail.
const RECEIVERS_MAX: usize = 50;
/// The longest that events may wait for others.
const DIGEST_MAX: Span = Span::hours(24);

/// Whom events are mailed to, and by which server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailConfig {
    /// The server that takes our mail: `smtp.example.org`.
    pub host: String,
    /// Its port; 465 with TLS from the start, 587 with STARTTLS, 25 without.
    pub port: Option<u16>,
    /// How the connection is secured.
    #[serde(default)]
    pub tls: MailTls,
    /// A certificate in PEM that is trusted besides the system's: `{ file = "/etc/stakeout/mail.pem" }`.
    pub ca: Option<Secret>,
    /// Who we are there, with `password`.
    pub user: Option<Secret>,
    /// The password of `user`.
    pub password: Option<Secret>,
    /// The sender: `Stakeout <stakeout@example.org>`.
    pub from: String,
    /// The receivers.
    pub to: Vec<String>,
    /// The types of events it takes besides the alerts that name it: `["racing.*", "tables.drop"]`, or `["*"]`; none.
    #[serde(default)]
    pub events: Takes,
    /// Events within this time of the first are one mail (up to 1d); without it, each is a mail of its own.
    pub digest: Option<Duration>,
    /// Whether the server may be on this machine or in the local network, and without TLS: its name is here.
    #[serde(default)]
    pub allow: Vec<String>,
    /// How long the whole conversation may take (100ms to 1min).
    #[serde(default = "outgoing::default_timeout")]
    pub timeout: Duration,
}

/// How the connection to a mail server is secured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MailTls {
    /// By TLS from the start.
    #[default]
    Tls,
    /// By TLS after STARTTLS; nothing is sent if the server does not offer it.
    Starttls,
    /// Not at all; only to a host that is allowed by name.
    None,
}

impl MailConfig {
    /// What is fetched from the environment or from files at start, by its key.
    pub fn secrets(&self) -> Vec<(String, &Secret)> {
        let named = [("ca", &self.ca), ("user", &self.user), ("password", &self.password)];
        named.into_iter().filter_map(|(key, secret)| Some((key.to_owned(), secret.as_ref()?))).collect()
    }

    fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            MailTls::Tls => 465,
            MailTls::Starttls => 587,
            MailTls::None => 25,
        })
    }
}

/// Mails events.
pub struct MailSink {
    name: String,
    host: String,
    port: u16,
    security: Security,
    access: Option<Credentials>,
    unsaid: Unsaid,
    guard: Guard,
    from: Mailbox,
    to: Vec<Mailbox>,
    takes: Takes,
    digest: Option<Span>,
    timeout: std::time::Duration,
}

impl MailSink {
    /// A sink of that name, with the secrets that were found.
    pub fn new(name: &str, config: &MailConfig, found: &Found) -> Result<MailSink, Refused> {
        MailSink::asking(name, config, found, Arc::new(System))
    }

    /// The same, but `names` are asked where its host is.
    pub fn asking(
        name: &str,
        config: &MailConfig,
        found: &Found,
        names: Arc<dyn Names>,
    ) -> Result<MailSink, Refused> {
        let guard = Guard::new(&config.allow, names);
        guard.check_literal(&config.host).map_err(|error| Refused::new("host", error.to_string()))?;
        config.events.check()?;
        outgoing::check_timeout(config.timeout)?;
        if config.to.is_empty() || config.to.len() > RECEIVERS_MAX {
            return Err(Refused::new("to", format!("expected 1 to {RECEIVERS_MAX} addresses")));
        }
        if let Some(Duration(digest)) = config.digest.filter(|digest| digest.0 > DIGEST_MAX) {
            return Err(Refused::new("digest", format!("expected at most {DIGEST_MAX}, found {digest}")));
        }
        let (access, unsaid) = match (&config.user, &config.password) {
            (None, None) => (None, Unsaid::default()),
            (Some(_), Some(_)) => {
                let (user, password) = (found.get("user"), found.get("password"));
                let access = Credentials::new(user.to_owned(), password.to_owned());
                (Some(access), Unsaid::of_login(user, password))
            }
            _ => return Err(Refused::new("user", "expected user and password, or none of them")),
        };
        if access.is_some() && config.tls == MailTls::None {
            return Err(Refused::new("tls", "expected tls or starttls: a password is not sent in the clear"));
        }
        Ok(MailSink {
            name: name.to_owned(),
            host: config.host.clone(),
            port: config.port(),
            security: Security::of(config, &guard, found)?,
            access,
            unsaid,
            guard,
            from: mailbox("from", &config.from)?,
            to: config.to.iter().map(|to| mailbox("to", to)).collect::<Result<_, _>>()?,
            takes: config.events.clone(),
            digest: config.digest.map(|digest| digest.0).filter(|digest| *digest > Span::ZERO),
            timeout: config.timeout.0.to_std(),
        })
    }

    /// Writes and sends one mail about these events, within the time limit.
    async fn send(&self, events: &[&Event]) -> Result<(), SinkError> {
        let message = self.message(events).map_err(|error| SinkError::Refused(error.to_string()))?;
        match tokio::time::timeout(self.timeout, self.hand_over(message)).await {
            // A server may repeat what it was told.
            Ok(outcome) => outcome.map_err(|said| SinkError::Refused(self.unsaid.in_words(&said))),
            Err(_) => Err(SinkError::Refused(format!("not done within {} ms", self.timeout.as_millis()))),
        }
    }

    async fn hand_over(&self, message: Message) -> Result<(), String> {
        let found = self.guard.resolve(&self.host, self.port).await.map_err(|error| error.to_string())?;
        let mut last = "it has no address".to_owned();
        for address in found {
            // To the address that was checked; the certificate is compared with the name all the same.
            let mut server = match self.security.connect(address, self.access.as_ref()).await {
                Ok(server) => server,
                Err(NotConnected::Refused(words)) => return Err(words),
                Err(NotConnected::Lost(words)) => {
                    last = words;
                    continue;
                }
            };
            let outcome = self.converse(&mut server, &message).await;
            // What was answered holds, however they part.
            server.abort().await;
            return outcome;
        }
        Err(last)
    }

    /// Hands a mail over for everybody who is there. A receiver who is refused for good is given up, and said so: the
    /// others get theirs all the same. One who is refused for now puts the mail off for all.
    async fn converse(&self, server: &mut AsyncSmtpConnection, message: &Message) -> Result<(), String> {
        let body = message.formatted();
        let mut options = Vec::new();
        let envelope = message.envelope();
        let is_plain = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        if !envelope.from().into_iter().chain(envelope.to()).all(is_plain) {
            options.push(MailParameter::SmtpUtfEight);
        }
        if !body.is_ascii() {
            options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        let from = envelope.from().cloned();
        server.command(Mail::new(from, options)).await.map_err(|error| said(&error))?;
        let mut refused = Vec::new();
        for to in envelope.to() {
            match server.command(Rcpt::new(to.clone(), Vec::new())).await {
                Ok(_) => {}
                Err(error) if error.is_permanent() => refused.push(format!("{to}: {}", said(&error))),
                Err(error) => return Err(format!("{to}: {}", said(&error))),
            }
        }
        if refused.len() == envelope.to().len() {
            return Err(refused.join("; "));
        }
        server.command(Data).await.map_err(|error| said(&error))?;
        server.message(&body).await.map_err(|error| said(&error))?;
        for words in refused.iter().map(|words| self.unsaid.in_words(words)) {
            warn!(sink = self.name, "the mail went to the others; given up for {words}");
        }
        Ok(())
    }

    fn message(&self, events: &[&Event]) -> Result<Message, lettre::error::Error> {
        let letter = Letter::about(events);
        let host = self.from.email.domain();
        let mut mail = Message::builder()
            .from(self.from.clone())
            .message_id(Some(format!("<{}@{host}>", letter.id)))
            .subject(letter.subject);
        for to in &self.to {
            mail = mail.to(to.clone());
        }
        mail.multipart(MultiPart::alternative_plain_html(letter.text, letter.html))
    }
}

fn mailbox(key: &'static str, text: &str) -> Result<Mailbox, Refused> {
    text.parse().map_err(|error| {
        Refused::new(key, format!("expected an address such as Anna <anna@example.org>: {error}"))
    })
}

#[async_trait]
impl Sink for MailSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "mail"
    }

    fn takes(&self, event_type: &str) -> bool {
        self.takes.includes(event_type)
    }

    fn gathers(&self) -> Option<Span> {
        self.digest
    }

    fn at_once(&self) -> usize {
        1
    }

    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        self.send(&[event]).await
    }

    /// One mail for all of them where they are gathered: then it is delivered to all of them or to none.
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        if self.digest.is_none() {
            let deliveries = events.iter().map(|event| self.deliver(event)).collect();
            return outgoing::at_once(deliveries, 1).await;
        }
        match self.send(events).await {
            Ok(()) => events.iter().map(|_| Ok(())).collect(),
            Err(error) => events.iter().map(|_| Err(SinkError::Refused(error.to_string()))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut serde_json::Value)) -> MailConfig {
        let mut config = serde_json::json!({
            "host": "smtp.example.org", "from": "Stakeout <stakeout@example.org>", "to": ["anna@example.org"],
        });
        change(&mut config);
        serde_json::from_value(config).expect("a configuration")
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let check = |key: &str, value: serde_json::Value, refused: Option<&str>| {
            let config = config(|config| config[key] = value.clone());
            let made = MailSink::new("m", &config, &Found::default());
            let key = made.err().map(|refused| refused.key.into_owned());
            assert_eq!(key.as_deref(), refused, "{value}");
        };
        check("port", 2525.into(), None);
        check("from", "nobody".into(), Some("from"));
        check("to", serde_json::json!([]), Some("to"));
        check("to", serde_json::json!(["a@example.org", "b"]), Some("to"));
        check("host", "127.0.0.1".into(), Some("host"));
        check("tls", "none".into(), Some("tls"));
        check("tls", "starttls".into(), None);
        check("user", "me".into(), Some("user"));
        check("ca", "no certificate".into(), Some("ca"));
        check("digest", "25h".into(), Some("digest"));
        check("timeout", "10min".into(), Some("timeout"));
        check("events", serde_json::json!(["a*"]), Some("events"));
    }

    #[test]
    fn a_port_goes_with_its_security() {
        let port = |tls: &str| config(|config| config["tls"] = tls.into()).port();
        assert_eq!((port("tls"), port("starttls"), port("none")), (465, 587, 25));
    }
}
