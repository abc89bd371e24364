//! What is told again, and what is not.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Alerts, Chains, Lasts};
use stakeout_core::{Event, Fingerprint, Span};
use stakeout_sources::alert::RuleBook;

use crate::look::{Look, at, book, logged};

#[test]
fn a_table_is_told_again_only_while_it_is_one_that_is_wanted() {
    let drop = json!({ "venue_name": "Carbone", "start": "2026-01-16T19:30", "party_sizes": [2, 4] });
    let rule = json!({ "when": { "on": "drop", "party": [2] }, "repeat": "10m", "quiet": "15m" });
    let (look, book) = (Look::at(0).telling("tables.drop", drop), book(rule));
    let rung = logged(&look.rings(&book)[0]);
    let again = book.again(&rung, at(900)).expect("it repeats");
    assert_eq!((again.after, again.lasts, again.awake), (Span::mins(15), Lasts::Held, true));
    let ring = book.still(&rung, &json!({ "party_sizes": [2] })).expect("still one for two");
    assert_eq!(ring.data["text"], "Carbone: 2026-01-16 19:30, party of 2 – still so");
    assert_eq!((ring.follows, ring.subject), (None, rung.subject));
    assert_eq!(
        ring.dedupe_key,
        Some(format!("again|{}", rung.id)),
        "whoever repeats it: there is one after this"
    );
    assert_eq!(book.still(&rung, &json!({ "party_sizes": [4] })), None, "it is only for four now");
}

#[test]
fn a_pilot_is_called_again_only_for_the_same_race() {
    let upcoming = |race: &str, away: u64| json!({ "upcoming": [{ "pilot": "p1", "name": "Alex", "race_id": race, "races_away": away }] });
    let rule = json!({ "when": { "on": "pilot", "pilot": "Alex", "within": 2 }, "repeat": "1m" });
    let (look, book) = (Look::at(0).telling("fpv.race.current_changed", upcoming("r9", 2)), book(rule));
    let rung = logged(&look.rings(&book)[0]);
    let ring = book.still(&rung, &upcoming("r9", 1)).expect("still to fly");
    assert_eq!(ring.data["title"], "Alex flies next");
    assert_eq!(book.still(&rung, &upcoming("r7", 1)), None, "they are called for that one");
    assert_eq!(book.still(&rung, &upcoming("r9", 3)), None, "not so soon any more");
    assert_eq!(book.still(&rung, &json!({ "upcoming": [] })), None);
}

#[test]
fn what_another_rule_told_is_not_told_again() {
    let rule = |more: Json| {
        let mut rule = json!({ "when": { "on": "event", "type": "racing.*" }, "repeat": "10m" });
        rule.as_object_mut().expect("a rule").extend(more.as_object().expect("fields").clone());
        book(rule)
    };
    let look = Look::at(0).telling("racing.race.final", json!({}));
    let rung = logged(&look.rings(&rule(json!({})))[0]);
    let again = |book: RuleBook| book.again(&rung, at(600));
    assert_eq!(again(rule(json!({}))).map(|again| again.lasts), Some(Lasts::Unread(Span::hours(24))));
    assert_eq!(again(rule(json!({ "repeat": "20m" }))), None, "it was changed");
    assert_eq!(again(rule(json!({ "severity": "critical" }))), None);
    assert_eq!(again(RuleBook::default()), None, "it was removed");
    // 02:10 in the world is 15:10 in New Zealand.
    let night = json!({ "hours": { "from": "22:00", "to": "15:05", "zone": "Pacific/Auckland" } });
    let rung = logged(&look.rings(&rule(night.clone()))[0]);
    assert_eq!(rule(night).again(&rung, at(600)).map(|again| again.awake), Some(false));
}

#[test]
fn a_noisy_rule_costs_no_other_its_repeats() {
    let rule = json!({ "when": { "on": "event", "type": "racing.*" }, "repeat": "10m" });
    let rules = json!({ "rare": rule, "noisy": rule });
    let book = RuleBook::new(serde_json::from_value(rules).expect("rules")).expect("a book");
    let rings = Look::at(0).telling("racing.race.final", json!({})).rings(&book);
    let rung = |alert: &str, seq: u64| {
        let ring = rings.iter().find(|ring| ring.alert == alert).expect("both ring");
        Event { seq, subject: Fingerprint::of("s", &[&seq.to_string()]), ..logged(ring) }
    };
    let mut chains = Chains::default();
    chains.take(&book, rung("rare", 1), at(0));
    (2..=8).for_each(|seq| chains.take(&book, rung("noisy", seq), at(0)));
    assert_eq!(chains.keep(5), BTreeMap::from([("alert:noisy".to_owned(), 2)]), "says what it let go");
    assert!(chains.keep(5).is_empty(), "once");
    let mut left: Vec<u64> = chains
        .due(at(600))
        .iter()
        .filter_map(|key| Some(chains.ask(&book, key, at(600))?.0.last.seq))
        .collect();
    left.sort_unstable();
    assert_eq!(left, [1, 4, 5, 6, 7, 8], "the oldest of the noisy one");
}
