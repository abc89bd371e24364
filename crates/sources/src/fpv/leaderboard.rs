//! Who is ahead: in a race, and in the event; and when a pilot flies next.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

use super::order::{current_race, race_order};
use super::picture::{Channel, Lap, Moment, Picture, Race};

/// How many laps in a row count when the event does not say, or says one: a single lap is the best lap already.
pub const CONSECUTIVE: usize = 3;

/// One line of a leaderboard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// From 1.
    pub position: usize,
    /// How many places were gained (or, below zero, lost): in a race by its latest lap, in the event by its latest race.
    pub position_change: i64,
    /// The pilot's id.
    pub pilot: String,
    /// What they are called.
    pub name: Option<String>,
    /// Whole laps, without the holeshot.
    pub laps: usize,
    /// The fastest way from the start to the first passing of the gate.
    pub holeshot_seconds: Option<f64>,
    /// The fastest lap.
    pub best_lap_seconds: Option<f64>,
    /// The fastest so many laps in a row within one race.
    pub best_consecutive_seconds: Option<f64>,
    /// From the start to the end of the last lap, pauses taken off; in the event the sum over the races.
    pub total_seconds: Option<f64>,
}

/// How many laps in a row count in this event.
pub fn consecutive_laps(picture: &Picture) -> usize {
    let given = picture.pb_laps.and_then(|n| usize::try_from(n).ok());
    given.filter(|n| *n > 1).unwrap_or(CONSECUTIVE)
}

/// The standings of one race: most laps first, then the shortest total time.
pub fn race_leaderboard(picture: &Picture, race: &str, consecutive: usize) -> Vec<Standing> {
    let Some(race) = picture.race(race) else { return Vec::new() };
    let laps: Vec<&Lap> = picture.laps.iter().filter(|lap| lap.race == race.id).collect();
    let now = rank_in_race(race, &laps, consecutive);
    // The laps stand in the order in which they ended.
    let before =
        if laps.is_empty() { now.clone() } else { rank_in_race(race, &laps[..laps.len() - 1], consecutive) };
    standings(picture, now, &before)
}

fn rank_in_race<'a>(race: &'a Race, laps: &[&'a Lap], consecutive: usize) -> Vec<(&'a str, Tally)> {
    let mut tallies: BTreeMap<&str, Tally> =
        race.seats.iter().map(|seat| (seat.pilot.as_str(), Tally::default())).collect();
    for (pilot, laps) in by_pilot(laps) {
        tallies.insert(pilot, Tally::of(race, &laps, consecutive));
    }
    ranked(tallies, Tally::by_race)
}

/// The standings of the event: the fastest laps in a row first, then the fastest lap, then the most laps. Pilots who were
/// taken out of the event are left out.
pub fn event_leaderboard(picture: &Picture, consecutive: usize) -> Vec<Standing> {
    let order = race_order(picture);
    let rank = |without: Option<&str>| {
        let taking_part = picture.pilots.iter().filter(|(_, pilot)| !pilot.removed);
        let mut tallies: BTreeMap<&str, Tally> =
            taking_part.map(|(pilot, _)| (pilot.as_str(), Tally::default())).collect();
        for race in order.iter().filter(|race| without != Some(race.id.as_str())) {
            let laps: Vec<&Lap> = picture.laps.iter().filter(|lap| lap.race == race.id).collect();
            for (pilot, laps) in by_pilot(&laps) {
                let removed = picture.pilots.get(pilot).is_some_and(|pilot| pilot.removed);
                if !removed {
                    tallies.entry(pilot).or_default().add(&Tally::of(race, &laps, consecutive));
                }
            }
        }
        ranked(tallies, Tally::by_event)
    };
    let latest = order.iter().filter(|race| race.start.is_some()).max_by_key(|race| race.start);
    let now = rank(None);
    let before = latest.map_or_else(|| now.clone(), |race| rank(Some(&race.id)));
    standings(picture, now, &before)
}

fn by_pilot<'a>(laps: &[&'a Lap]) -> BTreeMap<&'a str, Vec<&'a Lap>> {
    let mut pilots: BTreeMap<&str, Vec<&Lap>> = BTreeMap::new();
    for lap in laps {
        pilots.entry(&lap.pilot).or_default().push(lap);
    }
    pilots
}

/// What a pilot has done.
#[derive(Clone, Debug, Default)]
struct Tally {
    laps: usize,
    holeshot: Option<f64>,
    best_lap: Option<f64>,
    best_consecutive: Option<f64>,
    total: Option<f64>,
}

impl Tally {
    /// Of one pilot's laps in one race, in the order in which they ended.
    fn of(race: &Race, laps: &[&Lap], consecutive: usize) -> Tally {
        let flown: Vec<&Lap> = laps.iter().copied().filter(|lap| lap.number > 0).collect();
        let holeshots = laps.iter().filter(|lap| lap.number <= 0).map(|lap| lap.seconds);
        let in_a_row = flown
            .windows(consecutive.max(1))
            .filter(|row| row.windows(2).all(|pair| pair[1].number == pair[0].number.saturating_add(1)));
        Tally {
            laps: flown.len(),
            holeshot: least(holeshots),
            best_lap: least(flown.iter().map(|lap| lap.seconds)),
            best_consecutive: least(in_a_row.map(|row| rounded(row.iter().map(|lap| lap.seconds).sum()))),
            total: total_seconds(race, laps),
        }
    }

    fn add(&mut self, other: &Tally) {
        let best = |a: Option<f64>, b: Option<f64>| least(a.into_iter().chain(b));
        self.laps += other.laps;
        self.holeshot = best(self.holeshot, other.holeshot);
        self.best_lap = best(self.best_lap, other.best_lap);
        self.best_consecutive = best(self.best_consecutive, other.best_consecutive);
        self.total = match (self.total, other.total) {
            (Some(a), Some(b)) => Some(rounded(a + b)),
            (a, b) => a.or(b),
        };
    }

    fn by_race(&self, other: &Tally) -> Ordering {
        let laps = other.laps.cmp(&self.laps);
        laps.then_with(|| shorter(self.total, other.total))
            .then_with(|| shorter(self.holeshot, other.holeshot))
    }

    fn by_event(&self, other: &Tally) -> Ordering {
        shorter(self.best_consecutive, other.best_consecutive)
            .then_with(|| shorter(self.best_lap, other.best_lap))
            .then_with(|| other.laps.cmp(&self.laps))
            .then_with(|| shorter(self.holeshot, other.holeshot))
    }
}

/// From the race's start to the end of the last of these laps, pauses taken off. Where a moment is missing, the laps'
/// own lengths are added up.
fn total_seconds(race: &Race, laps: &[&Lap]) -> Option<f64> {
    let last = laps.last()?;
    let flown = match (race.start, last.end) {
        (Some(Moment(start)), Some(Moment(end))) => end.saturating_sub(start) as f64 / 1e6,
        _ => laps.iter().map(|lap| lap.seconds).sum(),
    };
    Some(rounded((flown - race.paused_seconds).max(0.0)))
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e7).round() / 1e7
}

fn least(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    numbers.min_by(f64::total_cmp)
}

/// The shorter time first; who has none comes last.
fn shorter(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Equals stand in the order of their ids, so that a board never flickers.
fn ranked(tallies: BTreeMap<&str, Tally>, by: impl Fn(&Tally, &Tally) -> Ordering) -> Vec<(&str, Tally)> {
    let mut ranked: Vec<(&str, Tally)> = tallies.into_iter().collect();
    ranked.sort_by(|(_, a), (_, b)| by(a, b));
    ranked
}

fn standings(picture: &Picture, now: Vec<(&str, Tally)>, before: &[(&str, Tally)]) -> Vec<Standing> {
    let standing = |(index, (pilot, tally)): (usize, (&str, Tally))| {
        let was = before.iter().position(|(other, _)| *other == pilot).unwrap_or(index);
        Standing {
            position: index + 1,
            position_change: was as i64 - index as i64,
            pilot: pilot.to_owned(),
            name: picture.pilots.get(pilot).and_then(|pilot| pilot.name.clone()),
            laps: tally.laps,
            holeshot_seconds: tally.holeshot,
            best_lap_seconds: tally.best_lap,
            best_consecutive_seconds: tally.best_consecutive,
            total_seconds: tally.total,
        }
    };
    now.into_iter().enumerate().map(standing).collect()
}

/// Where a pilot is on the way to a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// It is being flown.
    Racing,
    /// It is the current one and about to start.
    Staging,
    /// It comes later.
    Waiting,
}

/// A race that a pilot will fly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextRace {
    /// Its id.
    pub race_id: String,
    /// Its place in the order.
    pub order: i64,
    /// "You race in N": how many races there are until this one, 0 for the current one.
    pub races_away: usize,
    /// Where the pilot is on the way to it.
    pub readiness: Readiness,
    /// The channel to fly on.
    pub channel: Option<String>,
    /// What the channel is called.
    pub channel_name: Option<String>,
    /// The channel's colour.
    pub colour: Option<String>,
}

/// The races from the current one on that are not completed, with their numbers.
pub fn races_to_fly(picture: &Picture) -> Vec<(&Race, i64)> {
    let Some(from) = current_race(picture).and_then(|current| current.order) else { return Vec::new() };
    let numbered = race_order(picture).into_iter().zip(1..).filter(|(_, number)| *number >= from);
    numbered.filter(|(race, _)| !race.is_completed()).collect()
}

/// The next races of a pilot, at most so many, the first first.
pub fn next_races(picture: &Picture, pilot: &str, most: usize) -> Vec<NextRace> {
    let current = current_race(picture).and_then(|current| current.order);
    let to_fly = races_to_fly(picture).into_iter().enumerate();
    let own = to_fly.filter_map(|(races_away, (race, order))| {
        let seat = race.seats.iter().find(|seat| seat.pilot == pilot)?;
        let channel: Option<&Channel> = seat.channel.as_ref().and_then(|id| picture.channels.get(id));
        let readiness = match (race.is_running(), Some(order) == current) {
            (true, _) => Readiness::Racing,
            (false, true) => Readiness::Staging,
            (false, false) => Readiness::Waiting,
        };
        Some(NextRace {
            race_id: race.id.clone(),
            order,
            races_away,
            readiness,
            channel: seat.channel.clone(),
            channel_name: channel.and_then(|channel| channel.name.clone()),
            colour: channel.and_then(|channel| channel.colour.clone()),
        })
    });
    own.take(most).collect()
}
