//! How the engine asks an upstream. The real thing is [`crate::http::HttpFetch`]; simulations answer in process.

use std::time::Duration;

use async_trait::async_trait;
use stakeout_core::{Failure, Request, Response};
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
    /// Sends the request and reads the answer. `validators` make it conditional.
    async fn fetch(
        &self,
        request: &Request,
        validators: &Validators,
        limits: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure>;
}
