//! An answer that is the last one over again is not read again, and still time goes on.

use serde_json::json;
use stakeout_core::Span;
use stakeout_store::PollOutcome;

use crate::support::*;

#[test]
fn a_slot_passes_at_its_time_though_every_answer_is_the_same() {
    let mut world = World::new();
    // A list as long as the cap proves nothing: the slot at 14:30, half an hour away, is neither shown nor closed.
    let watched = world.watch(&every_minute(json!({})), Span::mins(40), |m, _| {
        let first = if m < 3 { "14:30" } else { "20:30" };
        Ok(page(&[venue(1, &[first, "19:00", "20:00"]), venue(2, &["19:00"])]))
    });
    let bucket = &watched.targets["2026-02-26_20:30"];
    assert!(bucket.poll_no >= 39 && bucket.last_outcome == Some(PollOutcome::Unchanged), "{bucket:?}");
    let state = |clock: &str| {
        world.column(&format!(
            "SELECT state FROM slot_availability WHERE start LIKE '%T{clock}' AND venue_id = '1'"
        ))
    };
    assert_eq!((state("14:30"), state("20:30")), (vec!["passed".to_owned()], vec!["open".to_owned()]));
    let gone = world.column("SELECT changes FROM polls WHERE changes > 0 ORDER BY id DESC LIMIT 1");
    assert_eq!(gone, ["1"], "at 14:30 and never again");
}

#[test]
fn a_second_answer_without_a_venue_counts_though_it_is_the_same() {
    let absent_in = |minutes: std::ops::Range<i64>| {
        let watched = World::new().watch(&every_minute(json!({})), Span::mins(10), move |m, _| {
            let mut venues = vec![venue(2, &["19:00"])];
            if m < minutes.start {
                venues.push(venue(1, &["18:00"]));
            } else if !minutes.contains(&m) {
                venues.push(venue(1, &["20:30"]));
            }
            Ok(page(&venues))
        });
        watched.drops()
    };
    assert_eq!(absent_in(3..5), ["5 1@20:30"], "absent from two whole answers");
    assert!(absent_in(3..4).is_empty(), "absent once may be a page that shifted");
}
