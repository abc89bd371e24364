//! The day that the demonstration shows: everything that can happen to a race, within ten minutes.

use jiff::ToSpan;
use stakeout_core::{Span, Time};

use super::day::{Body, Day, DayConfig, Planned};
use super::names::{UNWATCHED, WATCHED};
use super::nz::nz_date;
use super::race::{BeforeJump, Fate};
use super::upstream::Upstream;
use crate::rng::SplitMix64;

const SEED: u64 = 20_250_717;
/// Further races of each meeting, one every half-hour: the day goes on for hours.
const LATER_RACES: i64 = 10;

/// A day around `now` in which, within ten minutes, a watcher meets every phase of a race: far off, an hour, twenty,
/// ten and five minutes out, overdue, Closed, Interim, Final, and a scratching, a retiming and an abandonment.
pub fn demo_day(now: Time) -> Day {
    let mut rng = SplitMix64::new(SEED);
    // Whole minutes, as starts are.
    let now = Time(now.us().div_euclid(60_000_000) * 60_000_000);
    let config = DayConfig {
        first_start: now - Span::mins(6),
        last_start: now + Span::hours(6),
        moves: 16,
        body: Body::Lean,
        ..DayConfig::new(SEED, nz_date(now))
    };
    let firsts: [Scene; 8] = [
        // Run before we came: Interim at once, Final three minutes on.
        (-6, |fate, _| {
            fate.delay = Span::mins(1);
            (fate.interim_after, fate.final_after) = (Some(Span::mins(3)), Span::mins(8));
        }),
        // Overdue: should have jumped a minute ago, jumps in three.
        (-1, |fate, _| {
            (fate.delay, fate.close_lag) = (Span::mins(4), Span::ZERO);
            (fate.interim_after, fate.final_after) = (Some(Span::secs(150)), Span::mins(6));
        }),
        // Closed for a while before the jump is told: Closed alone confirms no start.
        (2, |fate, _| {
            (fate.delay, fate.close_lag, fate.jump_told_late) = (Span::secs(20), -Span::secs(5), true);
            (fate.interim_after, fate.final_after) = (Some(Span::secs(150)), Span::mins(5));
        }),
        (7, |fate, start| fate.late_scratching = Some(start - Span::secs(330))),
        (9, |fate, start| fate.abandoned = Some(start - Span::mins(4))),
        (14, |fate, start| fate.retimings = vec![(start - Span::mins(10), start + Span::mins(5))]),
        (25, |_, _| {}),
        (66, |_, _| {}),
    ];
    let mut planned: Vec<Planned> = firsts
        .into_iter()
        .zip(WATCHED)
        .map(|((minutes, shape), venue)| {
            let first = now + Span::mins(minutes);
            let mut fate = calm(&mut rng, first);
            shape(&mut fate, first);
            let later = (1..=LATER_RACES).map(|n| {
                let start = first + Span::mins(30 * n + if minutes < 20 { 10 } else { 0 });
                (start, Fate::draw(&mut rng, start))
            });
            Planned { venue, races: std::iter::once((first, fate)).chain(later).collect() }
        })
        .collect();
    let others = UNWATCHED.into_iter().take(8).map(|venue| {
        let start = now + Span::mins(rng.between(0, 90) as i64);
        Planned { venue, races: vec![(start, calm(&mut rng, start))] }
    });
    planned.extend(others.collect::<Vec<_>>());
    Day::of(&config, planned)
}

/// The demonstration's upstream: [`demo_day`], then ordinary days.
pub fn demo(now: Time) -> Upstream {
    let today = nz_date(now);
    let next = (1..=3).map(|n| Day::new(&DayConfig::new(SEED + n, today.saturating_add((n as i64).days()))));
    Upstream::new(std::iter::once(demo_day(now)).chain(next))
}

/// Minutes from now to the start, and what makes the race special.
type Scene = (i64, fn(&mut Fate, Time));

/// A race to which nothing happens that the scene does not ask for.
fn calm(rng: &mut SplitMix64, start: Time) -> Fate {
    Fate {
        retimings: Vec::new(),
        abandoned: None,
        reopened: None,
        protest: None,
        late_scratching: None,
        before_jump: BeforeJump::Zero,
        jump_told_late: false,
        ..Fate::draw(rng, start)
    }
}
