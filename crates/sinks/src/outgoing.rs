//! One request to a receiver: to a checked address, without redirects and proxies, with limits on time and size.

use std::error::Error as StdError;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use stakeout_core::Span;
use stakeout_engine::SinkError;
use stakeout_sources::written::Duration;

use crate::Refused;
use crate::address::Guard;

/// What of an answer is read, so that the connection can be used again; nobody looks at it.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// Deliveries in flight to one receiver.
const MOST_AT_ONCE: u32 = 32;

/// How long an answer may take unless the configuration says otherwise.
pub(crate) fn default_timeout() -> Duration {
    Duration(Span::secs(15))
}

/// How many deliveries are in flight to one receiver unless the configuration says otherwise.
pub(crate) fn default_concurrency() -> u32 {
    4
}

/// A receiver that is asked by HTTP.
pub(crate) struct Outgoing {
    client: Client,
    url: Url,
}

impl Outgoing {
    /// A receiver at `url`, which may be a secret: no message shows it.
    pub(crate) fn new(url: &str, guard: &Guard, timeout: Duration) -> Result<Outgoing, Refused> {
        let refused = |message: &str| Refused::new("url", message);
        let url = Url::parse(url).map_err(|error| refused(&format!("not a URL: {error}")))?;
        let host = url.host_str().ok_or_else(|| refused("it has no host"))?;
        match url.scheme() {
            "https" => {}
            "http" if guard.allows(host) => {}
            "http" => {
                let message = format!("expected https://…; allow = [\"{host}\"] permits http:// there");
                return Err(refused(&message));
            }
            other => return Err(refused(&format!("expected https://…, found {other}:"))),
        }
        guard.check_literal(host).map_err(|error| refused(&error.to_string()))?;
        check_timeout(timeout)?;
        // Whoever installed a provider before us chose it on purpose.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("stakeout/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            // A proxy would resolve the name itself, and connect to what nobody has checked.
            .no_proxy()
            .dns_resolver(guard.clone())
            .timeout(timeout.0.to_std())
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .build()
            .map_err(|error| refused(&format!("the HTTP client cannot be set up: {}", reason(error))))?;
        Ok(Outgoing { client, url })
    }

    /// A request to the receiver.
    pub(crate) fn request(&self, method: Method) -> RequestBuilder {
        self.client.request(method, self.url.clone())
    }
}

/// Sends a request: taken is what is answered with 2xx, and nothing else.
pub(crate) async fn send(request: RequestBuilder) -> Result<(), SinkError> {
    let response = request.send().await.map_err(|error| SinkError::Refused(reason(error)))?;
    let status = response.status();
    if status.is_success() {
        read_some(response).await;
        return Ok(());
    }
    let said = format!("answered {status}");
    Err(match status {
        StatusCode::GONE => SinkError::Gone(said),
        _ if status.is_redirection() => SinkError::Refused(format!("{said}: redirects are not followed")),
        _ => SinkError::Refused(said),
    })
}

/// Reads the answer, up to a limit. It was given already: what goes wrong now changes nothing.
async fn read_some(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read > ANSWER_BYTES_MAX {
            return;
        }
    }
}

/// What went wrong, with its causes, without the URL.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut said = error.to_string();
    let mut cause: Option<&dyn StdError> = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !said.ends_with(&words) {
            said = format!("{said}: {words}");
        }
        cause = error.source();
    }
    said
}

/// Makes deliveries, several at once; their outcomes in order. After one that ends it all, the rest is not waited for.
pub(crate) async fn at_once(
    deliveries: Vec<BoxFuture<'_, Result<(), SinkError>>>,
    most: u32,
) -> Vec<Result<(), SinkError>> {
    let mut outcomes = Vec::with_capacity(deliveries.len());
    let mut flights = stream::iter(deliveries).buffered(most.max(1) as usize);
    while let Some(outcome) = flights.next().await {
        let over = matches!(outcome, Err(SinkError::Down(_) | SinkError::Gone(_)));
        outcomes.push(outcome);
        if over {
            break;
        }
    }
    outcomes
}

/// Whether a time limit can be.
pub(crate) fn check_timeout(Duration(found): Duration) -> Result<(), Refused> {
    let (least, most) = (Span::ms(100), Span::mins(1));
    match (least..=most).contains(&found) {
        true => Ok(()),
        false => Err(Refused::new("timeout", format!("expected {least} to {most}, found {found}"))),
    }
}

/// Whether so many at once can be.
pub(crate) fn check_concurrency(found: u32) -> Result<(), Refused> {
    match (1..=MOST_AT_ONCE).contains(&found) {
        true => Ok(()),
        false => Err(Refused::new("concurrency", format!("expected 1 to {MOST_AT_ONCE}, found {found}"))),
    }
}
