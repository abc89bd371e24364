//! What really happened, for tests to compare with what was seen.

use stakeout_core::{Span, Time};

use super::book::Scratching;
use super::money::Share;
use super::names::Category;
use super::odds::Odds;
use super::race::{BeforeJump, Race, Status};

/// Everything that happens in one race, each list in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceTruth {
    /// The upstream's id.
    pub id: String,
    /// Its meeting's id.
    pub meeting_id: String,
    /// As the upstream writes it: `NZ`, `AUS`, …
    pub country: &'static str,
    /// The racing code.
    pub category: Category,
    /// From when each status held.
    pub statuses: Vec<(Time, Status)>,
    /// From when each start was advertised.
    pub starts: Vec<(Time, Time)>,
    /// When it jumped, in whole seconds; `None` when it was abandoned.
    pub actual_start: Option<Time>,
    /// From when `actual_start` tells that.
    pub actual_start_told: Option<Time>,
    /// When it became Final.
    pub final_at: Option<Time>,
    /// When it was abandoned.
    pub abandoned: Option<Time>,
    /// Whether Final carries a protest.
    pub protest: bool,
    /// Entrant ids in the order told at Interim, if it was ever Interim.
    pub interim_placings: Vec<String>,
    /// Entrant ids in their final order.
    pub final_placings: Vec<String>,
    /// Its runners, by number.
    pub entrants: Vec<EntrantTruth>,
    /// When the money and pools figures moved, with each pool's total in cents by `product_type`; multi-leg pools
    /// are not this race's money and not here.
    pub pools: Vec<(Time, Vec<(&'static str, u64)>)>,
    /// Flucs are served one refresh later than the prices they record.
    pub flucs_lag: bool,
    before_jump: BeforeJump,
    refresh: Span,
    refresh_phase: Span,
}

/// Everything that happens to one runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrantTruth {
    /// The upstream's id.
    pub id: String,
    /// The saddlecloth number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Who rides or drives it.
    pub jockey: String,
    /// Who trains it.
    pub trainer: String,
    /// Whether and when it was taken out. From then on it has no prices.
    pub scratched: Option<Scratching>,
    /// Its prices from when, one entry per change of any of the four.
    pub odds: Vec<(Time, Odds)>,
    /// Moves of the fixed win price in cents, the opening first: what `flucs_with_timestamp` tells, to the microsecond.
    pub flucs: Vec<(Time, u32)>,
    /// Its share of the money from when: the sum of its slices.
    pub money: Vec<(Time, Share)>,
}

impl RaceTruth {
    pub(crate) fn new(race: &Race) -> RaceTruth {
        let book = race.book();
        let ids = |placings: Vec<usize>| placings.into_iter().map(|n| book.entrants[n].id.clone()).collect();
        let told = |status| race.time_of(status).map(|_| book.placings(status)).unwrap_or_default();
        let pools = book.tracker.steps().iter();
        RaceTruth {
            id: race.card.id.clone(),
            meeting_id: race.card.meeting_id.clone(),
            country: race.card.country,
            category: race.card.category,
            statuses: race.statuses.changes().to_vec(),
            starts: race.starts.changes().to_vec(),
            actual_start: race.jump,
            actual_start_told: race.jump_told,
            final_at: race.time_of(Status::Final),
            abandoned: race.fate.abandoned,
            protest: race.fate.protest.is_some() && race.jump.is_some(),
            interim_placings: ids(told(Status::Interim)),
            final_placings: ids(told(Status::Final)),
            entrants: book.entrants.iter().map(EntrantTruth::new).collect(),
            pools: pools.map(|step| (step.at, step.totals())).collect(),
            flucs_lag: book.flucs_lag,
            before_jump: race.fate.before_jump,
            refresh: race.showing.refresh,
            refresh_phase: race.refresh_phase,
        }
    }

    /// The moment whose state is served at `now`: the last renewal.
    pub fn served_at(&self, now: Time) -> Time {
        let (step, phase) = (self.refresh.as_us(), self.refresh_phase.as_us());
        if step <= 0 { now } else { Time((now.us() - phase).div_euclid(step) * step + phase) }
    }

    /// From when a change at `at` is served: the first renewal not before it.
    pub fn seen_from(&self, at: Time) -> Time {
        let served = self.served_at(at);
        if served == at { at } else { served + self.refresh }
    }

    /// The status served at `now`.
    pub fn status_at(&self, now: Time) -> Status {
        held(&self.statuses, self.served_at(now)).copied().unwrap_or(Status::Open)
    }

    /// The actual start served at `now`: before the jump is told nothing, or the advertised one.
    pub fn actual_start_at(&self, now: Time) -> Option<Time> {
        let told = self.actual_start_told.is_some_and(|told| told <= self.served_at(now));
        let before = (self.before_jump == BeforeJump::Advertised).then(|| self.start_at(now));
        self.actual_start.filter(|_| told).or(before)
    }

    /// The advertised start served at `now`.
    pub fn start_at(&self, now: Time) -> Time {
        held(&self.starts, self.served_at(now)).copied().unwrap_or(self.starts[0].1)
    }
}

impl EntrantTruth {
    fn new(entrant: &super::book::Entrant) -> EntrantTruth {
        EntrantTruth {
            id: entrant.id.clone(),
            number: entrant.number,
            name: entrant.name.clone(),
            jockey: entrant.jockey.clone(),
            trainer: entrant.trainer.clone(),
            scratched: entrant.scratched,
            odds: entrant.odds.changes().to_vec(),
            flucs: entrant.flucs.iter().map(|fluc| (fluc.at, fluc.cents)).collect(),
            money: entrant.money.changes().to_vec(),
        }
    }
}

/// From when what held at `at` in a list of (from, value) has held.
pub fn held_since<T>(changes: &[(Time, T)], at: Time) -> Option<Time> {
    changes[..changes.partition_point(|(from, _)| *from <= at)].last().map(|(from, _)| *from)
}

/// What held at `at` in a list of (from, value): nothing before the first.
pub fn held<T>(changes: &[(Time, T)], at: Time) -> Option<&T> {
    changes[..changes.partition_point(|(from, _)| *from <= at)].last().map(|(_, value)| value)
}
