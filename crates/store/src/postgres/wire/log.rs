//! What the log keeps of a poll: its line, and the stretch of regular polling that it ended.

use serde::Serialize;
use stakeout_core::adherence::{Cause, Run};

use crate::{PollCommit, PollLog};

#[derive(Serialize)]
pub(super) struct LogJson<'a> {
    poll_no: i64,
    due: i64,
    sent: i64,
    ended: i64,
    phase: &'a str,
    outcome: &'static str,
    late: Option<&'static str>,
    missed: i64,
    missed_cause: Option<&'static str>,
    requests: u32,
    bytes: i64,
    changes: u32,
    events: u32,
    error_class: Option<&'a str>,
    detail: Option<&'a str>,
}

impl<'a> LogJson<'a> {
    pub(super) fn of(log: &'a PollLog) -> LogJson<'a> {
        LogJson {
            poll_no: log.poll_no as i64,
            due: log.due.us(),
            sent: log.sent.us(),
            ended: log.ended.us(),
            phase: &log.phase,
            outcome: log.outcome.name(),
            late: log.late.map(Cause::name),
            missed: log.missed as i64,
            missed_cause: log.missed_cause.map(Cause::name),
            requests: log.requests,
            bytes: log.bytes as i64,
            changes: log.changes,
            events: log.events,
            error_class: log.error_class.as_deref(),
            detail: log.detail.as_deref(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct RunJson {
    from: i64,
    to: i64,
    body: String,
}

impl RunJson {
    pub(super) fn of(run: &Run) -> serde_json::Result<RunJson> {
        Ok(RunJson { from: run.from.us(), to: run.to.us(), body: serde_json::to_string(run)? })
    }
}

#[derive(Default, Serialize)]
struct NotesJson<'a> {
    logs: Vec<Placed<LogJson<'a>>>,
    runs: Vec<Placed<RunJson>>,
}

#[derive(Serialize)]
struct Placed<T> {
    /// Counted from 1, as the database counts.
    place: usize,
    #[serde(flatten)]
    what: T,
}

/// What the log says of polls that brought nothing; `None` when it has nothing to say.
pub(in super::super) fn notes<'a>(
    polls: impl Iterator<Item = &'a PollCommit>,
) -> serde_json::Result<Option<String>> {
    let mut notes = NotesJson::default();
    for (place, poll) in (1..).zip(polls) {
        notes.logs.extend(poll.log.as_ref().map(|log| Placed { place, what: LogJson::of(log) }));
        if let Some(run) = &poll.finished_run {
            notes.runs.push(Placed { place, what: RunJson::of(run)? });
        }
    }
    let nothing = notes.logs.is_empty() && notes.runs.is_empty();
    (!nothing).then(|| serde_json::to_string(&notes)).transpose()
}
