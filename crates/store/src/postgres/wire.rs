//! What a call carries to the database: polls, targets and derivations as JSON, in the words of our SQL functions.
//! Bodies go as text inside the text, so that nothing in them is given a meaning on the way.

mod log;

use serde::Serialize;
use stakeout_core::{Fingerprint, Time};

pub(super) use self::log::notes;
use self::log::{LogJson, RunJson};
use crate::{
    Base, DeriveCommit, Effect, EventWrite, HistoryWrite, KvSet, Lapsed, NewPlan, PollCommit, RecordWrite,
    Release, Sample, Schedule, Stamp, TargetState, Wanted,
};

/// Sixteen bytes as our SQL reads them.
pub(super) fn hex(bytes: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn print(fingerprint: Fingerprint) -> String {
    hex(fingerprint.to_bytes())
}

#[derive(Serialize)]
struct ScheduleJson<'a> {
    due: Option<i64>,
    interval: i64,
    phase: &'a str,
    reason: &'a str,
    slack: i64,
}

impl<'a> ScheduleJson<'a> {
    fn of(schedule: &'a Schedule) -> ScheduleJson<'a> {
        ScheduleJson {
            due: schedule.due.map(Time::us),
            interval: schedule.interval.as_us(),
            phase: &schedule.phase,
            reason: &schedule.reason,
            slack: schedule.slack.as_us(),
        }
    }
}

#[derive(Serialize)]
struct PollJson<'a> {
    target: i64,
    fence: i64,
    poll_no: i64,
    plan: i64,
    now: i64,
    #[serde(flatten)]
    schedule: ScheduleJson<'a>,
    hold: Option<i64>,
    outcome: &'a str,
    error: Option<&'a str>,
    state: String,
    version: i64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<RecordJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    releases: Vec<ReleaseJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lapsed: Vec<LapsedJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<PointJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventJson<'a>>,
    sinks: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    upserts: Option<Vec<WantedJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retire: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kv: Vec<KvSetJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<LogJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<SampleJson<'a>>,
}

/// A poll that brought something, without its snapshot's and its sample's bytes.
pub(super) fn poll(poll: &PollCommit, hold: Option<i64>) -> serde_json::Result<String> {
    let reconcile = poll.reconcile.as_ref();
    serde_json::to_string(&PollJson {
        target: poll.target.0,
        fence: poll.fence as i64,
        poll_no: poll.poll_no as i64,
        plan: poll.plan_version as i64,
        now: poll.now.us(),
        schedule: ScheduleJson::of(&poll.schedule),
        hold,
        outcome: poll.outcome.name(),
        error: poll.error.as_deref(),
        state: serde_json::to_string(&poll.state)?,
        version: poll.state.memory.version as i64,
        records: poll.records.iter().map(RecordJson::of).collect(),
        releases: poll.releases.iter().map(ReleaseJson::of).collect(),
        lapsed: poll.lapsed.iter().map(LapsedJson::of).collect(),
        history: poll.history.iter().enumerate().map(PointJson::of).collect(),
        events: poll.events.iter().map(EventJson::of).collect(),
        sinks: &poll.sinks,
        upserts: reconcile.map(|changes| wanted_all(&changes.upserts)).transpose()?,
        retire: reconcile.map(|changes| changes.retire.as_slice()),
        kv: poll.kv.iter().map(KvSetJson::of).collect(),
        log: poll.log.as_ref().map(LogJson::of),
        run: poll.finished_run.as_ref().map(RunJson::of).transpose()?,
        sample: poll.sample.as_ref().map(SampleJson::of),
    })
}

#[derive(Serialize)]
struct KvSetJson<'a> {
    namespace: &'a str,
    key: &'a str,
    value: String,
}

impl<'a> KvSetJson<'a> {
    fn of(kv: &'a KvSet) -> KvSetJson<'a> {
        KvSetJson { namespace: &kv.namespace, key: &kv.key, value: kv.value.to_string() }
    }
}

#[derive(Serialize)]
struct RecordJson<'a> {
    print: String,
    kind: &'a str,
    key: &'a str,
    parent: Option<String>,
    grp: String,
    content: String,
    ends: Option<i64>,
    body: &'a str,
    seen: i64,
    added: bool,
    recalled: bool,
    base: Option<String>,
}

impl<'a> RecordJson<'a> {
    fn of(record: &'a RecordWrite) -> RecordJson<'a> {
        let (recalled, base) = match record.base {
            Base::Anything => (false, None),
            Base::Recalled(base) => (true, base),
        };
        RecordJson {
            print: print(record.fingerprint),
            kind: &record.kind,
            key: &record.key,
            parent: record.parent.map(print),
            grp: print(record.group),
            content: hex(record.content.to_bytes()),
            ends: record.ends.map(Time::us),
            body: &record.body,
            seen: record.seen.us(),
            added: record.added,
            recalled,
            base: base.map(|content| hex(content.to_bytes())),
        }
    }
}

#[derive(Serialize)]
struct ReleaseJson {
    print: String,
    ended: bool,
}

impl ReleaseJson {
    fn of(release: &Release) -> ReleaseJson {
        ReleaseJson { print: print(release.fingerprint), ended: release.natural }
    }
}

#[derive(Serialize)]
struct LapsedJson {
    print: String,
    holders: u32,
}

impl LapsedJson {
    fn of(lapsed: &Lapsed) -> LapsedJson {
        LapsedJson { print: print(lapsed.fingerprint), holders: lapsed.holders }
    }
}

#[derive(Serialize)]
struct PointJson<'a> {
    ord: usize,
    print: String,
    stream: &'a str,
    at: i64,
    body: &'a str,
    said: &'a str,
    upstream: bool,
    oldest: bool,
}

impl<'a> PointJson<'a> {
    fn of((ord, point): (usize, &'a HistoryWrite)) -> PointJson<'a> {
        PointJson {
            ord,
            print: print(point.fingerprint),
            stream: &point.stream,
            at: point.at.us(),
            body: &point.values,
            said: &point.said,
            upstream: point.stamp == Stamp::Upstream,
            oldest: point.oldest_known,
        }
    }
}

#[derive(Serialize)]
struct EventJson<'a> {
    id: String,
    #[serde(rename = "type")]
    event_type: &'a str,
    rule: &'a str,
    subject: String,
    subject_key: &'a str,
    at: i64,
    dedupe_key: Option<&'a str>,
    data: String,
    requires: &'static str,
    quiet: Option<i64>,
    unseen_for: Option<i64>,
    follows: Option<String>,
    sinks: &'a [String],
}

impl<'a> EventJson<'a> {
    fn of(event: &'a EventWrite) -> EventJson<'a> {
        EventJson {
            id: hex(event.id.to_bytes()),
            event_type: &event.event_type,
            rule: &event.rule,
            subject: print(event.subject),
            subject_key: &event.subject_key,
            at: event.at.us(),
            dedupe_key: event.dedupe_key.as_deref(),
            data: event.data.to_string(),
            requires: match event.requires {
                Effect::Any => "any",
                Effect::Appeared => "appeared",
                Effect::AppearedFirst => "appeared_first",
                Effect::Changed => "changed",
                Effect::Vanished => "vanished",
            },
            quiet: event.quiet.map(|span| span.as_us()),
            unseen_for: event.unseen_for.map(|span| span.as_us()),
            follows: event.follows.map(|cause| hex(cause.to_bytes())),
            sinks: &event.sinks,
        }
    }
}

#[derive(Serialize)]
struct WantedJson<'a> {
    key: &'a str,
    role: &'a str,
    params: String,
    priority: u8,
    meaning: i64,
    start: Option<i64>,
    /// As it stands in a target's memory.
    start_text: Option<String>,
    hash: String,
    state: String,
    #[serde(flatten)]
    schedule: ScheduleJson<'a>,
}

fn wanted(wanted: &Wanted) -> serde_json::Result<WantedJson<'_>> {
    let spec = &wanted.spec;
    // What is known of a target before its first poll: what its listing says.
    let mut state = TargetState::default();
    state.facts.start = spec.start;
    Ok(WantedJson {
        key: &spec.key,
        role: &spec.role,
        params: spec.params.to_string(),
        priority: spec.priority,
        meaning: spec.meaning as i64,
        start: spec.start.map(Time::us),
        start_text: spec.start.map(|start| start.to_string()),
        hash: hex(spec.content().to_bytes()),
        state: serde_json::to_string(&state)?,
        schedule: ScheduleJson::of(&wanted.schedule),
    })
}

fn wanted_all(all: &[Wanted]) -> serde_json::Result<Vec<WantedJson<'_>>> {
    all.iter().map(wanted).collect()
}

/// The root targets of a source.
pub(super) fn roots(desired: &[Wanted]) -> serde_json::Result<String> {
    serde_json::to_string(&wanted_all(desired)?)
}

#[derive(Serialize)]
struct SampleJson<'a> {
    at: i64,
    reason: &'a str,
    content_type: Option<&'a str>,
}

impl<'a> SampleJson<'a> {
    fn of(sample: &'a Sample) -> SampleJson<'a> {
        SampleJson {
            at: sample.at.us(),
            reason: &sample.reason,
            content_type: sample.content_type.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct PlanJson<'a> {
    target: i64,
    plan: i64,
    poll_no: i64,
    #[serde(flatten)]
    schedule: ScheduleJson<'a>,
}

/// New due times from settings.
pub(super) fn plans(plans: &[NewPlan]) -> serde_json::Result<String> {
    let plans: Vec<PlanJson<'_>> = plans
        .iter()
        .map(|plan| PlanJson {
            target: plan.target.0,
            plan: plan.plan_version as i64,
            poll_no: plan.poll_no as i64,
            schedule: ScheduleJson::of(&plan.schedule),
        })
        .collect();
    serde_json::to_string(&plans)
}

#[derive(Serialize)]
struct DeriveJson<'a> {
    source: &'a str,
    target: &'static str,
    now: i64,
    focused_before: Vec<i64>,
    create: Vec<WantedJson<'a>>,
    refocus: Vec<RefocusJson<'a>>,
    kv: Vec<KvJson<'a>>,
    records: Vec<DerivedJson<'a>>,
    events: Vec<EventJson<'a>>,
    sinks: &'a [String],
}

#[derive(Serialize)]
struct RefocusJson<'a> {
    key: &'a str,
    focused: bool,
    #[serde(flatten)]
    schedule: ScheduleJson<'a>,
}

#[derive(Serialize)]
struct KvJson<'a> {
    namespace: &'a str,
    key: &'a str,
    value: String,
    before: Option<String>,
}

#[derive(Serialize)]
struct DerivedJson<'a> {
    print: String,
    base: String,
    content: String,
    body: &'a str,
}

/// What follows from a source's records.
pub(super) fn derive(derived: &DeriveCommit) -> serde_json::Result<String> {
    serde_json::to_string(&DeriveJson {
        source: &derived.source,
        target: DeriveCommit::TARGET,
        now: derived.now.us(),
        focused_before: derived.focused_before.iter().map(|target| target.0).collect(),
        create: derived.create.iter().map(wanted).collect::<serde_json::Result<_>>()?,
        refocus: derived
            .refocus
            .iter()
            .map(|r| RefocusJson { key: &r.key, focused: r.focused, schedule: ScheduleJson::of(&r.schedule) })
            .collect(),
        kv: derived
            .kv
            .iter()
            .map(|kv| KvJson {
                namespace: &kv.namespace,
                key: &kv.key,
                value: kv.value.to_string(),
                before: kv.before.as_ref().map(ToString::to_string),
            })
            .collect(),
        records: derived
            .records
            .iter()
            .map(|record| DerivedJson {
                print: print(record.fingerprint),
                base: hex(record.base.to_bytes()),
                content: hex(record.content.to_bytes()),
                body: &record.body,
            })
            .collect(),
        events: derived.events.iter().map(EventJson::of).collect(),
        sinks: &derived.sinks,
    })
}
