//! A whole racing day from a seed: every moment of it is decided before it begins.

use std::collections::HashMap;

use jiff::ToSpan;
use jiff::civil::Date;
use stakeout_core::{Span, Time};

use super::ids::uuid;
use super::names::{Category, UNWATCHED, Venue, WATCHED};
use super::nz::nz_time;
use super::race::{Card, Fate, Protest, Race, Showing};
use super::truth::RaceTruth;
use crate::rng::{SplitMix64, mix};

/// How big event bodies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Only what matters, about 12 KB.
    Lean,
    /// With the runners' form, about 200 KB.
    Full,
}

/// What a day is made from.
#[derive(Clone, Debug)]
pub struct DayConfig {
    /// Decides everything that is not given here.
    pub seed: u64,
    /// The New Zealand date.
    pub nz_date: Date,
    /// Races of AU/NZ gallops and harness.
    pub races: u32,
    /// Meetings they are spread over.
    pub meetings: u32,
    /// Further meetings that a watcher of AU/NZ horses must leave out: dogs, and other countries.
    pub others: u32,
    /// The first race's start.
    pub first_start: Time,
    /// The last race's start.
    pub last_start: Time,
    /// How often the upstream renews its data; what is served is the state at the last renewal.
    pub refresh: Span,
    /// How big event bodies are.
    pub body: Body,
    /// Fixed-odds moves per runner, about.
    pub moves: u32,
    /// Meetings that are called off half-way.
    pub abandoned_meetings: u32,
    /// One in so many races shows its flucs one refresh later than its prices; 0 is none.
    pub lagging_flucs_one_in: u64,
}

impl DayConfig {
    /// A Thursday: 96 races at 12 meetings among 76 world-wide, from late morning until after midnight.
    pub fn new(seed: u64, nz_date: Date) -> DayConfig {
        let after_midnight = nz_date.saturating_add(1.day());
        DayConfig {
            seed,
            nz_date,
            races: 96,
            meetings: 12,
            others: 64,
            first_start: nz_time(nz_date, 11, 45),
            last_start: nz_time(after_midnight, 0, 35),
            refresh: Span::secs(15),
            body: Body::Lean,
            moves: 8,
            abandoned_meetings: 1,
            lagging_flucs_one_in: 0,
        }
    }

    /// The same with so many races, eight to a meeting.
    #[must_use]
    pub fn with_races(mut self, races: u32) -> DayConfig {
        self.races = races;
        self.meetings = races.div_ceil(8);
        self
    }

    fn showing(&self) -> Showing {
        Showing {
            opened: nz_time(self.nz_date, 0, 0) - Span::hours(36),
            nine_am: nz_time(self.nz_date, 9, 0),
            refresh: self.refresh,
            moves: self.moves,
            lagging_flucs_one_in: self.lagging_flucs_one_in,
            full: self.body == Body::Full,
        }
    }
}

/// A meeting before its races are made: where, and each race's start and fate.
pub(crate) struct Planned {
    pub(crate) venue: Venue,
    pub(crate) races: Vec<(Time, Fate)>,
}

#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) country: &'static str,
    pub(crate) state: &'static str,
    pub(crate) category: Category,
    /// The tote's number; meetings the tote does not cover have none, and lack more.
    pub(crate) tote_number: Option<u32>,
    pub(crate) track_condition: &'static str,
    pub(crate) races: Vec<Race>,
}

/// A racing day, as a pure function of time. Cheap to keep: a race's book is made when it is first asked for.
#[derive(Debug)]
pub struct Day {
    date: Date,
    meetings: Vec<Meeting>,
    /// Race id to meeting and race.
    index: HashMap<String, (usize, usize)>,
}

impl Day {
    /// The day of that configuration.
    pub fn new(config: &DayConfig) -> Day {
        let mut rng = SplitMix64::new(mix(config.seed) ^ 0x0064_6179);
        let mut planned = plan_watched(&mut rng, config);
        call_off(&mut rng, config, &mut planned);
        let races = planned.iter_mut().flat_map(|meeting| &mut meeting.races);
        // Every day has a protest that changes the placings, so that no test depends on luck.
        if let Some((_, fate)) = races.filter(|(_, fate)| fate.abandoned.is_none()).nth(3) {
            (fate.protest, fate.interim_after) = (Some(Protest::Upheld), Some(fate.final_after.over(2)));
        }
        planned.extend(plan_others(&mut rng, config));
        Day::of(config, planned)
    }

    pub(crate) fn of(config: &DayConfig, planned: Vec<Planned>) -> Day {
        let day_seed = mix(config.seed) ^ mix(config.first_start.us() as u64);
        let mut held: HashMap<&str, u32> = HashMap::new();
        let mut meetings: Vec<Meeting> = planned
            .into_iter()
            .zip(1..)
            .map(|(plan, number)| {
                let before = held.entry(plan.venue.0).or_default();
                *before += 1;
                meeting(mix(day_seed ^ u64::from(number)), number, *before, plan, config.showing())
            })
            .collect();
        // The upstream lists meetings in no useful order.
        meetings
            .sort_by_cached_key(|meeting| mix(day_seed ^ meeting.races.first().map_or(0, |race| race.seed)));
        let index = meetings
            .iter()
            .enumerate()
            .flat_map(|(m, meeting)| {
                meeting.races.iter().enumerate().map(move |(r, race)| (race.card.id.clone(), (m, r)))
            })
            .collect();
        Day { date: config.nz_date, meetings, index }
    }

    /// Its New Zealand date.
    pub fn date(&self) -> Date {
        self.date
    }

    /// What really happens in every watched race (AU/NZ, gallops and harness), in order of first starts.
    pub fn truth(&self) -> Vec<RaceTruth> {
        let watched = self.meetings.iter().filter(|meeting| meeting.is_watched());
        let mut all: Vec<RaceTruth> =
            watched.flat_map(|meeting| &meeting.races).map(RaceTruth::new).collect();
        all.sort_by(|a, b| (a.starts[0].1, &a.id).cmp(&(b.starts[0].1, &b.id)));
        all
    }

    /// What really happens in that race, watched or not.
    pub fn truth_of(&self, race_id: &str) -> Option<RaceTruth> {
        self.race(race_id).map(RaceTruth::new)
    }

    /// Ids of races that a watcher of AU/NZ horses must never ask for.
    pub fn unwatched(&self) -> Vec<String> {
        let others = self.meetings.iter().filter(|meeting| !meeting.is_watched());
        others.flat_map(|meeting| &meeting.races).map(|race| race.card.id.clone()).collect()
    }

    pub(crate) fn meetings(&self) -> &[Meeting] {
        &self.meetings
    }

    pub(crate) fn race(&self, id: &str) -> Option<&Race> {
        self.index.get(id).map(|(m, r)| &self.meetings[*m].races[*r])
    }
}

impl Meeting {
    pub(crate) fn is_watched(&self) -> bool {
        matches!(self.country, "NZ" | "AUS") && self.category != Category::Greyhound
    }
}

/// Meetings begin one after another through the day; the first race of all and the last are where they should be.
fn plan_watched(rng: &mut SplitMix64, config: &DayConfig) -> Vec<Planned> {
    let (count, window) =
        (config.meetings.max(1), (config.last_start - config.first_start).as_secs_f64() / 60.0);
    let window = window as i64;
    (0..count)
        .map(|n| {
            let size = i64::from(config.races / count + u32::from(n < config.races % count));
            let between = size.saturating_sub(1).max(1);
            let gap = (rng.between(28, 38) as i64).min(window / between).max(1);
            let free = (window - gap * (size - 1)).max(0);
            let first = config.first_start + Span::mins(free * i64::from(n) / i64::from(count.max(2) - 1));
            Planned { venue: WATCHED[n as usize % WATCHED.len()], races: draw_races(rng, first, gap, size) }
        })
        .collect()
}

fn plan_others(rng: &mut SplitMix64, config: &DayConfig) -> Vec<Planned> {
    (0..config.others)
        .map(|n| {
            let first = config.first_start + Span::mins(rng.between(0, 900) as i64 - 300);
            let size = rng.between(6, 12) as i64;
            Planned {
                venue: UNWATCHED[n as usize % UNWATCHED.len()],
                races: draw_races(rng, first, 20, size),
            }
        })
        .collect()
}

fn draw_races(rng: &mut SplitMix64, first: Time, gap: i64, size: i64) -> Vec<(Time, Fate)> {
    (0..size)
        .map(|n| {
            let start = first + Span::mins(gap * n);
            (start, Fate::draw(rng, start))
        })
        .collect()
}

/// Whole meetings end half-way: every race that has not jumped is off at the same moment.
fn call_off(rng: &mut SplitMix64, config: &DayConfig, planned: &mut [Planned]) {
    let count = planned.len();
    let first = rng.between(0, count as u64 - 1) as usize;
    for n in 0..(config.abandoned_meetings as usize).min(count) {
        let races = &mut planned[(first + n) % count].races;
        let half = races.len() / 2;
        let Some((middle, _)) = races.get(half) else { continue };
        let at = *middle - Span::secs(rng.between(300, 1_500) as i64);
        for (_, fate) in &mut races[half..] {
            fate.abandoned = Some(at);
        }
    }
}

/// The meeting with that number; `nth` counts those at the same venue.
fn meeting(seed: u64, number: u32, nth: u32, plan: Planned, showing: Showing) -> Meeting {
    let mut rng = SplitMix64::new(seed);
    let (name, country, state, category) = plan.venue;
    let id = uuid(seed, 0);
    let name = if nth == 1 { name.to_owned() } else { format!("{name} {nth}") };
    let (track_condition, weather) = match rng.between(0, 3) {
        0 => ("Good4", "FINE"),
        1 => ("Soft5", "OVERCAST"),
        2 => ("Heavy8", "SHOWERY"),
        _ => ("", ""),
    };
    let of = plan.races.len() as u32;
    let races = plan
        .races
        .into_iter()
        .zip(1..)
        .map(|((start, fate), number)| {
            let race_seed = mix(seed ^ mix(u64::from(number)));
            let (title, distance) = Card::details(&mut SplitMix64::new(race_seed), category);
            let card = Card {
                id: uuid(race_seed, 0),
                meeting_id: id.clone(),
                meeting_name: name.clone(),
                country,
                state,
                category,
                number,
                of,
                name: title,
                distance,
                track_condition,
                weather,
            };
            Race::new(card, race_seed, start, fate, showing)
        })
        .collect();
    let covered = matches!(country, "NZ" | "AUS") || rng.one_in(3);
    let tote_number = covered.then_some(number);
    Meeting { id, name, country, state, category, tote_number, track_condition, races }
}
