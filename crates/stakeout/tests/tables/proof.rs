//! What an answer proves: nothing where it failed, was read in part, or shows less than there may be.

use serde_json::{Value as Json, json};
use stakeout_core::{FailureClass, Span, Time};

use crate::support::*;

const NONE: [&str; 0] = [];
const BUCKET: &str = "2026-02-26_20:30";

/// Watches one bucket minute by minute; the scene says which venues are shown, and the drops come back.
fn drops(minutes: i64, scene: impl Fn(i64) -> Vec<Json> + Send + Sync + 'static) -> Vec<String> {
    World::new().watch(&every_minute(json!({})), Span::mins(minutes), move |m, _| Ok(page(&scene(m)))).drops()
}

#[test]
fn the_last_scan_of_a_failing_bucket_is_the_last_whole_one() {
    let mut world = World::new();
    let scene = |m: i64, _: &Question| match m {
        0..10 => Ok(page(&[venue(1, &["20:30"])])),
        _ => Err(failure(FailureClass::ServerError)),
    };
    let watched = world.watch(&every_minute(json!({})), Span::hours(5), scene);
    let row = &watched.targets[BUCKET];
    let scanned = row.state.last_look().expect("there was one");
    assert_eq!((scanned - start()).as_us() / 60_000_000, 9);
    assert!(
        row.last_polled.is_some_and(|polled| polled - scanned > Span::hours(4)),
        "it was tried ever since"
    );
    let shown = world.column("SELECT last_scan_at FROM discovery_buckets");
    assert_eq!(Time::parse(&shown[0]), Some(scanned));
}

#[test]
fn a_part_of_an_answer_takes_no_party_size_away() {
    let mut world = World::new();
    let scene = |m: i64, question: &Question| match (m, question.size) {
        (2..5, 4) => Err(failure(FailureClass::ServerError)),
        (8.., 4) => Ok(page(&[venue(1, &[]), venue(2, &["19:00"])])),
        _ => Ok(page(&[venue(1, &["20:30"]), venue(2, &["19:00"])])),
    };
    let config = every_minute(json!({ "party_sizes": [2, 4] }));
    let sizes = |world: &World| {
        let of = "FROM slot_availability WHERE venue_id = '1'";
        let seatings = format!("SELECT json_extract(seatings, '$[0].party_sizes') {of}");
        (world.column(&format!("SELECT party_sizes {of}")), world.column(&seatings))
    };
    let both = vec!["[2,4]".to_owned()];
    world.watch(&config, Span::mins(4), scene);
    assert_eq!(sizes(&world), (both.clone(), both), "the page for four failed");
    world.watch(&config, Span::mins(20), move |m, question| scene(m + 8, question));
    let two = vec!["[2]".to_owned()];
    assert_eq!(sizes(&world), (two.clone(), two), "a whole answer has it for two only");
}

#[test]
fn what_a_part_of_an_answer_tells_heats_the_bucket_when_the_next_whole_one_comes() {
    let rate = |opens: bool| {
        let config = every_minute(json!({ "party_sizes": [2, 4] }));
        let watched =
            World::new().watch(&config, Span::mins(30), move |m, question| match (m, question.size) {
                (3..8, 4) => Err(failure(FailureClass::ServerError)),
                _ => {
                    let times: &[&str] = if opens && m >= 4 { &["20:30"] } else { &[] };
                    Ok(page(&[venue(1, times), venue(2, &["19:00"])]))
                }
            });
        let state = &watched.targets[BUCKET].state;
        assert_eq!(state.uncounted, 0, "a whole answer has come since");
        (watched.drops().len(), state.rate.expect("an adaptive target").rate())
    };
    let ((told, hot), (none, cold)) = (rate(true), rate(false));
    assert_eq!((told, none), (1, 0));
    assert!(hot > cold * 2.0, "{hot} and {cold}");
}

/// A venue with a time that nobody understands.
fn unreadable() -> Json {
    let mut hit = venue(1, &["20:30"]);
    hit["availability"]["slots"][0]["date"]["start"] = json!("soon");
    hit
}

#[test]
fn a_venue_whose_slots_could_not_be_read_was_not_seen_with_nothing() {
    let shown = |m: i64| if m == 3 { unreadable() } else { venue(1, &["20:30"]) };
    assert_eq!(drops(6, move |m| vec![shown(m), venue(2, &["19:00"])]), NONE);
    // From the beginning, so that nothing is held of it.
    let shown = |m: i64| if m < 3 { unreadable() } else { venue(1, &["20:30"]) };
    assert_eq!(drops(6, move |m| vec![shown(m), venue(2, &["19:00"])]), NONE);
    let shown = |m: i64| match m {
        0..3 => unreadable(),
        3..6 => venue(1, &[]),
        _ => venue(1, &["20:30"]),
    };
    assert_eq!(drops(9, move |m| vec![shown(m), venue(2, &["19:00"])]), ["6 1@20:30"], "seen with nothing");
}

#[test]
fn a_venue_whose_id_had_two_names_was_not_seen_with_nothing() {
    let scene = |m: i64, question: &Question| {
        let mut hit = venue(1, &["20:30"]);
        if m < 3 && question.size == 4 {
            hit["name"] = json!("Somebody else");
        }
        Ok(page(&[hit, venue(2, &["19:00"])]))
    };
    let config = every_minute(json!({ "party_sizes": [2, 4] }));
    assert_eq!(World::new().watch(&config, Span::mins(6), scene).drops(), NONE);
}

#[test]
fn a_bucket_with_a_few_tables_may_lose_them_all_for_some_answers_without_an_alert() {
    let few = || (1..=3).map(|id| venue(id, &["20:30"])).collect::<Vec<_>>();
    let none = || (1..=3).map(|id| venue(id, &[])).collect::<Vec<_>>();
    for outage in 1..=5 {
        let away = move |m: i64| (2..2 + outage).contains(&m);
        assert_eq!(
            drops(12, move |m| if away(m) { none() } else { few() }),
            NONE,
            "{outage} without a table"
        );
        assert_eq!(
            drops(12, move |m| if away(m) { vec![] } else { few() }),
            NONE,
            "{outage} without a venue"
        );
    }
    // Taken for real, and one of them is free again.
    let scene = move |m: i64| match m {
        0..2 => few(),
        2..35 => none(),
        _ => vec![venue(1, &["20:30"]), venue(2, &[]), venue(3, &[])],
    };
    assert_eq!(drops(40, scene), ["35 1@20:30"]);
}

#[test]
fn long_after_a_mass_closing_a_single_table_is_news_and_the_mass_still_is_not() {
    let of = |open: fn(i64) -> bool| {
        let shown = move |id: i64| venue(id, if open(id) { &["20:30"] } else { &[] });
        (1..=40).map(shown).collect::<Vec<_>>()
    };
    let scene = move |m: i64| match m {
        0..2 => of(|_| true),
        30..32 => of(|id| id == 2),
        75..90 => of(|id| id == 1),
        90.. => of(|_| true),
        _ => of(|_| false),
    };
    assert_eq!(drops(100, scene), ["75 1@20:30"]);
}
