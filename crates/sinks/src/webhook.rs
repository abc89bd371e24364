//! Webhooks by the Standard Webhooks specification: signed CloudEvents, the event's id on every try, a fresh timestamp.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE as CONTENT_TYPE_HEADER;
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::Sha256;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sources::written::{Duration, Secret};

use crate::address::{Guard, Names, System};
use crate::cloud_event::{CONTENT_TYPE, cloud_event};
use crate::outgoing::{self, Outgoing};
use crate::takes::Takes;
use crate::{Found, Refused};

/// Before the Base64 of a key.
const KEY_PREFIX: &str = "whsec_";
/// The lengths of a key in bytes that the specification allows.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Where events go, signed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// Where the receiver is: `https://…`.
    pub url: Secret,
    /// What events are signed with: `whsec_` and the Base64 of 24 to 64 random bytes.
    pub secret: Secret,
    /// The secret before this one: while it is there, events carry both signatures, so that receivers can change over in
    /// their own time.
    pub previous_secret: Option<Secret>,
    /// The types of events it takes besides the alerts that name it: `["racing.*", "tables.drop"]`, or `["*"]`; none.
    #[serde(default)]
    pub events: Takes,
    /// Hosts that may be on this machine or in the local network, and that may be spoken to without TLS.
    #[serde(default)]
    pub allow: Vec<String>,
    /// How long an answer may take (100ms to 1min).
    #[serde(default = "outgoing::default_timeout")]
    pub timeout: Duration,
    /// How many events are on their way to it at once (1 to 32).
    #[serde(default = "outgoing::default_concurrency")]
    pub concurrency: u32,
}

impl WebhookConfig {
    /// What is fetched from the environment or from files at start, by its key.
    pub fn secrets(&self) -> Vec<(String, &Secret)> {
        let named = [("url", Some(&self.url)), ("secret", Some(&self.secret))];
        let named = named.into_iter().chain([("previous_secret", self.previous_secret.as_ref())]);
        named.filter_map(|(key, secret)| Some((key.to_owned(), secret?))).collect()
    }
}

/// Hands signed events to a receiver.
pub struct WebhookSink {
    name: String,
    outgoing: Outgoing,
    keys: Vec<Key>,
    takes: Takes,
    concurrency: u32,
}

impl WebhookSink {
    /// A sink of that name, with the secrets that were found.
    pub fn new(name: &str, config: &WebhookConfig, found: &Found) -> Result<WebhookSink, Refused> {
        WebhookSink::asking(name, config, found, Arc::new(System))
    }

    /// The same, but `names` are asked where its host is.
    pub fn asking(
        name: &str,
        config: &WebhookConfig,
        found: &Found,
        names: Arc<dyn Names>,
    ) -> Result<WebhookSink, Refused> {
        let guard = Guard::new(&config.allow, names);
        config.events.check()?;
        outgoing::check_concurrency(config.concurrency)?;
        let mut keys = vec![Key::read("secret", found.get("secret"))?];
        if config.previous_secret.is_some() {
            keys.push(Key::read("previous_secret", found.get("previous_secret"))?);
        }
        Ok(WebhookSink {
            name: name.to_owned(),
            outgoing: Outgoing::new(found.get("url"), &guard, config.timeout)?,
            keys,
            takes: config.events.clone(),
            concurrency: config.concurrency,
        })
    }
}

/// What signatures are made with.
struct Key(Hmac<Sha256>);

impl Key {
    /// Reads a secret; the message does not show it.
    fn read(key: &'static str, text: &str) -> Result<Key, Refused> {
        let refused = || {
            let message = "expected whsec_ and the Base64 of 24 to 64 random bytes, such as \
                           `echo whsec_$(head -c 32 /dev/urandom | base64)` prints";
            Refused::new(key, message)
        };
        let encoded = text.strip_prefix(KEY_PREFIX).ok_or_else(refused)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| refused())?;
        if !KEY_BYTES.contains(&bytes.len()) {
            return Err(refused());
        }
        Hmac::new_from_slice(&bytes).map(Key).map_err(|_| refused())
    }

    /// The signature of a message: `v1,` and the Base64 of the code over id, timestamp and body.
    fn sign(&self, id: &str, timestamp: u64, body: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The wall clock in seconds, whatever time the engine lives in: receivers refuse what is old by their own clocks.
fn unix_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[async_trait]
impl Sink for WebhookSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn takes(&self, event_type: &str) -> bool {
        self.takes.includes(event_type)
    }

    fn at_once(&self) -> usize {
        self.concurrency as usize
    }

    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        let (id, timestamp) = (event.id.to_string(), unix_secs());
        let body = cloud_event(event).to_string();
        let signatures: Vec<String> = self.keys.iter().map(|key| key.sign(&id, timestamp, &body)).collect();
        let request = self.outgoing.request(Method::POST);
        let request = request
            .header(CONTENT_TYPE_HEADER, CONTENT_TYPE)
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signatures.join(" "))
            .body(body);
        outgoing::send(request).await
    }

    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        let deliveries = events.iter().map(|event| self.deliver(event)).collect();
        outgoing::at_once(deliveries, self.concurrency).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn a_signature_is_that_of_the_reference() {
        let key = Key::read("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a key");
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_key_that_cannot_be_is_refused_without_being_shown() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for bad in ["", "hunter2hunter2hunter2hunter2", "whsec_%%%", short.as_str(), long.as_str()] {
            let refused = Key::read("secret", bad).err().expect("refused");
            assert_eq!(refused.key, "secret");
            assert!(bad.is_empty() || !refused.message.contains(bad), "{refused}");
        }
    }
}
