//! Delays as in real life, and the demonstration's first ten minutes.

use std::collections::BTreeSet;

use stakeout_core::{Span, Time};
use stakeout_sim::nztab::{Status, demo, demo_day, held};

use super::*;

#[test]
fn delays_are_distributed_as_in_real_races() {
    let mut delays: Vec<i64> = (0..20)
        .flat_map(|seed| Day::new(&DayConfig { others: 0, ..config(seed) }).truth())
        .filter_map(|race| {
            let (_, start) = race.starts.last()?;
            Some((race.actual_start? - *start).as_us() / 1_000_000)
        })
        .collect();
    delays.sort_unstable();
    let at = |percent: usize| delays[delays.len() * percent / 100];
    assert!(delays.len() > 1_600, "{} races ran", delays.len());
    assert!((60..=76).contains(&at(50)), "median {} s", at(50));
    assert!((245..=305).contains(&at(90)), "90th percentile {} s", at(90));
    assert!((600..=1_440).contains(&delays[delays.len() - 1]), "longest {} s", delays[delays.len() - 1]);
    assert!(delays[0] >= 0);
}

#[test]
fn statuses_follow_their_order() {
    for seed in 0..5 {
        for race in Day::new(&config(seed)).truth() {
            let (last_at, last) = race.statuses[race.statuses.len() - 1];
            assert!(last.is_terminal(), "seed {seed}: {:?}", race.statuses);
            assert_eq!(race.abandoned.is_some(), last == Status::Abandoned);
            if let Some(jump) = race.actual_start {
                let after = last_at - jump;
                assert!(
                    after >= Span::secs(60) && after <= Span::mins(10),
                    "seed {seed}: Final {after} after the jump"
                );
            }
        }
    }
}

#[test]
fn the_demonstration_shows_everything_within_ten_minutes() {
    let now = Time::parse("2026-07-16T02:13:37Z").expect("valid");
    let truth = demo_day(now).truth();
    let window: Vec<Time> = (0..=600).map(|s| now + Span::secs(s)).collect();
    let statuses: BTreeSet<&str> =
        truth.iter().flat_map(|race| window.iter().map(|t| race.status_at(*t).as_str())).collect();
    assert_eq!(statuses, BTreeSet::from(["Abandoned", "Closed", "Final", "Interim", "Open"]));
    let until_start = |minutes: std::ops::Range<i64>| {
        truth.iter().any(|race| {
            let left = race.start_at(now) - now;
            race.status_at(now) == Status::Open
                && left >= Span::mins(minutes.start)
                && left < Span::mins(minutes.end)
        })
    };
    for phase in [60..600, 20..60, 10..20, 5..10, 0..5, -30..0] {
        assert!(until_start(phase.clone()), "no race {phase:?} minutes before its start");
    }
    let within = |at: Time| at > now && at < now + Span::mins(10);
    assert!(truth.iter().any(|race| race.abandoned.is_some_and(within)));
    assert!(truth.iter().any(|race| race.starts.iter().any(|(told, _)| within(*told))));
    let entrants = || truth.iter().flat_map(|race| &race.entrants);
    assert!(entrants().any(|e| e.scratched.is_some_and(|s| within(s.at))));
    let moves = entrants().flat_map(|e| &e.flucs).filter(|(at, _)| within(*at)).count();
    assert!(moves > 50, "{moves} odds moves");
    let closed_untold = truth.iter().any(|race| {
        let closed = race.statuses.iter().find(|(_, s)| *s == Status::Closed);
        closed.is_some_and(|(at, _)| {
            within(*at) && race.actual_start_told.is_some_and(|told| told - *at > Span::mins(1))
        })
    });
    assert!(closed_untold, "one is Closed while its jump is not told");
    let last = truth.iter().map(|race| race.starts[0].1).max().expect("races");
    assert!(last - now > Span::hours(4), "it goes on for hours");
    assert!(truth.iter().all(|race| held(&race.statuses, now).is_some()));
}

#[test]
fn the_demonstration_goes_on_the_next_day() {
    let now = Time::parse("2026-07-16T02:13:37Z").expect("valid");
    let upstream = demo(now);
    assert!(!meetings(&upstream, "", now).is_empty());
    assert!(
        !meetings(&upstream, "date_from=2026-07-17&date_to=2026-07-17", now + Span::hours(24)).is_empty()
    );
}
