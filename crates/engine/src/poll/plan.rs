//! Plan: when to look again, and was this look on time?

use stakeout_core::adherence::{Account, Cause, Look, Run, Sight, Timing, judge_timing};
use stakeout_core::cadence::{self, Next, Seat};
use stakeout_core::{Facts, Failure, Last, LastOutcome, Span, Time};
use stakeout_store::{PollOutcome, Schedule};

use super::Job;
use super::compare::Compared;
use super::fetch::Fetched;

pub(super) struct Planned {
    pub(super) schedule: Schedule,
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
    let next_plan = job.source.plan(&claim.spec, &compared.facts);
    let seat = job.lane.seat(&claim.spec, &next_plan, Some(&claim.state));
    let next = cadence::next(&next_plan, &compared.facts, &last, fetched.ended, &seat);

    let account = account(job, fetched, &timing, &last, &seat, &next);
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
    let schedule = with_bell(job, &compared.facts, fetched.ended, schedule_of(next));
    Planned { schedule, last, timing, account, since_last_look, looked, run, finished_run }
}

/// Every due poll since this one's slot is accounted for: it was this one, it went by while this one was under way,
/// or it falls into the backoff.
fn account(
    job: &Job<'_>,
    fetched: &Fetched,
    timing: &Timing,
    last: &Last,
    seat: &Seat,
    next: &Next,
) -> Account {
    let claim = job.claim;
    let Last { slot, outcome } = *last;
    let slot = slot.unwrap_or(fetched.sent);
    let facts = &claim.state.facts;
    let plan = job.source.plan(&claim.spec, facts);
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
    if let (LastOutcome::Failed { .. }, Some(due)) = (outcome, next.due) {
        let skipped = cadence::expired(&plan, facts, seat, slot, due - Span::us(1)).saturating_sub(overtaken);
        if skipped > overtaken {
            account.missed_cause = Some(Cause::Backoff);
        }
        account.missed += skipped;
    }
    account
}

/// Somebody wants to be told at a certain moment: then there is a look at that moment, not only after it.
fn with_bell(job: &Job<'_>, facts: &Facts, now: Time, schedule: Schedule) -> Schedule {
    let bell = job.shared.alerts.now().bell(job.source.name(), facts, now);
    match (bell, schedule.due) {
        (Some(bell), Some(due)) if bell < due => {
            Schedule { due: Some(bell), reason: "an alert rings at this moment".to_owned(), ..schedule }
        }
        _ => schedule,
    }
}

impl Job<'_> {
    /// The schedule after this poll, had it ended like this.
    pub(super) fn next_after(&self, facts: &Facts, last: &Last, now: Time) -> Schedule {
        let plan = self.source.plan(&self.claim.spec, facts);
        let seat = self.lane.seat(&self.claim.spec, &plan, Some(&self.claim.state));
        schedule_of(cadence::next(&plan, facts, last, now, &seat))
    }
}

/// Why the answer is only a part of one. What was seen is kept all the same, but an upstream that answers some pages
/// with errors is asked less often, too.
fn failed_part<'a>(fetched: &'a Fetched, compared: &Compared) -> Option<&'a Failure> {
    let mut failed = fetched.exchanges.iter().filter_map(|exchange| exchange.result.as_ref().err());
    failed.next().filter(|_| compared.outcome == PollOutcome::Partial)
}

fn failures(last: &Last) -> u32 {
    match last.outcome {
        LastOutcome::Good => 0,
        LastOutcome::Failed { failures, .. } => failures,
    }
}

/// The cadence's answer as the store keeps it.
pub(crate) fn schedule_of(next: Next) -> Schedule {
    Schedule {
        due: next.due,
        interval: next.interval,
        phase: next.phase.into_owned(),
        reason: next.reason,
        slack: next.slack,
    }
}
