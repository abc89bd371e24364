//! From what is known about a target to an explanation, without I/O.

use serde::Serialize;
use stakeout_core::adherence::{Run, unseen_bound};
use stakeout_core::{Event, LastOutcome, Span, Time};
use stakeout_store::{PollLog, PollOutcome, TargetRow};

use crate::output::Table;
use crate::{target, when};

/// What is known.
pub(super) struct Evidence {
    pub(super) row: TargetRow,
    pub(super) polls: Vec<PollLog>,
    pub(super) runs: Vec<Run>,
    /// The target's newest events.
    pub(super) events: Vec<Event>,
    pub(super) refresh: Span,
    /// How many rules the source has, if it is configured.
    pub(super) rules: Option<usize>,
    pub(super) now: Time,
    pub(super) window: Span,
}

/// The explanation.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    target: String,
    enabled: bool,
    due: Option<Time>,
    interval_ms: i64,
    phase: String,
    reason: String,
    last_outcome: Option<&'static str>,
    last_polled: Option<Time>,
    last_changed: Option<Time>,
    last_error: Option<String>,
    failures_in_a_row: u32,
    records: u64,
    /// Why nothing was told, or what was.
    events: Vec<String>,
    /// The stretch of regular polling that is going on.
    run: Option<Run>,
    /// How long anything could have gone unseen since `unseen_from`, in milliseconds.
    unseen_ms: Option<i64>,
    unseen_from: Option<Time>,
    polls: Vec<PollLog>,
}

/// Explains.
pub(super) fn explain(evidence: &Evidence) -> Why {
    let row = &evidence.row;
    let unseen = unseen(evidence);
    Why {
        target: target::name(row),
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
    let from = first.max(evidence.now - evidence.window);
    let bound = unseen_bound(&evidence.runs, (from, evidence.now), evidence.refresh, Span::ZERO);
    Some((bound, from))
}

/// Why nothing was told, or what was; the most telling reason first.
fn told(evidence: &Evidence) -> Vec<String> {
    let row = &evidence.row;
    let memory = &row.state.memory;
    let mut told = Vec::new();
    if !row.enabled {
        told.push(format!("it is switched off: `stakeout targets enable {}`", target::name(row)));
    }
    if let Some(doubt) = &memory.doubt {
        told.push(format!(
            "the answer of {} lacked most of the {} records it holds; it counts only when a second one agrees",
            when::at(doubt.at, evidence.now),
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
    // An event carries the time at which its poll was answered.
    let told = evidence.events.iter().filter(|event| event.at == poll.ended).count();
    let proposed = poll.events as usize;
    match (proposed, proposed.saturating_sub(told)) {
        (0, _) => format!("the last poll saw {} changes, none of which a rule tells", poll.changes),
        (_, 0) => format!("the last poll saw {} changes and told {told} events", poll.changes),
        (_, held) => format!(
            "the last poll saw {} changes and told {told} of {proposed} events: {held} were held back (quiet time, the same key told before, or another target holds the record)",
            poll.changes
        ),
    }
}

impl Why {
    /// For people.
    pub(super) fn text(&self, evidence: &Evidence) -> String {
        let now = evidence.now;
        let at = |time: Option<Time>| time.map_or_else(|| "never".to_owned(), |time| when::at(time, now));
        let mut lines = vec![self.target.clone()];
        let mut say = |name: &str, what: String| lines.push(format!("  {name:<10} {what}"));
        let due = if self.enabled { at(self.due) } else { "never: it is switched off".to_owned() };
        say("due", due);
        say("every", format!("{}, phase {}", Span::ms(self.interval_ms), self.phase));
        say("because", self.reason.clone());
        say("last poll", format!("{}, {}", self.last_outcome.unwrap_or("none"), at(self.last_polled)));
        if let Some(error) = &self.last_error {
            say("error", format!("{error} ({} in a row)", self.failures_in_a_row));
        }
        say("holds", format!("{} records, last changed {}", self.records, at(self.last_changed)));
        for (n, event) in self.events.iter().enumerate() {
            say(if n == 0 { "events" } else { "" }, event.clone());
        }
        if let Some(run) = &self.run {
            let since = when::at(run.from, now);
            say(
                "run",
                format!("polls since {since}: {}, late {}, missed {}", run.polls, run.late, run.missed),
            );
        }
        say(
            "unseen",
            match (self.unseen_ms, self.unseen_from) {
                (Some(ms), Some(from)) => format!("at most {} since {}", Span::ms(ms), when::at(from, now)),
                _ => "no complete answer in the last day: nothing can be promised".to_owned(),
            },
        );
        if !self.polls.is_empty() {
            lines.push("  notable polls, the newest first".to_owned());
            lines.extend(polls_table(&self.polls, now).lines().map(|line| format!("    {line}")));
        }
        lines.join("\n")
    }
}

fn polls_table(polls: &[PollLog], now: Time) -> String {
    let mut table =
        Table::new(&["POLL", "SENT", "OUTCOME", "LATENESS", "TOOK", "CHANGES", "EVENTS", "DETAIL"]);
    for poll in polls {
        let late = poll.late.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
        let missed = match (poll.missed, poll.missed_cause) {
            (0, _) => None,
            (n, Some(cause)) => Some(format!("{n} missed before it ({})", cause.name())),
            (n, None) => Some(format!("{n} missed before it")),
        };
        let failed = poll.error_class.as_ref().map(|class| format!("{class}:"));
        let detail = [missed, failed, poll.detail.clone()];
        table.row([
            poll.poll_no.to_string(),
            when::relative(poll.sent, now),
            poll.outcome.name().to_owned(),
            format!("{}{late}", poll.sent - poll.due),
            (poll.ended - poll.sent).to_string(),
            poll.changes.to_string(),
            poll.events.to_string(),
            detail.into_iter().flatten().collect::<Vec<_>>().join(" "),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests;
