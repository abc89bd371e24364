//! Any HTTP interface: a request whose body is a template. It covers ntfy, Slack, Discord, Telegram and the like.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sources::written::{Duration, Secret};

use crate::address::{Guard, Names, System};
use crate::outgoing::{self, Outgoing};
use crate::takes::Takes;
use crate::template::Template;
use crate::{Found, Refused};

/// By this a receiver can tell that it has seen an event before: the same on every try.
const SAME_ID: HeaderName = HeaderName::from_static("idempotency-key");

/// A request for each event.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Where the interface is: `https://…`.
    pub url: Secret,
    /// How it is asked.
    #[serde(default)]
    pub method: HttpMethod,
    /// What is sent along, by name. Unless it is among them, `Idempotency-Key` is the event's id.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// What the body is. A JSON body stays JSON whatever an upstream has written.
    #[serde(default = "default_content_type")]
    pub content_type: String,
    /// The body, with `{title}`, `{text}`, `{severity}`, `{type}`, `{id}`, `{at}`, `{source}`, `{subject}` and
    /// `{data.path}` for what the event says.
    pub body: String,
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
    #[serde(default = "one")]
    pub concurrency: u32,
}

/// How an interface is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// POST
    #[default]
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
}

fn default_content_type() -> String {
    "application/json".to_owned()
}

/// People read messages in the order in which they come.
fn one() -> u32 {
    1
}

impl HttpConfig {
    /// What is fetched from the environment or from files at start, by its key.
    pub fn secrets(&self) -> Vec<(String, &Secret)> {
        let headers = self.headers.iter().map(|(name, secret)| (format!("headers.{name}"), secret));
        std::iter::once(("url".to_owned(), &self.url)).chain(headers).collect()
    }
}

/// Hands events to an HTTP interface.
pub struct HttpSink {
    name: String,
    outgoing: Outgoing,
    method: Method,
    headers: HeaderMap,
    body: Template,
    takes: Takes,
    concurrency: u32,
}

impl HttpSink {
    /// A sink of that name, with the secrets that were found.
    pub fn new(name: &str, config: &HttpConfig, found: &Found) -> Result<HttpSink, Refused> {
        HttpSink::asking(name, config, found, Arc::new(System))
    }

    /// The same, but `names` are asked where its host is.
    pub fn asking(
        name: &str,
        config: &HttpConfig,
        found: &Found,
        names: Arc<dyn Names>,
    ) -> Result<HttpSink, Refused> {
        let guard = Guard::new(&config.allow, names);
        config.events.check()?;
        outgoing::check_concurrency(config.concurrency)?;
        let mut headers = HeaderMap::new();
        let content_type = HeaderValue::from_str(&config.content_type)
            .map_err(|_| Refused::new("content_type", "expected visible ASCII"))?;
        headers.insert(CONTENT_TYPE, content_type);
        for header in config.headers.keys() {
            let key = format!("headers.{header}");
            let refused = |what: &str| Refused::new(key.clone(), what);
            let named = HeaderName::from_bytes(header.as_bytes())
                .map_err(|_| refused("expected a name of letters, digits and -"))?;
            if named == CONTENT_TYPE {
                return Err(refused("expected it as content_type"));
            }
            let mut value = HeaderValue::from_str(found.get(&key))
                .map_err(|_| refused("expected visible ASCII; it is not shown here"))?;
            value.set_sensitive(true);
            headers.insert(named, value);
        }
        let body = Template::read(&config.body, is_json(&config.content_type));
        Ok(HttpSink {
            name: name.to_owned(),
            outgoing: Outgoing::new(found.get("url"), &guard, config.timeout)?,
            method: match config.method {
                HttpMethod::Post => Method::POST,
                HttpMethod::Put => Method::PUT,
                HttpMethod::Patch => Method::PATCH,
            },
            headers,
            body: body.map_err(|message| Refused::new("body", message))?,
            takes: config.events.clone(),
            concurrency: config.concurrency,
        })
    }
}

/// `application/json`, `application/problem+json; charset=utf-8`
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.ends_with("/json") || essence.ends_with("+json")
}

#[async_trait]
impl Sink for HttpSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "http"
    }

    fn takes(&self, event_type: &str) -> bool {
        self.takes.includes(event_type)
    }

    fn at_once(&self) -> usize {
        self.concurrency as usize
    }

    async fn deliver(&self, event: &Event) -> Result<(), SinkError> {
        let mut headers = self.headers.clone();
        if let (false, Ok(id)) = (headers.contains_key(SAME_ID), HeaderValue::from_str(&event.id.to_string()))
        {
            headers.insert(SAME_ID, id);
        }
        let request = self.outgoing.request(self.method.clone());
        outgoing::send(request.headers(headers).body(self.body.fill(event))).await
    }

    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        let deliveries = events.iter().map(|event| self.deliver(event)).collect();
        outgoing::at_once(deliveries, self.concurrency).await
    }
}
