//! The simulated Resy as the engine's upstream, in process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use stakeout_core::{Failure, Request, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Fetch};
use stakeout_sim::resy::{Asked, Bucket, Fault, Upstream};
use stakeout_store::Validators;

use super::in_process::{outcome, path_of};

/// Answers the engine's requests from a simulated market, and remembers when each bucket was looked at.
pub(super) struct InProcess {
    upstream: Arc<Upstream>,
    polls: Mutex<BTreeMap<Bucket, Vec<Poll>>>,
}

/// One look at a bucket: from its first page to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Poll {
    pub(super) began: Time,
    pub(super) ended: Time,
    /// One of its answers was out of date when it came, and nothing about it said so.
    pub(super) old: bool,
}

impl InProcess {
    pub(super) fn new(upstream: Arc<Upstream>) -> InProcess {
        InProcess { upstream, polls: Mutex::default() }
    }

    /// The looks at every bucket, in order, failed ones included.
    pub(super) fn polls(&self) -> BTreeMap<Bucket, Vec<Poll>> {
        self.polls.lock().expect("never poisoned, because nothing panics while it is held").clone()
    }

    /// A poll asks for the first page of the first party size once, at its beginning.
    fn note(&self, body: &[u8], now: Time, old: bool) {
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return };
        let filter = &body["slot_filter"];
        let text = |name: &str| filter[name].as_str().unwrap_or_default();
        let Some(bucket) = Bucket::parse(&format!("{}_{}", text("day"), text("time_filter"))) else { return };
        let mut polls = self.polls.lock().expect("never poisoned, because nothing panics while it is held");
        let own = polls.entry(bucket).or_default();
        match own.last_mut() {
            Some(last) if body["page"] != 1 || filter["party_size"] != super::tables::PARTIES[0] => {
                (last.ended, last.old) = (now, last.old || old);
            }
            _ => own.push(Poll { began: now, ended: now, old }),
        }
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
        let asked = Asked { path: path_of(&request.url), headers: &request.headers, body: &request.body };
        let (reply, fault) = self.upstream.answer_and_tell(asked, now);
        self.note(&request.body, now, fault == Some(Fault::Older));
        outcome(reply, limits, now)
    }
}
