//! The schedule, told as stories and as laws: what is due when, and what never happens whatever the upstream does.

use proptest::prelude::*;
use stakeout_core::cadence::{
    Adaptive, Countdown, Fixed, Focus, Last, LastOutcome, Next, Phase, Plan, Seat, expired, jitter, next,
    replan,
};
use stakeout_core::{Facts, Span, Stage, Time};

const SEAT: Seat = Seat { spread: 0x5EED_CAFE, priority: 50, budgeted: None, bell: None };
const NEVER: Last = Last { slot: None, outcome: LastOutcome::Good };

fn t() -> Time {
    Time::parse("2026-01-10T02:00:00Z").expect("a valid time")
}

/// T plus this much, written the way people do: `-21m`, `+15s`.
fn at(offset: &str) -> Time {
    let (sign, span) = offset.split_at(1);
    let span = Span::parse(span).expect("a valid span");
    if sign == "-" { t() - span } else { t() + span }
}

fn pending(start: Time) -> Facts {
    Facts { start: Some(start), ..Facts::default() }
}

fn good(slot: Time) -> Last {
    Last { slot: Some(slot), outcome: LastOutcome::Good }
}

fn failed(slot: Time, failures: u32, not_before: Option<Time>) -> Last {
    Last { slot: Some(slot), outcome: LastOutcome::Failed { failures, not_before } }
}

fn seed() -> Plan {
    Plan::Countdown(Countdown::seed())
}

fn due(next: &Next) -> Time {
    next.due.unwrap_or_else(|| panic!("something is due: {next:?}"))
}

mod countdown {
    use super::*;

    /// A poll at `slot` that answered at once: the next one and its phase.
    fn check(slot: &str, expected: &str, phase: &str) {
        let found = next(&seed(), &pending(t()), &good(at(slot)), at(slot), &SEAT);
        assert_eq!(due(&found), at(expected), "after {slot}: {}", found.reason);
        assert_eq!(found.phase, phase, "after {slot}");
    }

    #[test]
    fn follows_the_seeds_table_and_jumps_over_no_boundary() {
        check("-75m", "-60m", "T-60m");
        check("-60m", "-55m", "T-60m");
        check("-25m", "-20m", "T-20m");
        check("-21m", "-20m", "T-20m");
        check("-20m", "-18m", "T-20m");
        check("-12m", "-10m", "T-10m");
        check("-11m", "-10m", "T-10m");
        check("-10m", "-9m", "T-10m");
        check("-6m", "-5m", "T-5m");
        check("-5m", "-4m45s", "T-5m");
        check("-15s", "+0s", "overdue");
        check("-7s", "+0s", "overdue");
        check("+0s", "+15s", "overdue");
        check("+24m", "+24m15s", "overdue");
    }

    #[test]
    fn a_whole_race_is_polled_exactly_like_this() {
        let (mut facts, mut last, mut now) = (pending(t()), NEVER, at("-3h"));
        let mut counts: Vec<(String, u32)> = Vec::new();
        let mut slots = Vec::new();
        while let Some(due) = next(&seed(), &facts, &last, now, &SEAT).due {
            let phase = next(&seed(), &facts, &last, now, &SEAT).phase.to_string();
            match counts.last_mut() {
                Some((name, count)) if *name == phase => *count += 1,
                _ => counts.push((phase, 1)),
            }
            slots.push(due);
            (last, now) = (good(due), due);
            // The jump is seen 68 s late, Final 8 min after it.
            let stage = match due {
                due if due >= at("+10m") => Stage::Over,
                due if due >= at("+75s") => Stage::Started,
                _ => Stage::Pending,
            };
            if stage != facts.stage {
                (facts.stage, facts.stage_since) = (stage, Some(due));
            }
        }
        let counts: Vec<_> = counts.iter().map(|(name, count)| (&**name, *count)).collect();
        assert_eq!(
            counts,
            [("T-60m", 8), ("T-20m", 5), ("T-10m", 5), ("T-5m", 20), ("overdue", 6), ("after", 2)]
        );
        for boundary in ["-60m", "-20m", "-10m", "-5m", "+0s", "+75s", "+6m15s", "+11m15s"] {
            assert!(slots.contains(&at(boundary)), "{boundary}");
        }
    }

    #[test]
    fn a_bell_is_a_boundary_that_only_the_upstream_can_put_off() {
        let seat = |bell: &str| Seat { bell: Some(at(bell)), ..SEAT };
        let after =
            |last: Last, now: &str, bell: &str| next(&seed(), &pending(t()), &last, at(now), &seat(bell));
        let found = after(good(at("-8m")), "-8m", "-7m30s");
        assert_eq!((due(&found), &*found.phase, found.interval), (at("-7m30s"), "T-10m", Span::mins(1)));
        assert_eq!(due(&after(good(at("-7m30s")), "-7m30s", "-7m30s")), at("-7m"), "that was it");
        let waiting = after(NEVER, "-3h", "-90m");
        assert_eq!((due(&waiting), &*waiting.phase), (at("-90m"), "waiting"));
        assert_eq!(waiting.interval, Span::mins(30), "until the countdown begins");
        let asked = after(failed(at("-8m"), 1, Some(at("-6m30s"))), "-8m", "-7m30s");
        assert_eq!(due(&asked), at("-6m30s"), "no sooner than the upstream asked");
        let backing_off = after(failed(at("-55m"), 9, None), "-55m", "-54m59s");
        assert_eq!(due(&backing_off), at("-54m59s"), "a backoff does not go beyond it");
        let again = after(failed(at("-90m"), 1, None), "-90m", "-90m");
        assert!(due(&again) < at("-88m"), "a look that failed there is repeated: {}", again.reason);
        let moved = replan(&seed(), &pending(t()), &good(at("-8m")), at("-7m50s"), &seat("-7m30s"));
        assert_eq!(due(&moved), at("-7m30s"), "a new plan keeps it");
    }

    #[test]
    fn the_first_poll_is_at_the_beginning_or_at_once_when_that_is_past() {
        let first = |now| next(&seed(), &pending(t()), &NEVER, now, &SEAT);
        assert_eq!(due(&first(at("-5h"))), at("-60m"));
        assert_eq!(first(at("-5h")).interval, Span::mins(5));
        for (now, phase) in [("-60m", "T-60m"), ("-21m", "T-60m"), ("-7s", "T-5m"), ("+3m", "overdue")] {
            assert_eq!((due(&first(at(now))), &*first(at(now)).phase), (at(now), phase));
        }
        let started = Facts { stage: Stage::Started, ..pending(t()) };
        assert_eq!(due(&next(&seed(), &started, &NEVER, at("+3m"), &SEAT)), at("+3m"));
    }

    #[test]
    fn after_the_start_the_steps_count_from_the_poll_that_confirmed_it() {
        let facts = Facts { stage: Stage::Started, stage_since: Some(at("+75s")), ..pending(t()) };
        for (slot, expected) in [("+75s", "+375s"), ("+375s", "+675s"), ("+400s", "+675s")] {
            let found = next(&seed(), &facts, &good(at(slot)), at(slot), &SEAT);
            assert_eq!((due(&found), &*found.phase), (at(expected), "after"));
        }
        let tight = Plan::Countdown(Countdown::tight());
        assert_eq!(due(&next(&tight, &facts, &good(at("+75s")), at("+75s"), &SEAT)), at("+105s"));
        // Back to Open: the time schedule holds again.
        assert_eq!(due(&next(&seed(), &pending(t()), &good(at("+75s")), at("+75s"), &SEAT)), at("+90s"));
    }

    #[test]
    fn over_is_over() {
        let facts = Facts { stage: Stage::Over, ..pending(t()) };
        for last in [NEVER, good(at("+5m")), failed(at("+5m"), 3, Some(at("+9m")))] {
            let found = next(&seed(), &facts, &last, at("+5m"), &SEAT);
            assert_eq!((found.due, &*found.phase), (None, "over"));
            assert_eq!(replan(&seed(), &facts, &last, at("+5m"), &SEAT).due, None);
        }
        assert_eq!(expired(&seed(), &facts, &SEAT, at("+5m"), at("+9h")), 0);
    }

    #[test]
    fn a_late_poll_catches_nothing_up() {
        let found = next(&seed(), &pending(t()), &good(at("-5m")), at("-3m50s"), &SEAT);
        assert_eq!(due(&found), at("-3m45s"));
        assert_eq!(expired(&seed(), &pending(t()), &SEAT, at("-5m"), at("-3m50s")), 4);
        // A restart in the middle: 8 of the first phase without its first, 5 + 5 + 20 + T and 4 more.
        assert_eq!(expired(&seed(), &pending(t()), &SEAT, at("-60m"), at("+1m")), 7 + 5 + 5 + 20 + 5);
    }

    #[test]
    fn an_unknown_start_is_asked_for_at_once_and_then_every_five_minutes() {
        let facts = Facts::default();
        let first = next(&seed(), &facts, &NEVER, t(), &SEAT);
        assert_eq!((due(&first), &*first.phase), (t(), "start unknown"));
        let second = next(&seed(), &facts, &good(t()), t(), &SEAT);
        assert!(due(&second) > t() && due(&second) <= t() + Span::mins(5));
        let third = next(&seed(), &facts, &good(due(&second)), due(&second), &SEAT);
        assert_eq!(due(&third) - due(&second), Span::mins(5));
        assert!(third.reason.contains("start is unknown"), "{}", third.reason);
    }

    #[test]
    fn a_listing_that_moves_the_start_is_followed_at_once() {
        // Brought forward: six minutes to go, last polled four minutes ago.
        let found = replan(&seed(), &pending(at("-14m")), &good(at("-24m")), at("-20m"), &SEAT);
        assert_eq!((due(&found), &*found.phase), (at("-20m"), "T-10m"));
        // Postponed beyond the table: it waits.
        let found = replan(&seed(), &pending(at("+2h")), &good(at("-24m")), at("-20m"), &SEAT);
        assert_eq!(due(&found), at("+1h"));
        // A boundary of the new table that falls on this very moment is not lost.
        let found = replan(&seed(), &pending(t()), &good(at("-24m")), at("-20m"), &SEAT);
        assert_eq!((due(&found), &*found.phase), (at("-20m"), "T-20m"));
        // Nothing new: nothing changes.
        let found = replan(&seed(), &pending(t()), &good(at("-30m")), at("-27m"), &SEAT);
        assert_eq!(due(&found), at("-25m"));
    }

    #[test]
    fn the_race_closest_to_its_start_goes_first() {
        let slack = |facts: &Facts, slot| next(&seed(), facts, &good(at(slot)), at(slot), &SEAT).slack;
        let before: Vec<Span> = ["-61m", "-40m", "-20m", "-17m", "-7m", "-4m", "-1m", "-15s"]
            .map(|slot| slack(&pending(t()), slot))
            .into();
        assert!(before.windows(2).all(|pair| pair[0] > pair[1]), "{before:?}");
        assert_eq!(slack(&pending(t()), "+3m"), Span::ZERO);
        let after = Facts { stage: Stage::Started, stage_since: Some(t()), ..pending(t()) };
        assert!(slack(&after, "+3m") > before[0]);
    }

    #[test]
    fn reasons_are_for_people() {
        let reason = |facts: &Facts, last: &Last, now| next(&seed(), facts, last, at(now), &SEAT).reason;
        let open = pending(t());
        for (found, expected) in [
            (reason(&open, &good(at("-5m")), "-5m"), "every 15 s from T-5m (T = 2026-01-10T02:00:00.000Z)"),
            (
                reason(&open, &good(at("-7s")), "-7s"),
                "every 15 s from T until the start is confirmed (T = 2026-01-10T02:00:00.000Z)",
            ),
            (
                reason(&open, &good(at("+75s")), "+75s"),
                "start overdue by 1 min 30 s, every 15 s until it is confirmed (T = 2026-01-10T02:00:00.000Z)",
            ),
            (
                reason(&open, &NEVER, "-3h"),
                "first poll when the countdown begins; every 5 min from T-60m (T = 2026-01-10T02:00:00.000Z)",
            ),
            (
                reason(&open, &failed(at("-21m"), 3, None), "-20m30s"),
                "backoff after 3 failures, clipped to the boundary T-20m; every 2 min from T-20m \
                 (T = 2026-01-10T02:00:00.000Z)",
            ),
            (
                reason(&open, &failed(at("-21m"), 1, Some(at("-9m30s"))), "-20m30s"),
                "backoff after 1 failure, clipped to the boundary T-20m, not before 2026-01-10T01:50:30.000Z as the \
                 upstream asked; every 1 min from T-10m (T = 2026-01-10T02:00:00.000Z)",
            ),
        ] {
            assert_eq!(found, expected);
        }
        let own =
            Countdown::new(vec![Phase::new(Span::mins(50), Span::mins(7))], Span::secs(9), Span::mins(1));
        let own = Plan::Countdown(own.expect("one phase in bounds"));
        assert_eq!(
            next(&own, &open, &good(at("-1m")), at("-1m"), &SEAT).reason,
            "clipped to the boundary T; every 9 s from T until the start is confirmed (T = 2026-01-10T02:00:00.000Z)"
        );
        let wait = reason(&open, &failed(at("+1m"), 2, None), "+1m");
        assert!(
            wait.starts_with("backoff of ") && wait.contains(" after 2 failures; start overdue by "),
            "{wait}"
        );
    }
}

mod steady {
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
}

mod failing {
    use super::*;

    #[test]
    fn a_failing_target_waits_ever_longer_but_never_four_intervals() {
        let plan = Plan::Fixed(Fixed { every: Span::secs(10), eager: false, place: None });
        let wait =
            |failures| due(&next(&plan, &Facts::default(), &failed(t(), failures, None), t(), &SEAT)) - t();
        assert!(wait(1) <= Span::secs(10));
        assert!(wait(9) >= Span::secs(20) && wait(u32::MAX) <= Span::secs(40));
        let success = next(&plan, &Facts::default(), &good(t()), t(), &SEAT);
        assert!(due(&success) <= t() + Span::secs(10), "success resets");
    }

    #[test]
    fn retry_after_wins_over_everything() {
        for plan in [seed(), Plan::Fixed(Fixed { every: Span::secs(1), eager: true, place: None })] {
            let last = failed(at("-21m"), 1, Some(at("-2m")));
            let found = next(&plan, &pending(t()), &last, at("-21m"), &SEAT);
            assert_eq!(due(&found), at("-2m"));
            let found = replan(&plan, &pending(t()), &last, at("-4m"), &SEAT);
            assert_eq!(due(&found), at("-2m"));
        }
        // One that is already past is no reason to be early.
        let last = failed(at("-21m"), 1, Some(at("-30m")));
        assert!(due(&next(&seed(), &pending(t()), &last, at("-21m"), &SEAT)) > at("-21m"));
    }

    #[test]
    fn replanning_does_not_postpone_a_backoff() {
        let last = failed(at("-59m"), 2, None);
        let promised = due(&next(&seed(), &pending(t()), &last, at("-59m"), &SEAT));
        let found = replan(&seed(), &pending(t()), &last, at("-58m30s"), &SEAT);
        assert_eq!(due(&found), promised);
    }
}

mod laws {
    use super::*;

    fn tables() -> impl Strategy<Value = Countdown> {
        let own = prop::collection::vec((1_i64..4_000, 1_i64..600), 1..6).prop_map(|mut rows| {
            rows.sort_by_key(|row| std::cmp::Reverse(row.0));
            rows.dedup_by_key(|row| row.0);
            let phases = rows.iter().map(|&(from, every)| Phase::new(Span::secs(from), Span::secs(every)));
            Countdown::new(phases.collect(), Span::secs(7), Span::secs(90)).expect("ordered and positive")
        });
        prop_oneof![Just(Countdown::seed()), Just(Countdown::tight()), own]
    }

    /// What the upstream does at a poll.
    #[derive(Clone, Debug)]
    enum Turn {
        Answer,
        Retime(i64),
        Stage(Stage),
        Fail { took_ms: i64, retry_after_s: Option<i64> },
        Late { ms: i64 },
    }

    fn turns() -> impl Strategy<Value = Vec<Turn>> {
        let turn = prop_oneof![
            12 => Just(Turn::Answer),
            2 => (-5_000_i64..5_000).prop_map(Turn::Retime),
            1 => prop_oneof![Just(Stage::Pending), Just(Stage::Started)].prop_map(Turn::Stage),
            6 => (0_i64..10_000, prop::option::weighted(0.2, 0_i64..400))
                .prop_map(|(took_ms, retry_after_s)| Turn::Fail { took_ms, retry_after_s }),
            2 => (0_i64..90_000).prop_map(|ms| Turn::Late { ms }),
        ];
        prop::collection::vec(turn, 1..120)
    }

    /// The rule of the table at a moment, worked out the slow way: (interval, next boundary).
    fn rule(plan: &Countdown, facts: &Facts, now: Time) -> (Option<Span>, Option<Time>) {
        let start = facts.start.expect("these races have a start");
        if facts.stage == Stage::Started {
            return (Some(plan.after), None);
        }
        let mut found = (None, None);
        for phase in &plan.before {
            let begins = start - phase.from;
            if begins <= now {
                found = (Some(phase.every), None);
            } else if found.1.is_none() {
                found.1 = Some(begins);
            }
        }
        match now >= start {
            true => (Some(plan.overdue), None),
            false => (found.0, found.1.or(Some(start))),
        }
    }

    proptest! {
        #[test]
        fn no_gap_exceeds_the_interval_and_no_boundary_is_crossed(
            plan in tables(),
            start in -4_000_i64..8_000,
            spread in any::<u64>(),
            turns in turns(),
        ) {
            let seat = Seat { spread, ..SEAT };
            let table = Plan::Countdown(plan.clone());
            let mut facts = pending(t() + Span::secs(start));
            let mut last = NEVER;
            let mut now = t();
            for turn in turns {
                let found = next(&table, &facts, &last, now, &seat);
                let due = due(&found);
                prop_assert!(due >= now, "never in the past");
                let (interval, boundary) = rule(&plan, &facts, now);
                let floor = match last.outcome {
                    LastOutcome::Failed { not_before, .. } => not_before,
                    LastOutcome::Good => None,
                };
                if floor.is_some_and(|floor| floor >= due) {
                    prop_assert_eq!(Some(due), floor);
                } else {
                    prop_assert!(boundary.is_none_or(|boundary| due <= boundary), "{}", found.reason);
                    match (interval, last.outcome) {
                        (None, _) => prop_assert_eq!(Some(due), boundary, "waiting for the first phase"),
                        (Some(_), _) if last.slot.is_none() => prop_assert_eq!(due, now),
                        (Some(every), LastOutcome::Good) => prop_assert!(due > now && due - now <= every),
                        (Some(every), LastOutcome::Failed { failures, .. }) => {
                            let most = if failures == 1 { every } else { every.times(4) };
                            prop_assert!(due > now && due - now <= most);
                        }
                    }
                }
                let (every, _) = rule(&plan, &facts, due);
                prop_assert_eq!(Some(found.interval), every, "the phase is the due time's");
                prop_assert!(found.slack >= Span::ZERO && !found.reason.is_empty());

                // The poll happens.
                let before = last.outcome;
                (now, last) = (due, good(due));
                match turn {
                    Turn::Answer => {}
                    Turn::Retime(by) => facts.start = facts.start.map(|start| start + Span::secs(by)),
                    Turn::Stage(stage) if stage == facts.stage => {}
                    Turn::Stage(stage) => (facts.stage, facts.stage_since) = (stage, Some(due)),
                    Turn::Late { ms } => now += Span::ms(ms),
                    Turn::Fail { took_ms, retry_after_s } => {
                        now += Span::ms(took_ms);
                        let failures = match before {
                            LastOutcome::Failed { failures, .. } => failures + 1,
                            LastOutcome::Good => 1,
                        };
                        last = failed(due, failures, retry_after_s.map(|secs| now + Span::secs(secs)));
                    }
                }
            }
            facts.stage = Stage::Over;
            prop_assert_eq!(next(&table, &facts, &last, now, &seat).due, None, "terminal means stop");
        }

        #[test]
        fn polls_that_succeed_fall_on_every_boundary_and_on_t(plan in tables(), ahead in 0_i64..8_000) {
            let table = Plan::Countdown(plan.clone());
            let discovered = t() - Span::secs(ahead);
            let (mut last, mut now, mut slots) = (NEVER, discovered, Vec::new());
            while now < t() + Span::mins(2) {
                now = due(&next(&table, &pending(t()), &last, now, &SEAT));
                last = good(now);
                slots.push(now);
            }
            let boundaries = plan.before.iter().map(|phase| t() - phase.from).chain([t()]);
            for boundary in boundaries.filter(|&boundary| boundary >= discovered) {
                prop_assert!(slots.contains(&boundary), "{boundary}");
            }
            // What a sleeper would have missed is exactly what was polled meanwhile.
            for (index, &slot) in slots.iter().enumerate().skip(1) {
                let missed = expired(&table, &pending(t()), &SEAT, slots[0], slot);
                prop_assert_eq!(missed, index as u64);
            }
        }

        #[test]
        fn steady_plans_never_drift_and_count_what_they_miss(
            every_ms in 1_i64..5_000_000,
            spread in any::<u64>(),
            focused in any::<bool>(),
            late in prop::collection::vec(0_i64..20_000_000, 1..40),
        ) {
            let every = Span::ms(every_ms);
            let seat = Seat { spread, priority: 7, budgeted: Some(every), bell: None };
            let facts = Facts { focused, ..Facts::default() };
            for plan in [
                Plan::Fixed(Fixed { every, eager: false, place: None }),
                Plan::Focus(Focus { active: every, idle: every }),
                Plan::Adaptive(Adaptive { min: Span::ms(1), max: Span::hours(24), weight: 2.0 }),
            ] {
                let mut slot = due(&next(&plan, &facts, &NEVER, t(), &seat));
                for &ms in &late {
                    let ended = slot + Span::ms(ms);
                    let missed = expired(&plan, &facts, &seat, slot, ended);
                    let following = due(&next(&plan, &facts, &good(slot), ended, &seat));
                    prop_assert!(following > ended && following - ended <= every);
                    if !focused || slot != t() {
                        prop_assert_eq!(following - slot, every.times(missed as i64 + 1));
                    }
                    slot = following;
                }
            }
        }

        #[test]
        fn replanning_never_looks_back_nor_waits_longer_than_the_rule(
            plan in tables(), start in -4_000_i64..8_000, ago in 0_i64..4_000, spread in any::<u64>(),
        ) {
            let facts = pending(t() + Span::secs(start));
            let seat = Seat { spread, ..SEAT };
            let slot = t() - Span::secs(ago);
            let found = due(&replan(&Plan::Countdown(plan.clone()), &facts, &good(slot), t(), &seat));
            prop_assert!(found >= t());
            let (every, boundary) = rule(&plan, &facts, slot);
            let latest = every.map_or(boundary.unwrap_or(t()), |every| slot + every);
            prop_assert!(found <= latest.max(t()));
        }

        #[test]
        fn jitter_only_ever_delays(spread in any::<u64>(), slot in any::<i64>(), every in 0_i64..1_000_000_000) {
            let (every, cap) = (Span::us(every), Span::ms(150));
            let drawn = jitter(spread, Time(slot), every, cap);
            prop_assert!(drawn >= Span::ZERO && drawn <= cap && drawn <= every.over(10));
            prop_assert_eq!(drawn, jitter(spread, Time(slot), every, cap));
        }
    }
}
