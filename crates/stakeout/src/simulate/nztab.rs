//! The simulated NZTAB as the engine's upstream, in process: no sockets, no waiting.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use stakeout_core::{Failure, FailureClass, Request, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits, refusal};
use stakeout_engine::{Clock, Fetch};
use stakeout_sim::nztab::{Reply, Upstream};
use stakeout_store::Validators;

/// One request that was answered in full.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When.
    pub at: Time,
    /// The path and query.
    pub path: String,
}

/// Answers the engine's requests from a simulated day, and remembers what was asked.
pub struct InProcess {
    upstream: Arc<Upstream>,
    answered: Mutex<Vec<Asked>>,
}

impl InProcess {
    /// An upstream that has been asked nothing yet.
    pub fn new(upstream: Arc<Upstream>) -> InProcess {
        InProcess { upstream, answered: Mutex::default() }
    }

    /// Everything that was answered with 2xx, in order.
    pub fn answered(&self) -> Vec<Asked> {
        self.answered.lock().expect("never poisoned, because nothing panics while it is held").clone()
    }
}

#[async_trait]
impl Fetch for InProcess {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        limits: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let now = clock.now();
        let rest = request.url.split_once("://").map_or(request.url.as_str(), |(_, rest)| rest);
        let path = &rest[rest.find('/').unwrap_or(rest.len())..];
        let answer = match self.upstream.answer(path, &request.headers, now) {
            Reply::Answer(answer) => answer,
            Reply::Reset => return Err(Failure::new(FailureClass::Reset, "connection reset")),
            Reply::Timeout => return Err(Failure::new(FailureClass::Timeout, "operation timed out")),
            Reply::Truncated { .. } => {
                return Err(Failure::new(
                    FailureClass::Reset,
                    "the connection closed before the body was whole",
                ));
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
        let mut answered =
            self.answered.lock().expect("never poisoned, because nothing panics while it is held");
        answered.push(Asked { at: now, path: path.to_owned() });
        let response = Response {
            status: answer.status,
            body: answer.body,
            content_type: Some("application/json".to_owned()),
            age: Span::ZERO,
        };
        Ok(Answer::Full(response, Validators::default()))
    }
}
