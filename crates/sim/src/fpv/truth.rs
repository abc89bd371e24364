//! What is true at any time: the race order, the current race and by which rule, laps and statuses.
//!
//! Written straight from the rules, on purpose without anything in common with the code it is compared with.

use std::collections::BTreeMap;

use stakeout_core::Time;

use super::blind::last_readable;
use super::changes::{Change, changes};
use super::event::Event;
use super::guid::Guid;
use super::state::{Content, EventFile, File, Race, Round};

/// What is true in an event. Everything concerns the event that is open at the time asked for.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'a> {
    event: &'a Event,
}

/// The current race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// The race.
    pub race: Guid,
    /// Its place in the race order, from 1.
    pub order: u32,
    /// Why: 1 active, 2 next after the last completed, 3 the last completed because none is left, 4 the first.
    pub rule: u8,
}

/// How far a race is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Not started.
    Unflown,
    /// Started and not ended.
    Active,
    /// Ended.
    Ended,
    /// Not valid, or in a round that is not.
    Invalid,
}

/// A race at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceTruth {
    /// Its id.
    pub id: Guid,
    /// Its round's id.
    pub round: Guid,
    /// Its number within the round.
    pub number: u32,
    /// Its place in the race order, from 1; none when it is invalid or its round is invalid or unknown.
    pub order: Option<u32>,
    /// How far it is.
    pub status: Status,
    /// When it started.
    pub start: Option<Time>,
    /// When it ended.
    pub end: Option<Time>,
    /// Its pilots, without empty slots.
    pub pilots: Vec<Guid>,
}

/// A lap that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LapTruth {
    /// The race.
    pub race: Guid,
    /// The lap's id.
    pub id: Guid,
    /// Who flew it.
    pub pilot: Guid,
    /// 0 is the holeshot.
    pub number: u32,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// False when its detection does not count.
    pub valid: bool,
}

impl<'a> Truth<'a> {
    pub(crate) fn new(event: &'a Event) -> Truth<'a> {
        Truth { event }
    }

    /// The current race at `now`; none only in an event without races.
    pub fn current(&self, now: Time) -> Option<Current> {
        View::at(self.event, now).current()
    }

    /// The current race by the last version of each file that could be read until `now`: what a watcher without any
    /// delay would hold.
    pub fn current_readable(&self, now: Time) -> Option<Current> {
        View::readable(self.event, now).current()
    }

    /// The current race by other versions of the files: of each, the one of the moment that `when` gives for its path,
    /// and none where it gives none. What a watcher that looked then would hold.
    pub fn current_seen(&self, event: Guid, when: impl Fn(&str) -> Option<Time>) -> Option<Current> {
        View::of(self.event, event, |file| when(&file.path(event))).current()
    }

    /// The races in their order: the first has order 1.
    pub fn order(&self, now: Time) -> Vec<Guid> {
        View::at(self.event, now).ordered().iter().map(|race| race.id).collect()
    }

    /// Every race that is listed and has a file, by id.
    pub fn races(&self, now: Time) -> Vec<RaceTruth> {
        View::at(self.event, now).races()
    }

    /// The laps told so far, by race and in the order told.
    pub fn laps(&self, now: Time) -> Vec<LapTruth> {
        View::at(self.event, now).races.iter().flat_map(|race| laps(race)).collect()
    }

    /// The race that `/current` names, if the version has it.
    pub fn hint(&self, now: Time) -> Option<Guid> {
        self.event.hint.at(now).copied().flatten()
    }

    /// Whether connections are refused at `now`.
    pub fn is_off(&self, now: Time) -> bool {
        self.event.blinds.iter().any(|blind| blind.file.is_none() && (blind.from..blind.until).contains(&now))
    }

    /// Everything that changes, in order of time.
    pub fn changes(&self) -> &'a [Change] {
        self.event.changes.get_or_init(|| changes(self.event))
    }
}

/// The open event's files at one moment.
pub(crate) struct View<'a> {
    rounds: &'a [Round],
    pub(crate) races: Vec<&'a Race>,
}

impl<'a> View<'a> {
    pub(crate) fn at(event: &'a Event, now: Time) -> View<'a> {
        View::of(event, event.id(now), |_| Some(now))
    }

    fn readable(event: &'a Event, now: Time) -> View<'a> {
        let page_read = |at| last_readable(&event.blinds, Guid::NONE, File::Event, at);
        let open = event.id(page_read(now));
        View::of(event, open, |file| Some(last_readable(&event.blinds, open, file, now)))
    }

    fn of(event: &'a Event, open: Guid, when: impl Fn(File) -> Option<Time>) -> View<'a> {
        let read = |file| event.files.get(&(open, file))?.at(when(file)?).map(|saved| &saved.content);
        let listed = match read(File::Event) {
            Some(Content::Event(EventFile { races, .. })) => races.as_slice(),
            _ => &[],
        };
        let rounds = match read(File::Rounds) {
            Some(Content::Rounds(rounds)) => rounds.as_slice(),
            _ => &[],
        };
        let races = listed.iter().filter_map(|id| match read(File::Race(*id)) {
            Some(Content::Race(race)) => Some(race),
            _ => None,
        });
        View { rounds, races: races.collect() }
    }

    /// Valid races of valid, known rounds by (round order, race number, race id).
    pub(crate) fn ordered(&self) -> Vec<&'a Race> {
        // A round that has no order yet stands where its number says.
        let order = |round: &Round| if round.order < 0 { i64::from(round.number) * 100 } else { round.order };
        let orders: BTreeMap<Guid, i64> =
            self.rounds.iter().filter(|round| round.valid).map(|round| (round.id, order(round))).collect();
        let valid = self.races.iter().filter(|race| race.valid);
        let mut keyed: Vec<(i64, u32, Guid, &Race)> = valid
            .filter_map(|race| orders.get(&race.round).map(|order| (*order, race.number, race.id, *race)))
            .collect();
        keyed.sort_by_key(|(order, number, id, _)| (*order, *number, *id));
        keyed.into_iter().map(|(_, _, _, race)| race).collect()
    }

    pub(crate) fn current(&self) -> Option<Current> {
        let order = self.ordered();
        let told = |at: usize, rule| Some(Current { race: order[at].id, order: at as u32 + 1, rule });
        let active = |race: &Race| race.start.is_some() && race.end.is_none();
        let completed = |race: &Race| race.start.is_some() && race.end.is_some();
        let started_last =
            (0..order.len()).filter(|n| active(order[*n])).max_by_key(|n| (order[*n].start, *n));
        if let Some(at) = started_last {
            return told(at, 1);
        }
        // Races already completed are behind us wherever they stand; one without pilots is taken only when all that
        // are left are so.
        let first_of = |from: usize| {
            let left: Vec<usize> = (from..order.len()).filter(|n| !completed(order[*n])).collect();
            let with_pilots = left.iter().find(|n| order[**n].pilots().next().is_some());
            with_pilots.or(left.first()).copied()
        };
        // Races are flown out of order: the last completed is the last in the order, whenever it was flown.
        let Some(last) = (0..order.len()).rfind(|n| completed(order[*n])) else {
            return first_of(0).and_then(|at| told(at, 4));
        };
        match first_of(last + 1) {
            Some(at) => told(at, 2),
            None => told(last, 3),
        }
    }

    fn races(&self) -> Vec<RaceTruth> {
        let order = self.ordered();
        let invalid_round = |id: Guid| self.rounds.iter().any(|round| round.id == id && !round.valid);
        let mut all: Vec<RaceTruth> = self
            .races
            .iter()
            .map(|race| RaceTruth {
                id: race.id,
                round: race.round,
                number: race.number,
                order: order.iter().position(|other| other.id == race.id).map(|at| at as u32 + 1),
                status: match (race.start, race.end) {
                    _ if !race.valid || invalid_round(race.round) => Status::Invalid,
                    (None, _) => Status::Unflown,
                    (Some(_), None) => Status::Active,
                    (Some(_), Some(_)) => Status::Ended,
                },
                start: race.start,
                end: race.end,
                pilots: race.pilots().collect(),
            })
            .collect();
        all.sort_by_key(|race| race.id);
        all
    }
}

/// A lap's pilot is found through its detection.
pub(crate) fn laps(race: &Race) -> impl Iterator<Item = LapTruth> + '_ {
    race.laps.iter().filter_map(|lap| {
        let detection = race.detection(lap.detection)?;
        Some(LapTruth {
            race: race.id,
            id: lap.id,
            pilot: detection.pilot,
            number: lap.number,
            start: lap.start,
            end: lap.end,
            valid: detection.valid,
        })
    })
}
