//! What anyone can read in the database.

use serde_json::json;
use stakeout_core::Span;

use crate::support::*;

#[test]
fn the_views_say_what_is_open_what_was_told_and_how_the_buckets_are() {
    let mut world = World::new();
    let watched = world.watch(&every_minute(json!({})), Span::mins(6), |m, _| {
        let times: &[&str] = if m < 3 { &[] } else { &["20:30"] };
        let second: &[&str] = if m < 4 { &["19:00", "21:00"] } else { &["19:00"] };
        Ok(page(&[venue(1, times), venue(2, second)]))
    });
    let drop = &watched.events[0];
    let bucket = format!("{TODAY}_20:30");

    let slots = "SELECT bucket_id || ' ' || venue_name || ' ' || start || ' ' || state FROM slot_availability ORDER BY 1";
    assert_eq!(
        world.column(slots),
        [
            format!("{bucket} Venue 1 {TODAY}T20:30 open"),
            format!("{bucket} Venue 2 {TODAY}T19:00 open"),
            format!("{bucket} Venue 2 {TODAY}T21:00 closed"),
        ]
    );
    assert_eq!(world.column("SELECT count(*) FROM tables_slots"), ["2"], "what is open");
    let told = "SELECT bucket_id || ' ' || slot_id || ' ' || venue_id || ' ' || evidence FROM drop_events";
    assert_eq!(world.column(told), [format!("{bucket} {} 1 nonempty_prev", drop.subject)]);
    assert_eq!(world.column("SELECT dedupe_key FROM drop_events"), [drop.dedupe_key.clone().expect("a key")]);
    assert_eq!(
        world.column("SELECT opened_at FROM drop_events"),
        [drop.data["opened_at"].as_str().expect("text")]
    );

    let ids = |column: &str| {
        let text =
            world.column(&format!("SELECT {column} FROM discovery_buckets WHERE bucket_id = '{bucket}'"));
        serde_json::from_str::<Vec<String>>(&text[0]).expect("a list of ids")
    };
    let open = |state: &str| {
        world.column(&format!("SELECT slot_id FROM slot_availability WHERE {state} ORDER BY slot_id"))
    };
    assert_eq!(ids("prev_slot_ids_json"), open("state = 'open'"), "sorted, and without the venues");
    assert_eq!(ids("baseline_slot_ids_json"), open("venue_id = '2'"), "as it was at first");
    assert_eq!(world.column("SELECT polls FROM tables_discovery_buckets"), ["6"]);
    assert_eq!(world.column("SELECT name FROM venues ORDER BY venue_id"), ["Venue 1", "Venue 2"]);
}

#[test]
fn a_poll_that_saw_nothing_new_writes_nothing() {
    let mut world = World::new();
    let scene = |_: i64, _: &Question| Ok(page(&[venue(1, &["18:00", "19:00", "20:00"]), venue(2, &[])]));
    world.watch(&every_minute(json!({})), Span::mins(60), scene);
    assert_eq!(
        world.column("SELECT count(*) FROM polls WHERE target_id > 1"),
        ["1"],
        "the baseline, cut off as it is"
    );
    assert_eq!(world.column("SELECT version FROM snapshots WHERE records > 3"), ["1"]);
}
