//! What a simulated upstream's reply means to the engine: no sockets, no waiting.

use stakeout_core::{Failure, FailureClass, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits, refusal};
use stakeout_sim::Reply;
use stakeout_store::Validators;

/// The path and query of an absolute URL.
pub(super) fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    &rest[rest.find('/').unwrap_or(rest.len())..]
}

/// The answer or failure that a client would make of this reply.
pub(super) fn outcome(reply: Reply, limits: &FetchLimits, now: Time) -> Result<Answer, Failure> {
    let answer = match reply {
        Reply::Answer(answer) => answer,
        Reply::Reset => return Err(Failure::new(FailureClass::Reset, "connection reset")),
        Reply::Timeout => return Err(Failure::new(FailureClass::Timeout, "operation timed out")),
        Reply::Truncated { .. } => {
            return Err(Failure::new(FailureClass::Reset, "the connection closed before the body was whole"));
        }
    };
    if !(200..300).contains(&answer.status) {
        let header = |name: &str| {
            let found = answer.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        return Err(refusal(answer.status, header("location"), header("retry-after"), now));
    }
    if answer.body.len() as u64 > limits.max_body_bytes {
        return Err(Failure::new(FailureClass::TooLarge, "the body is too large"));
    }
    let response = Response {
        status: answer.status,
        body: answer.body,
        content_type: Some("application/json".to_owned()),
        age: Span::ZERO,
    };
    Ok(Answer::Full(response, Validators::default()))
}
