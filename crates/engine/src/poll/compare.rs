//! Compare: what is different from the last good answer, and may it be believed?

use stakeout_core::compare::{Basis, Comparison, Verdict};
use stakeout_core::{Facts, Failure, Observation};
use stakeout_store::PollOutcome;

use super::Job;
use super::fetch::Fetched;
use super::normalize::Seen;

pub(super) struct Compared {
    pub(super) outcome: PollOutcome,
    /// The observation and what it brings; `None` when nothing counts.
    pub(super) news: Option<(Box<Observation>, Comparison)>,
    pub(super) failure: Option<Failure>,
    /// The facts in force from now on.
    pub(super) facts: Facts,
    /// Whether this poll proves what the upstream served: only then it closes a gap.
    pub(super) complete: bool,
    /// What was odd, in words.
    pub(super) remarks: Vec<String>,
}

/// Remarks kept of one poll; the rest is only counted.
const MOST_REMARKS: usize = 5;

pub(super) fn compare(job: &Job<'_>, fetched: &Fetched, seen: Seen) -> Compared {
    let before = &job.claim.state.facts;
    let nothing = |outcome, complete| Compared {
        outcome,
        news: None,
        failure: None,
        facts: before.clone(),
        complete,
        remarks: Vec::new(),
    };
    let observation = match seen {
        Seen::Failed(failure) => {
            return Compared { failure: Some(failure), ..nothing(PollOutcome::Failed, false) };
        }
        Seen::NotModified => return nothing(PollOutcome::Unchanged, true),
        Seen::Stale(as_of) => {
            let remark = format!("the answer is from {as_of}, older than one seen before: dropped");
            return Compared { remarks: vec![remark], ..nothing(PollOutcome::Stale, false) };
        }
        Seen::Observation(observation) => observation,
    };
    let basis = Basis {
        snapshot: &job.claim.snapshot,
        memory: &job.claim.state.memory,
        meaning: job.meaning,
        policy: job.source.doubt(),
        refresh: job.source.limits().refresh,
        sent: fetched.sent,
        ended: fetched.ended,
    };
    let comparison = stakeout_core::compare::compare(&basis, &observation);
    let complete = observation.coverage.is_whole();
    let outcome = match comparison.verdict {
        Verdict::Doubted => PollOutcome::Doubted,
        _ if !complete => PollOutcome::Partial,
        Verdict::Unchanged => PollOutcome::Unchanged,
        Verdict::Changed => PollOutcome::Changed,
        Verdict::Baseline => PollOutcome::Baseline,
    };
    let facts = match outcome {
        PollOutcome::Doubted => before.clone(),
        _ => new_facts(job, &observation.facts),
    };
    let complete = complete && outcome != PollOutcome::Doubted;
    let remarks = remarks(&observation, &comparison);
    Compared { outcome, news: Some((observation, comparison)), failure: None, facts, complete, remarks }
}

/// The observed facts, with what only the engine knows: since when the stage lasts, and who has the focus.
fn new_facts(job: &Job<'_>, observed: &Facts) -> Facts {
    let before = &job.claim.state.facts;
    let stage_since = match observed.stage == before.stage {
        true => before.stage_since.or(job.claim.schedule.due),
        false => job.claim.schedule.due,
    };
    Facts { stage_since, focused: before.focused, ..observed.clone() }
}

fn remarks(observation: &Observation, comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    if comparison.verdict == Verdict::Doubted {
        remarks
            .push("the answer would remove most of what is known: waiting for a second one to agree".into());
    }
    if comparison.duplicates > 0 {
        remarks.push(format!(
            "{} identities appeared more than once: the last of each counts",
            comparison.duplicates
        ));
    }
    let warnings = observation.warnings.iter().map(|w| format!("{}: {}", w.code, w.detail));
    remarks.extend(warnings.take(MOST_REMARKS));
    remarks
}
