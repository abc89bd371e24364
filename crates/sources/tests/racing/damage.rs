//! Whatever the upstream does to an answer, nothing panics and no good runner is lost.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use stakeout_core::compare::Verdict;
use stakeout_core::{Coverage, Facts, PollContext, Request, Source};

use crate::support::*;

#[test]
fn one_bad_runner_does_not_lose_the_others() {
    let broken = [
        json!(null),
        json!("a string"),
        json!([1, 2]),
        json!({}),
        json!({ "entrant_id": null, "name": "X" }),
        json!({ "entrant_id": { "a": 1 } }),
        json!({ "entrant_id": "  " }),
    ];
    for bad in broken {
        let mut answer = answer();
        answer["data"]["runners"][1] = bad.clone();
        let seen = read(&answer).expect("an answer");
        let keys: Vec<&str> = of(&seen, "entrants").iter().map(|r| r.key.as_str()).collect();
        assert_eq!(keys, ["entrant-1", "entrant-3"], "{bad}");
        assert_eq!(codes(&seen), ["bad_runner"], "{bad}");
        let Coverage::CompleteBut(open) = &seen.coverage else { panic!("{:?}", seen.coverage) };
        assert!(open.0.contains(&one(&seen, "races", RACE).fingerprint), "its absence proves nothing");
    }
}

/// An answer with this status, a runner without an id and a pool without a product.
fn odd_answer(status: &str) -> Json {
    let mut answer = answer_with(json!({ "status": status, "actual_start": START_SECS + 60 }));
    answer["data"]["runners"][2]["entrant_id"] = Json::Null;
    answer["data"]["tote_pools"][1]["product_type"] = Json::Null;
    answer
}

#[test]
fn rows_that_are_bad_in_every_answer_do_not_silence_the_race() {
    let mut watch = Watch::new(source());
    assert_eq!(watch.poll(at("-60m"), &odd_answer("Open")).verdict, Verdict::Baseline);
    let mut moved = odd_answer("Open");
    moved["data"]["runners"][0]["odds"]["fixed_win"] = json!(1.5);
    assert!(watch.poll(at("-30m"), &moved).types().contains(&"racing.odds.moved"));
    for (now, status, expected) in [
        ("+2m", "Closed", vec!["racing.race.started", "racing.race.closed"]),
        ("+5m", "Interim", vec!["racing.race.interim"]),
        ("+9m", "Final", vec!["racing.race.final"]),
    ] {
        let mut answer = odd_answer(status);
        answer["data"]["runners"][0]["odds"]["fixed_win"] = json!(1.5);
        let seen = watch.poll(at(now), &answer);
        assert_eq!((seen.types(), seen.removed), (expected, 0), "{status}");
    }
}

#[test]
fn a_runner_who_turns_odd_is_not_gone() {
    let mut watch = Watch::new(source());
    watch.poll(at("-60m"), &answer());
    assert_eq!(watch.poll(at("-55m"), &odd_answer("Open")).removed, 0);
    let mut fewer = answer();
    fewer["data"]["runners"].as_array_mut().expect("runners").pop();
    assert_eq!(watch.poll(at("-50m"), &fewer).removed, 1, "a list that is read whole proves it");
}

#[test]
fn a_field_of_the_wrong_type_costs_only_itself() {
    for (field, value, expected) in [
        ("odds", json!("none"), None),
        ("gear", json!({ "blinkers": true }), None),
        ("runner_change", json!([1]), None),
        ("barrier", json!("Fr1"), None),
        ("is_scratched", json!("maybe"), Some("bad_field")),
        ("odds", json!({ "fixed_win": -4 }), Some("bad_odds")),
        ("odds", json!({ "fixed_win": "n/a" }), Some("bad_odds")),
        ("odds", json!({ "fixed_win": "4.20" }), None),
        (
            "flucs_with_timestamp",
            json!({ "last_six": [{ "timestamp": "soon", "fluc": 2 }, 5] }),
            Some("bad_fluc"),
        ),
        (
            "flucs_with_timestamp",
            json!({ "last_six": [{ "timestamp": "2999-01-01T00:00:00Z", "fluc": 2 }] }),
            Some("bad_fluc"),
        ),
        ("jockey", json!({ "name": "J" }), None),
    ] {
        let mut answer = answer();
        answer["data"]["runners"][1][field] = value.clone();
        let seen = read(&answer).expect("an answer");
        assert_eq!(of(&seen, "entrants").len(), 3, "{field} = {value}");
        assert_eq!(codes(&seen).first().copied(), expected, "{field} = {value}");
        assert_eq!(seen.coverage, Coverage::Complete);
    }
    let mut answer = answer();
    answer["data"]["runners"][1]["barrier"] = json!("Sr2");
    assert_eq!(
        get(one(&read(&answer).expect("an answer"), "entrants", "entrant-2"), "barrier"),
        json!("Sr2")
    );
}

#[test]
fn keys_that_come_twice_are_no_reason_to_stop() {
    let body =
        answer().to_string().replacen("\"runner_number\":1,", "\"runner_number\":9,\"runner_number\":1,", 1);
    let exchanges = [exchange(Request::get("x"), body)];
    let facts = Facts::default();
    let seen =
        source().normalize(&race_target(), &exchanges, &PollContext { now: at("-60m"), facts: &facts });
    assert_eq!(of(&seen.expect("an answer"), "entrants").len(), 3);
}

/// A place in a JSON document and what is put there.

#[test]
fn what_cannot_have_been_paid_or_placed_is_refused_and_counted() {
    let placing = |id: &str, margin: f64| json!({ "position": 1, "entrant_id": id, "runner_number": 1, "name": "X", "margin_length": margin });
    let dividend = |paid: f64, pool: f64| {
        json!({ "tote": "NZ", "product_name": "Pool Win", "status": "Final", "dividend": paid, "pool_size": pool,
            "positions": [{ "runner_number": 1, "position": 1 }] })
    };
    for (list, row, field, code) in [
        ("results", placing("entrant-1", -0.5), "margin", "bad_result"),
        ("dividends", dividend(-3.0, 100.0), "dividend", "bad_dividend"),
        ("dividends", dividend(3.0, -1.0), "pool_size", "bad_dividend"),
    ] {
        let mut answer = answer_with(json!({ "status": "Final" }));
        answer["data"][list] = json!([row]);
        let seen = read(&answer).expect("an answer");
        assert_eq!(codes(&seen), [code], "{row}");
        let collection = if list == "results" { "race_results" } else { list };
        assert_eq!(get(of(&seen, collection)[0], field), json!(null), "{row}");
    }
    let mut answer = answer_with(json!({ "status": "Final" }));
    answer["data"]["results"] = json!([placing("entrant-1", 0.0), placing("a-stranger", 0.0)]);
    let seen = read(&answer).expect("an answer");
    assert_eq!(codes(&seen), ["bad_result"]);
    assert_eq!(of(&seen, "race_results").len(), 1, "whoever did not run has no place");
    assert!(matches!(seen.coverage, Coverage::CompleteBut(_)), "{:?}", seen.coverage);
}

#[test]
fn a_runner_that_is_listed_twice_is_kept_once_and_proves_no_absence() {
    let mut answer = answer();
    answer["data"]["runners"][1]["entrant_id"] = json!("entrant-1");
    let seen = read(&answer).expect("an answer");
    assert_eq!(codes(&seen), ["bad_runner"]);
    assert_eq!(of(&seen, "entrants").len(), 2);
    assert_eq!(get(one(&seen, "entrants", "entrant-1"), "hold_percentage"), json!(42.5), "with its money");
    assert!(matches!(seen.coverage, Coverage::CompleteBut(_)), "{:?}", seen.coverage);
}

#[test]
fn a_race_stays_with_the_meeting_that_the_catalogue_knows_it_by() {
    let seen = read(&answer_with(json!({ "meeting_id": "another" }))).expect("an answer");
    assert_eq!(codes(&seen), ["wrong_meeting"]);
    let meetings: Vec<&str> = of(&seen, "meetings").iter().map(|meeting| meeting.key.as_str()).collect();
    assert_eq!(meetings, [MEETING]);
    assert_eq!(get(one(&seen, "races", RACE), "meeting"), json!(MEETING));
}

fn damage() -> impl Strategy<Value = (Vec<prop::sample::Index>, Json)> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[{ "entrant_id": 5 }]])),
    ];
    (prop::collection::vec(any::<prop::sample::Index>(), 1..7), leaf)
}

/// Walks as deep as the path goes and replaces what is there.
fn apply(json: &mut Json, path: &[prop::sample::Index], leaf: &Json) {
    let Some((step, rest)) = path.split_first() else {
        *json = leaf.clone();
        return;
    };
    match json {
        Json::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(step.index(map.len())).expect("a key").clone();
            apply(map.get_mut(&key).expect("a value"), rest, leaf);
        }
        Json::Array(items) if !items.is_empty() => {
            let index = step.index(items.len());
            apply(&mut items[index], rest, leaf);
        }
        _ => *json = leaf.clone(),
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let facts = Facts::default();
        let context = PollContext { now: start(), facts: &facts };
        let mut exchanges = [exchange(Request::get("x"), String::new())];
        exchanges[0].result.as_mut().expect("a response").body = body.into();
        let source = source();
        let _ = source.normalize(&race_target(), &exchanges, &context);
        let _ = source.normalize(&source.roots(start())[0], &exchanges, &context);
    }

    #[test]
    fn no_damage_to_an_answer_makes_it_panic(places in prop::collection::vec(damage(), 1..5)) {
        let mut answer = answer();
        for (path, leaf) in &places {
            apply(&mut answer, path, leaf);
        }
        if let Ok(seen) = read(&answer) {
            prop_assert!(seen.records.iter().all(|r| r.values.len() == r.kind.fields.len()));
            let again = read(&answer).expect("the same again");
            let contents = |o: &stakeout_core::Observation| o.records.iter().map(|r| (r.fingerprint, r.content())).collect::<Vec<_>>();
            prop_assert_eq!(contents(&seen), contents(&again));
        }
    }

    #[test]
    fn damage_to_one_runner_leaves_the_others_as_they_were(places in prop::collection::vec(damage(), 1..5)) {
        let whole = read(&answer()).expect("an answer");
        let mut damaged = answer();
        for (path, leaf) in &places {
            apply(&mut damaged["data"]["runners"][1], path, leaf);
        }
        let seen = read(&damaged).expect("the race is there");
        for good in ["entrant-1", "entrant-3"] {
            let (before, now) = (one(&whole, "entrants", good), one(&seen, "entrants", good));
            prop_assert_eq!(before.content(), now.content(), "{}", good);
        }
    }
}
