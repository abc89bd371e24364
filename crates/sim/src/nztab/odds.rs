//! How a runner's prices move.

use stakeout_core::{Span, Time};

use super::race::Race;
use crate::json::{hundredths, nano_time};
use crate::rng::SplitMix64;
use crate::timeline::Timeline;

/// The four prices of a runner, in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds {
    /// Fixed price to win.
    pub fixed_win: u32,
    /// Fixed price to be placed.
    pub fixed_place: u32,
    /// What the win pool would pay; missing until the pool holds money.
    pub pool_win: Option<u32>,
    /// What the place pool would pay; missing until the pool holds money.
    pub pool_place: Option<u32>,
}

/// One move of the fixed win price, as the upstream records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fluc {
    pub(crate) at: Time,
    pub(crate) cents: u32,
    /// `{"timestamp":…,"fluc":…}`, rendered once because every body repeats it.
    pub(crate) json: String,
}

/// The prices a bookmaker offers, in cents.
const LADDER: [u32; 42] = [
    101, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200, 215, 230, 250, 270, 290, 310, 330, 350, 380, 420,
    460, 500, 550, 600, 650, 700, 800, 900, 1_000, 1_100, 1_300, 1_500, 1_800, 2_100, 2_600, 3_100, 4_100,
    5_100, 6_100, 8_100, 10_100,
];

/// Cumulative percent of moves, and how long before the end of betting they come, in seconds.
const MOVE_TIMES: [(u64, u64); 5] = [(0, 0), (35, 300), (60, 1_200), (85, 3_600), (100, 43_200)];

/// One runner in so many has a burst of more moves than six in a few minutes: more than the upstream shows.
const BURST_ONE_IN: u64 = 200;

#[derive(Clone, Copy)]
enum Move {
    Fixed,
    /// Off the ladder, by one cent: as small as a move can be.
    Cent,
    Place,
    Pool,
}

/// The prices of a runner whose chance to win is `chance` in a million, from opening until `until`.
pub(crate) fn draw(
    rng: &mut SplitMix64,
    race: &Race,
    chance: u64,
    money: &[Time],
    until: Time,
) -> Timeline<Odds> {
    let opened = race.showing.opened + Span::us(rng.between(0, 3_600_000_000) as i64);
    let mut moves: Vec<(Time, Move)> = draw_moves(rng, race, opened, until);
    for at in money {
        if *at > opened && *at < until && rng.one_in(2) {
            moves.push((*at, Move::Pool));
        }
    }
    moves.sort_by_key(|(at, _)| *at);
    // The bookmaker keeps 15 %.
    let home = nearest_rung(85_000_000 / chance.max(1));
    let mut rung = home;
    let mut now = priced(LADDER[rung]);
    let mut line = vec![(opened, now)];
    for (at, what) in moves {
        match what {
            Move::Fixed => {
                rung = stepped(rng, rung, home);
                now = Odds { pool_win: now.pool_win, pool_place: now.pool_place, ..priced(LADDER[rung]) };
            }
            Move::Cent => now.fixed_win += 1,
            Move::Place => now.fixed_place += 5,
            Move::Pool => {
                let scale = |rng: &mut SplitMix64, cents: u32| {
                    Some((u64::from(cents) * rng.between(80, 125) / 1_000 * 10).max(100) as u32)
                };
                now.pool_win = scale(rng, now.fixed_win);
                now.pool_place = scale(rng, now.fixed_place);
            }
        }
        line.push((at, now));
    }
    Timeline::new(line)
}

fn draw_moves(rng: &mut SplitMix64, race: &Race, opened: Time, until: Time) -> Vec<(Time, Move)> {
    let about = u64::from(race.showing.moves);
    let ended = race.betting_ended();
    let mut moves = Vec::new();
    for _ in 0..rng.between(about / 2, about + about / 2) {
        let before = Span::us(draw_before_us(rng));
        let what = match rng.between(0, 19) {
            0 => Move::Cent,
            1 | 2 => Move::Place,
            _ => Move::Fixed,
        };
        moves.push((ended - before, what));
    }
    if rng.one_in(BURST_ONE_IN) {
        let from = ended - Span::mins(34);
        moves.extend(
            (0..9).map(|n| (from + Span::us(n * 19_000_000 + rng.between(0, 999_999) as i64), Move::Fixed)),
        );
    }
    moves.retain(|(at, _)| *at > opened && *at < until);
    moves
}

fn draw_before_us(rng: &mut SplitMix64) -> i64 {
    let share = rng.unit() * 100.0;
    let above = MOVE_TIMES.iter().position(|(p, _)| *p as f64 > share).unwrap_or(MOVE_TIMES.len() - 1);
    let ((p0, s0), (p1, s1)) = (MOVE_TIMES[above - 1], MOVE_TIMES[above]);
    let part = (share - p0 as f64) / (p1 - p0) as f64;
    ((s0 as f64 + part * (s1 - s0) as f64) * 1e6) as i64 + 1
}

fn nearest_rung(cents: u64) -> usize {
    LADDER.partition_point(|rung| u64::from(*rung) < cents).min(LADDER.len() - 1)
}

/// One to three rungs, oftener back towards `home` than away from it: prices wander, but not for ever.
fn stepped(rng: &mut SplitMix64, rung: usize, home: usize) -> usize {
    let by = rng.between(1, 3) as usize;
    let up = if rng.one_in(3) { rung >= home } else { rung < home };
    if (up || rung < by) && rung + by < LADDER.len() { rung + by } else { rung.saturating_sub(by) }
}

/// A place pays about a quarter of a win, in steps of 5 cents.
fn priced(win: u32) -> Odds {
    let place = 100 + (win - 100) / 4 / 5 * 5;
    Odds { fixed_win: win, fixed_place: place.max(101), pool_win: None, pool_place: None }
}

/// The moves of the fixed win price, the opening first, stamped to the nanosecond.
pub(crate) fn flucs(rng: &mut SplitMix64, odds: &Timeline<Odds>) -> Vec<Fluc> {
    let mut flucs: Vec<Fluc> = Vec::new();
    for (at, odds) in odds.changes() {
        if flucs.last().is_some_and(|last| last.cents == odds.fixed_win) {
            continue;
        }
        let stamp = nano_time(*at, rng.between(0, 999) as u32);
        let mut json = format!("{{\"timestamp\":\"{stamp}\",\"fluc\":");
        hundredths(&mut json, u64::from(odds.fixed_win));
        json.push('}');
        flucs.push(Fluc { at: *at, cents: odds.fixed_win, json });
    }
    flucs
}
