//! The real upstreams: HTTP/1.1 and 2 over rustls, compressed, pooled, with a limit on everything.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use reqwest::header::{
    AGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, LOCATION, RETRY_AFTER,
};
use reqwest::{Client, StatusCode, redirect};
use stakeout_core::{Failure, FailureClass, Method, Request, Response, Span, Time};
use stakeout_store::Validators;

use crate::clock::Clock;
use crate::fetch::{Answer, Fetch, FetchLimits, refusal};

/// Idle connections kept per host: as many as a source can usefully have in flight.
const IDLE_PER_HOST: usize = 64;
/// A validator longer than this is not worth keeping.
const MAX_VALIDATOR_BYTES: usize = 1_024;

/// Fetches over the network.
pub struct HttpFetch {
    /// Connection and read time limits belong to a client, so there is one client per pair of them.
    clients: Mutex<HashMap<(Duration, Duration), Client>>,
}

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client: {0}")]
pub struct HttpSetupError(#[from] reqwest::Error);

impl HttpFetch {
    /// A client for any number of upstreams.
    pub fn new() -> Result<HttpFetch, HttpSetupError> {
        // Whoever installed a provider before us chose it on purpose.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let fetch = HttpFetch { clients: Mutex::default() };
        // Made once here, so that a broken set-up is an error at start and not at the first poll.
        build(Duration::from_secs(5), Duration::from_secs(5))?;
        Ok(fetch)
    }

    fn client(&self, limits: &FetchLimits) -> Result<Client, Failure> {
        let mut clients =
            self.clients.lock().expect("never poisoned, because nothing panics while it is held");
        let key = (limits.connect, limits.read);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = build(limits.connect, limits.read).map_err(|e| {
            Failure::new(FailureClass::Internal, format!("cannot set up the HTTP client: {e}"))
        })?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

fn build(connect: Duration, read: Duration) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("stakeout/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(connect)
        .read_timeout(read)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .tcp_nodelay(true)
        .build()
}

#[async_trait]
impl Fetch for HttpFetch {
    async fn fetch(
        &self,
        request: &Request,
        validators: &Validators,
        limits: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let _busy = clock.busy();
        let client = self.client(limits)?;
        let outgoing = outgoing(&client, request, validators, limits.total)?;
        let response = client.execute(outgoing).await.map_err(explain)?;
        let status = response.status();
        let conditional = *validators != Validators::default();
        match status {
            StatusCode::NOT_MODIFIED if conditional => return Ok(Answer::NotModified),
            // Not what was asked for: it says nothing about the whole.
            StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT => {
                let message = format!("the upstream answered {status} to a request for the whole document");
                return Err(Failure::malformed(message));
            }
            _ => {}
        }
        if !status.is_success() {
            return Err(refused(status, response.headers(), clock.now()));
        }
        let headers = response.headers().clone();
        let body = read_body(response, limits.max_body_bytes).await?;
        let response = Response {
            status: status.as_u16(),
            body,
            content_type: text(&headers, &CONTENT_TYPE),
            age: text(&headers, &AGE).and_then(|age| age.parse().ok()).map_or(Span::ZERO, Span::secs),
        };
        let keep = |value: Option<String>| value.filter(|v| v.len() <= MAX_VALIDATOR_BYTES);
        let validators = Validators {
            etag: keep(text(&headers, &ETAG)),
            last_modified: keep(text(&headers, &LAST_MODIFIED)),
        };
        Ok(Answer::Full(response, validators))
    }
}

fn outgoing(
    client: &Client,
    request: &Request,
    validators: &Validators,
    total: Duration,
) -> Result<reqwest::Request, Failure> {
    let mut builder = match request.method {
        Method::Get => client.get(&request.url),
        Method::PostJson => client
            .post(&request.url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(request.body.clone()),
    };
    for (name, value) in &request.headers {
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            Failure::new(FailureClass::Internal, format!("the value of header {name} is not allowed in HTTP"))
        })?;
        value.set_sensitive(true);
        builder = builder.header(name, value);
    }
    if let Some(etag) = &validators.etag {
        builder = builder.header(IF_NONE_MATCH, etag);
    } else if let Some(date) = &validators.last_modified {
        builder = builder.header(IF_MODIFIED_SINCE, date);
    }
    builder.timeout(total).build().map_err(explain)
}

/// Reads the body piece by piece and stops at the limit: neither a long body nor a small one that inflates to a
/// huge one is ever held in memory.
async fn read_body(mut response: reqwest::Response, limit: u64) -> Result<Bytes, Failure> {
    let too_large = || Failure::new(FailureClass::TooLarge, format!("the body is larger than {limit} bytes"));
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let Some(first) = response.chunk().await.map_err(explain)? else { return Ok(Bytes::new()) };
    let mut body = BytesMut::from(first);
    while body.len() as u64 <= limit {
        match response.chunk().await.map_err(explain)? {
            Some(chunk) => body.extend_from_slice(&chunk),
            None => return Ok(without_nul(body).freeze()),
        }
    }
    Err(too_large())
}

/// JSON may hold a NUL character, and no store of ours does: one in a name must not cost everything else that an answer
/// says. It is replaced, where it is written down, by the sign for what cannot be shown.
fn without_nul(mut body: BytesMut) -> BytesMut {
    const NUL: &[u8] = br"\u0000";
    let mut from = 0;
    while let Some(found) = body[from..].iter().position(|byte| *byte == b'\\') {
        let at = from + found;
        if body[at..].starts_with(NUL) {
            body[at..at + NUL.len()].copy_from_slice(br"\ufffd");
        }
        // What is escaped is passed over with its backslash: one that is escaped itself begins no escape.
        from = (at + 2).min(body.len());
    }
    body
}

fn refused(status: StatusCode, headers: &HeaderMap, now: Time) -> Failure {
    let (location, retry_after) = (text(headers, &LOCATION), text(headers, &RETRY_AFTER));
    refusal(status.as_u16(), location.as_deref(), retry_after.as_deref(), now)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Sorts a transport error into a class. The URL is left out of the message: its query may hold a secret.
fn explain(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let class = if error.is_timeout() {
        FailureClass::Timeout
    } else {
        chain(&error).find_map(classify).unwrap_or(if error.is_decode() {
            FailureClass::Encoding
        } else if error.is_connect() {
            FailureClass::Refused
        } else if error.is_builder() {
            FailureClass::Internal
        } else {
            FailureClass::Reset
        })
    };
    // The innermost cause says most.
    let cause = chain(&error).last().map(ToString::to_string).unwrap_or_default();
    Failure::new(class, if cause.is_empty() { error.to_string() } else { cause })
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&e| e.source())
}

fn classify(error: &(dyn StdError + 'static)) -> Option<FailureClass> {
    if error.is::<rustls::Error>() {
        return Some(FailureClass::Tls);
    }
    // The resolver's error type is private to the connector; its words are not.
    if error.to_string().starts_with("dns error") {
        return Some(FailureClass::Dns);
    }
    let io = error.downcast_ref::<io::Error>()?;
    // An io::Error may only wrap the one that matters.
    if let Some(class) = io.get_ref().and_then(|inner| classify(inner)) {
        return Some(class);
    }
    match io.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => Some(FailureClass::Refused),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Some(FailureClass::Reset),
        io::ErrorKind::TimedOut => Some(FailureClass::Timeout),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_replaced_and_what_looks_like_one_is_not() {
        for (body, expected) in [
            (r#"{"a":"x\u0000y"}"#, r#"{"a":"x\ufffdy"}"#),
            (r#"["\\\u0000","\u0000\u0000"]"#, r#"["\\\ufffd","\ufffd\ufffd"]"#),
            (r#"["\\u0000","\"","\u0001"]"#, r#"["\\u0000","\"","\u0001"]"#),
            ("\\", "\\"),
            ("", ""),
        ] {
            assert_eq!(without_nul(BytesMut::from(body)), expected);
        }
    }
}
