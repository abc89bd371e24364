//! `/v1/targets/…/why`: everything that explains a target. The command `stakeout why` tells the same.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use stakeout_core::adherence::{Run, unseen_bound};
use stakeout_core::{Event, LastOutcome, Span, Time};
use stakeout_store::{EventFilter, PollLog, PollOutcome, Store, StoreError, TargetRow};

use crate::app::App;
use crate::ask::Path;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::schema::Instant;

/// Notable polls shown.
const POLLS: u32 = 10;
/// The window of the promise: how long anything could have gone unseen in it.
const WINDOW: Span = Span::hours(24);
/// How far back the events of the last changed poll are looked for.
const EVENTS_BACK: u32 = 1_000;

/// Explains a target.
pub(crate) async fn serve(
    State(app): State<App>,
    Path((source, key)): Path<(String, String)>,
) -> Result<Reply<Why>, Problem> {
    let row = crate::targets::find(&app, &source, &key).await?;
    let source = app.control.source(&source);
    let evidence = gather(&*app.store, row, source.as_deref(), app.now()).await?;
    Ok(Reply(explain(&evidence)))
}

/// Collects what is known about a target; `source` is its source, if that is still configured.
pub async fn gather(
    store: &dyn Store,
    row: TargetRow,
    source: Option<&dyn stakeout_core::Source>,
    now: Time,
) -> Result<Evidence, StoreError> {
    let polls = store.polls(row.id, POLLS).await?;
    let before = !store.polled_before(&[row.id], now - WINDOW).await?.is_empty();
    let mut runs = store.runs(row.id, now - WINDOW, now).await?;
    runs.extend(row.state.run.clone());
    let filter = EventFilter {
        source: Some(row.source.clone()),
        target: Some(row.spec.key.clone()),
        ..EventFilter::default()
    };
    let events = store.newest_events(u64::MAX, &filter, EVENTS_BACK).await?;
    let refresh = source.map_or(Span::ZERO, |source| source.limits().refresh);
    let rules = source.map(|source| source.rules().len());
    Ok(Evidence { row, polls, runs, before, events, refresh, rules, now, window: WINDOW })
}

/// What is known.
pub struct Evidence {
    /// The target.
    pub row: TargetRow,
    /// Its newest notable polls.
    pub polls: Vec<PollLog>,
    /// Its runs in the window, the one that goes on included.
    pub runs: Vec<Run>,
    /// Whether one ended before the window: then it was watched from its beginning.
    pub before: bool,
    /// The target's newest events.
    pub events: Vec<Event>,
    /// How long the upstream takes to show its own changes.
    pub refresh: Span,
    /// How many rules the source has, if it is configured.
    pub rules: Option<usize>,
    /// Now.
    pub now: Time,
    /// How far back the promise reaches.
    pub window: Span,
}

/// The explanation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Why {
    /// `source/key`
    pub target: String,
    /// Whether it is switched on.
    pub enabled: bool,
    /// When it is due.
    #[schemars(with = "Option<Instant>")]
    pub due: Option<Time>,
    /// The interval of its phase, in milliseconds.
    pub interval_ms: i64,
    /// Its phase.
    pub phase: String,
    /// Why it is due then.
    pub reason: String,
    /// How the last poll ended.
    pub last_outcome: Option<&'static str>,
    /// When it was committed.
    #[schemars(with = "Option<Instant>")]
    pub last_polled: Option<Time>,
    /// When something last changed.
    #[schemars(with = "Option<Instant>")]
    pub last_changed: Option<Time>,
    /// The last failure, until a poll succeeds.
    pub last_error: Option<String>,
    /// Failed polls since the last good one.
    pub failures_in_a_row: u32,
    /// How many records it holds.
    pub records: u64,
    /// Why nothing was told, or what was.
    pub events: Vec<String>,
    /// The stretch of regular polling that is going on; spans in microseconds.
    #[schemars(with = "serde_json::Value")]
    pub run: Option<Run>,
    /// How long anything could have gone unseen since `unseen_from`, in milliseconds.
    pub unseen_ms: Option<i64>,
    /// Since when that holds.
    #[schemars(with = "Option<Instant>")]
    pub unseen_from: Option<Time>,
    /// Its newest notable polls.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub polls: Vec<PollLog>,
}

/// Explains.
pub fn explain(evidence: &Evidence) -> Why {
    let row = &evidence.row;
    let unseen = unseen(evidence);
    Why {
        target: name(row),
        enabled: row.enabled,
        due: row.schedule.due.filter(|_| row.enabled),
        interval_ms: row.schedule.interval.as_ms(),
        phase: row.schedule.phase.clone(),
        reason: row.schedule.reason.clone(),
        last_outcome: row.last_outcome.map(PollOutcome::name),
        last_polled: row.last_polled,
        last_changed: row.last_changed,
        last_error: row.last_error.clone(),
        failures_in_a_row: match row.state.last.outcome {
            LastOutcome::Good => 0,
            LastOutcome::Failed { failures, .. } => failures,
        },
        records: row.records,
        events: told(evidence),
        run: row.state.run.clone(),
        unseen_ms: unseen.map(|(bound, _)| bound.as_ms()),
        unseen_from: unseen.map(|(_, from)| from),
        polls: evidence.polls.clone(),
    }
}

/// The bound and the beginning of the window it holds for: not before the first look, of which nobody promised.
fn unseen(evidence: &Evidence) -> Option<(Span, Time)> {
    let first = evidence.runs.iter().filter_map(|run| run.first_end.and(Some(run.from))).min()?;
    let begins = evidence.now - evidence.window;
    let from = if evidence.before { begins } else { first.max(begins) };
    let bound = unseen_bound(&evidence.runs, (from, evidence.now), evidence.refresh, Span::ZERO);
    Some((bound, from))
}

/// Why nothing was told, or what was; the most telling reason first.
fn told(evidence: &Evidence) -> Vec<String> {
    let row = &evidence.row;
    let memory = &row.state.memory;
    let mut told = Vec::new();
    if !row.enabled {
        told.push(format!("it is switched off: `stakeout targets enable {}`", name(row)));
    }
    if let Some(doubt) = &memory.doubt {
        told.push(format!(
            "the answer of {} lacked most of the {} records it holds; it counts only when a second one agrees",
            doubt.at,
            row.records
        ));
    }
    if memory.rebaseline {
        told.push("the next complete answer is a new baseline: stored, not told".to_owned());
    } else if memory.meaning.is_none() {
        told.push("there is no baseline yet: the first complete answer is stored, not told".to_owned());
    }
    if evidence.rules == Some(0) {
        told.push("the configuration wants no events of this source".to_owned());
    }
    if let Some(outcome) = row.last_outcome {
        told.push(outcome_told(outcome, evidence));
    }
    told
}

fn outcome_told(outcome: PollOutcome, evidence: &Evidence) -> String {
    match outcome {
        PollOutcome::Unchanged => "the last poll saw what was known already".to_owned(),
        PollOutcome::Baseline => {
            "the last poll set the baseline: everything is stored, nothing told".to_owned()
        }
        PollOutcome::Partial => {
            "the last poll saw only a part: what it saw counts, what is missing is not taken for gone"
                .to_owned()
        }
        PollOutcome::Doubted => {
            "the last poll was too bad to be true: nothing is concluded from it".to_owned()
        }
        PollOutcome::Stale => "the last answer was older than what is known, and dropped".to_owned(),
        PollOutcome::Failed => "the last poll failed: nothing is concluded from it".to_owned(),
        PollOutcome::Changed => changed_told(evidence),
    }
}

fn changed_told(evidence: &Evidence) -> String {
    let Some(poll) = evidence.polls.iter().find(|poll| poll.outcome == PollOutcome::Changed) else {
        return "the last poll saw changes".to_owned();
    };
    // An event carries the time at which the answer that showed it was read: of a poll with several pages, that may be
    // any moment between its first request and its last answer. A target has no other poll in between.
    let told = evidence.events.iter().filter(|event| event.at >= poll.sent && event.at <= poll.ended).count();
    let proposed = poll.events as usize;
    match (proposed, proposed.saturating_sub(told)) {
        (0, _) => format!("the last poll saw {} changes, none of which a rule tells", poll.changes),
        (_, 0) => format!("the last poll saw {} changes and told {proposed} events", poll.changes),
        (_, held) => format!(
            "the last poll saw {} changes and told {told} of {proposed} events: {held} were held back (quiet time, the same key told before, or another target holds the record)",
            poll.changes
        ),
    }
}

fn name(row: &TargetRow) -> String {
    format!("{}/{}", row.source, row.spec.key)
}

#[cfg(test)]
mod tests;
