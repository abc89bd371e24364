//! Events, tables and pilots: what rings because something was told.

use serde_json::{Value as Json, json};
use stakeout_core::Span;

use crate::look::{Look, book};

#[test]
fn an_event_rings_with_its_filters_and_only_if_it_comes_about() {
    let rule = json!({
        "when": { "on": "event", "type": "racing.race.*", "where": { "record.status": ["Final", "Abandoned"] } },
        "user": "anna", "sinks": ["hook"], "quiet": "5m",
    });
    let book = book(rule);
    let told = |status: &str| {
        Look::at(600)
            .telling("racing.odds.moved", json!({}))
            .telling("racing.race.final", json!({ "record": { "status": status, "name": "Cup" } }))
    };
    let rings = told("final").rings(&book);
    assert_eq!(rings.len(), 1);
    assert_eq!((rings[0].follows, rings[0].quiet), (Some(1), Some(Span::mins(5))));
    assert_eq!((&rings[0].data["user"], &rings[0].sinks), (&json!("anna"), &vec!["hook".to_owned()]));
    assert_eq!(rings[0].data["title"], "Race final – Cup");
    assert!(told("Interim").rings(&book).is_empty());
}

#[test]
fn a_table_rings_for_whoever_waits_for_just_that_one() {
    let mut drop = json!({
        "venue_id": "834", "venue_name": "Carbone", "neighborhood": "Soho", "date": "2026-01-16",
        "start": "2026-01-16T19:30", "party_sizes": [2, 4], "followed": false,
    });
    let rings = |drop: &Json, when: Json| {
        let mut rule = when;
        rule["on"] = json!("drop");
        let look = Look::at(0).telling("tables.drop", drop.clone());
        look.titles(&book(json!({ "when": rule })))
    };
    let hit = ["Carbone has a table"];
    assert_eq!(rings(&drop, json!({})), hit);
    assert_eq!(
        rings(
            &drop,
            json!({ "venues": ["carbone"], "party": [4], "from_time": "18:00", "to_time": "20:00" })
        ),
        hit
    );
    assert_eq!(
        rings(&drop, json!({ "venues": ["834"], "from_date": "2026-01-16", "to_date": "2026-01-16" })),
        hit
    );
    for silent in [
        json!({ "venues": ["Lilia"] }),
        json!({ "followed": true }),
        json!({ "party": [3] }),
        json!({ "to_time": "19:00" }),
        json!({ "from_time": "20:00" }),
        json!({ "from_date": "2026-01-17" }),
        json!({ "to_date": "2026-01-15" }),
        json!({ "from_time": "22:00", "to_time": "01:00" }),
    ] {
        assert!(rings(&drop, silent.clone()).is_empty(), "{silent}");
    }
    drop["followed"] = json!(true);
    assert_eq!(rings(&drop, json!({ "followed": true })), hit);
    for (start, hits) in [("21:59", 0), ("22:00", 1), ("23:30", 1), ("00:15", 1), ("01:00", 1), ("01:01", 0)]
    {
        drop["start"] = json!(format!("2026-01-16T{start}"));
        let late = rings(&drop, json!({ "from_time": "22:00", "to_time": "01:00" }));
        assert_eq!(late.len(), hits, "{start}");
    }
}

#[test]
fn a_pilot_is_called_once_per_race() {
    let rule = json!({ "when": { "on": "pilot", "pilot": "ALEX", "within": 2 } });
    let told = |away: u64, race: &str| {
        let line = json!({ "pilot": "p1", "name": "Alex", "race_id": race, "races_away": away });
        Look::at(0)
            .telling("fpv.race.current_changed", json!({ "upcoming": [line] }))
            .rings(&book(rule.clone()))
    };
    assert!(told(3, "r9").is_empty());
    let (soon, sooner) = (told(2, "r9"), told(1, "r9"));
    assert_eq!(
        (&soon[0].data["title"], &sooner[0].data["title"]),
        (&json!("Alex flies in 2 races"), &json!("Alex flies next"))
    );
    assert_eq!(soon[0].dedupe_key, sooner[0].dedupe_key);
    // Seated in another race, they are called for that one; quiet is kept about the pilot, whichever race it is.
    let reseated = told(1, "r7");
    assert_ne!(reseated[0].dedupe_key, soon[0].dedupe_key);
    assert_eq!((reseated[0].subject, reseated[0].subject_key.as_str()), (soon[0].subject, "ALEX"));
}

#[test]
fn a_pilot_who_is_seated_in_another_race_is_called_at_once() {
    let line = json!({ "pilot": "p1", "name": "Alex", "race_id": "r9", "races_away": 1 });
    let look = Look::at(0).telling("fpv.race.reseated", json!({ "upcoming": [line] }));
    let rule = json!({ "when": { "on": "pilot", "pilot": "Alex", "within": 2 } });
    assert_eq!(look.titles(&book(rule)), ["Alex flies next"]);
}
