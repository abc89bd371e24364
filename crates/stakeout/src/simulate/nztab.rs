//! The simulated NZTAB as the engine's upstream, in process: no sockets, no waiting.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use stakeout_core::{Failure, Request, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Fetch};
use stakeout_sim::nztab::Upstream;
use stakeout_store::Validators;

use super::in_process::{outcome, path_of};

/// One request that was answered in full.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        let path = path_of(&request.url);
        let answer = outcome(self.upstream.answer(path, &request.headers, now), limits, now)?;
        let mut answered =
            self.answered.lock().expect("never poisoned, because nothing panics while it is held");
        answered.push(Asked { at: now, path: path.to_owned() });
        Ok(answer)
    }
}
