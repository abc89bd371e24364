//! One poll, from due to committed. Read [`poll`] from top to bottom: nothing else changes state because of a poll.

mod back;
mod commit;
mod compare;
mod fetch;
mod hint;
mod judge;
mod known;
mod listed;
mod meanwhile;
mod normalize;
mod others;
mod plan;
mod recall;
mod standing;

use stakeout_core::adherence::{Cause, Timing};
use stakeout_core::compare::{Removal, Return, SINGLY_AFTER};
use stakeout_core::{PollContext, Source, Span, Time};
use stakeout_store::{Claim, PollOutcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

pub(crate) use listed::first_look;
pub(crate) use standing::{NAMESPACE as CREDENTIALS, is_refused};

use crate::lane::{Lane, Place};
use crate::shared::Shared;

use self::commit::{Landing, Settled};

/// A poll that is about to happen: the claim, and how it came to be sent now.
pub(crate) struct Departure {
    pub(crate) claim: Claim,
    /// Due, claimed, ready, admitted; `sent` is filled in by the fetch.
    pub(crate) timing: Timing,
    /// The place among the source's polls in flight.
    pub(crate) place: Option<Place>,
    /// Until when the claim holds, in microseconds; the dispatcher renews it while the poll waits or is under way.
    pub(crate) lease_us: Arc<AtomicI64>,
}

/// What the dispatcher has to know about a finished poll.
pub(crate) struct Finished {
    /// The target.
    pub(crate) target: stakeout_store::TargetId,
    /// What becomes of its claim.
    pub(crate) claim: Afterwards,
    /// Everything else.
    pub(crate) report: Report,
}

/// What becomes of a claim after its poll.
pub(crate) enum Afterwards {
    /// It goes on, with its new schedule.
    Kept(Claim),
    /// The store has it back already, or somebody else has it.
    Gone,
    /// The poll is in, but what the row says now is not known: whoever claims it next reads it.
    GiveBack(Claim),
    /// The poll came to nothing; the target is due as before, after a rest.
    Rest(Claim),
}

/// A poll in numbers, for statistics, logs and the caller of a pass.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) source: Arc<str>,
    pub(crate) target: String,
    pub(crate) role: String,
    pub(crate) phase: String,
    pub(crate) interval: Span,
    pub(crate) outcome: Option<PollOutcome>,
    pub(crate) failure: Option<stakeout_core::Failure>,
    /// Why it was late, if it was.
    pub(crate) late: Option<Cause>,
    pub(crate) missed: u64,
    /// Why, if any was.
    pub(crate) missed_cause: Option<Cause>,
    pub(crate) lateness_us: i64,
    pub(crate) requests: u32,
    pub(crate) bytes: u64,
    pub(crate) changes: u32,
    /// The same, by the kind of record.
    pub(crate) updated: BTreeMap<String, u32>,
    pub(crate) events: u32,
    pub(crate) history_rows: u32,
    pub(crate) warnings: u32,
    pub(crate) next_due: Option<Time>,
    /// Other targets that this poll created or re-planned.
    pub(crate) touched: Vec<stakeout_store::TargetId>,
    /// The keys of those that it describes otherwise than before, or no longer.
    pub(crate) relisted: Vec<String>,
}

/// Everything the steps of one poll share.
struct Job<'a> {
    shared: &'a Shared,
    lane: &'a Lane,
    source: &'a dyn Source,
    claim: &'a Claim,
    timing: Timing,
    /// What an answer means now.
    meaning: u64,
    lease_us: &'a AtomicI64,
}

impl Job<'_> {
    /// Until when the claim holds.
    fn lease_until(&self) -> Time {
        Time(self.lease_us.load(Ordering::Acquire))
    }

    /// Whether the last answer was believed and still means the same, and saying it once more would teach nothing: only
    /// then "nothing new" can be said without looking closer.
    fn has_settled(&self) -> bool {
        let memory = &self.claim.state.memory;
        // Where companions are counted, a second answer without one is what proves that it is gone.
        let counted = !self.source.doubt().companions || (memory.answers >= 2 && memory.left.is_empty());
        // So are the answers after an outage, and those without what went.
        let settled = |removal: &Removal| removal.back == Return::Awaited && removal.since >= SINGLY_AFTER;
        let counted = counted && memory.removals.iter().all(settled);
        memory.meaning == Some(self.meaning) && !memory.rebaseline && memory.doubt.is_none() && counted
    }

    fn context(&self, now: Time) -> PollContext<'_> {
        PollContext { now, facts: &self.claim.state.facts }
    }
}

/// How often a poll is judged anew because a shared record changed under its hands.
const MOST_TRIES: u32 = 5;

/// One poll: fetch, normalize, compare, plan, recall, judge, commit.
pub(crate) async fn poll(shared: &Shared, lane: &Lane, departure: Departure) -> Finished {
    let Departure { claim, timing, place, lease_us } = departure;
    let source = lane.source();
    let meaning = lane.meaning(&claim.spec);
    let job = Job { shared, lane, source: &*source, claim: &claim, timing, meaning, lease_us: &lease_us };

    // What does the upstream say? Within the source's limits, the lease and the size allowed.
    let mut fetched = fetch::fetch(&job).await;
    // The upstream is free for the next one.
    drop(place);
    // A setting may have changed meanwhile; the next due time goes by what holds now.
    let source = lane.source();
    let job = Job { source: &*source, ..job };

    // What does that mean? Failed, torn and misunderstood answers end here as failures.
    let seen = normalize::normalize(&job, &fetched);

    // What is different from the last good answer, and may it be believed?
    let compared = compare::compare(&job, &fetched, seen);
    fetched.forget_bodies();

    // When to look again, and was this look on time?
    let planned = plan::plan(&job, &fetched, &compared);

    let mut tries = 0;
    let (settled, mut report) = loop {
        // What did the records that changed look like before? Unchanged polls read nothing, and the others only what they
        // do not remember. Where that turned out to be outdated, all of it is read.
        let recalled = recall::recall(&job, &compared, tries == 0).await;

        // What of it is worth keeping in history, what is worth telling, and who asked to be told?
        let judged = judge::judge(&job, &fetched, &compared, &planned, recalled).await;

        // All of it, or nothing. Another target may have changed a shared record meanwhile: then once more.
        tries += 1;
        match commit::commit(&job, &fetched, &compared, judged, &planned).await {
            Landing::Conflict if tries < MOST_TRIES => {}
            Landing::Conflict => break commit::gave_up(&job, &fetched, &compared, &planned),
            Landing::Settled(settled, report) => break (settled, *report),
        }
    };
    // Does it say where else to look?
    if matches!(settled, Settled::In(_)) {
        report.touched.extend(hint::follow(&job, &compared).await);
    }
    let target = claim.target;
    Finished { target, claim: settled.afterwards(claim), report }
}
