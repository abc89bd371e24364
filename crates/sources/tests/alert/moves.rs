//! Prices, money and the bands of the timeline.

use serde_json::{Value as Json, json};
use stakeout_core::judge::Effect;
use stakeout_core::{Span, Stage};

use crate::look::{Look, book, runner};

fn steam() -> Json {
    json!({ "when": { "on": "odds", "direction": "shortened", "percent": 20, "within": "10m" } })
}

#[test]
fn a_price_that_shortens_in_small_steps_rings_when_they_add_up() {
    let book = book(steam());
    let slow = [(-900, 12.0), (-500, 11.0), (-300, 10.0)];
    let look = Look::at(-60).knowing("win_odds", &slow).moved("win_odds", 10.0, 9.6);
    assert_eq!(look.titles(&book), ["3 Fast shortened to 9.6"], "12 → 9.6 is 20 %");
    let ring = &look.rings(&book)[0];
    assert_eq!((ring.requires, ring.quiet), (Effect::Changed, Some(Span::mins(10))), "as long as the window");
    // The 12 is out of the window.
    let later = Look::at(120).knowing("win_odds", &slow).moved("win_odds", 10.0, 9.6);
    assert!(later.rings(&book).is_empty(), "11 → 9.6 is 12.7 %");
}

#[test]
fn a_price_that_stays_short_does_not_ring_again_unless_asked_to() {
    let rows = [(-500, 12.0), (-300, 9.0)];
    let look = || Look::at(-60).knowing("win_odds", &rows).moved("win_odds", 9.0, 8.9);
    assert!(look().rings(&book(steam())).is_empty(), "it was there before this move");
    let mut rule = steam();
    rule["repeat"] = json!("30m");
    assert_eq!(look().rings(&book(rule))[0].quiet, Some(Span::mins(30)));
}

#[test]
fn a_rule_that_repeats_asks_once_a_minute_whether_it_is_still_so_where_nothing_moves() {
    let again = |mut rule: Json| {
        rule["repeat"] = json!("30m");
        book(rule)
    };
    // 12 → 9 was a while ago; the price of 9 stands.
    let still = |secs: i64| {
        let mut look = Look::at(secs).knowing("win_odds", &[(-900, 12.0), (-550, 9.0)]);
        look.record = runner(9.0, 20.0, 0.0);
        look
    };
    assert!(still(-60).after(-61).rings(&book(steam())).is_empty(), "without being asked to it does not");
    let rings = still(-60).after(-61).rings(&again(steam()));
    assert_eq!(rings[0].data["title"], "3 Fast shortened to 9");
    assert_eq!((rings[0].requires, rings[0].quiet), (Effect::Any, Some(Span::mins(30))), "nothing changed");
    assert!(still(-59).after(-60).rings(&again(steam())).is_empty(), "it was asked in this minute");
    let mut failed = still(-60);
    failed.went.failures = 1;
    assert!(failed.rings(&again(steam())).is_empty(), "nobody knows");
    let mut started = still(-60);
    started.facts.stage = Stage::Started;
    assert!(started.rings(&again(steam())).is_empty());
    assert!(still(60).after(59).rings(&again(steam())).is_empty(), "12 is out of the window: it is over");

    let money = json!({ "when": { "on": "money", "points": 5, "within": "10m" } });
    let share = Look::at(-60).knowing("hold_percentage", &[(-500, 10.0), (-300, 20.0)]);
    assert_eq!(share.titles(&again(money)), ["Money for 3 Fast"]);
    let band = json!({ "when": { "on": "indicator", "of": "odds", "percent": 25 } });
    let cell = Look::at(-250).after(-310).knowing("win_odds", &[(-3600, 12.0), (-290, 7.0)]);
    assert_eq!(cell.titles(&again(band)), ["3 Fast: price shortened"]);
}

#[test]
fn longer_prices_and_scratched_runners_are_left_alone() {
    let rows = [(-500, 6.0)];
    let look = Look::at(-60).knowing("win_odds", &rows).moved("win_odds", 6.0, 9.0);
    assert!(look.rings(&book(steam())).is_empty());
    let drift =
        json!({ "when": { "on": "odds", "direction": "lengthened", "percent": 50, "within": "10m" } });
    assert_eq!(look.titles(&book(drift.clone())), ["3 Fast lengthened to 9"]);
    let mut scratched = look;
    scratched.record.values[1] = true.into();
    assert!(scratched.rings(&book(drift)).is_empty());
}

#[test]
fn a_share_that_grows_by_enough_points_rings() {
    let rule = json!({ "when": { "on": "money", "points": 15, "within": "5m" }, "severity": "critical" });
    let look = |new: f64| {
        Look::at(-60).knowing("hold_percentage", &[(-200, 14.3)]).moved("hold_percentage", 14.3, new)
    };
    let rings = look(29.4).rings(&book(rule.clone()));
    assert_eq!(rings[0].data["severity"], "critical");
    assert_eq!(rings[0].data["text"], "3 Fast: 14.3 % → 29.4 % of the pool, 15.1 points within 5 min");
    assert!(look(29.2).rings(&book(rule)).is_empty());
}

#[test]
fn a_band_of_the_timeline_rings_when_it_is_reached() {
    let rule = |percent: u8| json!({ "when": { "on": "indicator", "of": "odds", "percent": percent } });
    // From one column to the next, 12 → 7 is 41.7 %: the band from 25.
    let look = Look::at(-290).knowing("win_odds", &[(-3600, 12.0)]).moved("win_odds", 12.0, 7.0);
    assert_eq!(look.titles(&book(rule(25))), ["3 Fast: price shortened"]);
    assert!(look.rings(&book(rule(50))).is_empty());
}
