//! Whether a race was looked at when its schedule says, and never once it was over.

use stakeout_core::cadence::{self, Seat};
use stakeout_core::{Facts, Last, LastOutcome, Plan, Source, Span, Stage, TargetSpec, Time};
use stakeout_sim::nztab::RaceTruth;
use stakeout_sources::racing::RacingConfig;

use super::Look;
use super::watcher::stage;

/// Jitter, the queue and the way to the upstream: later than this a poll did not come.
const LATE: Span = Span::secs(5);

/// Whether the configuration asks for races like this one.
pub(super) fn is_watched(race: &RaceTruth, config: &RacingConfig) -> bool {
    // `AU` is another word for `AUS`.
    let country = config
        .countries
        .iter()
        .any(|wanted| wanted.eq_ignore_ascii_case(race.country) || (wanted == "AU" && race.country == "AUS"));
    country && config.categories.iter().any(|wanted| wanted.eq_ignore_ascii_case(race.category.letter()))
}

/// Polls that were due and did not come, and polls that came when nothing more was to happen, in words.
pub(super) fn lapses(source: &dyn Source, race: &RaceTruth, looks: &[Look], until: Time) -> Vec<String> {
    let mut lapses = Vec::new();
    let mut course: Option<Course<'_>> = None;
    for look in looks {
        match &mut course {
            None if look.event => {
                lapses.push(format!("asked before it was listed: {} at {}", race.id, look.at))
            }
            None => {
                // A race that was over when it was first listed is never watched.
                course =
                    (!race.status_at(look.at).is_terminal()).then(|| Course::begin(source, race, look.at));
            }
            Some(course) => {
                lapses.extend(course.overdue(look.at));
                if look.event {
                    lapses.extend(course.polled(look.at));
                } else {
                    course.listed(look.at);
                }
            }
        }
    }
    lapses.extend(course.and_then(|mut course| course.overdue(until)));
    lapses
}

/// A race on its way, as far as its looks have told.
struct Course<'a> {
    source: &'a dyn Source,
    race: &'a RaceTruth,
    facts: Facts,
    last: Last,
    due: Option<Time>,
}

impl<'a> Course<'a> {
    fn begin(source: &'a dyn Source, race: &'a RaceTruth, now: Time) -> Course<'a> {
        let facts = Facts { start: Some(race.start_at(now)), ..Facts::default() };
        let mut course = Course { source, race, facts, last: Last::default(), due: None };
        course.due = cadence::next(&course.plan(), &course.facts, &course.last, now, &SEAT).due;
        course
    }

    fn plan(&self) -> Plan {
        self.source.plan(&TargetSpec::new(format!("race/{}", self.race.id), "race"), &self.facts)
    }

    /// The poll that is due and has not come by now, once.
    fn overdue(&mut self, now: Time) -> Option<String> {
        let due = self.due.filter(|due| *due + LATE < now)?;
        self.due = None;
        Some(format!("never asked: {} at {due}", self.race.id))
    }

    fn polled(&mut self, now: Time) -> Option<String> {
        let over = self.facts.stage == Stage::Over;
        let stage = stage(self.race, now, self.facts.stage);
        // Grids count from the due time, not from when the poll came to be sent.
        let slot = self.due.filter(|due| *due <= now).unwrap_or(now);
        let since = if stage == self.facts.stage { self.facts.stage_since } else { Some(slot) };
        let start = Some(self.race.start_at(now));
        self.facts = Facts { start, stage, stage_since: since, ..Facts::default() };
        self.last = Last { slot: Some(slot), outcome: LastOutcome::Good };
        self.due = cadence::next(&self.plan(), &self.facts, &self.last, now, &SEAT).due;
        over.then(|| format!("asked when it was over: {} at {now}", self.race.id))
    }

    /// The list of meetings may know of another start before the race's own poll does.
    fn listed(&mut self, now: Time) {
        let start = Some(self.race.start_at(now));
        if self.facts.start != start && self.facts.stage != Stage::Over {
            self.facts.start = start;
            self.due = cadence::replan(&self.plan(), &self.facts, &self.last, now, &SEAT).due;
        }
    }
}

/// A countdown's grid is the same for every seat.
const SEAT: Seat = Seat { spread: 0, priority: 80, budgeted: None, bell: None };
