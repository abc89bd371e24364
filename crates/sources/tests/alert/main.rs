//! When alerts ring, and when they keep silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Alerts, Chains, Lasts, Moment, Occasion, Question, Ring, Told, Went};
use stakeout_core::judge::{Change, Effect};
use stakeout_core::{
    Event, EventId, Facts, Field, FieldChange, FieldType, Fingerprint, Kind, Record, Span, Stage, TargetSpec,
    Time, Value,
};
use stakeout_sources::alert::{AlertConfig, RuleBook};

const START: &str = "2026-01-10T02:00:00Z";

fn at(secs: i64) -> Time {
    Time::parse(START).expect("a time") + Span::secs(secs)
}

fn book(rule: Json) -> RuleBook {
    let rule: AlertConfig = serde_json::from_value(rule).expect("a rule");
    RuleBook::new(BTreeMap::from([("mine".to_owned(), rule)])).expect("a book")
}

fn refused(rule: Json) -> String {
    let rule: AlertConfig = serde_json::from_value(rule).expect("a rule");
    RuleBook::new(BTreeMap::from([("mine".to_owned(), rule)])).expect_err("refused").to_string()
}

fn entrants() -> Arc<Kind> {
    let number = |name: &str| Field::new(name, FieldType::Float);
    Arc::new(Kind {
        family: "racing".into(),
        collection: "entrants".into(),
        version: 1,
        fields: vec![
            Field::new("name", FieldType::Text),
            Field::new("is_scratched", FieldType::Bool),
            number("runner_number"),
            number("win_odds"),
            number("hold_percentage"),
            number("win_pool_amount"),
        ],
        streams: vec![],
        merges: false,
        views: vec![],
    })
}

/// Runner 3 with this price, share and money.
fn runner(price: f64, share: f64, pool: f64) -> Record {
    let values = vec!["Fast".into(), false.into(), 3.0.into(), price.into(), share.into(), pool.into()];
    Record::new(&entrants(), &["e3"], values)
}

fn race() -> TargetSpec {
    TargetSpec::new("race/r", "race")
}

/// One look at a race.
struct Look {
    at: Time,
    /// When the look before it was.
    before: Time,
    facts: Facts,
    record: Record,
    fields: Vec<FieldChange>,
    told: Vec<(String, Json)>,
    went: Went,
    history: Vec<Moment>,
}

impl Look {
    fn at(secs: i64) -> Look {
        Look {
            at: at(secs),
            before: at(secs - 1),
            facts: Facts { start: Some(at(0)), ..Facts::default() },
            record: runner(7.0, 20.0, 0.0),
            fields: Vec::new(),
            told: Vec::new(),
            went: Went::default(),
            history: Vec::new(),
        }
    }

    /// A field of the runner moved.
    fn moved(mut self, field: &str, old: f64, new: f64) -> Look {
        let position = self.record.kind.position(field).expect("a field");
        self.record.values[position] = Value::number(new);
        self.fields.push(FieldChange { field: field.into(), old: json!(old), new: json!(new) });
        self
    }

    fn knowing(mut self, field: &str, rows: &[(i64, f64)]) -> Look {
        self.history = rows.iter().map(|(secs, value)| (at(*secs), json!({ field: value }))).collect();
        self
    }

    fn after(mut self, secs: i64) -> Look {
        self.before = at(secs);
        self
    }

    fn telling(mut self, event_type: &str, data: Json) -> Look {
        self.told.push((event_type.to_owned(), data));
        self
    }

    fn rings(&self, book: &RuleBook) -> Vec<Ring> {
        let changes = match self.fields.is_empty() {
            true => vec![],
            false => vec![Change::Changed { record: &self.record, fields: self.fields.clone() }],
        };
        let target = race();
        let before = Facts::default();
        let told: Vec<Told<'_>> = self
            .told
            .iter()
            .map(|(event_type, data)| Told {
                event_type,
                subject: Fingerprint::default(),
                subject_key: "s",
                data,
            })
            .collect();
        let occasion = Occasion {
            source: "nz",
            target: Some(&target),
            at: self.at,
            looked: Some(self.before),
            facts: Some((&before, &self.facts)),
            records: std::slice::from_ref(&self.record),
            changes: &changes,
            told: &told,
            went: self.went,
        };
        let questions = book.questions(&occasion);
        let answers: Vec<(Question, Vec<Moment>)> =
            questions.into_iter().map(|question| (question, self.history.clone())).collect();
        book.judge(&occasion, &answers)
    }

    fn titles(&self, book: &RuleBook) -> Vec<String> {
        self.rings(book).iter().map(|ring| ring.data["title"].as_str().expect("words").to_owned()).collect()
    }
}

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
        let look = Look::at(secs).knowing("win_odds", &[(-900, 12.0), (-550, 9.0)]);
        Look { record: runner(9.0, 20.0, 0.0), ..look }
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

#[test]
fn the_bell_rings_before_the_start_once_per_start_and_not_after_it() {
    let rule = json!({ "when": { "on": "start", "before": "1m" } });
    let bell = book(rule);
    assert!(Look::at(-61).rings(&bell).is_empty());
    let rings = Look::at(-60).rings(&bell);
    assert_eq!(rings[0].data["title"], "race/r starts in 1 min");
    assert_eq!(rings[0].dedupe_key, Look::at(-20).rings(&bell)[0].dedupe_key, "the same bell");
    let mut retimed = Look::at(240);
    retimed.facts.start = Some(at(300));
    assert_ne!(retimed.rings(&bell)[0].dedupe_key, rings[0].dedupe_key, "another start is another bell");
    let mut started = Look::at(-20);
    started.facts.stage = Stage::Started;
    assert!(started.rings(&bell).is_empty() && Look::at(0).rings(&bell).is_empty());
    // The engine is told when to look.
    let facts = Facts { start: Some(at(0)), ..Facts::default() };
    assert_eq!(bell.bell("nz", &facts, at(-90)), Some(at(-60)));
    assert_eq!(bell.bell("nz", &facts, at(-60)), None, "that was it");
}

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

#[test]
fn a_bell_that_repeats_is_another_one_each_time() {
    let rule = json!({ "when": { "on": "start", "before": "1m" }, "repeat": "20s" });
    let bell = book(rule);
    let ring = |secs: i64| Look::at(secs).rings(&bell).remove(0);
    let once = Look::at(-60).rings(&book(json!({ "when": { "on": "start", "before": "1m" } }))).remove(0);
    assert_eq!(ring(-60).dedupe_key, once.dedupe_key, "the first one is that of a rule that does not repeat");
    assert_eq!((ring(-40).dedupe_key, ring(-40).quiet), (ring(-21).dedupe_key, Some(Span::secs(18))));
    assert_ne!(ring(-41).dedupe_key, ring(-40).dedupe_key);
    assert!(Look::at(0).rings(&bell).is_empty());
    let facts = Facts { start: Some(at(0)), ..Facts::default() };
    let next = |secs: i64| bell.bell("nz", &facts, at(secs));
    assert_eq!(
        [-90, -60, -41, -40, -20].map(next),
        [Some(-60), Some(-40), Some(-40), Some(-20), None].map(|s| s.map(at))
    );
}

/// What a rule told, as it stands in the log.
fn logged(ring: &Ring) -> Event {
    Event {
        seq: 1,
        id: EventId::of_trigger("nz", "alert:test", "s", "t"),
        event_type: "alert.raised".into(),
        source: "nz".into(),
        target: "t".into(),
        rule: format!("alert:{}", ring.alert),
        subject: ring.subject,
        subject_key: ring.subject_key.clone(),
        at: at(0),
        dedupe_key: ring.dedupe_key.clone(),
        data: ring.data.clone(),
    }
}

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

#[test]
fn missed_polls_that_go_on_are_left_to_the_clock() {
    let rings = |repeat: bool, before: u64| {
        let mut look = Look::at(0);
        (look.went.missed, look.went.missed_before) = (3, before);
        let mut rule = json!({ "when": { "on": "missed", "polls": 2 } });
        if repeat {
            rule["repeat"] = json!("1h");
        }
        look.rings(&book(rule)).len()
    };
    assert_eq!([rings(true, 0), rings(true, 1), rings(true, 2), rings(false, 2)], [1, 1, 0, 1]);
}

#[test]
fn a_source_that_fails_rings_once_and_missed_polls_ring() {
    let failed = |failures: u32, rule: Json| {
        // Two hours without a good look.
        let mut look = Look::at(0).after(-7_200);
        look.went.failures = failures;
        look.rings(&book(rule))
    };
    let rule = json!({ "when": { "on": "unhealthy" } });
    assert!(failed(2, rule.clone()).is_empty());
    let rings = failed(3, rule.clone());
    assert_eq!((rings[0].subject_key.as_str(), rings[0].quiet), ("nz", Some(Span::hours(1))));
    let later = failed(4, rule);
    assert_eq!(later[0].quiet, Some(Span::hours(2)), "unless something was told since the last good look");
    let patient = failed(4, json!({ "when": { "on": "unhealthy" }, "quiet": "3h" }));
    assert_eq!(patient[0].quiet, Some(Span::hours(3)), "and not within the quiet time");
    let again = failed(9, json!({ "when": { "on": "unhealthy" }, "repeat": "15m" }));
    assert_eq!(again[0].quiet, Some(Span::mins(15)));
    let rule = json!({ "when": { "on": "unhealthy" }, "repeat": "15m", "quiet": "20m" });
    assert_eq!(failed(9, rule)[0].quiet, Some(Span::mins(20)), "never shorter than the quiet time");
    let mut late = Look::at(0);
    late.went.missed = 2;
    assert_eq!(
        late.titles(&book(json!({ "when": { "on": "missed" } }))),
        ["race/r was not looked at in time"]
    );
    assert!(late.rings(&book(json!({ "when": { "on": "missed", "polls": 3 } }))).is_empty());
}

#[test]
fn refused_credentials_ring_at_once() {
    let data = json!({ "source": "nz", "class": "unauthorized", "message": "401" });
    let mut look = Look::at(0).telling("racing.credentials", data);
    look.went.failures = 1;
    let rings = look.rings(&book(json!({ "when": { "on": "unhealthy" } })));
    assert_eq!(rings[0].data["text"], "nz does not take our credentials: 401");
}

#[test]
fn a_rule_keeps_silent_outside_its_hours_for_other_sources_and_when_switched_off() {
    let rule = |more: Json| {
        let mut rule = json!({ "when": { "on": "missed" } });
        rule.as_object_mut().expect("a rule").extend(more.as_object().expect("fields").clone());
        let mut look = Look::at(0);
        look.went.missed = 1;
        look.rings(&book(rule)).len()
    };
    assert_eq!(rule(json!({ "source": "nz" })), 1);
    assert_eq!(rule(json!({ "source": "tables" })), 0);
    assert_eq!(rule(json!({ "enabled": false })), 0);
    // 02:00 in the world is 15:00 in New Zealand.
    assert_eq!(rule(json!({ "hours": { "from": "15:00", "to": "16:00", "zone": "Pacific/Auckland" } })), 1);
    assert_eq!(rule(json!({ "hours": { "from": "16:00", "to": "22:00", "zone": "Pacific/Auckland" } })), 0);
}

#[test]
fn rules_that_cannot_ring_are_refused_with_the_key_at_fault() {
    for (rule, key) in [
        (
            json!({ "when": { "on": "odds", "direction": "shortened", "percent": 0, "within": "5m" } }),
            "when.percent",
        ),
        (json!({ "when": { "on": "money", "points": 5, "within": "3d" } }), "when.within"),
        (json!({ "when": { "on": "indicator", "of": "odds", "percent": 7 } }), "when.percent"),
        (json!({ "when": { "on": "drop", "from_date": "tomorrow" } }), "when.from_date"),
        (json!({ "when": { "on": "drop", "to_time": "7pm" } }), "when.to_time"),
        (json!({ "when": { "on": "drop", "from_date": "20260110" } }), "when.from_date"),
        (json!({ "when": { "on": "drop", "to_date": "2026-1-10" } }), "when.to_date"),
        (
            json!({ "when": { "on": "drop", "from_date": "2026-01-11", "to_date": "2026-01-10" } }),
            "when.to_date",
        ),
        (json!({ "when": { "on": "event", "type": "" } }), "when.type"),
        (json!({ "when": { "on": "event", "type": "racing.*.final" } }), "when.type"),
        (json!({ "when": { "on": "event", "type": "racing.**" } }), "when.type"),
        (
            json!({ "when": { "on": "missed" }, "hours": { "from": "08:00", "to": "08:00", "zone": "UTC" } }),
            "hours.to",
        ),
        (json!({ "when": { "on": "unhealthy", "failures": 0 } }), "when.failures"),
        (json!({ "when": { "on": "missed" }, "quiet": "0s" }), "quiet"),
        (json!({ "when": { "on": "missed" }, "repeat": "0s" }), "repeat"),
        (json!({ "when": { "on": "start", "before": "1m" }, "repeat": "9s" }), "repeat"),
        (json!({ "when": { "on": "drop" }, "repeat": "25h" }), "repeat"),
        (json!({ "when": { "on": "pilot", "pilot": "Alex", "within": 11 } }), "when.within"),
    ] {
        assert!(refused(rule.clone()).starts_with(key), "{rule}: {}", refused(rule.clone()));
    }
    let unknown = json!({ "when": { "on": "missed", "pols": 1 } });
    assert!(serde_json::from_value::<AlertConfig>(unknown).is_err(), "nothing unknown is accepted");
}
