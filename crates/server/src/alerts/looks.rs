//! When a target was looked at. The log has the polls that brought something, failed, were late or came after missed ones.
//! Of the others only the stretch of regular polling is kept, with its ends and how many they were: when each of them was
//! is worked out here, by the cadence that made them.

use std::collections::BTreeMap;

use stakeout_core::adherence::Run;
use stakeout_core::alert::Alerts;
use stakeout_core::cadence::{self, Seat};
use stakeout_core::{Facts, Last, LastOutcome, Source, Span, TargetSpec, Time};
use stakeout_store::{PollLog, PollOutcome, Store, StoreError, TargetRow};

/// The most polls of the log that are read of one target, and the most looks that are worked out between two of them.
const MOST_POLLS: u32 = 10_000;

/// A look at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// When the first request was sent, and when it should have been.
    pub(super) sent: Time,
    pub(super) due: Time,
    /// When the answer was whole.
    pub(super) ended: Time,
    pub(super) outcome: PollOutcome,
    /// How many should have come before it, and did not.
    pub(super) missed: u64,
    pub(super) known: Known,
}

/// How well it is known when a look was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It stands in the log.
    Logged,
    /// It is the end of a stretch, or the cadence says so.
    Planned,
    /// It was somewhere between two others.
    Guessed,
}

impl Look {
    /// Whether it showed everything that was there.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.outcome, PollOutcome::Unchanged | PollOutcome::Changed | PollOutcome::Baseline)
    }

    fn of_log(poll: &PollLog) -> Look {
        let PollLog { sent, due, ended, outcome, missed, .. } = *poll;
        Look { sent, due, ended, outcome, missed, known: Known::Logged }
    }

    /// One that saw nothing new and came in time.
    fn quiet(due: Time, sent: Time, ended: Time, known: Known) -> Look {
        Look { sent, due, ended, outcome: PollOutcome::Unchanged, missed: 0, known }
    }
}

/// What decides when a target is looked at.
pub(super) struct Rhythm<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) spec: &'a TargetSpec,
    /// The rules in force, whose bells ask for looks of their own.
    pub(super) rules: &'a dyn Alerts,
    /// What was known of the target at a moment.
    pub(super) facts: &'a (dyn Fn(Time) -> Facts + Sync),
}

/// The looks at a target since a moment.
pub(super) async fn looks(
    store: &dyn Store,
    row: &TargetRow,
    rhythm: Option<&Rhythm<'_>>,
    since: Time,
) -> Result<Vec<Look>, StoreError> {
    let mut logged = store.polls(row.id, MOST_POLLS).await?;
    logged.reverse();
    // Up to now, whatever the window: they are numbered from the last one.
    let mut runs = store.runs(row.id, since, Time(i64::MAX)).await?;
    runs.extend(row.state.run.clone());
    Ok(filled(&logged, &runs, row.poll_no, rhythm, since))
}

/// The looks of a target that is gone: the log does not say any more which of its polls were this one's.
pub(super) fn looks_of_runs(runs: &[Run], rhythm: Option<&Rhythm<'_>>, since: Time) -> Vec<Look> {
    filled(&[], runs, runs.iter().map(|run| run.polls).sum(), rhythm, since)
}

/// All looks, from those of the log and the stretches up to the poll with the number `last`.
fn filled(
    logged: &[PollLog],
    runs: &[Run],
    last: u64,
    rhythm: Option<&Rhythm<'_>>,
    since: Time,
) -> Vec<Look> {
    let took = usual_duration(logged);
    let mut known: BTreeMap<u64, Look> =
        logged.iter().map(|poll| (poll.poll_no, Look::of_log(poll))).collect();
    for (number, look) in ends(runs, last, took) {
        let before =
            known.range(..=number).next_back().is_none_or(|(n, one)| *n < number && one.ended <= look.sent);
        let after = known.range(number..).next().is_none_or(|(n, one)| *n > number && one.sent >= look.ended);
        // A poll that the store refused is in the log and in no stretch, so the numbers may be off by a few.
        if before && after {
            known.insert(number, look);
        }
    }
    let mut all: Vec<Look> = Vec::with_capacity(known.len());
    let mut slot = None;
    let mut failures = 0;
    let mut known = known.into_iter().peekable();
    while let Some((number, look)) = known.next() {
        all.push(look);
        failures = if look.outcome == PollOutcome::Failed { failures + 1 } else { 0 };
        let Some((next_number, next)) = known.peek() else { break };
        let missing = next_number - number - 1;
        let from = Step { look, slot: slot.unwrap_or(look.due), failures };
        slot = None;
        // Whatever is not in the log went well.
        if missing > 0 {
            failures = 0;
        }
        if next.ended < since {
            continue;
        }
        let planned = rhythm.filter(|_| missing <= MOST_POLLS.into());
        match planned.and_then(|rhythm| rhythm.between(&from, next, missing, took)) {
            Some((looks, next_slot)) => {
                all.extend(looks);
                slot = next_slot;
            }
            // Of too many the first ones are enough to know that it went well.
            None => all.extend(evenly(&look, next, missing, took).take(MOST_POLLS as usize)),
        }
    }
    all.retain(|look| look.ended >= since);
    all
}

/// How long a poll usually takes here.
fn usual_duration(logged: &[PollLog]) -> Span {
    let answered = logged.iter().filter(|poll| poll.outcome != PollOutcome::Failed);
    let mut took: Vec<Span> = answered.map(|poll| poll.ended - poll.sent).collect();
    took.sort_unstable();
    took.get(took.len() / 2).copied().unwrap_or(Span::ZERO)
}

/// The first and the last look of each stretch, by number.
fn ends(runs: &[Run], last: u64, took: Span) -> Vec<(u64, Look)> {
    let mut ends = Vec::with_capacity(runs.len() * 2);
    let mut last = last;
    for run in runs.iter().rev() {
        let Some(before) = last.checked_sub(run.polls) else { break };
        // The earlier one in front: of a stretch of a single poll its beginning is known best.
        ends.push((before + 1, Look::quiet(run.from, run.from, run.from + took, Known::Planned)));
        ends.push((last, Look::quiet(run.to - took, run.to - took, run.to, Known::Planned)));
        last = before;
    }
    ends
}

/// So many looks between two others, at the same distance.
fn evenly(from: &Look, to: &Look, missing: u64, took: Span) -> impl Iterator<Item = Look> {
    let (begin, whole) = (from.sent, to.sent - from.sent);
    let parts = missing as i64 + 1;
    (1..parts).map(move |n| {
        let sent = begin + Span::us((i128::from(whole.as_us()) * i128::from(n) / i128::from(parts)) as i64);
        Look::quiet(sent, sent, sent + took, Known::Guessed)
    })
}

/// A look that others follow.
struct Step {
    look: Look,
    /// The grid time it was due at, as far as it is known.
    slot: Time,
    /// Polls in a row that failed, this one included.
    failures: u32,
}

impl Rhythm<'_> {
    /// The looks between two others, if the cadence makes just so many, and the grid time of the latter.
    fn between(&self, from: &Step, to: &Look, missing: u64, took: Span) -> Option<(Vec<Look>, Option<Time>)> {
        let outcome = match from.failures {
            0 => LastOutcome::Good,
            failures => LastOutcome::Failed { failures, not_before: None },
        };
        let (mut last, mut ended) = (Last { slot: Some(from.slot), outcome }, from.look.ended);
        let mut looks = Vec::new();
        loop {
            let (slot, due, interval) = self.next(&last, ended)?;
            if looks.len() as u64 == missing {
                // Where none is missing, the next one is where it is: it may have been asked for by hand.
                let fits = missing == 0 || (due - to.due).max(to.due - due) <= interval.over(2);
                return fits.then_some((looks, (due == to.due).then_some(slot)));
            }
            if due >= to.sent {
                return None;
            }
            looks.push(Look::quiet(due, due, due + took, Known::Planned));
            (last, ended) = (Last { slot: Some(slot), outcome: LastOutcome::Good }, due + took);
        }
    }

    /// When it is due after a poll that ended at `now`, without and with its jitter, and the interval there.
    fn next(&self, last: &Last, now: Time) -> Option<(Time, Time, Span)> {
        let facts = (self.facts)(now);
        let plan = self.source.plan(self.spec, &facts);
        let spread = self.spec.spread(self.source.name());
        let bell = self.rules.bell(self.source.name(), &facts, now);
        let seat = Seat { spread, priority: self.spec.priority, budgeted: None, bell };
        let next = cadence::next(&plan, &facts, last, now, &seat);
        let slot = next.due?;
        let jitter = cadence::jitter(spread, slot, next.interval, self.source.limits().max_jitter);
        Some((slot, slot + jitter, next.interval))
    }
}

#[cfg(test)]
mod tests {
    use stakeout_core::adherence::{Account, Look as Polled, Punctuality, Sight};

    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_secs(1_800_000_000 + secs)
    }

    /// A poll in the log that took a second.
    fn logged(poll_no: u64, secs: i64, outcome: PollOutcome) -> PollLog {
        PollLog {
            poll_no,
            due: at(secs),
            sent: at(secs),
            ended: at(secs + 1),
            phase: "fixed".to_owned(),
            outcome,
            late: None,
            missed: 0,
            missed_cause: None,
            requests: 1,
            bytes: 0,
            changes: 0,
            events: 0,
            error_class: None,
            detail: None,
        }
    }

    /// The stretches of polls that were sent at these seconds and took one each, every ten seconds if all goes well.
    fn runs(secs: &[i64]) -> Vec<Run> {
        let account =
            Account { lateness: Span::ZERO, punctuality: Punctuality::OnTime, missed: 0, missed_cause: None };
        let (mut finished, mut current): (Vec<Run>, Option<Run>) = (Vec::new(), None);
        for secs in secs {
            let look = Polled {
                phase: "fixed",
                interval: Span::secs(10),
                start: at(*secs),
                end: at(secs + 1),
                sight: Sight::Complete,
                account,
            };
            match current.as_mut() {
                Some(run) => finished.extend(run.observe(&look)),
                None => current = Some(Run::begin(&look)),
            }
        }
        finished.into_iter().chain(current).collect()
    }

    /// The seconds at which each was sent, and how well that is known.
    fn sent(looks: &[Look]) -> Vec<(i64, Known)> {
        looks.iter().map(|look| ((look.sent - at(0)).as_ms() / 1_000, look.known)).collect()
    }

    #[test]
    fn looks_that_nobody_logged_are_between_those_that_are_known() {
        use Known::{Guessed, Logged, Planned};
        let runs = runs(&[0, 10, 20, 30, 40, 95, 105]);
        let log = [logged(3, 20, PollOutcome::Changed)];
        assert_eq!(
            sent(&filled(&log, &runs, 7, None, at(0))),
            [
                (0, Planned),
                (10, Guessed),
                (20, Logged),
                (30, Guessed),
                (40, Planned),
                (95, Planned),
                (105, Planned)
            ]
        );
        assert_eq!(sent(&filled(&log, &runs, 7, None, at(60))), [(95, Planned), (105, Planned)]);
        assert_eq!(looks_of_runs(&runs, None, at(0)).len(), 7, "without a log as many");
        assert!(looks_of_runs(&[], None, at(0)).is_empty());
        let far = [logged(1, 0, PollOutcome::Failed), logged(1_000_001, 1_000_000, PollOutcome::Failed)];
        let looks = filled(&far, &[], 1_000_001, None, at(0));
        assert_eq!((looks[1].sent, looks.len()), (at(1), MOST_POLLS as usize + 2), "of too many the first");
    }

    #[test]
    fn a_poll_that_the_store_refused_is_in_no_stretch_and_breaks_no_order() {
        use Known::{Guessed, Logged, Planned};
        let runs = runs(&[0, 10, 30, 40]);
        // By the stretch's count the poll at 0 would be the second one.
        let log = [logged(1, 0, PollOutcome::Changed), logged(3, 20, PollOutcome::Failed)];
        assert_eq!(
            sent(&filled(&log, &runs, 5, None, at(0))),
            [(0, Logged), (10, Guessed), (20, Logged), (30, Guessed), (40, Planned)]
        );
    }
}
