//! Drops make a bucket hot, churn does not, and nobody herds.

use std::collections::BTreeMap;

use serde_json::json;
use stakeout_core::{FailureClass, Span, Time};

use crate::support::*;

/// Polls per bucket in the second half of a watch.
fn polls_per_bucket(watched: &Watched, after: Time) -> BTreeMap<String, usize> {
    let mut polls = BTreeMap::new();
    for (at, question) in &watched.log {
        if *at >= after && question.page == 1 {
            *polls.entry(question.day.clone()).or_default() += 1;
        }
    }
    polls
}

#[test]
fn drops_heat_a_bucket_and_churn_does_not() {
    let mut world = World::new();
    let config = json!({
        "days": 4, "time_slots": ["20:30"], "party_sizes": [2], "budget": "4/min", "quiet": "12h",
        "min_interval": "10s", "max_interval": "1h",
    });
    let watched = world.watch(&config, Span::hours(24), |m, question| {
        let quarter = m / 15;
        let day = question.day.as_str();
        let venues = match day {
            // A table opens somewhere new every half hour and goes again.
            "2026-02-27" => (1..=60)
                .map(|id| {
                    venue_on(
                        day,
                        id,
                        if quarter % 2 == 1 && quarter / 2 % 60 == id - 1 { &["20:30"] } else { &[] },
                    )
                })
                .collect(),
            // Twenty venues change their times all the time, and one flaps every minute.
            "2026-02-28" => (1..=20)
                .map(|id| {
                    let times: &[&str] = if (m + id) % 2 == 0 { &["18:00"] } else { &["19:00"] };
                    venue_on(day, id, times)
                })
                .chain([venue_on(day, 99, if m < 3 || m % 2 == 0 { &[] } else { &["20:30"] })])
                .collect(),
            _ => vec![venue_on(day, 1, &["20:30"]), venue_on(day, 2, &[])],
        };
        Ok(page(&venues))
    });
    assert!(watched.drops().len() > 20, "{} drops", watched.drops().len());
    let polls = polls_per_bucket(&watched, start() + Span::hours(6));
    let (hot, churning, calm) = (polls["2026-02-27"], polls["2026-02-28"], polls["2026-03-01"]);
    assert!(hot > 2 * calm, "drops heat: {polls:?}");
    assert!(churning < hot * 3 / 4, "churn does not: {polls:?}");
    let total: usize = polls.values().sum();
    let allowed = 18 * 60 * 4;
    assert!(total <= allowed && total > allowed / 2, "{total} of {allowed} requests");
}

#[test]
fn no_herd_after_the_start_nor_after_the_window_rolls() {
    // Eleven in the evening: the window rolls after an hour.
    let mut world = World::at("2026-02-27T04:00:00Z");
    let config = json!({ "party_sizes": [2, 4], "budget": "60/min" });
    let watched = world.watch(&config, Span::hours(2), |_, question| {
        Ok(page(&(1..=5).map(|id| venue_on(&question.day, id, &["20:30"])).collect::<Vec<_>>()))
    });
    let begin = Time::parse("2026-02-27T04:00:00Z").expect("a time");
    let mut per_second: BTreeMap<i64, u32> = BTreeMap::new();
    let mut per_minute: BTreeMap<i64, u32> = BTreeMap::new();
    for (at, _) in &watched.log {
        *per_second.entry((*at - begin).as_us() / 1_000_000).or_default() += 1;
        *per_minute.entry((*at - begin).as_us() / 60_000_000).or_default() += 1;
    }
    assert!(per_second.values().all(|n| *n <= 2), "one a second, wherever the second begins: {per_second:?}");
    assert!(per_minute.values().all(|n| *n <= 61), "{per_minute:?}");
    let buckets: std::collections::BTreeSet<_> = watched.log.iter().map(|(_, q)| (&q.day, &q.time)).collect();
    assert_eq!(buckets.len(), 30, "28 buckets, and two more after midnight");
    // The first minute after the start and the one after midnight are as busy as any other.
    let mean = watched.log.len() as f64 / 120.0;
    for minute in [0, 60] {
        let found = f64::from(per_minute.get(&minute).copied().unwrap_or(0));
        assert!(found <= mean * 2.0 + 4.0, "{found} requests in minute {minute}, {mean} on average");
    }
}

#[test]
fn without_a_limiter_the_first_polls_are_spread_all_the_same() {
    // Nothing holds anybody back but when they are due. Eleven in the evening: the window rolls after an hour.
    let begin = Time::parse("2026-02-27T04:00:00Z").expect("a time");
    let config = json!({
        "party_sizes": [2], "budget": "60/min",
        "limits": { "requests_per_second": 10_000, "burst": 10_000, "concurrency": 64 },
    });
    let watched = World::at("2026-02-27T04:00:00Z")
        .watch(&config, Span::mins(70), |_, question| Ok(page(&[venue_on(&question.day, 1, &["20:30"])])));
    // A new bucket is looked at more often than those of which it is known that little happens.
    for (from, until, most) in [(0, 20, 1), (3_600, 3_620, 2)] {
        let mut polls: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut per_second: BTreeMap<i64, u32> = BTreeMap::new();
        for (at, question) in &watched.log {
            let second = (*at - begin).as_us() / 1_000_000;
            if (from..until).contains(&second) {
                *polls.entry((&question.day, &question.time)).or_default() += 1;
                *per_second.entry(second).or_default() += 1;
            }
        }
        assert!(polls.len() > 8, "they do come: {polls:?}");
        assert!(polls.values().all(|n| *n <= most), "nobody before the interval is over: {polls:?}");
        assert!(per_second.values().all(|n| *n <= 6), "28 over half a minute: {per_second:?}");
    }
}

#[test]
fn a_429_is_honoured_by_the_whole_source() {
    let mut world = World::new();
    let config = every_minute(json!({ "time_slots": ["15:00", "18:00", "20:30"], "budget": "60/min" }));
    let limited = |now: Time, question: &Question| {
        let minute = (now - start()).as_us() / 60_000_000;
        if minute == 3 && question.time == "18:00" {
            return Err(stakeout_core::Failure {
                retry_after: Some(Span::mins(5)),
                ..failure(FailureClass::RateLimited)
            });
        }
        Ok(page(&[venue(1, &["20:30"])]))
    };
    let watched = world.watch_with(&config, Span::mins(15), limited, async |_| {});
    let complained = watched.log.iter().find(|(at, q)| *at >= start() + Span::mins(3) && q.time == "18:00");
    let complained = complained.expect("it was asked").0;
    let quiet =
        watched.log.iter().filter(|(at, _)| *at > complained && *at < complained + Span::mins(5)).count();
    assert_eq!(quiet, 0, "nobody is asked before Retry-After is over");
    assert!(watched.log.iter().any(|(at, _)| *at >= complained + Span::mins(5)), "and then it goes on");
}

#[test]
fn a_bucket_that_takes_longer_to_read_than_a_lease_is_read_whole_and_stamped_page_by_page() {
    // Two party sizes of forty pages at thirty requests a minute: more than two and a half minutes.
    let mut world = World::new();
    let config = json!({
        "days": 1, "time_slots": ["20:30"], "party_sizes": [2, 4], "per_page": 1, "budget": "30/min",
    });
    let scene = |now: Time, question: &Question| {
        let opens = question.page == 7 && now >= start() + Span::mins(20);
        let times: &[&str] = if opens || question.page == 1 { &["20:30"] } else { &[] };
        let hit = venue(i64::try_from(question.page).expect("small"), times);
        Ok(json!({ "meta": { "total": 40, "total_pages": 40 }, "search": { "hits": [hit] } }))
    };
    let watched = world.watch_with(&config, Span::mins(40), scene, async |_| {});
    let bucket = &watched.targets[&format!("{TODAY}_20:30")];
    assert_eq!(bucket.state.cost, 80);
    assert_eq!(watched.drops().len(), 1);
    let event = &watched.events[0];
    let opened_at = event.data["opened_at"].as_str().and_then(Time::parse).expect("a time");
    let asked = watched.log.iter().find(|(at, q)| q.page == 7 && *at >= start() + Span::mins(20));
    assert_eq!(Some(opened_at), asked.map(|(at, _)| *at), "when its own page was read");
    assert_eq!(event.at, opened_at);
    let ended: Vec<i64> = world
        .column("SELECT max(ended_us) FROM polls WHERE events > 0")
        .iter()
        .filter_map(|us| us.parse().ok())
        .collect();
    assert!(Time(ended[0]) - opened_at > Span::mins(1), "the poll took its time");
    let minute = &opened_at.to_string()[..16];
    assert!(event.dedupe_key.as_ref().is_some_and(|key| key.ends_with(minute)));
    // The last poll is cut short by the end of the watch.
    let log =
        "SELECT outcome FROM polls WHERE target_id > 1 AND outcome <> 'unchanged' ORDER BY poll_no LIMIT 2";
    assert_eq!(world.column(log), ["baseline", "changed"]);
}
