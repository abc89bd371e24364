//! Fixed, focused and adaptive targets: places on a grid, and no drift.

use super::*;

fn fixed(every: Span) -> Plan {
    Plan::Fixed(Fixed { every, eager: false, place: None })
}

#[test]
fn a_restart_keeps_the_slot_and_a_herd_spreads_over_the_interval() {
    let plan = fixed(Span::secs(60));
    let mut places: Vec<i64> = (0..600_u64)
        .map(|n| {
            let seat = Seat { spread: stakeout_core::spread(&["nz", &n.to_string()]), ..SEAT };
            let first = due(&next(&plan, &Facts::default(), &NEVER, t(), &seat));
            assert!(first >= t() && first < t() + Span::secs(60));
            let restarted = due(&next(&plan, &Facts::default(), &NEVER, t() + Span::hours(7), &seat));
            assert_eq!((restarted - first).as_us() % 60_000_000, 0, "the same place in the interval");
            (first - t()).as_ms()
        })
        .collect();
    places.sort_unstable();
    let widest = places.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(widest < Some(2_000), "no hole in the interval: {widest:?} ms");
}

#[test]
fn an_eager_target_is_polled_at_once_and_then_in_its_place() {
    let plan = Plan::Fixed(Fixed { every: Span::secs(60), eager: true, place: None });
    let first = next(&plan, &Facts::default(), &NEVER, t(), &SEAT);
    assert_eq!(due(&first), t());
    let second = due(&next(&plan, &Facts::default(), &good(t()), t() + Span::ms(80), &SEAT));
    let lazy = due(&next(&fixed(Span::secs(60)), &Facts::default(), &NEVER, t() + Span::us(1), &SEAT));
    assert_eq!(second, lazy);
}

#[test]
fn two_hundred_milliseconds_mean_two_hundred_milliseconds() {
    let plan = fixed(Span::ms(200));
    let mut slot = due(&next(&plan, &Facts::default(), &NEVER, t(), &SEAT));
    let first = slot;
    for n in 0..1_000 {
        // Late by up to 90 ms, answered within another 90 ms: the grid does not care.
        let ended = slot + Span::ms(n * 7 % 90 + n * 13 % 90);
        slot = due(&next(&plan, &Facts::default(), &good(slot), ended, &SEAT));
    }
    assert_eq!(slot - first, Span::ms(200).times(1_000));
}

#[test]
fn a_weeks_pause_collapses_into_one_poll() {
    let plan = fixed(Span::ms(200));
    let slot = due(&next(&plan, &Facts::default(), &NEVER, t(), &SEAT));
    let back = slot + Span::hours(7 * 24) + Span::ms(50);
    assert_eq!(expired(&plan, &Facts::default(), &SEAT, slot, back), 7 * 24 * 3_600 * 5);
    let after = due(&next(&plan, &Facts::default(), &good(slot), back, &SEAT));
    assert_eq!(after, slot + Span::hours(7 * 24) + Span::ms(200));
}

#[test]
fn the_focus_is_due_now_and_fast_and_goes_back_to_idle() {
    let plan = Plan::Focus(Focus { active: Span::ms(200), idle: Span::secs(5) });
    let focused = Facts { focused: true, ..Facts::default() };
    assert_eq!(due(&next(&plan, &focused, &NEVER, t(), &SEAT)), t());
    for ago in [Span::us(1), Span::secs(2)] {
        assert_eq!(due(&replan(&plan, &focused, &good(t() - ago), t(), &SEAT)), t());
    }
    let fast = next(&plan, &focused, &good(t()), t(), &SEAT);
    assert!(due(&fast) > t() && due(&fast) <= t() + Span::ms(200));
    assert_eq!((fast.interval, &*fast.phase), (Span::ms(200), "focus"));
    let idle = replan(&plan, &Facts::default(), &good(t()), t() + Span::ms(40), &SEAT);
    assert!(due(&idle) > t() && due(&idle) <= t() + Span::secs(5));
    assert_eq!((idle.interval, &*idle.phase), (Span::secs(5), "idle"));
    assert_eq!(
        due(&next(&plan, &Facts::default(), &good(due(&idle)), due(&idle), &SEAT)),
        due(&idle) + Span::secs(5)
    );
}

#[test]
fn an_adaptive_target_keeps_its_mean_gap_while_the_price_moves() {
    let plan = Plan::Adaptive(Adaptive { min: Span::secs(10), max: Span::mins(10), weight: 1.0 });
    let first = next(&plan, &Facts::default(), &NEVER, t(), &SEAT);
    assert_eq!(first.interval, Span::mins(10), "the longest until there is a price");
    let mut slot = due(&first);
    for n in 0..100 {
        let every = Span::secs(60) + Span::ms(n * 37 % 500);
        let seat = Seat { budgeted: Some(every), ..SEAT };
        let found = next(&plan, &Facts::default(), &good(slot), slot + Span::secs(3), &seat);
        assert_eq!(due(&found) - slot, every);
        slot = due(&found);
    }
    for (budgeted, interval) in [(Span::secs(1), Span::secs(10)), (Span::hours(9), Span::mins(10))] {
        let seat = Seat { budgeted: Some(budgeted), ..SEAT };
        assert_eq!(next(&plan, &Facts::default(), &good(t()), t(), &seat).interval, interval);
    }
    assert_eq!(expired(&plan, &Facts::default(), &SEAT, t(), t() + Span::mins(65)), 6);
}

#[test]
fn priority_decides_the_slack() {
    let slack = |priority, every| {
        next(&fixed(every), &Facts::default(), &NEVER, t(), &Seat { priority, ..SEAT }).slack
    };
    assert_eq!(slack(100, Span::secs(5)), Span::ZERO);
    assert_eq!(slack(10, Span::secs(5)), Span::ms(4_500));
    assert_eq!(slack(0, Span::hours(1)), Span::secs(30));
}

#[test]
fn a_changed_setting_takes_effect_at_once() {
    let found = replan(&fixed(Span::ms(200)), &Facts::default(), &good(t() - Span::secs(5)), t(), &SEAT);
    assert_eq!(due(&found), t());
    let found = replan(&fixed(Span::secs(60)), &Facts::default(), &good(t() - Span::ms(20)), t(), &SEAT);
    assert!(due(&found) <= t() + Span::secs(60));
}
