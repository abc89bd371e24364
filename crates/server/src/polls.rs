//! `/v1/polls`, the log of notable polls, and `POST /v1/poll`, one pass for external schedulers.

use std::collections::BTreeMap;

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::{Span, Time};
use stakeout_engine::{FailedPoll, PassReport};
use stakeout_store::{ListedPoll, PollLog};

use crate::app::App;
use crate::ask::{Asked, Path, When, page_size};
use crate::problem::Problem;
use crate::reply::{Listed, Page, Reply};
use crate::schema::Instant;

/// A notable poll: changed, late, missed or failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Poll {
    /// The source; null when the target is gone and nothing is left that says whose it was.
    source: Option<String>,
    /// The target's key; null in the same case.
    target: Option<String>,
    /// Whether the target is gone: there is nothing to ask about it any more.
    gone: bool,
    /// The poll's number, per target.
    poll_no: u64,
    /// When it was due.
    #[schemars(with = "Instant")]
    due: Time,
    /// When the first request was sent.
    #[schemars(with = "Instant")]
    sent: Time,
    /// When the last answer was whole.
    #[schemars(with = "Instant")]
    ended: Time,
    /// How late it was sent, in milliseconds.
    lateness_ms: f64,
    /// The phase it belonged to.
    phase: String,
    /// How it ended: `changed`, `failed`, …
    outcome: String,
    /// Why it was late.
    late: Option<String>,
    /// Due polls before it that were missed.
    missed: u64,
    /// Why they were missed.
    missed_cause: Option<String>,
    /// Requests made.
    requests: u32,
    /// Body bytes read.
    bytes: u64,
    /// Records added, changed or removed.
    changes: u32,
    /// Events proposed.
    events: u32,
    /// The failure's class.
    error_class: Option<String>,
    /// The failure in words.
    detail: Option<String>,
}

impl Poll {
    fn new(source: Option<String>, target: Option<String>, gone: bool, log: PollLog) -> Poll {
        Poll {
            source,
            target,
            gone,
            poll_no: log.poll_no,
            due: log.due,
            sent: log.sent,
            ended: log.ended,
            lateness_ms: (log.sent - log.due).as_secs_f64() * 1e3,
            phase: log.phase,
            outcome: log.outcome.name().to_owned(),
            late: log.late.map(|cause| cause.name().to_owned()),
            missed: log.missed,
            missed_cause: log.missed_cause.map(|cause| cause.name().to_owned()),
            requests: log.requests,
            bytes: log.bytes,
            changes: log.changes,
            events: log.events,
            error_class: log.error_class,
            detail: log.detail,
        }
    }
}

/// Which polls.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PollQuery {
    /// Only of this source.
    source: Option<String>,
    /// Those before this place, from `next` of an earlier page.
    before: Option<u64>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Polls of any source that are looked at for a page of one.
const LOOKED_AT_MAX: usize = 10_000;

/// Lists notable polls of all targets, the newest first.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Asked(query): Asked<PollQuery>,
) -> Result<Page<Poll>, Problem> {
    let limit = page_size(query.limit)?;
    if let Some(source) = &query.source {
        crate::sources::find(&app, source)?;
    }
    let wanted = |listed: &ListedPoll| query.source.is_none() || listed.source == query.source;
    let (mut before, mut items, mut looked) = (query.before, Vec::new(), 0);
    let cursor = loop {
        let page = app.store.newest_polls(before, limit).await?;
        looked += page.len();
        let last = page.len() < limit as usize;
        for listed in page {
            before = Some(listed.row);
            if wanted(&listed) {
                items.push(Poll::new(listed.source, listed.target, listed.gone, listed.poll));
            }
            if items.len() == limit as usize {
                break;
            }
        }
        match (items.len() == limit as usize, last) {
            (true, _) => break before,
            (false, true) => break None,
            // A page may have fewer than asked for: the next one goes on where this one stopped looking.
            (false, false) if looked >= LOOKED_AT_MAX => break before,
            (false, false) => {}
        }
    };
    Ok(Page::new(items, &uri, "before", cursor.map(|row| row.to_string())))
}

/// Which polls of a target.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TargetPolls {
    /// Only those sent at this time or later.
    #[schemars(with = "Option<Instant>")]
    from: Option<When>,
    /// Only those sent at this time or earlier.
    #[schemars(with = "Option<Instant>")]
    to: Option<When>,
    /// Those before the poll of this number, from the `Link` header of an earlier part.
    before: Option<u64>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists the notable polls of a target, the newest first.
pub(crate) async fn of_target(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path((source, key)): Path<(String, String)>,
    Asked(query): Asked<TargetPolls>,
) -> Result<Listed<Poll>, Problem> {
    let row = crate::targets::find(&app, &source, &key).await?;
    let limit = page_size(query.limit)?;
    let from = query.from.map_or(Time(i64::MIN), |When(from)| from);
    let to = query.to.map_or(Time(i64::MAX), |When(to)| to);
    // One more than is wanted: whether there is a next part is never left open.
    let mut found = app.store.polls_between(row.id, from, to, query.before, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let cursor = found.last().filter(|_| more).map(|poll| poll.poll_no.to_string());
    let poll = |log| Poll::new(Some(source.clone()), Some(key.clone()), false, log);
    Ok(Listed::new(found.into_iter().map(poll).collect(), &uri, "before", cursor))
}

/// How long a pass may take.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PassQuery {
    /// Stop waiting after so many milliseconds; 60000 unless given. The polls go on.
    #[schemars(range(min = 1, max = 600_000))]
    limit_ms: Option<u32>,
}

/// What a pass came to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pass {
    /// Polls that were committed: of races, for instance.
    polled: u64,
    /// Of them: something was new.
    changed: u64,
    /// Of them: nothing was new.
    unchanged: u64,
    /// Of them: a first or renewed baseline.
    baselines: u64,
    /// Of them: seen in part, doubted or stale.
    inconclusive: u64,
    /// Of them: failed.
    failed: u64,
    /// Polls that left no trace.
    dropped: u64,
    /// Sent later than tolerated.
    late: u64,
    /// Due polls that were missed.
    missed: u64,
    /// Requests made.
    requests: u64,
    /// Body bytes read.
    bytes: u64,
    /// What was polled, by source and role: `nz race` → polls.
    targets: BTreeMap<String, u64>,
    /// Records added, changed or removed.
    changes: u64,
    /// The same, by their kind: `racing_entrants` → records.
    records: BTreeMap<String, u64>,
    /// Events that came about.
    events: u64,
    /// History rows written.
    history_rows: u64,
    /// Oddities found in answers.
    warnings: u64,
    /// Which phases were polled how often, with their intervals.
    phases: BTreeMap<String, u64>,
    /// Each failure with its cause, up to a hundred.
    failures: Vec<Failure>,
    /// When the next target is due.
    #[schemars(with = "Option<Instant>")]
    next_due: Option<Time>,
    /// How long it took.
    took_ms: u64,
    /// Half of the polls were sent no later than this; null when beyond a minute.
    lateness_ms_p50: Option<f64>,
    /// 99 of 100 polls were sent no later than this; null when beyond a minute.
    lateness_ms_p99: Option<f64>,
}

/// A failed poll.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Failure {
    /// `source/key`
    target: String,
    /// The failure's class.
    class: String,
    /// The failure in words.
    message: String,
}

/// Polls everything that is due, and answers what came of it: the same as `stakeout poll --json`.
pub(crate) async fn pass(
    State(app): State<App>,
    Asked(query): Asked<PassQuery>,
) -> Result<Reply<Pass>, Problem> {
    let limit_ms = query.limit_ms.unwrap_or(60_000);
    if !(1..=600_000).contains(&limit_ms) {
        return Err(Problem::bad_input(format!("limit_ms: expected 1 to 600000, found {limit_ms}")));
    }
    let report = app.control.pass(Span::ms(i64::from(limit_ms))).await?;
    Ok(Reply(report.into()))
}

impl From<PassReport> for Pass {
    fn from(report: PassReport) -> Pass {
        let failure = |FailedPoll { target, class, message }| Failure { target, class, message };
        Pass {
            polled: report.polled,
            changed: report.changed,
            unchanged: report.unchanged,
            baselines: report.baselines,
            inconclusive: report.inconclusive,
            failed: report.failed,
            dropped: report.dropped,
            late: report.late,
            missed: report.missed,
            requests: report.requests,
            bytes: report.bytes,
            targets: report.targets,
            changes: report.changes,
            records: report.records,
            events: report.events,
            history_rows: report.history_rows,
            warnings: report.warnings,
            phases: report.phases,
            failures: report.failures.into_iter().map(failure).collect(),
            next_due: report.next_due,
            took_ms: report.took_ms,
            lateness_ms_p50: report.lateness_ms_p50,
            lateness_ms_p99: report.lateness_ms_p99,
        }
    }
}
