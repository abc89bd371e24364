//! Why a poll failed, in words that are stable enough to count.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// The class of a failure: a metric label, a column, a row of the fault table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Nobody listens, or the host is unreachable.
    Refused,
    /// The name does not resolve.
    Dns,
    /// The TLS handshake failed.
    Tls,
    /// The connection broke before the answer was whole.
    Reset,
    /// No whole answer within the time limit.
    Timeout,
    /// 429.
    RateLimited,
    /// 503.
    Unavailable,
    /// Another 5xx.
    ServerError,
    /// A redirect; never followed silently.
    Redirect,
    /// 401 or 403.
    Forbidden,
    /// Another 4xx.
    ClientError,
    /// The body is larger than allowed, before or after decompression.
    TooLarge,
    /// The body's encoding (gzip, br, zstd) is broken.
    Encoding,
    /// The answer is not what the source understands.
    Malformed,
    /// The store refused this poll alone.
    Store,
    /// The source asked for more requests in one poll than its limit.
    TooManyRequests,
    /// Stakeout's own mistake: a panic in a source.
    Internal,
}

impl FailureClass {
    /// The word in logs, SQL and metrics.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Refused => "refused",
            FailureClass::Dns => "dns",
            FailureClass::Tls => "tls",
            FailureClass::Reset => "reset",
            FailureClass::Timeout => "timeout",
            FailureClass::RateLimited => "rate_limited",
            FailureClass::Unavailable => "unavailable",
            FailureClass::ServerError => "server_error",
            FailureClass::Redirect => "redirect",
            FailureClass::Forbidden => "forbidden",
            FailureClass::ClientError => "client_error",
            FailureClass::TooLarge => "too_large",
            FailureClass::Encoding => "encoding",
            FailureClass::Malformed => "malformed",
            FailureClass::Store => "store",
            FailureClass::TooManyRequests => "too_many_requests",
            FailureClass::Internal => "internal",
        }
    }

    /// Whether the whole source should slow down, not only this target.
    pub fn slows_source(self) -> bool {
        matches!(self, FailureClass::RateLimited | FailureClass::Unavailable)
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failed fetch or a body that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {message}")]
pub struct Failure {
    /// What sort of failure.
    pub class: FailureClass,
    /// What happened, without secrets.
    pub message: String,
    /// How long the upstream asked us to wait.
    pub retry_after: Option<Span>,
    /// Which of the poll's exchanges it is about, by its place, where a source knows: a sample is kept of that one.
    pub exchange: Option<usize>,
}

impl Failure {
    /// A failure without a Retry-After.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Failure {
        Failure { class, message: message.into(), retry_after: None, exchange: None }
    }

    /// The answer is not what the source understands.
    pub fn malformed(message: impl Into<String>) -> Failure {
        Failure::new(FailureClass::Malformed, message)
    }

    /// The same about one of the poll's exchanges.
    pub fn about(self, exchange: usize) -> Failure {
        Failure { exchange: Some(exchange), ..self }
    }
}
