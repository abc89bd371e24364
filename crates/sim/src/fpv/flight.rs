//! Who crosses the line when.

use stakeout_core::{Span, Time};

use super::config::EventConfig;
use crate::rng::SplitMix64;

/// A pilot crosses the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub(crate) at: Time,
    /// The pilot's place in the race.
    pub(crate) slot: usize,
    /// 0 is the holeshot.
    pub(crate) lap: u32,
    /// False for one that came too soon to be a lap.
    pub(crate) valid: bool,
}

/// The crossings of a race, in order of time. Pilots fly in a pack: each lap they cross half a second to two apart,
/// now and then within 30 ms. `tie`: on the first lap two cross at the same moment.
pub(crate) fn crossings(
    rng: &mut SplitMix64,
    config: &EventConfig,
    pilots: usize,
    start: Time,
    tie: bool,
) -> Vec<Crossing> {
    let (low, high) = (config.lap.0.as_us(), config.lap.1.as_us());
    // Places change within the pack, so a pilot's lap differs from the leader's by up to its length.
    let room = ((high - low) / 4).min(6_000_000);
    let mut pack: Vec<usize> = (0..pilots).collect();
    let laps = u64::from(config.laps);
    let gives_up: Vec<u64> = pack
        .iter()
        .map(|_| if !tie && rng.one_in(9) { rng.between(1, laps.max(1)) } else { u64::MAX })
        .collect();
    let mut all = Vec::new();
    let mut leader = start + span(rng, 2_000_000, 4_500_000);
    for lap in 0..=config.laps {
        if lap > 0 {
            leader += span(rng, low + room, high - room);
        }
        if pilots > 1 && rng.one_in(3) {
            let place = rng.between(1, pilots as u64 - 1) as usize;
            pack.swap(place - 1, place);
        }
        let mut at = leader;
        for (place, slot) in pack.iter().enumerate() {
            if place > 0 {
                at += match (tie && lap == 1 && place == 1, rng.one_in(10)) {
                    (true, _) => Span::ZERO,
                    (_, true) => span(rng, 0, 30_000),
                    _ => span(rng, 500_000, 2_000_000),
                };
            }
            if u64::from(lap) >= gives_up[*slot] {
                continue;
            }
            all.push(Crossing { at, slot: *slot, lap, valid: true });
            if lap < config.laps && rng.one_in(25) {
                let too_soon = at + span(rng, 2_000_000, 4_800_000);
                all.push(Crossing { at: too_soon, slot: *slot, lap: lap + 1, valid: false });
            }
        }
    }
    all.sort_by_key(|crossing| (crossing.at, crossing.slot));
    all
}

/// A span of so many microseconds.
pub(crate) fn span(rng: &mut SplitMix64, low_us: i64, high_us: i64) -> Span {
    Span::us(rng.between(low_us.max(0) as u64, high_us.max(low_us).max(0) as u64) as i64)
}
