//! The simulated upstream as a real server on loopback.

use std::sync::Arc;

use stakeout_core::Time;

use super::request::Asked;
use super::upstream::Upstream;
use crate::act::Act;
use crate::loopback::Loopback;

/// Serves the upstream at the time that `now` tells: real, scaled or standing still.
pub fn serve(upstream: Arc<Upstream>, now: impl Fn() -> Time + Send + Sync + 'static) -> Loopback {
    Loopback::start(move |seen| match seen.method.as_str() {
        "POST" => {
            let asked = Asked { path: &seen.path, headers: &seen.headers, body: &seen.body };
            upstream.answer(asked, now()).into()
        }
        _ => Act::status(405),
    })
}
