//! Polls made by hand, for measuring the store without an engine.

use stakeout_core::{ContentHash, ContentHasher, Fingerprint, Span, TargetSpec, Time, Value};
use stakeout_store::{
    Claim, ClaimRequest, HistoryWrite, PollCommit, PollOutcome, RecordWrite, Schedule, Stamp, Wanted,
};

use crate::scene::SOURCE;

const KIND: &str = "json_bench";
const STREAM: &str = "bench_history";

/// When the stories begin; the store takes its time from whoever asks.
pub(crate) const START: Time = Time::from_secs(1_800_000_000);

/// Due at that time, as the cadence would say it.
pub(crate) fn schedule(due: Time) -> Schedule {
    Schedule {
        due: Some(due),
        interval: Span::secs(10),
        phase: "fixed".into(),
        reason: "every 10 s".into(),
        slack: Span::secs(5),
    }
}

/// A target to be made.
pub(crate) fn wanted(key: String, due: Time) -> Wanted {
    Wanted { spec: TargetSpec::new(key, "document"), schedule: schedule(due) }
}

/// Asks for at most so many targets due by `now`.
pub(crate) fn claim_request(now: Time, limit: u32) -> ClaimRequest {
    ClaimRequest {
        node: "bench".into(),
        sources: vec![SOURCE.into()],
        now,
        ahead: Span::ZERO,
        lease: Span::secs(60),
        limit,
    }
}

/// A poll that saw nothing new and gives its claim back.
pub(crate) fn unchanged(claim: &Claim, now: Time, due: Time) -> PollCommit {
    PollCommit {
        target: claim.target,
        source: claim.source.clone(),
        fence: claim.fence,
        poll_no: claim.poll_no + 1,
        plan_version: claim.plan_version,
        now,
        schedule: schedule(due),
        hold_until: None,
        outcome: PollOutcome::Unchanged,
        error: None,
        state: claim.state.clone(),
        snapshot: None,
        records: Vec::new(),
        releases: Vec::new(),
        lapsed: Vec::new(),
        history: Vec::new(),
        events: Vec::new(),
        sinks: Vec::new(),
        reconcile: None,
        kv: Vec::new(),
        log: None,
        finished_run: None,
        sample: None,
    }
}

/// A poll that saw its only record with another value: one record, one row of history. Keeps its claim.
pub(crate) fn changed(claim: &Claim, now: Time, value: u64) -> PollCommit {
    let fingerprint = Fingerprint::of(KIND, &[&claim.spec.key]);
    let body = format!("{{\"id\":\"{}\",\"value\":{value}}}", claim.spec.key);
    let record = RecordWrite {
        kind: KIND.into(),
        fingerprint,
        key: claim.spec.key.clone(),
        parent: None,
        group: Fingerprint::default(),
        content: content(value),
        ends: None,
        body: body.clone(),
        seen: now,
        added: value == 0,
        base: stakeout_store::Base::Anything,
    };
    let history = HistoryWrite {
        fingerprint,
        stream: STREAM.into(),
        at: now,
        values: body,
        said: String::new(),
        stamp: Stamp::Observed,
        oldest_known: false,
    };
    PollCommit {
        outcome: PollOutcome::Changed,
        hold_until: Some(claim.lease_until),
        records: vec![record],
        history: vec![history],
        ..unchanged(claim, now, now + Span::secs(10))
    }
}

fn content(value: u64) -> ContentHash {
    let mut hasher = ContentHasher::new();
    hasher.value(&Value::Int(value as i64));
    hasher.finish()
}
