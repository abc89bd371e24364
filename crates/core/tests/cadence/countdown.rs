//! Countdowns: the table of the seed, boundaries, bells, and the order of races.

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
    let after = |last: Last, now: &str, bell: &str| next(&seed(), &pending(t()), &last, at(now), &seat(bell));
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
    let own = Countdown::new(vec![Phase::new(Span::mins(50), Span::mins(7))], Span::secs(9), Span::mins(1));
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
