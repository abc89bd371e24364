//! The simulated upstream as a real server on loopback.

use std::sync::Arc;

use stakeout_core::Time;

use super::upstream::{Reply, Upstream};
use crate::act::Act;
use crate::loopback::Loopback;

/// Serves the upstream at the time that `now` tells: real, scaled or standing still.
pub fn serve(upstream: Arc<Upstream>, now: impl Fn() -> Time + Send + Sync + 'static) -> Loopback {
    Loopback::start(move |seen| match seen.method.as_str() {
        "GET" => upstream.answer(&seen.path, &seen.headers, now()).into(),
        _ => Act::status(405),
    })
}

impl From<Reply> for Act {
    fn from(reply: Reply) -> Act {
        match reply {
            Reply::Answer(answer) => {
                Act::Answer { status: answer.status, headers: answer.headers, body: answer.body }
            }
            Reply::Reset => Act::Reset,
            Reply::Timeout => Act::Hang,
            Reply::Truncated { answer, sent } => {
                let act = Act::Truncated { body: answer.body, sent };
                Act::Headed { headers: answer.headers, act: Box::new(act) }
            }
        }
    }
}
