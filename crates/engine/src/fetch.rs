//! How the engine asks an upstream. The real thing is [`crate::http::HttpFetch`]; simulations answer in process.

use std::time::Duration;

use async_trait::async_trait;
use stakeout_core::{Failure, FailureClass, Request, Response, Span, Time};
use stakeout_store::Validators;

use crate::clock::Clock;

/// The limits of one request, in real time.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    /// From the hand-over to the socket to the last byte.
    pub total: Duration,
    /// To open a connection.
    pub connect: Duration,
    /// Between two pieces of the body.
    pub read: Duration,
    /// The body, after decompression.
    pub max_body_bytes: u64,
}

/// What came back, when something usable did.
#[derive(Clone, Debug)]
pub enum Answer {
    /// 2xx with its whole body, and the validators to offer next time.
    Full(Response, Validators),
    /// 304: what we have is current.
    NotModified,
}

/// Sends one request. Statuses other than 2xx and 304 are failures; redirects are never followed.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Sends the request and reads the answer. `validators` make it conditional. Whoever does real work meanwhile
    /// keeps the clock busy, so that virtual time stands still; a simulated upstream may take virtual time instead.
    async fn fetch(
        &self,
        request: &Request,
        validators: &Validators,
        limits: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure>;
}

/// Upstreams may not send us to sleep for longer than this.
const MAX_RETRY_AFTER: Span = Span::hours(24);

/// What a status other than 2xx and 304 means, with what the `Location` and `Retry-After` headers say.
pub fn refusal(status: u16, location: Option<&str>, retry_after: Option<&str>, now: Time) -> Failure {
    let class = match status {
        429 => FailureClass::RateLimited,
        503 => FailureClass::Unavailable,
        401 | 403 => FailureClass::Forbidden,
        300..=399 => FailureClass::Redirect,
        500..=599 => FailureClass::ServerError,
        _ => FailureClass::ClientError,
    };
    let name =
        http::StatusCode::from_u16(status).map_or_else(|_| status.to_string(), |known| known.to_string());
    let mut message = format!("the upstream answered {name}");
    if class == FailureClass::Redirect {
        // Without its query: a login redirect may carry a token there.
        let to = location.unwrap_or_default();
        let to: String = to.split(['?', '#']).next().unwrap_or_default().chars().take(200).collect();
        message.push_str(&format!(
            " to {to:?}, and redirects are not followed: correct the URL or the credentials"
        ));
    }
    let retry_after = retry_after.and_then(|value| wait_asked_for(value, now));
    Failure { retry_after, ..Failure::new(class, message) }
}

/// `Retry-After` in both its forms: seconds, or an HTTP date.
fn wait_asked_for(value: &str, now: Time) -> Option<Span> {
    let value = value.trim();
    let wait = match value.parse::<u32>() {
        Ok(seconds) => Span::secs(i64::from(seconds)),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
            Time::from_secs(i64::try_from(since.as_secs()).ok()?) - now
        }
    };
    Some(wait.clamp(Span::ZERO, MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = Time::parse("2026-01-10T02:00:00Z").expect("valid");
        for (value, expected) in [
            ("120", Some(Span::mins(2))),
            (" 0 ", Some(Span::ZERO)),
            ("Sat, 10 Jan 2026 02:00:30 GMT", Some(Span::secs(30))),
            ("Sat, 10 Jan 2026 01:00:00 GMT", Some(Span::ZERO)),
            ("999999999", Some(MAX_RETRY_AFTER)),
            ("-5", None),
            ("soon", None),
        ] {
            assert_eq!(wait_asked_for(value, now), expected, "{value:?}");
        }
    }

    #[test]
    fn a_redirects_query_is_not_repeated() {
        let to = Some("https://login.example/in?token=s3cret");
        let failure = refusal(302, to, None, Time::default());
        assert_eq!(failure.class, FailureClass::Redirect);
        assert!(failure.message.contains("https://login.example/in"), "{failure}");
        assert!(!failure.message.contains("s3cret"), "{failure}");
    }
}
