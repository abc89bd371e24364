//! 7.3 of the seed: what an answer says, in the real shape and in the seed's.

use serde_json::{Value as Json, json};
use stakeout_core::compare::Verdict;
use stakeout_core::{Coverage, Fingerprint, Scope, Source, Time};
use stakeout_sources::racing::{describe_file, timeline};

use crate::support::*;

fn fluc(at: &str, price: f64) -> Json {
    json!({ "timestamp": at, "fluc": price })
}

/// The answer with these flucs for its first runner, whose price is 2.5.
fn with_flucs(open: Json, last_six: Vec<Json>) -> Json {
    let mut answer = answer();
    answer["data"]["runners"][0]["flucs_with_timestamp"] =
        json!({ "open": open, "last_six": last_six, "high": fluc("2026-01-09T00:00:00Z", 99.0) });
    answer
}

#[test]
fn seed_7_3_a_real_answer_is_read_whole() {
    let seen = read(&answer()).expect("an answer");
    assert_eq!((seen.coverage.clone(), codes(&seen)), (Coverage::Complete, vec![]));
    assert_eq!(seen.as_of, Time::parse("2026-01-10T01:00:00.123456Z"));
    assert_eq!(seen.facts.start, Some(start()));
    let race = one(&seen, "races", RACE);
    let body = json!(race.body());
    assert_eq!(
        body,
        json!({
            "race_id": RACE, "status": "Open", "start_time": "2026-01-10T02:00:00.000Z", "actual_start": null,
            "start_confirmed": false, "meeting": MEETING, "race_number": 1, "name": "PRYDA HANDICAP 1700",
            "distance": 1700, "track_condition": "Good", "weather": "Overcast", "type": "T", "country": "NZ",
            "state": "NZ", "protest": null, "protest_reason": null,
        })
    );
    assert_eq!(race.parent, Some(one(&seen, "meetings", MEETING).fingerprint));
    let entrant = one(&seen, "entrants", "entrant-1");
    assert_eq!(
        json!(entrant.body()),
        json!({
            "entrant_id": "entrant-1", "race": RACE, "name": "Horse 1", "runner_number": 1, "barrier": "2",
            "jockey": "J. Rider", "trainer_name": "T. Rainer", "win_odds": 2.5, "place_odds": 1.8, "pool_win": 4.4,
            "pool_place": 1.5, "hold_percentage": 42.5, "bet_percentage": 40, "win_pool_amount": 3889.34,
            "place_pool_amount": 1667.49, "is_scratched": false, "is_late_scratched": null, "scratch_time": null,
            "is_emergency": false, "favourite": true, "mover": false,
        })
    );
    assert_eq!((entrant.parent, entrant.group), (Some(race.fingerprint), race.fingerprint));
}

#[test]
fn seed_7_3_the_seeds_shape_is_read_without_an_envelope() {
    let body = json!({
        "race": { "event_id": RACE, "status": "", "advertised_start": "2026-01-10T15:00:00+13:00", "actual_start": null },
        "entrants": [{
            "entrant_id": "a", "name": "Horse Name", "runner_number": 1, "is_scratched": false, "jockey": "Jockey Name",
            "trainer_name": "Trainer Name",
            "odds": { "fixed_win": 5.0, "fixed_place": 1.8, "pool_win": 4.4, "pool_place": 1.5 },
        }],
        "money_flow": { "entrant_liabilities": [{ "entrant_id": "a", "hold_percentage": 12.5 }] },
    });
    let seen = read(&body).expect("an answer");
    assert_eq!((&seen.coverage, codes(&seen)), (&Coverage::Complete, vec![]));
    assert_eq!(seen.facts.start, Some(start()));
    assert_eq!(get(one(&seen, "races", RACE), "status"), json!("Open"));
    assert_eq!(get(one(&seen, "races", RACE), "meeting"), json!(MEETING), "the listing knows it");
    let entrant = one(&seen, "entrants", "a");
    let fields = ["win_odds", "place_odds", "hold_percentage", "bet_percentage", "win_pool_amount"];
    assert_eq!(fields.map(|f| get(entrant, f)), [json!(5), json!(1.8), json!(12.5), Json::Null, Json::Null]);
}

#[test]
fn an_answer_without_its_race_or_about_another_one_is_a_failure() {
    let mut without = answer();
    without["data"]["race"] = Json::Null;
    let mut reported = answer();
    reported["data"]["error"] = json!("event not found");
    let mut in_header = answer();
    in_header["header"]["error"] = json!("too busy");
    for (body, expected) in [
        (without, "malformed: expected a race with an event_id, found none".to_owned()),
        (
            answer_with(json!({ "event_id": "other" })),
            format!("malformed: asked for race {RACE}, answered with race other"),
        ),
        (reported, "server_error: the upstream answered with an error: event not found".to_owned()),
        (in_header, "server_error: the upstream answered with an error: too busy".to_owned()),
        (json!([]), "malformed: expected a race with an event_id, found none".to_owned()),
        (json!("maintenance"), "malformed: expected a race with an event_id, found none".to_owned()),
    ] {
        assert_eq!(read(&body).expect_err("a failure").to_string(), expected);
    }
}

#[test]
fn seed_7_3_money_rows_are_slices_and_are_summed() {
    let seen = read(&answer()).expect("an answer");
    assert_eq!(get(one(&seen, "entrants", "entrant-1"), "hold_percentage"), json!(42.5));
    assert_eq!(get(one(&seen, "entrants", "entrant-2"), "hold_percentage"), json!(5));
    assert_eq!(get(one(&seen, "entrants", "entrant-3"), "hold_percentage"), Json::Null);
    // A sum that no entrant can have is refused; the others stay. All together may well be 105 %.
    let mut answer = answer();
    answer["data"]["money_tracker"]["entrants"] = json!([
        { "entrant_id": "entrant-1", "hold_percentage": 60 }, { "entrant_id": "entrant-1", "hold_percentage": 41 },
        { "entrant_id": "entrant-2", "hold_percentage": "45.5" }, { "entrant_id": "entrant-3", "hold_percentage": -1 },
        { "hold_percentage": 5 },
    ]);
    let seen = read(&answer).expect("an answer");
    assert_eq!(codes(&seen), ["bad_money"]);
    let held =
        ["entrant-1", "entrant-2", "entrant-3"].map(|id| get(one(&seen, "entrants", id), "hold_percentage"));
    assert_eq!(held, [Json::Null, json!(45.5), Json::Null]);
}

#[test]
fn only_pools_of_this_race_alone_are_its_money() {
    let seen = read(&answer()).expect("an answer");
    let products: Vec<Json> = of(&seen, "race_pools").iter().map(|pool| get(pool, "product_type")).collect();
    assert_eq!(products, [json!("Win"), json!("Place")]);
}

#[test]
fn flucs_are_the_win_odds_stream_with_the_upstreams_own_time() {
    let open = fluc("2026-01-09T20:00:00.920959249Z", 8.5);
    let six =
        vec![open.clone(), fluc("2026-01-10T00:21:19.028381759Z", 6.0), fluc("2026-01-10T00:48:47.5Z", 2.5)];
    let seen = read(&with_flucs(open, six)).expect("an answer");
    let entrant = one(&seen, "entrants", "entrant-1");
    let points: Vec<(String, Json, bool)> =
        entrant.points.iter().map(|p| (p.at.to_string(), p.values[0].to_json(), p.oldest_known)).collect();
    assert_eq!(
        points,
        [
            ("2026-01-09T20:00:00.920959Z".to_owned(), json!(8.5), false),
            ("2026-01-10T00:21:19.028381Z".to_owned(), json!(6), false),
            ("2026-01-10T00:48:47.500Z".to_owned(), json!(2.5), false),
        ],
        "fewer than six are the whole story"
    );
    assert!(
        entrant
            .points
            .iter()
            .all(|p| p.stream == "odds_history" && p.values[1..].iter().all(|v| v.is_null()))
    );
    assert_eq!(entrant.told, ["win_odds"], "the newest is the present price: no row of our own");
}

#[test]
fn of_six_flucs_the_oldest_marks_where_memory_ends() {
    let six = |first: i64| {
        (0..6).map(|n| fluc(&format!("2026-01-10T00:0{}:00Z", first + n), 3.0)).collect::<Vec<_>>()
    };
    let marked = |answer: &Json| -> Vec<String> {
        let seen = read(answer).expect("an answer");
        let points = &one(&seen, "entrants", "entrant-1").points;
        points.iter().filter(|p| p.oldest_known).map(|p| p.at.to_string()).collect()
    };
    let opened = fluc("2026-01-09T20:00:00Z", 8.5);
    assert_eq!(marked(&with_flucs(opened, six(1))), ["2026-01-10T00:01:00.000Z"]);
    assert!(
        marked(&with_flucs(fluc("2026-01-10T00:01:00Z", 3.0), six(1))).is_empty(),
        "it goes back to the opening"
    );
}

#[test]
fn a_price_that_no_fluc_tells_gets_a_row_of_our_own() {
    let mut watch = Watch::new(source());
    let opened = fluc("2026-01-09T20:00:00Z", 2.5);
    let odds_rows = |seen: &Seen| -> Vec<String> {
        let odds = seen.rows.iter().filter(|(key, row)| key == "entrant-1" && row.stream == "odds_history");
        odds.map(|(_, row)| format!("{}", row.values["win_odds"])).collect()
    };
    watch.poll(at("-60m"), &with_flucs(opened.clone(), vec![opened.clone()]));
    // The price moved, its fluc is not there yet.
    let mut moved = with_flucs(opened.clone(), vec![opened.clone()]);
    moved["data"]["runners"][0]["odds"]["fixed_win"] = json!(2.6);
    assert_eq!(odds_rows(&watch.poll(at("-55m"), &moved)), ["2.6"]);
    // It arrives: the upstream's own row tells it.
    let mut arrived = with_flucs(opened.clone(), vec![opened.clone(), fluc("2026-01-10T01:04:59Z", 2.6)]);
    arrived["data"]["runners"][0]["odds"]["fixed_win"] = json!(2.6);
    let seen = watch.poll(at("-50m"), &arrived);
    assert_eq!((seen.verdict, odds_rows(&seen)), (Verdict::Changed, vec![]));
    // A move that comes together with its fluc needs none of ours.
    let mut both = with_flucs(
        opened.clone(),
        vec![opened, fluc("2026-01-10T01:04:59Z", 2.6), fluc("2026-01-10T01:14:00Z", 2.4)],
    );
    both["data"]["runners"][0]["odds"]["fixed_win"] = json!(2.4);
    assert!(odds_rows(&watch.poll(at("-45m"), &both)).is_empty());
    // One that goes away and comes back without any is at what its last fluc said, but that was told long ago.
    let priced = |win: f64| {
        let mut answer = both.clone();
        answer["data"]["runners"][0]["odds"]["fixed_win"] = json!(win);
        answer
    };
    assert_eq!(odds_rows(&watch.poll(at("-40m"), &priced(2.2))), ["2.2"]);
    assert_eq!(odds_rows(&watch.poll(at("-35m"), &priced(2.4))), ["2.4"]);
}

#[test]
fn the_same_answer_again_adds_nothing_whatever_its_stamp() {
    let mut watch = Watch::new(source());
    assert_eq!(watch.poll(at("-60m"), &answer()).verdict, Verdict::Baseline);
    let mut later = answer();
    later["header"]["generated_time"] = json!("2026-01-10T01:05:00Z");
    let seen = watch.poll(at("-55m"), &later);
    assert_eq!((seen.verdict, seen.rows.len(), seen.drafts.len()), (Verdict::Unchanged, 0, 0));
}

#[test]
fn a_one_cent_move_is_a_row_and_a_missing_price_is_none() {
    let mut watch = Watch::new(source());
    watch.poll(at("-60m"), &answer());
    let mut moved = answer();
    moved["data"]["runners"][1]["odds"] = json!({ "fixed_win": 4.01 });
    let seen = watch.poll(at("-55m"), &moved);
    let rows: Vec<&str> = seen
        .rows
        .iter()
        .map(|(key, row)| {
            assert_eq!(
                json!(row.values),
                json!({ "win_odds": 4.01, "place_odds": 1.8, "pool_win": 4.4, "pool_place": 1.5 })
            );
            key.as_str()
        })
        .collect();
    assert_eq!(rows, ["entrant-2"]);
    moved["data"]["runners"][1]["odds"] = json!({});
    assert!(watch.poll(at("-50m"), &moved).rows.is_empty(), "nothing said, nothing written");
    assert_eq!(watch.stored("entrant-2", "win_odds"), json!(4.01));
}

#[test]
fn final_dividends_supersede_interim_ones() {
    let row = |product: &str, status: &str, runners: &[i64], dividend: f64| {
        let positions: Vec<Json> = runners
            .iter()
            .enumerate()
            .map(|(i, n)| json!({ "runner_number": n, "position": i + 1 }))
            .collect();
        json!({ "id": "x", "tote": "NZ", "product_name": product, "status": status, "dividend": dividend,
            "pool_size": 100.5, "positions": positions })
    };
    let dividends = |rows: Vec<Json>| {
        let mut answer = answer_with(json!({ "status": "Final" }));
        answer["data"]["dividends"] = json!(rows);
        let seen = read(&answer).expect("an answer");
        let found = of(&seen, "dividends");
        found.iter().map(|d| (d.key.clone(), get(d, "status"), get(d, "dividend"))).collect::<Vec<_>>()
    };
    let interim = row("Pool Quinella", "Interim", &[2, 4], 13.7);
    let upheld = row("Pool Quinella", "Final", &[4, 2], 15.0);
    let win = row("Pool Win", "Interim", &[2], 6.6);
    let key = |rest: &str| format!("{RACE}|{rest}");
    assert_eq!(
        dividends(vec![interim.clone(), upheld, win.clone()]),
        [
            (key("Pool Quinella|4:2|NZ"), json!("Final"), json!(15)),
            (key("Pool Win|2|NZ"), json!("Interim"), json!(6.6))
        ]
    );
    assert_eq!(dividends(vec![interim, win.clone()])[0].1, json!("Interim"));
    // Two totes pay on the same runner: both are kept.
    let mut other = win.clone();
    other["tote"] = json!("AU");
    other["dividend"] = json!(7.1);
    assert_eq!(dividends(vec![win, other]).len(), 2);
}

#[test]
fn a_list_that_is_missing_proves_nothing_once_it_was_there() {
    let mut watch = Watch::new(source());
    let mut done = answer_with(json!({ "status": "Interim" }));
    done["data"]["results"] = json!([
        { "position": 1, "runner_number": 2, "entrant_id": "entrant-2", "margin_length": 0 },
        { "position": 1, "runner_number": 1, "entrant_id": "entrant-1", "margin_length": 0 },
    ]);
    watch.poll(at("+5m"), &done);
    let mut torn = done.clone();
    torn["data"]["results"] = Json::Null;
    torn["data"]["runners"] = Json::Null;
    torn["data"]["tote_pools"] = json!(5);
    assert_eq!(watch.poll(at("+10m"), &torn).removed, 0);
    let mut reopened = answer();
    reopened["data"]["results"] = Json::Null;
    assert_eq!(watch.poll(at("+15m"), &reopened).removed, 2, "an open race has no results");
}

#[test]
fn a_results_group_is_its_own() {
    let mut answer = answer_with(json!({ "status": "Final" }));
    answer["data"]["results"] = json!([{ "position": 1, "entrant_id": "entrant-1" }, { "margin_length": 2 }]);
    let seen = read(&answer).expect("an answer");
    let results = Fingerprint::of("race_results", &[RACE]);
    assert_eq!(
        seen.coverage,
        Coverage::CompleteBut(Scope([results].into())),
        "one of its rows was not understood"
    );
    answer["data"]["runners"] = Json::Null;
    let seen = read(&answer).expect("an answer");
    let pools_and_dividends = ["race_pools", "dividends"].map(|list| Fingerprint::of(list, &[RACE]));
    let expected = Coverage::Partial(Scope(pools_and_dividends.into()));
    assert_eq!(seen.coverage, expected, "without its runners it is no whole answer");
}

#[test]
fn a_request_asks_for_the_money_and_says_who_asks() {
    let facts = stakeout_core::Facts::default();
    let context = stakeout_core::PollContext { now: start(), facts: &facts };
    let requests = source().requests(&race_target(), &[], &context);
    assert_eq!(requests.len(), 1);
    let base = format!("https://api.tab.co.nz/affiliates/v1/racing/events/{RACE}?");
    assert!(requests[0].url.starts_with(&base), "{}", requests[0].url);
    for wanted in [
        "with_money_tracker=true",
        "with_tote_trends_data=true",
        "with_will_pays=true",
        "with_big_bets=false",
    ] {
        assert!(requests[0].url.contains(wanted), "{wanted}");
    }
    for (name, value) in [("From", "ops@example.org"), ("X-Partner", "Example"), ("X-Partner-ID", "ex-1")] {
        assert!(requests[0].headers.contains(&(name.to_owned(), value.to_owned())), "{name}");
    }
    assert!(!format!("{:?}", requests[0]).contains("ops@example.org"), "never logged");
    let done = [exchange(requests[0].clone(), answer().to_string())];
    assert!(source().requests(&race_target(), &done, &context).is_empty());
}

#[test]
fn a_payload_file_is_described_without_storing_it() {
    let mut answer = answer_with(json!({ "status": "Closed", "actual_start": START_SECS - 3_700 }));
    answer["data"]["runners"][0]["flucs_with_timestamp"] =
        json!({ "open": fluc("2026-01-09T20:00:00Z", 2.5), "last_six": [fluc("2026-01-09T20:00:00Z", 2.5)] });
    let described = describe_file(answer.to_string().as_bytes(), at("+5h")).expect("a description");
    assert_eq!(described["race"]["race_id"], json!(RACE));
    assert_eq!(described["stage"], json!("started"), "as of the answer's own stamp");
    assert_eq!(described["entrants"][0]["fixed_win"], json!(2.5));
    assert_eq!(described["entrants"][0]["hold_percentage"], json!(42.5));
    let stamps: Vec<&Json> =
        described["odds_history"].as_array().expect("rows").iter().map(|r| &r["stamped_by"]).collect();
    assert_eq!(stamps, ["upstream", "observation", "observation"]);
    assert_eq!((&described["coverage"], &described["warnings"]), (&json!("complete"), &json!([])));
    assert!(describe_file(b"<html>", at("+5h")).is_err());
    answer["data"]["race"]["actual_start"] = json!(START_SECS + 60);
    let bare = answer["data"].to_string();
    let stage = |now: &str| describe_file(bare.as_bytes(), at(now)).expect("a description")["stage"].clone();
    assert_eq!(
        (stage("+30s"), stage("+90s")),
        (json!("pending"), json!("started")),
        "as of now without a stamp"
    );
}

#[test]
fn the_grid_reads_what_was_kept() {
    let seen = read(&answer()).expect("an answer");
    let body = json!(one(&seen, "entrants", "entrant-1").body());
    let money = timeline::money_row(at("-60m"), &body, "win_pool_amount").expect("money");
    assert_eq!(money.value.0, 388_934);
    assert_eq!(timeline::odds_row(at("-60m"), &body).expect("a price").value.odds(), 2.5);
}
