//! Commit: everything the poll brought, in one transaction, or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stakeout_core::budget::RateEstimate;
use stakeout_core::{Failure, FailureClass, LastOutcome, Plan, Span, Time};
use stakeout_store::{
    Claim, CommitOutcome, Done, Known, KvRow, NewPlan, PollCommit, PollLog, PollOutcome, Sample, StoreError,
    TargetState,
};
use tracing::{debug, warn};

use crate::due::schedule_of;
use crate::live::LivePoll;
use crate::redact::redact;

use super::compare::Compared;
use super::fetch::Fetched;
use super::judge::Judged;
use super::plan::{Planned, failed_part};
use super::{Afterwards, Job, Report, known, meanwhile, standing};

/// The beginning of a body that was not understood, kept for diagnosis.
const SAMPLE_BYTES: usize = 4_096;
/// Words about a failure kept in the row.
const MESSAGE_CHARS: usize = 500;

/// What became of a poll's commit.
pub(super) enum Landing {
    /// It is in, or it never happened.
    Settled(Settled, Box<Report>),
    /// A shared record is another than was recalled.
    Conflict,
}

/// How a poll ended.
pub(super) enum Settled {
    /// It is in.
    In(Box<Committed>),
    /// It was in before: the answer to an earlier try got lost, and with it what the row says now.
    Before,
    /// It came to nothing, and the claim is still ours.
    Dropped,
    /// It came to nothing, because somebody else has the target.
    Lost,
}

impl Settled {
    /// What becomes of the claim.
    pub(super) fn afterwards(self, claim: Claim) -> Afterwards {
        match self {
            Settled::In(committed) => committed.kept(claim).map_or(Afterwards::Gone, Afterwards::Kept),
            Settled::Before => Afterwards::GiveBack(claim),
            Settled::Dropped => Afterwards::Rest(claim),
            Settled::Lost => Afterwards::Gone,
        }
    }
}

pub(super) async fn commit(
    job: &Job<'_>,
    fetched: &Fetched,
    compared: &Compared,
    judged: Result<Judged, StoreError>,
    planned: &Planned,
) -> Landing {
    let mut report = report(job, fetched, compared, planned);
    let mut judged = match judged {
        Ok(judged) => judged,
        Err(error) => {
            job.shared.store_failed(&error);
            let (settled, report) = dropped(job, report, "its records could not be read");
            return Landing::Settled(settled, Box::new(report));
        }
    };
    report.changes = judged.changes;
    report.updated.clone_from(&judged.updated);
    let mut known = std::mem::take(&mut judged.known);
    let commit = assemble(job, fetched, compared, judged, planned);
    let mut committed = Arc::new(commit);
    let stop = meanwhile::nothing_before(job, compared, &committed);
    let mut outcome = job.shared.committer.commit(planned.timing.due, Arc::clone(&committed), stop).await;
    if let Some(CommitOutcome::Poisoned(reason)) = &outcome {
        let failure = Failure::new(FailureClass::Store, redact(reason, &fetched.exchanges));
        report.outcome = Some(PollOutcome::Failed);
        known.clear();
        committed = Arc::new(poisoned(job, fetched, planned, &failure, &committed));
        report.failure = Some(failure);
        outcome = job.shared.committer.commit(planned.timing.due, Arc::clone(&committed), stop).await;
    }
    let (settled, report) = match outcome {
        Some(CommitOutcome::Done(done)) => {
            let done = with_own_plan(job, planned, &committed, done).await;
            finished(job, report, Committed { commit: committed, done, known })
        }
        Some(CommitOutcome::AlreadyDone) => {
            (Settled::Before, abandoned(job, report, "it was committed before"))
        }
        Some(CommitOutcome::Stale) => (Settled::Lost, abandoned(job, report, "the claim was lost")),
        Some(CommitOutcome::Conflict) => return Landing::Conflict,
        Some(CommitOutcome::Older) => {
            (Settled::Lost, abandoned(job, report, "a later poll was committed before"))
        }
        Some(CommitOutcome::Poisoned(reason)) => dropped(job, report, &reason),
        None => dropped(job, report, "the store is not available"),
    };
    Landing::Settled(settled, Box::new(report))
}

/// A shared record changed under our hands again and again; the next poll sees it, too.
pub(super) fn gave_up(
    job: &Job<'_>,
    fetched: &Fetched,
    compared: &Compared,
    planned: &Planned,
) -> (Settled, Report) {
    dropped(job, report(job, fetched, compared, planned), "its records kept changing")
}

fn assemble(
    job: &Job<'_>,
    fetched: &Fetched,
    compared: &Compared,
    judged: Judged,
    planned: &Planned,
) -> PollCommit {
    let claim = job.claim;
    let (snapshot, memory, as_of) = match &compared.news {
        Some((observation, comparison)) if compared.outcome != PollOutcome::Doubted => {
            (comparison.next.clone(), comparison.memory.clone(), observation.as_of.or(claim.state.as_of))
        }
        Some((_, comparison)) => (None, comparison.memory.clone(), claim.state.as_of),
        None => (None, claim.state.memory.clone(), claim.state.as_of),
    };
    let (validators, body) = match compared.outcome {
        // An answer that did not count must be fetched and read again in full.
        PollOutcome::Failed | PollOutcome::Doubted | PollOutcome::Stale | PollOutcome::Partial => {
            Default::default()
        }
        // 304 says that what we have is current; what we have stays as it is.
        PollOutcome::Unchanged if fetched.body.is_none() => (fetched.validators.clone(), claim.state.body),
        PollOutcome::Unchanged | PollOutcome::Changed | PollOutcome::Baseline => {
            (fetched.validators.clone(), fetched.body)
        }
    };
    let (rate, uncounted) = rate(job, compared, &judged, planned);
    let state = TargetState {
        facts: compared.facts.clone(),
        last: planned.last,
        memory,
        as_of,
        validators,
        body,
        rate,
        uncounted,
        looked: planned.looked,
        cost: cost(job, fetched, compared),
        lateness: Some(planned.account.lateness),
        run: Some(planned.run.clone()),
    };
    let log = log(job, fetched, compared, &judged, planned);
    PollCommit {
        target: claim.target,
        source: claim.source.clone(),
        fence: claim.fence,
        poll_no: claim.poll_no + 1,
        plan_version: claim.plan_version,
        now: fetched.ended,
        schedule: planned.schedule.clone(),
        hold_until: hold_until(job, planned.schedule.due, fetched.ended),
        outcome: compared.outcome,
        error: compared.failure.as_ref().map(|failure| clip(&failure.to_string())),
        state,
        snapshot,
        records: judged.records,
        releases: judged.releases,
        lapsed: judged.lapsed,
        history: judged.history,
        events: job.shared.outlets.route(judged.events),
        sinks: Vec::new(),
        reconcile: judged.reconcile,
        kv: judged.kv,
        log,
        finished_run: planned.finished_run.clone(),
        sample: sample(fetched, compared),
    }
}

/// What a poll takes: one that broke off says nothing about the next that does not.
fn cost(job: &Job<'_>, fetched: &Fetched, compared: &Compared) -> u32 {
    if compared.complete { fetched.requests } else { fetched.requests.max(job.claim.state.cost) }
}

/// How often something worth telling happens here: what an adaptive target's share of the budget depends on. What a
/// poll finds that proves nothing is kept for the next one that does: only then it is known how long it took to come.
fn rate(
    job: &Job<'_>,
    compared: &Compared,
    judged: &Judged,
    planned: &Planned,
) -> (Option<RateEstimate>, u32) {
    let state = &job.claim.state;
    if !matches!(job.source.plan(&job.claim.spec, &compared.facts), Plan::Adaptive(_)) {
        return (state.rate, 0);
    }
    let found = state.uncounted.saturating_add(judged.newsworthy);
    match planned.since_last_look {
        Some(interval) => {
            let mut rate = state.rate.unwrap_or_default();
            rate.observe(interval, found);
            (Some(rate), 0)
        }
        None => (state.rate, found),
    }
}

/// Until when the claim is kept: a target that is due again soon stays in this node's timer. The lease is moved only
/// when half of it is used up, so that most polls touch no index.
fn hold_until(job: &Job<'_>, due: Option<Time>, now: Time) -> Option<Time> {
    let due = due.filter(|due| job.shared.keeps(*due, now))?;
    let lease = job.shared.lease;
    let until = job.lease_until();
    let enough = until - due.max(now) > lease.over(2);
    Some(if enough { until } else { due.max(now) + lease })
}

/// Only what is notable is logged: coverage of the rest is in the runs.
fn log(
    job: &Job<'_>,
    fetched: &Fetched,
    compared: &Compared,
    judged: &Judged,
    planned: &Planned,
) -> Option<PollLog> {
    let quiet = compared.outcome == PollOutcome::Unchanged
        && !planned.account.is_notable()
        && compared.remarks.is_empty();
    let part = failed_part(fetched, compared);
    let words = compared.failure.as_ref().map(|failure| clip(&failure.message));
    let remarks = (!compared.remarks.is_empty()).then(|| clip(&compared.remarks.join("; ")));
    let of_part = part.map(|failure| clip(&redact(&failure.message, &fetched.exchanges)));
    (!quiet).then(|| PollLog {
        poll_no: job.claim.poll_no + 1,
        due: planned.timing.due,
        sent: fetched.sent,
        ended: fetched.ended,
        phase: job.claim.schedule.phase.clone(),
        outcome: compared.outcome,
        late: planned.account.late(),
        missed: planned.account.missed,
        missed_cause: planned.account.missed_cause,
        requests: fetched.requests,
        bytes: fetched.bytes,
        changes: judged.changes,
        events: judged.events.len() as u32,
        error_class: compared.failure.as_ref().or(part).map(|failure| failure.class.name().to_owned()),
        detail: words.or(remarks).or(of_part),
    })
}

/// A body that was not understood, without anything secret that was sent with the request.
fn sample(fetched: &Fetched, compared: &Compared) -> Option<Sample> {
    let failure = compared.failure.as_ref().filter(|failure| failure.class == FailureClass::Malformed)?;
    let answered = || fetched.exchanges.iter().rev().find(|exchange| exchange.result.is_ok());
    let exchange = failure.exchange.and_then(|n| fetched.exchanges.get(n)).or_else(answered)?;
    let response = exchange.result.as_ref().ok()?;
    let text = sample_text(&response.body, fetched);
    Some(Sample {
        at: exchange.ended,
        reason: clip(&failure.message),
        content_type: response.content_type.clone(),
        body: text.into_bytes(),
    })
}

/// The beginning of a body. Redacted before it is cut: half a secret is no longer recognised as one.
fn sample_text(body: &[u8], fetched: &Fetched) -> String {
    let text = redact(&String::from_utf8_lossy(body), &fetched.exchanges);
    text.chars().take(SAMPLE_BYTES).collect()
}

/// The store refused this poll alone: what it brought is dropped, and it counts as a failure with backoff.
fn poisoned(
    job: &Job<'_>,
    fetched: &Fetched,
    planned: &Planned,
    failure: &Failure,
    refused: &PollCommit,
) -> PollCommit {
    let claim = job.claim;
    let failures = match claim.state.last.outcome {
        LastOutcome::Good => 1,
        LastOutcome::Failed { failures, .. } => failures + 1,
    };
    let last = stakeout_core::Last {
        slot: planned.last.slot,
        outcome: LastOutcome::Failed { failures, not_before: None },
    };
    let schedule = schedule_of(job.next_after(&claim.state.facts, &last, fetched.ended));
    let answer = fetched.exchanges.iter().rev().find_map(|exchange| exchange.result.as_ref().ok());
    let body = sample_text(answer.map_or(&[], |answer| &answer.body), fetched);
    let log = PollLog {
        outcome: PollOutcome::Failed,
        changes: 0,
        events: 0,
        error_class: Some(failure.class.name().to_owned()),
        detail: Some(clip(&failure.message)),
        ..refused.log.clone().unwrap_or_else(|| plain_log(job, fetched, planned))
    };
    PollCommit {
        schedule: schedule.clone(),
        hold_until: hold_until(job, schedule.due, fetched.ended),
        outcome: PollOutcome::Failed,
        error: Some(clip(&failure.to_string())),
        // It proves nothing and closes no gap.
        state: TargetState { last, ..claim.state.clone() },
        snapshot: None,
        records: Vec::new(),
        releases: Vec::new(),
        lapsed: Vec::new(),
        history: Vec::new(),
        events: Vec::new(),
        reconcile: None,
        kv: Vec::new(),
        log: Some(log),
        sample: Some(Sample {
            at: fetched.ended,
            reason: clip(&failure.message),
            content_type: None,
            body: body.into_bytes(),
        }),
        ..refused.clone()
    }
}

fn plain_log(job: &Job<'_>, fetched: &Fetched, planned: &Planned) -> PollLog {
    PollLog {
        poll_no: job.claim.poll_no + 1,
        due: planned.timing.due,
        sent: fetched.sent,
        ended: fetched.ended,
        phase: job.claim.schedule.phase.clone(),
        outcome: PollOutcome::Failed,
        late: None,
        missed: planned.account.missed,
        missed_cause: planned.account.missed_cause,
        requests: fetched.requests,
        bytes: fetched.bytes,
        changes: 0,
        events: 0,
        error_class: None,
        detail: None,
    }
}

fn finished(job: &Job<'_>, mut report: Report, committed: Committed) -> (Settled, Report) {
    let Committed { commit, done, .. } = &committed;
    report.events = done.events.len() as u32;
    report.history_rows = done.history_rows;
    report.next_due = done.schedule.due;
    report.touched = done.touched.clone();
    if let Some(listed) = &commit.reconcile {
        let described = listed.upserts.iter().map(|wanted| &wanted.spec.key);
        report.relisted = described.chain(&listed.retire).cloned().collect();
    }
    job.shared.committed(done);
    let changed = commit.kv.iter().filter(|kv| {
        done.kv_changed.iter().any(|(namespace, key)| (namespace, key) == (&kv.namespace, &kv.key))
    });
    job.shared.published(changed.map(|kv| KvRow {
        namespace: kv.namespace.clone(),
        key: kv.key.clone(),
        value: kv.value.clone(),
        updated: commit.now,
    }));
    job.lane.committed(commit);
    for kv in commit.kv.iter().filter(|kv| kv.namespace == standing::NAMESPACE) {
        job.lane.standing_is_stored(standing::is_refused(&kv.value));
    }
    job.shared
        .live
        .note(commit.target, || LivePoll::new(job.timing.due, job.claim.spec.start, &report, commit, done));
    speak(job, &report, commit.outcome, &done.schedule.reason);
    if !done.held {
        job.shared.given_back(done.schedule.due);
    }
    (Settled::In(Box::new(committed)), report)
}

/// Whoever changed the plan while the poll was under way is obeyed, but not where that asks for the very poll that was
/// just made, or for one of a target that turned out to be over. What changed for all targets after this poll had planned
/// (a setting, an alert's rule) may have passed its row over: then it plans once more.
async fn with_own_plan(job: &Job<'_>, planned: &Planned, commit: &PollCommit, done: Done) -> Done {
    let changed = done.plan_version != commit.plan_version;
    let outdated = job.shared.replans.load(Ordering::SeqCst) != planned.replans;
    if !changed && !outdated {
        return done;
    }
    let schedule = match outdated {
        true => schedule_of(job.next_after(&commit.state.facts, &commit.state.last, commit.now)),
        false => commit.schedule.clone(),
    };
    let answered = done.schedule.due == job.claim.schedule.due || schedule.due.is_none();
    if (changed && !answered) || done.schedule == schedule {
        return done;
    }
    let plan_version = done.plan_version;
    let own =
        NewPlan { target: commit.target, plan_version, poll_no: commit.poll_no, schedule: schedule.clone() };
    match job.shared.store.replan(&[own]).await {
        Ok(()) => Done { schedule, plan_version: plan_version + 1, ..done },
        Err(error) => {
            // Then there is one poll too many, or one by the old plan.
            warn!(%error, target_key = %job.claim.spec.key, "the plan of a poll could not be written");
            done
        }
    }
}

/// A poll that is in.
pub(super) struct Committed {
    commit: Arc<PollCommit>,
    done: Done,
    /// What the claim remembers of what was written.
    known: Vec<Known>,
}

impl Committed {
    /// The claim as it goes on, if it does.
    pub(super) fn kept(self, claim: Claim) -> Option<Claim> {
        let Committed { commit, done, known } = self;
        if !done.held || done.schedule.due.is_none() {
            return None;
        }
        // Usually nobody else has it any more; copying is the exception.
        let commit = Arc::try_unwrap(commit).unwrap_or_else(|shared| (*shared).clone());
        let known = known::after(claim.known, known, &commit);
        Some(Claim {
            lease_until: commit.hold_until.unwrap_or(claim.lease_until),
            after_expired_lease: false,
            poll_no: commit.poll_no,
            plan_version: done.plan_version,
            schedule: done.schedule,
            state: commit.state,
            snapshot: commit.snapshot.unwrap_or(claim.snapshot),
            known,
            ..claim
        })
    }
}

/// The poll leaves no trace; whoever claims the target next polls it again.
fn dropped(job: &Job<'_>, report: Report, why: &str) -> (Settled, Report) {
    (Settled::Dropped, abandoned(job, report, why))
}

fn abandoned(job: &Job<'_>, report: Report, why: &str) -> Report {
    warn!(source = %report.source, target_key = %report.target, poll_no = job.claim.poll_no + 1, why, "poll dropped");
    Report { outcome: None, ..report }
}

fn report(job: &Job<'_>, fetched: &Fetched, compared: &Compared, planned: &Planned) -> Report {
    let warnings = compared.news.as_ref().map_or(0, |(observation, _)| observation.warnings.len() as u32);
    Report {
        source: Arc::from(job.source.name()),
        target: job.claim.spec.key.clone(),
        role: job.claim.spec.role.clone(),
        phase: job.claim.schedule.phase.clone(),
        interval: job.claim.schedule.interval,
        outcome: Some(compared.outcome),
        failure: compared.failure.clone(),
        late: planned.account.late(),
        missed: planned.account.missed,
        missed_cause: planned.account.missed_cause,
        lateness_us: planned.account.lateness.as_us(),
        requests: fetched.requests,
        bytes: fetched.bytes,
        changes: 0,
        updated: BTreeMap::new(),
        events: 0,
        history_rows: 0,
        warnings,
        next_due: planned.schedule.due,
        touched: Vec::new(),
        relisted: Vec::new(),
    }
}

/// One line per poll: failures are warnings, everything else is for debugging.
fn speak(job: &Job<'_>, report: &Report, outcome: PollOutcome, reason: &str) {
    let interval_ms = job.claim.schedule.interval.as_ms();
    let lateness_ms = Span(report.lateness_us).as_secs_f64() * 1e3;
    match &report.failure {
        Some(failure) => warn!(
            source = %report.source, target_key = %report.target, phase = %report.phase, interval_ms, lateness_ms,
            outcome = outcome.name(), class = failure.class.name(), message = %failure.message,
            missed = report.missed, next = reason, "poll failed"
        ),
        None => debug!(
            source = %report.source, target_key = %report.target, phase = %report.phase, interval_ms, lateness_ms,
            outcome = outcome.name(), changes = report.changes, events = report.events, missed = report.missed,
            bytes = report.bytes, next = reason, "poll"
        ),
    }
}

fn clip(words: &str) -> String {
    words.chars().take(MESSAGE_CHARS).collect()
}
