//! Plan: when to look again, and was this look on time?

use std::sync::atomic::Ordering;

use stakeout_core::adherence::{Account, Cause, Look, Run, Sight, Timing, judge_timing};
use stakeout_core::cadence::{self, Next};
use stakeout_core::{Facts, Failure, Last, LastOutcome, Span, Time};
use stakeout_store::{PollOutcome, Schedule};

use super::Job;
use super::compare::Compared;
use super::fetch::Fetched;
use crate::due::{Due, schedule_of};

pub(super) struct Planned {
    pub(super) schedule: Schedule,
    /// How often plans had been made anew when this one was made.
    pub(super) replans: u64,
    pub(super) last: Last,
    pub(super) timing: Timing,
    pub(super) account: Account,
    /// How long before this complete look the last one was; `None` when either is missing.
    pub(super) since_last_look: Option<Span>,
    /// When the last complete look began, this one included.
    pub(super) looked: Option<Time>,
    /// The stretch of regular polling that goes on, and the one that ended.
    pub(super) run: Run,
    pub(super) finished_run: Option<Run>,
}

pub(super) fn plan(job: &Job<'_>, fetched: &Fetched, compared: &Compared) -> Planned {
    let claim = job.claim;
    let replans = job.shared.replans.load(Ordering::SeqCst);
    let timing = Timing { sent: fetched.sent, ..job.timing };
    let slot = claim.schedule.due.unwrap_or(fetched.sent);
    let failed = |failure: &Failure, not_before: Option<Time>| LastOutcome::Failed {
        failures: failures(&claim.state.last) + 1,
        not_before: failure.retry_after.map(|wait| fetched.ended + wait).max(not_before),
    };
    let outcome = match (&compared.failure, failed_part(fetched, compared)) {
        (Some(failure), _) => failed(failure, None),
        // The other parts cost what they cost, so it is not repeated any sooner than it would have been.
        (None, Some(failure)) => failed(failure, Some(slot + claim.schedule.interval)),
        (None, None) => LastOutcome::Good,
    };
    let last = Last { slot: Some(slot), outcome };
    let next = job.next_after(&compared.facts, &last, fetched.ended);

    let account = account(job, fetched, &timing, &last, next.due);
    let look = Look {
        phase: &claim.schedule.phase,
        interval: claim.schedule.interval,
        start: fetched.sent - fetched.max_age,
        end: fetched.ended,
        sight: if compared.complete { Sight::Complete } else { Sight::Incomplete },
        account,
    };
    let before = claim.state.last_look();
    let since_last_look = before.filter(|_| compared.complete).map(|start| fetched.sent - start);
    let looked = if compared.complete { Some(look.start) } else { before };
    let mut run = claim.state.run.clone();
    let finished_run = run.as_mut().and_then(|run| run.observe(&look));
    let run = run.unwrap_or_else(|| Run::begin(&look));
    let schedule = schedule_of(next);
    Planned { schedule, replans, last, timing, account, since_last_look, looked, run, finished_run }
}

/// Every due poll since this one's slot is accounted for: it was this one, it went by while this one was under way,
/// or it falls into the backoff.
fn account(
    job: &Job<'_>,
    fetched: &Fetched,
    timing: &Timing,
    last: &Last,
    next_due: Option<Time>,
) -> Account {
    let claim = job.claim;
    let Last { slot, outcome } = *last;
    let slot = slot.unwrap_or(fetched.sent);
    let facts = &claim.state.facts;
    let plan = job.source.plan(&claim.spec, facts);
    let seat = &job.lane.seat(&claim.spec, &plan, Some(&claim.state));
    let late_claim = if claim.after_expired_lease {
        Cause::LeaseLost
    } else if timing.due < job.shared.started {
        Cause::Downtime
    } else {
        Cause::Queue
    };
    // A target that was never polled has missed nothing: its first due time is when it became known.
    let overtaken = match claim.state.last.slot {
        Some(_) => cadence::expired(&plan, facts, seat, slot, fetched.ended),
        None => 0,
    };
    let mut account = judge_timing(timing, claim.schedule.interval, overtaken, late_claim);
    if let (LastOutcome::Failed { .. }, Some(due)) = (outcome, next_due) {
        let skipped = cadence::expired(&plan, facts, seat, slot, due - Span::us(1)).saturating_sub(overtaken);
        if skipped > overtaken {
            account.missed_cause = Some(Cause::Backoff);
        }
        account.missed += skipped;
    }
    account
}

impl Job<'_> {
    /// When to look again after this poll, had it ended like this.
    pub(super) fn next_after(&self, facts: &Facts, last: &Last, now: Time) -> Next {
        let Job { shared, lane, claim, .. } = *self;
        Due { shared, lane, spec: &claim.spec, facts, state: Some(&claim.state) }.next(last, now)
    }
}

/// Why the answer is only a part of one. What was seen is kept all the same, but an upstream that answers some pages
/// with errors is asked less often, too.
pub(super) fn failed_part<'a>(fetched: &'a Fetched, compared: &Compared) -> Option<&'a Failure> {
    let mut failed = fetched.exchanges.iter().filter_map(|exchange| exchange.result.as_ref().err());
    failed.next().filter(|_| compared.outcome == PollOutcome::Partial)
}

fn failures(last: &Last) -> u32 {
    match last.outcome {
        LastOutcome::Good => 0,
        LastOutcome::Failed { failures, .. } => failures,
    }
}
