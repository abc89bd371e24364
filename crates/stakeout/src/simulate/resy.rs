//! The simulated Resy as the engine's upstream, in process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use stakeout_core::{Failure, Request, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Fetch};
use stakeout_sim::Reply;
use stakeout_sim::resy::{Asked, Bucket, Fault, Upstream};
use stakeout_store::Validators;

use super::in_process::{outcome, path_of};
use super::tables::PARTIES;

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
    /// No answer went wrong, and no venue came or went between its pages.
    pub(super) whole: bool,
    /// It was refused or not understood: whatever else it showed did not count.
    pub(super) lost: bool,
    /// How many venues each party size's first page counts.
    totals: [Option<u64>; PARTIES.len()],
}

#[cfg(test)]
impl Poll {
    /// A whole look at a moment.
    pub(super) fn at(at: Time) -> Poll {
        Poll { began: at, ended: at, old: false, whole: true, lost: false, totals: [None; PARTIES.len()] }
    }
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
    fn note(&self, body: &[u8], now: Time, fault: Option<Fault>, total: Option<u64>) {
        let old = fault == Some(Fault::Older);
        let fine = fault.is_none_or(Fault::is_harmless);
        let lost = fault.is_some_and(loses_the_poll);
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return };
        let filter = &body["slot_filter"];
        let text = |name: &str| filter[name].as_str().unwrap_or_default();
        let Some(bucket) = Bucket::parse(&format!("{}_{}", text("day"), text("time_filter"))) else { return };
        let mut polls = self.polls.lock().expect("never poisoned, because nothing panics while it is held");
        let own = polls.entry(bucket).or_default();
        match own.last_mut() {
            Some(last) if body["page"] != 1 || filter["party_size"] != PARTIES[0] => {
                // Each party size has a list of its own.
                let size = PARTIES.iter().position(|size| filter["party_size"] == *size).unwrap_or(0);
                if body["page"] == 1 {
                    last.totals[size] = total;
                }
                last.whole &= fine && last.totals[size] == total;
                (last.ended, last.old, last.lost) = (now, last.old || old, last.lost || lost);
            }
            _ => {
                let mut totals = [None; PARTIES.len()];
                totals[0] = total;
                own.push(Poll { began: now, ended: now, old, whole: fine, lost, totals });
            }
        }
    }
}

/// Whether nothing of a poll counts that meets this fault.
fn loses_the_poll(fault: Fault) -> bool {
    use Fault::{Forbidden, LoginPage, Malformed, Redirect, Unauthorized};
    matches!(fault, Redirect | Unauthorized | Forbidden | Malformed | LoginPage)
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
        let total = match &reply {
            Reply::Answer(answer) => total(&answer.body),
            _ => None,
        };
        self.note(&request.body, now, fault, total);
        outcome(reply, limits, now)
    }
}

/// How many venues an answer counts; it says so at its beginning.
fn total(body: &[u8]) -> Option<u64> {
    const NAME: &[u8] = br#""total":"#;
    let at = body.windows(NAME.len()).take(HEAD_BYTES).position(|part| part == NAME)? + NAME.len();
    let digits = body[at..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number: Option<u64>, byte| {
        number.unwrap_or(0).checked_mul(10)?.checked_add(u64::from(byte - b'0'))
    })
}

/// Where an answer's own words about itself end, at the latest.
const HEAD_BYTES: usize = 2_000;
