//! A race's book: who runs, at what prices, where the money is, and how it ends.

use stakeout_core::{Span, Time};

use super::form;
use super::ids::uuid;
use super::money::{self, Share, Tracker};
use super::names::{self, Category};
use super::odds::{self, Fluc, Odds};
use super::race::{Protest, Race, Status};
use super::render_runner;
use crate::rng::SplitMix64;
use crate::timeline::Timeline;

/// A runner that will not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratching {
    /// When it was told, in whole seconds.
    pub at: Time,
    /// Within the last hour.
    pub late: bool,
}

#[derive(Debug)]
pub(crate) struct Entrant {
    pub(crate) id: String,
    pub(crate) number: u32,
    pub(crate) name: String,
    /// As JSON: a number, or the harness upstream's `"Fr1"`.
    pub(crate) barrier: String,
    pub(crate) jockey: String,
    pub(crate) trainer: String,
    /// Chance to win, in a million.
    pub(crate) chance: u64,
    pub(crate) scratched: Option<Scratching>,
    pub(crate) odds: Timeline<Odds>,
    pub(crate) flucs: Vec<Fluc>,
    pub(crate) money: Timeline<Share>,
    /// The JSON fields that never change, begun but not ended.
    pub(crate) constant: String,
}

#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) entrants: Vec<Entrant>,
    pub(crate) tracker: Tracker,
    /// Flucs show one refresh later than prices.
    pub(crate) flucs_lag: bool,
    /// `is_late_scratched` is null instead of false.
    pub(crate) null_flags: bool,
    /// Indices of entrants in their final order.
    finish: Vec<usize>,
    protest: Option<Protest>,
}

impl Book {
    pub(crate) fn new(race: &Race) -> Book {
        let mut rng = SplitMix64::new(race.seed ^ 0x626f_6f6b);
        let mut entrants = draw_field(&mut rng, race);
        scratch(&mut rng, race, &mut entrants);
        let times = money::times(&mut rng, race);
        let owners: Vec<(String, u64, Option<Time>)> =
            entrants.iter().map(|e| (e.id.clone(), e.chance, e.scratched.map(|s| s.at))).collect();
        let tracker = Tracker::new(&mut rng, race, &owners, &times);
        for (n, entrant) in entrants.iter_mut().enumerate() {
            let until = entrant.scratched.map_or_else(|| race.betting_ended(), |s| s.at);
            entrant.odds = odds::draw(&mut rng, race, entrant.chance, &times, until);
            entrant.flucs = odds::flucs(&mut rng, &entrant.odds);
            entrant.money = Timeline::new(tracker.steps().iter().map(|s| (s.at, s.shares[n])).collect());
        }
        let size = entrants.len();
        for entrant in &mut entrants {
            entrant.constant = render_runner::constant(&mut rng, race, entrant);
            if race.showing.full {
                form::append(&mut rng, &mut entrant.constant, form::bytes_per_runner(size));
            }
        }
        let lag = race.showing.lagging_flucs_one_in;
        Book {
            finish: draw_finish(&mut rng, &entrants),
            flucs_lag: lag > 0 && rng.one_in(lag),
            null_flags: rng.one_in(2),
            protest: race.fate.protest,
            entrants,
            tracker,
        }
    }

    /// The order at `status`: four placings at Interim, all at Final, none before.
    pub(crate) fn placings(&self, status: Status) -> Vec<usize> {
        match status {
            Status::Final => self.finish.clone(),
            Status::Interim => {
                let mut first: Vec<usize> = self.finish.iter().copied().take(4).collect();
                if self.protest == Some(Protest::Upheld) && first.len() > 1 {
                    first.swap(0, 1);
                }
                first
            }
            _ => Vec::new(),
        }
    }
}

fn draw_field(rng: &mut SplitMix64, race: &Race) -> Vec<Entrant> {
    let category = race.card.category;
    let size = match category {
        Category::Thoroughbred => rng.between(7, 14),
        Category::Harness => rng.between(8, 13),
        Category::Greyhound => 8,
    } as u32;
    let weights: Vec<u64> = (0..size).map(|_| rng.between(3, 100).pow(2)).collect();
    let sum: u64 = weights.iter().sum();
    let mut gates: Vec<u32> = (1..=size).collect();
    for n in (1..gates.len()).rev() {
        gates.swap(n, rng.between(0, n as u64) as usize);
    }
    (1..=size)
        .map(|number| {
            let (gate, weight) = (gates[number as usize - 1], weights[number as usize - 1]);
            let barrier = match category {
                Category::Harness if gate <= 7 => format!("\"Fr{gate}\""),
                Category::Harness => format!("\"Sr{}\"", gate - 7),
                _ => gate.to_string(),
            };
            Entrant {
                id: uuid(race.seed, u64::from(number)),
                number,
                name: names::runner(rng, number),
                barrier,
                jockey: names::person(rng),
                trainer: names::person(rng),
                chance: (weight * 1_000_000 / sum).max(2_000),
                scratched: None,
                odds: Timeline::new(Vec::new()),
                flucs: Vec::new(),
                money: Timeline::new(Vec::new()),
                constant: String::new(),
            }
        })
        .collect()
}

/// Some in the morning, one perhaps late; five are always left.
fn scratch(rng: &mut SplitMix64, race: &Race, entrants: &mut [Entrant]) {
    let mut spare = entrants.len().saturating_sub(5);
    let earliest = race.showing.opened + Span::hours(2);
    let morning = race.first_start() - Span::hours(3);
    for entrant in entrants.iter_mut() {
        let at =
            whole_second(morning - Span::secs(rng.between(0, 14_400) as i64)).max(whole_second(earliest));
        if rng.one_in(12) && spare > 1 && at < race.betting_ended() {
            spare -= 1;
            entrant.scratched = Some(Scratching { at, late: false });
        }
    }
    let late = race.fate.late_scratching.map(whole_second).filter(|at| *at < race.betting_ended());
    let who = rng.between(0, entrants.len() as u64 - 1) as usize;
    let left =
        (0..entrants.len()).map(|n| (who + n) % entrants.len()).find(|n| entrants[*n].scratched.is_none());
    if let (Some(at), Some(n)) = (late, left) {
        entrants[n].scratched = Some(Scratching { at, late: true });
    }
}

fn whole_second(at: Time) -> Time {
    Time::from_secs(at.us().div_euclid(1_000_000))
}

/// Each place is drawn among those left, in proportion to their chances.
fn draw_finish(rng: &mut SplitMix64, entrants: &[Entrant]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..entrants.len()).filter(|n| entrants[*n].scratched.is_none()).collect();
    let mut finish = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let sum: u64 = left.iter().map(|n| entrants[*n].chance).sum();
        let mut draw = rng.between(0, sum - 1);
        let at = left.iter().position(|n| {
            let chance = entrants[*n].chance;
            let hit = draw < chance;
            draw = draw.saturating_sub(chance);
            hit
        });
        finish.push(left.remove(at.unwrap_or(0)));
    }
    finish
}
