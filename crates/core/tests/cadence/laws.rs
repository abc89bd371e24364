//! What never happens, whatever the upstream does.

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
