//! 7.1, 7.2 and 7.6 of the seed: intervals for every range and boundary, time to start, delayed starts.

use serde_json::json;
use stakeout_core::cadence::{Countdown, Fixed, Plan};
use stakeout_core::{Facts, Source, Span, Stage, TargetSpec};

use crate::support::*;

/// A poll at `slot` that saw the race open: when it is polled next, and in which phase.
fn check(slot: &str, due: &str, phase: &str) {
    let mut watch = Watch::new(source());
    watch.poll(at(slot), &answer());
    let next = watch.next();
    assert_eq!((next.due, &*next.phase), (Some(at(due)), phase), "after {slot}: {}", next.reason);
}

#[test]
fn seed_7_1_the_interval_follows_the_time_to_start() {
    // T-60m to T-20m, every 5 min.
    check("-60m", "-55m", "T-60m");
    check("-30m", "-25m", "T-60m");
    // T-20m to T-10m, every 2 min.
    check("-20m", "-18m", "T-20m");
    check("-12m", "-10m", "T-10m");
    // T-10m to T-5m, every minute.
    check("-10m", "-9m", "T-10m");
    // T-5m to the start, every 15 s.
    check("-5m", "-285s", "T-5m");
    check("-15s", "+0s", "overdue");
}

#[test]
fn seed_7_1_a_due_time_never_jumps_over_a_boundary() {
    check("-21m", "-20m", "T-20m");
    check("-11m", "-10m", "T-10m");
    check("-330s", "-5m", "T-5m");
    check("-5s", "+0s", "overdue");
    check("-75m", "-60m", "T-60m");
}

#[test]
fn seed_7_2_the_first_poll_is_an_hour_ahead() {
    let watch = Watch::new(source());
    assert_eq!(watch.next().due, Some(at("-60m")));
}

#[test]
fn seed_7_6_a_delayed_start_is_polled_every_15_seconds_until_it_is_confirmed() {
    let mut watch = Watch::new(source());
    let closed = answer_with(json!({ "status": "CLOSED" }));
    for (now, body, due) in [
        ("+0s", answer(), "+15s"),
        // Closed alone proves nothing, nor does an actual start that equals nothing yet.
        ("+15s", closed.clone(), "+30s"),
        ("+24m", closed.clone(), "+1455s"),
        ("+1455s", answer_with(json!({ "status": "Closed", "actual_start": START_SECS + 9_999 })), "+1470s"),
    ] {
        watch.poll(at(now), &body);
        assert_eq!(watch.next().due, Some(at(due)), "after {now}");
        assert_eq!(watch.facts.stage, Stage::Pending, "after {now}");
    }
    // Off at last: 5 min from the poll that saw it.
    let off = answer_with(json!({ "status": "Closed", "actual_start": START_SECS + 1_460 }));
    watch.poll(at("+1470s"), &off);
    assert_eq!((watch.facts.stage, watch.next().due), (Stage::Started, Some(at("+1770s"))));
}

#[test]
fn seed_7_2_a_retimed_race_is_planned_by_its_new_start() {
    let mut watch = Watch::new(source());
    watch.poll(at("-15m"), &answer());
    assert_eq!(watch.next().due, Some(at("-14m")), "a poll off the grid comes back to it");
    watch.poll(at("-14m"), &answer_with(json!({ "advertised_start": START_SECS + 600 })));
    // T is ten minutes later now: T-24m, next at T-20m.
    assert_eq!(watch.next().due, Some(at("-10m")));
}

#[test]
fn a_start_that_only_the_race_itself_puts_off_is_polled_through_as_it_is_listed() {
    let mut watch = Watch::new(source());
    let put_off = answer_with(json!({ "advertised_start": START_SECS + 3 * 3_600 }));
    watch.poll(at("-30m"), &answer());
    for (now, due, phase) in [
        ("-25m", "-20m", "T-20m as listed"),
        ("-20m", "-18m", "T-20m as listed"),
        ("-5m", "-285s", "T-5m as listed"),
        ("-15s", "+0s", "T as listed"),
        ("+0s", "+5m", "T as listed"),
        ("+118m", "+2h", "T-60m"),
        ("+2h", "+125m", "T-60m"),
        ("+3h", "+10815s", "overdue"),
    ] {
        watch.poll(at(now), &put_off);
        let next = watch.next();
        assert_eq!((next.due, &*next.phase), (Some(at(due)), phase), "after {now}: {}", next.reason);
    }
    // Back where it was, it is overdue at once.
    watch.poll(at("+5m"), &answer());
    assert_eq!(watch.next().due, Some(at("+315s")));
    // Once the catalogue agrees, nothing is due before the countdown.
    watch.target.start = Some(at("+3h"));
    watch.poll(at("+10m"), &put_off);
    assert_eq!(watch.next().due, Some(at("+2h")));
    // A start that comes earlier counts at once, whatever is listed.
    watch.poll(at("+15m"), &answer_with(json!({ "advertised_start": START_SECS + 3_600 })));
    assert_eq!(watch.next().due, Some(at("+20m")));
}

#[test]
fn the_tight_preset_and_an_own_table_are_one_line_each() {
    let started = Facts { stage: Stage::Started, start: Some(start()), ..Facts::default() };
    let countdown = |cadence: serde_json::Value| match source_with(json!({ "cadence": cadence }))
        .plan(&race_target(), &started)
    {
        Plan::Countdown(countdown) => countdown,
        other => panic!("{other:?}"),
    };
    assert_eq!(countdown(json!("seed")), Countdown::seed());
    assert_eq!(countdown(json!("tight")).after, Span::secs(30));
    let own =
        countdown(json!({ "before": [{ "from": "30m", "every": "3m" }, { "from": "90s", "every": "5s" }],
        "overdue": "5s", "after": "1m" }));
    assert_eq!(
        (own.before.len(), own.before[1].from, own.overdue, own.after),
        (2, Span::secs(90), Span::secs(5), Span::mins(1))
    );
}

#[test]
fn the_catalogue_is_read_at_start_and_every_half_hour() {
    let source = source();
    let [root]: [TargetSpec; 1] = source.roots(start()).try_into().expect("one root");
    assert_eq!((root.key.as_str(), root.role.as_str()), ("catalogue", "catalogue"));
    let plan = source.plan(&root, &Facts::default());
    assert_eq!(plan, Plan::Fixed(Fixed { every: Span::mins(30), eager: true, place: Some(Span::ZERO) }));
}

#[test]
fn seed_7_2_a_whole_race_takes_as_many_polls_as_its_table_says() {
    let mut watch = Watch::new(source());
    let mut polls = 0;
    while let Some(due) = watch.next().due {
        let body = match due {
            // Off after 70 s, Interim after 3 min, Final after 8.
            due if due >= at("+8m") => {
                answer_with(json!({ "status": "Final", "actual_start": START_SECS + 70 }))
            }
            due if due >= at("+3m") => {
                answer_with(json!({ "status": "Interim", "actual_start": START_SECS + 70 }))
            }
            due if due >= at("+70s") => {
                answer_with(json!({ "status": "Closed", "actual_start": START_SECS + 70 }))
            }
            _ => answer(),
        };
        watch.poll(due, &body);
        polls += 1;
        assert!(polls < 100, "the race never ends");
    }
    // 8 + 5 + 5 + 20 before T, T to T+75s every 15 s, then two of 5 min each.
    assert_eq!(polls, 8 + 5 + 5 + 20 + 6 + 2);
    assert_eq!(watch.facts.stage, Stage::Over);
}
