//! Where the money is: shares of the hold in slices, and the pools.

use stakeout_core::{Span, Time};

use super::ids::uuid;
use super::race::Race;
use crate::json::{Object, list};
use crate::rng::{SplitMix64, mix};

/// An entrant's part of all money held and of all bets placed, in percent; its slices add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Percent of the money held.
    pub hold: u32,
    /// Percent of the bets placed.
    pub bet: u32,
}

/// The pools that every race has, as `tote_pools` and `dividends` name them.
pub(crate) const POOLS: [(&str, &str); 5] = [
    ("Trifecta", "Pool Trifecta"),
    ("Place", "Pool Place"),
    ("FirstFour", "Pool First4"),
    ("Quinella", "Pool Quinella"),
    ("Win", "Pool Win"),
];
/// Each pool's size in percent of the win pool, in the order of [`POOLS`].
const POOL_SIZES: [u64; 5] = [87, 43, 50, 58, 100];

/// The slice number of an owner's only row.
const UNSLICED: usize = usize::MAX;

/// The race's money from its opening to its end.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// Ids of the rows' owners: the entrants in order, then some that are no runners.
    ids: Vec<String>,
    /// The order of rows, as (owner, slice).
    rows: Vec<(usize, usize)>,
    /// Of each entrant, what the slices before the nth weigh together; last, what all of them do.
    weights: Vec<Vec<u64>>,
    steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) at: Time,
    pub(crate) shares: Vec<Share>,
    /// Totals in cents, in the order of [`POOLS`].
    pub(crate) pools: [u64; 5],
    /// The multi-leg pool's total in cents.
    pub(crate) multi: u64,
}

impl Step {
    /// Each pool's total in cents.
    pub(crate) fn totals(&self) -> Vec<(&'static str, u64)> {
        POOLS.iter().zip(self.pools).map(|((product, _), cents)| (*product, cents)).collect()
    }
}

/// When the money figures move: rarely at first, every minute near the end.
pub(crate) fn times(rng: &mut SplitMix64, race: &Race) -> Vec<Time> {
    let ended = race.betting_ended();
    let minutes = [240, 180, 120, 90].into_iter().chain((2..=12).rev().map(|n| n * 5)).chain((1..10).rev());
    let mut times: Vec<Time> =
        minutes.map(|m| ended - Span::mins(m) + Span::ms(rng.between(0, 20_000) as i64)).collect();
    if race.jump.is_some() {
        // The last bets are counted after betting has closed.
        times.push(ended + Span::ms(rng.between(5_000, 40_000) as i64));
    }
    times.retain(|at| *at > race.showing.opened);
    times
}

impl Tracker {
    /// `chances` in a million per entrant; a scratched entrant's money is refunded at its time.
    pub(crate) fn new(
        rng: &mut SplitMix64,
        race: &Race,
        entrants: &[(String, u64, Option<Time>)],
        times: &[Time],
    ) -> Tracker {
        let strangers = rng.between(1, 3) as usize;
        let mut ids: Vec<String> = entrants.iter().map(|(id, _, _)| id.clone()).collect();
        ids.extend((0..strangers).map(|n| uuid(race.seed, 900 + n as u64)));
        let mut holds: Vec<u64> = entrants.iter().map(|(_, chance, _)| *chance).collect();
        // One of the ids that are no runners has money on it.
        holds.push(rng.between(0, 80_000));
        holds.resize(ids.len(), 0);
        let mut bets = holds.clone();
        let total_percent = rng.between(101, 105) as u32;
        let win_pool = rng.between(400_000, 6_000_000);
        let multi_pool = rng.between(400_000, 2_000_000);
        let all: Vec<Time> = std::iter::once(race.showing.opened).chain(times.iter().copied()).collect();
        let mut steps = Vec::with_capacity(all.len());
        for (n, at) in all.iter().enumerate() {
            for weight in holds.iter_mut().chain(&mut bets) {
                *weight = *weight * rng.between(85, 118) / 100;
            }
            for (who, (_, _, scratched)) in entrants.iter().enumerate() {
                if scratched.is_some_and(|gone| gone <= *at) {
                    (holds[who], bets[who]) = (0, 0);
                }
            }
            let shares = percents(&holds, total_percent).into_iter().zip(percents(&bets, total_percent));
            let grown = |whole: u64| whole * (n as u64 * n as u64) / ((all.len() - 1).pow(2).max(1) as u64);
            steps.push(Step {
                at: *at,
                shares: shares.map(|(hold, bet)| Share { hold, bet }).collect(),
                pools: POOL_SIZES.map(|size| grown(win_pool * size / 100)),
                multi: grown(multi_pool),
            });
        }
        let slices = if race.showing.full { 9 } else { 3 };
        let weight = |who: usize, n: usize| mix(race.seed ^ (who as u64) << 8 ^ n as u64) % 100;
        let weights = |who: usize| (0..=slices).map(|n| (0..n).map(|n| weight(who, n)).sum()).collect();
        Tracker {
            rows: shuffled_rows(rng, entrants.len(), ids.len(), slices),
            weights: (0..entrants.len()).map(weights).collect(),
            ids,
            steps,
        }
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn at(&self, at: Time) -> &Step {
        &self.steps[self.steps.partition_point(|step| step.at <= at).saturating_sub(1)]
    }

    /// The last figures, which dividends are paid from.
    pub(crate) fn last(&self) -> &Step {
        &self.steps[self.steps.len() - 1]
    }

    /// `{"entrants":[…]}` with many rows per entrant.
    pub(crate) fn render(&self, out: &mut String, at: Time) {
        let step = self.at(at);
        out.push_str("{\"entrants\":");
        list(out, &self.rows, |out, (who, slice)| {
            let mut row = Object::begin(out);
            row.text("entrant_id", &self.ids[*who]);
            let Share { hold, bet } = step.shares[*who];
            row.number("hold_percentage", self.slice(*who, *slice, hold));
            row.number("bet_percentage", self.slice(*who, *slice, bet));
            row.end();
        });
        out.push('}');
    }

    /// The slice's part of `whole`: the parts of all slices add up to it exactly.
    fn slice(&self, who: usize, slice: usize, whole: u32) -> u64 {
        let whole = u64::from(whole);
        if slice == UNSLICED {
            return whole;
        }
        let weights = &self.weights[who];
        let last = weights.len() - 1;
        let cut = |n: usize| if n == last { whole } else { whole * weights[n] / weights[last].max(1) };
        cut(slice + 1) - cut(slice)
    }
}

/// Owners that are no runners have one row each, entrants `slices`.
fn shuffled_rows(rng: &mut SplitMix64, entrants: usize, owners: usize, slices: usize) -> Vec<(usize, usize)> {
    let mut rows: Vec<(usize, usize)> =
        (0..entrants).flat_map(|who| (0..slices).map(move |n| (who, n))).collect();
    rows.extend((entrants..owners).map(|who| (who, UNSLICED)));
    for n in (1..rows.len()).rev() {
        rows.swap(n, rng.between(0, n as u64) as usize);
    }
    rows
}

/// Whole percents in proportion to `weights` that add up to exactly `total`, by largest remainder.
fn percents(weights: &[u64], total: u32) -> Vec<u32> {
    let sum = weights.iter().sum::<u64>().max(1);
    let scaled = |w: u64| w * u64::from(total);
    let mut out: Vec<u32> = weights.iter().map(|w| (scaled(*w) / sum) as u32).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|n| std::cmp::Reverse(scaled(weights[*n]) % sum));
    let missing = total.saturating_sub(out.iter().sum()) as usize;
    for n in order.into_iter().take(missing) {
        out[n] += 1;
    }
    out
}
