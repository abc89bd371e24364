//! A source whose credentials are refused stops, says so once, and asks rarely whether it is still so.

use serde_json::{Value as Json, json};
use stakeout_core::{FailureClass, Span};

use crate::support::*;

fn config() -> Json {
    every_minute(json!({ "days": 3, "time_slots": ["15:00", "20:30"] }))
}

fn alerts(watched: &Watched) -> usize {
    watched.events.iter().filter(|event| event.event_type == "tables.credentials").count()
}

#[test]
fn refused_credentials_stop_the_source_with_one_alert_and_rare_probes() {
    for class in [FailureClass::Redirect, FailureClass::Forbidden] {
        let mut world = World::new();
        let watched = world.watch(&config(), Span::mins(120), move |m, question| match m {
            10..75 => Err(failure(class)),
            _ => Ok(page(&[venue_on(&question.day, 1, &["20:30"])])),
        });
        let between = |from: i64, to: i64| {
            let within = start() + Span::mins(from)..start() + Span::mins(to);
            watched.log.iter().filter(|(at, _)| within.contains(at)).count()
        };
        assert_eq!(alerts(&watched), 1, "{class}");
        assert!(between(0, 10) > 40, "six buckets a minute");
        // After 1, 2, 4 and 8 minutes, then every 15; the first refusal may find a second request on its way.
        assert!(between(10, 75) <= 9, "{} requests in 65 refused minutes", between(10, 75));
        assert!(between(45, 75) <= 2, "{} requests in the last half hour of it", between(45, 75));
        assert!(between(95, 120) > 100, "and after the probe that succeeds it goes on: {}", between(95, 120));
        let alert = watched.events.iter().find(|e| e.event_type == "tables.credentials").expect("the alert");
        assert_eq!((alert.subject_key.as_str(), &alert.data["class"]), ("nyc", &json!(class.name())));
        let listed = source(&config()).event_types();
        assert!(watched.events.iter().all(|event| listed.contains(&event.event_type)), "{listed:?}");
    }
}

#[test]
fn a_restart_while_refused_neither_asks_often_nor_tells_again() {
    let mut world = World::new();
    let refused = |_: i64, _: &Question| Err(failure(FailureClass::Forbidden));
    let good = |_: i64, question: &Question| Ok(page(&[venue_on(&question.day, 1, &["20:30"])]));
    world.watch(&config(), Span::mins(5), good);
    assert_eq!(alerts(&world.watch(&config(), Span::mins(20), refused)), 1);
    // Longer than any quiet time: what keeps it silent is the memory of being refused.
    world.now += Span::hours(3);
    let watched = world.watch(&config(), Span::mins(20), refused);
    assert_eq!(alerts(&watched), 1);
    assert!(watched.log.len() <= 3, "{} requests", watched.log.len());
    let watched = world.watch(&config(), Span::mins(40), good);
    assert!(watched.log.len() > 60, "{} requests once it works again", watched.log.len());
    assert_eq!(
        world.column("SELECT json_extract(value, '$.refused') FROM kv WHERE namespace = 'credentials'"),
        ["0"]
    );
}

#[test]
fn other_failures_back_off_the_bucket_and_keep_the_rest_going() {
    let mut world = World::new();
    let watched = world.watch(&config(), Span::mins(30), |_, question| match question.time.as_str() {
        "15:00" => Err(failure(FailureClass::ServerError)),
        _ => Ok(page(&[venue_on(&question.day, 1, &["20:30"])])),
    });
    assert_eq!(alerts(&watched), 0);
    let polls = |time: &str| watched.log.iter().filter(|(_, q)| q.time == time).count();
    assert!(polls("20:30") >= 85, "{} of 90", polls("20:30"));
    assert!(polls("15:00") < polls("20:30") / 2, "{}", polls("15:00"));
}
