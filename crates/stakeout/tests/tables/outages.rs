//! An outage that only one of two overlapping buckets sees: what it took there is still open, whoever shows it.

use serde_json::{Value as Json, json};
use stakeout_core::Span;

use crate::support::{Question, World, every_minute, page, venue};

const NONE: [&str; 0] = [];

/// What is told when the late bucket has an outage from minute 3 to `until`. `early` and `late` say what the buckets show
/// of venues 1 and 2 at a minute; all other venues always have a table.
fn told(
    minutes: i64,
    until: i64,
    early: impl Fn(i64) -> Vec<Json> + Send + Sync + 'static,
    late: impl Fn(i64) -> Vec<Json> + Send + Sync + 'static,
) -> Vec<String> {
    let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
    let watched = World::new().watch(&config, Span::mins(minutes), move |m, question: &Question| {
        let is_late = question.time == "20:30";
        let mut venues = if is_late { late(m) } else { early(m) };
        venues.extend((3..=20).map(|id| venue(id, if is_late { &["22:00"] } else { &["17:00"] })));
        if is_late && (3..until).contains(&m) {
            venues = (1..=20).map(|id| venue(id, &[])).collect();
        }
        Ok(page(&venues))
    });
    watched.drops()
}

#[test]
fn what_the_outage_of_one_bucket_took_is_no_drop_where_another_shows_it() {
    let open = |_| vec![venue(1, &["19:15"]), venue(2, &["21:00"])];
    // Venue 1's own table comes into the early bucket's sight, and beside that of venue 2 another one opens.
    let early = |m| match m {
        0..7 => vec![venue(1, &[]), venue(2, &[])],
        _ => vec![venue(1, &["19:15"]), venue(2, &["17:30"])],
    };
    assert_eq!(told(16, 10, early, open), NONE);
}

#[test]
fn what_is_gone_when_the_outage_of_one_bucket_is_over_is_a_drop_where_another_shows_it() {
    // Both venues' tables were really taken while the late bucket was blind.
    let taken = |m| {
        if m < 3 {
            vec![venue(1, &["19:15"]), venue(2, &["21:00"])]
        } else {
            vec![venue(1, &[]), venue(2, &[])]
        }
    };
    let early = |m| match m {
        0..14 => vec![venue(1, &[]), venue(2, &[])],
        _ => vec![venue(1, &["19:15"]), venue(2, &["17:30"])],
    };
    let mut told = told(18, 8, early, taken);
    told.sort();
    assert_eq!(told, ["14 1@19:15", "14 2@17:30"]);
}

#[test]
fn where_a_bucket_stays_empty_for_good_another_tells_again_after_a_while() {
    let open = |_| vec![venue(1, &["19:15"]), venue(2, &["21:00"])];
    let early = |m| match m {
        0..7 => vec![venue(1, &[]), venue(2, &[])],
        7..80 => vec![venue(1, &["17:15"]), venue(2, &[])],
        _ => vec![venue(1, &["17:15"]), venue(2, &["17:30"])],
    };
    assert_eq!(told(84, i64::MAX, early, open), ["80 2@17:30"]);
}
