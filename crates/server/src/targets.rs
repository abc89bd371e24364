//! `/v1/targets`: what is polled, when and why; and the few things one may do to it.

use std::collections::VecDeque;

use axum::extract::{OriginalUri, State};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::adherence::Run;
use stakeout_core::{LastOutcome, Span, Time};
use stakeout_store::{PollOutcome, TargetFilter, TargetId, TargetOrder, TargetRow};

use crate::app::App;
use crate::ask::{Asked, Path, page_size};
use crate::problem::Problem;
use crate::reply::{Page, Reply};
use crate::schema::Instant;

/// One thing that is polled.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Target {
    /// Its row; never used again.
    id: i64,
    /// Its source.
    source: String,
    /// Its name within the source.
    key: String,
    /// What the source means by it: `race`, `catalogue`.
    role: String,
    /// 0 (whenever) to 100 (now).
    priority: u8,
    /// Whether it is switched on.
    enabled: bool,
    /// Who holds it at the moment.
    owner: Option<String>,
    /// When it is due; null when never.
    #[schemars(with = "Option<Instant>")]
    due: Option<Time>,
    /// How far past its due time it is, in milliseconds; 0 when it is not.
    overdue_ms: f64,
    /// The interval of its phase, in milliseconds.
    interval_ms: i64,
    /// Its phase.
    phase: String,
    /// Why it is due then.
    reason: String,
    /// When what it watches starts, where that is known.
    #[schemars(with = "Option<Instant>")]
    start: Option<Time>,
    /// How long after it was due the last poll was sent, in milliseconds; null before the first.
    lateness_ms: Option<f64>,
    /// How the last poll ended: `unchanged`, `changed`, `failed`, …
    last_outcome: Option<String>,
    /// When it was committed.
    #[schemars(with = "Option<Instant>")]
    last_polled: Option<Time>,
    /// When something last changed.
    #[schemars(with = "Option<Instant>")]
    last_changed: Option<Time>,
    /// The last failure, until a poll succeeds.
    last_error: Option<String>,
    /// Failed polls since the last good one.
    failures_in_a_row: u32,
    /// How many records it holds.
    records: u64,
    /// Polls committed.
    polls: u64,
    /// The row of the target whose listing made it; null for a root.
    listed_by: Option<i64>,
    /// The stretch of regular polling that goes on.
    run: Option<Stretch>,
    /// What the source needs to ask for it.
    params: Json,
}

/// A stretch of regular polling in one phase.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stretch {
    /// The phase.
    phase: String,
    /// The start of its first poll.
    #[schemars(with = "Instant")]
    from: Time,
    /// The end of its last poll.
    #[schemars(with = "Instant")]
    to: Time,
    /// Polls.
    polls: u64,
    /// Of them: late.
    late: u64,
    /// Due polls that were missed.
    missed: u64,
    /// The longest time from the start of one complete look to the end of the next, in milliseconds.
    longest_gap_ms: f64,
    /// 99 of 100 polls were sent no later than this; null when beyond a minute.
    lateness_ms_p99: Option<f64>,
}

/// Milliseconds, fractions included.
pub(crate) fn ms(span: Span) -> f64 {
    span.as_us() as f64 / 1e3
}

/// A quantile of lateness in milliseconds, where there is one that says something.
pub(crate) fn quantile_ms(histogram: &stakeout_core::adherence::LatenessHistogram, q: f64) -> Option<f64> {
    histogram.quantile(q)?.at_most().map(ms)
}

impl From<&Run> for Stretch {
    fn from(run: &Run) -> Stretch {
        Stretch {
            phase: run.phase.clone(),
            from: run.from,
            to: run.to,
            polls: run.polls,
            late: run.late,
            missed: run.missed,
            longest_gap_ms: ms(run.longest_gap),
            lateness_ms_p99: quantile_ms(&run.histogram, 0.99),
        }
    }
}

impl Target {
    pub(crate) fn new(row: TargetRow, now: Time) -> Target {
        let due = row.schedule.due.filter(|_| row.enabled);
        Target {
            id: row.id.0,
            source: row.source,
            role: row.spec.role,
            priority: row.spec.priority,
            enabled: row.enabled,
            owner: row.owner,
            due,
            overdue_ms: due.map_or(0.0, |due| ms((now - due).max(Span::ZERO))),
            interval_ms: row.schedule.interval.as_ms(),
            phase: row.schedule.phase,
            reason: row.schedule.reason,
            start: row.state.facts.start.or(row.spec.start),
            lateness_ms: row.state.lateness.map(ms),
            last_outcome: row.last_outcome.map(|outcome| PollOutcome::name(outcome).to_owned()),
            last_polled: row.last_polled,
            last_changed: row.last_changed,
            last_error: row.last_error,
            failures_in_a_row: match row.state.last.outcome {
                LastOutcome::Good => 0,
                LastOutcome::Failed { failures, .. } => failures,
            },
            records: row.records,
            polls: row.poll_no,
            listed_by: row.listed_by.map(|TargetId(id)| id),
            run: row.state.run.as_ref().map(Stretch::from),
            params: row.spec.params,
            key: row.spec.key,
        }
    }
}

/// The order of a list of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sort {
    /// As they were created.
    #[default]
    Created,
    /// The next one due first.
    Due,
    /// By key.
    Key,
}

/// Which targets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TargetQuery {
    /// Only of this source; a name that nobody has finds nothing.
    source: Option<String>,
    /// Only keys that contain this.
    key: Option<String>,
    /// Only of this role.
    role: Option<String>,
    /// Only those in this phase: `T-5m`.
    phase: Option<String>,
    /// Only those that are switched on, or off.
    enabled: Option<bool>,
    /// Only those whose last poll failed, or did not.
    failing: Option<bool>,
    /// In which order.
    sort: Sort,
    /// Those after this place, from `next` of an earlier page: a row, or one of each source.
    #[schemars(regex(pattern = "^[0-9]{1,18}(,[0-9]{1,18})*$"))]
    after: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists targets.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Asked(query): Asked<TargetQuery>,
) -> Result<Page<Target>, Problem> {
    let limit = page_size(query.limit)?;
    let filter = TargetFilter {
        source: query.source.clone(),
        key_contains: query.key.clone(),
        role: query.role.clone(),
        phase: query.phase.clone(),
        enabled: query.enabled,
        failing: query.failing,
        order: match query.sort {
            Sort::Created => TargetOrder::Created,
            Sort::Due => TargetOrder::Due,
            Sort::Key => TargetOrder::Key,
        },
        limit,
        ..TargetFilter::default()
    };
    // Each source has its own order; those of several are merged.
    let lists = match (&query.source, query.sort) {
        (None, Sort::Due | Sort::Key) => {
            app.control.sources().iter().map(|source| Some(source.name().to_owned())).collect()
        }
        (source, _) => vec![source.clone()],
    };
    let mut cursors = cursors(query.after.as_deref(), lists.len())?;
    let mut pages = Vec::new();
    for (source, after) in lists.into_iter().zip(&cursors) {
        let filter = TargetFilter { source, after: *after, ..filter.clone() };
        pages.push(VecDeque::from(app.store.targets(&filter).await?));
    }
    let mut rows = Vec::new();
    while rows.len() < limit as usize
        && let Some((list, row)) = earliest(&mut pages, query.sort)
    {
        cursors[list] = Some(row.id);
        rows.push(row);
    }
    let whole = rows.len() == limit as usize;
    let cursor = whole.then(|| {
        let ids: Vec<String> = cursors.iter().map(|id| id.map_or(0, |TargetId(id)| id).to_string()).collect();
        ids.join(",")
    });
    let now = app.now();
    let targets = rows.into_iter().map(|row| Target::new(row, now)).collect();
    Ok(Page::new(targets, &uri, "after", cursor))
}

/// Takes what comes first of several lists; each keeps its own order, so that each goes on where it was left.
fn earliest(pages: &mut [VecDeque<TargetRow>], sort: Sort) -> Option<(usize, TargetRow)> {
    let heads = pages.iter().enumerate().filter_map(|(list, page)| Some((list, page.front()?)));
    let (list, _) = heads.min_by(|(_, a), (_, b)| match sort {
        Sort::Created => a.id.cmp(&b.id),
        Sort::Due => {
            let due = |row: &TargetRow| row.schedule.due.filter(|_| row.enabled).unwrap_or(Time(i64::MAX));
            due(a).cmp(&due(b))
        }
        Sort::Key => a.spec.key.cmp(&b.spec.key),
    })?;
    Some((list, pages[list].pop_front()?))
}

/// Where each list goes on: a row, or its beginning.
fn cursors(after: Option<&str>, lists: usize) -> Result<Vec<Option<TargetId>>, Problem> {
    let Some(after) = after else { return Ok(vec![None; lists]) };
    let id = |text: &str| text.parse().ok().map(|id: i64| (id != 0).then_some(TargetId(id)));
    let found: Option<Vec<Option<TargetId>>> = after.split(',').map(id).collect();
    found.filter(|found| found.len() == lists).ok_or_else(|| {
        Problem::bad_input(format!(
            "after: expected what `next` of an earlier page says ({lists} rows), found {after:?}"
        ))
    })
}

/// The row of a target.
pub(crate) async fn find(app: &App, source: &str, key: &str) -> Result<TargetRow, Problem> {
    let row = app.store.target(source, key).await?;
    row.ok_or_else(|| {
        Problem::not_found(format!("there is no target {source}/{key}: /v1/targets lists them"))
    })
}

/// One target.
pub(crate) async fn one(
    State(app): State<App>,
    Path((source, key)): Path<(String, String)>,
) -> Result<Reply<Target>, Problem> {
    let row = find(&app, &source, &key).await?;
    Ok(Reply(Target::new(row, app.now())))
}

type TargetPath = Path<(String, String)>;

/// Switches a target on; it is due at once.
pub(crate) async fn enable(
    State(app): State<App>,
    Path((source, key)): TargetPath,
) -> Result<StatusCode, Problem> {
    app.control.set_enabled(&source, &key, true).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Switches a target off, until it is switched on again.
pub(crate) async fn disable(
    State(app): State<App>,
    Path((source, key)): TargetPath,
) -> Result<StatusCode, Problem> {
    app.control.set_enabled(&source, &key, false).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Polls a target at once, and then as planned.
pub(crate) async fn poll_now(
    State(app): State<App>,
    Path((source, key)): TargetPath,
) -> Result<StatusCode, Problem> {
    app.control.poll_now(&source, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Computes a target's due time anew.
pub(crate) async fn replan(
    State(app): State<App>,
    Path((source, key)): TargetPath,
) -> Result<StatusCode, Problem> {
    app.control.replan_target(&source, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a target's next complete answer as it is, without telling anybody.
pub(crate) async fn rebaseline(
    State(app): State<App>,
    Path((source, key)): TargetPath,
) -> Result<StatusCode, Problem> {
    app.control.rebaseline(&source, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
