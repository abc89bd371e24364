//! Meanwhile: how far virtual time may pass while a poll is being committed.
//!
//! A store that is in no hurry writes the polls of several instants together, which takes less than one by one; but nobody may
//! ever be able to tell when that was.

use stakeout_core::Time;
use stakeout_store::PollCommit;

use super::Job;
use super::compare::Compared;

/// Time stands still.
const NOT_AT_ALL: Time = Time(i64::MIN);

/// The moment before which nothing can follow from this poll but its own next one, and nobody reads what it wrote without
/// waiting for it.
pub(super) fn nothing_before(job: &Job<'_>, compared: &Compared, commit: &PollCommit) -> Time {
    let shared = job.shared;
    if !shared.clock.is_virtual() || !shared.store.is_in_order() || is_news_to_others(job, compared, commit) {
        return NOT_AT_ALL;
    }
    match (commit.schedule.due, commit.hold_until) {
        (Some(due), Some(_)) => due,
        // Somebody has to look for it first.
        (Some(due), None) => due - shared.ahead.times(2),
        (None, _) => Time(i64::MAX),
    }
}

/// Whether anybody but the target itself acts on it: a listing's targets, receivers, alerts that repeat, whatever follows
/// from records or is looked at because of it.
fn is_news_to_others(job: &Job<'_>, compared: &Compared, commit: &PollCommit) -> bool {
    let sends = commit.events.iter().any(|event| !event.sinks.is_empty());
    let repeats = !commit.events.is_empty() && job.shared.alerts.now().repeats();
    let hints = || job.source.due_now(&job.claim.spec, &job.claim.state.facts, &compared.facts).is_some();
    let publishes = commit.reconcile.is_some() || !commit.kv.is_empty();
    publishes || sends || repeats || job.lane.is_derived_from() || hints()
}
