//! What is served agrees with the truth, at many moments of many races.

use std::collections::BTreeMap;

use serde_json::Value;
use stakeout_core::{Span, Time};
use stakeout_sim::nztab::{Day, EntrantTruth, RaceTruth, Share, Status, held};

use super::*;

#[test]
fn every_answer_shows_the_state_at_the_last_renewal() {
    for seed in 1..=3 {
        let upstream = upstream(&config(seed));
        for (n, race) in upstream.days()[0].truth().iter().enumerate() {
            let start = race.starts[0].1;
            for step in 0..12 {
                // Odd steps, so that moments fall everywhere within a refresh.
                let now = start - Span::mins(70) + Span::secs(step * 533 + n as i64 % 15);
                check(race, &event(&upstream, &race.id, now), now, seed);
            }
        }
    }
}

#[track_caller]
fn check(race: &RaceTruth, body: &Value, now: Time, seed: u64) {
    let at = race.served_at(now);
    assert!(at <= now && now - at < Span::secs(15));
    let shown = &body["data"]["race"];
    let place = format!("seed {seed}, race {}, {now}", race.id);
    assert_eq!(shown["status"], race.status_at(now).as_str(), "{place}");
    assert_eq!(shown["advertised_start"], race.start_at(now).us() / 1_000_000, "{place}");
    if race.actual_start_told.is_some_and(|told| told <= at) {
        assert_eq!(shown["actual_start"].as_i64(), race.actual_start.map(|t| t.us() / 1_000_000), "{place}");
    }
    assert_eq!(shown["protest"] == true, race.protest && race.status_at(now) == Status::Final, "{place}");
    let placings: Vec<&str> = body["data"]["results"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|r| r["entrant_id"].as_str())
        .collect();
    match race.status_at(now) {
        Status::Interim => assert_eq!(placings, race.interim_placings, "{place}"),
        Status::Final => assert_eq!(placings, race.final_placings, "{place}"),
        _ => assert!(placings.is_empty(), "{place}"),
    }
    let money = summed(body);
    let runners = body["data"]["runners"].as_array().expect("a list of runners");
    assert_eq!(runners.len(), race.entrants.len(), "{place}");
    for (runner, entrant) in runners.iter().zip(&race.entrants) {
        check_runner(entrant, runner, at, &place);
        assert_eq!(money.get(&entrant.id), held(&entrant.money, at), "{place}: the slices add up");
    }
    let percents: u32 = money.values().map(|share| share.hold).sum();
    assert!((101..=105).contains(&percents), "{place}: {percents} %");
    assert!(money.len() > race.entrants.len(), "{place}: money on ids that are no runners");
    for (product, cents) in held(&race.pools, at).expect("pools are known once open") {
        let pools = body["data"]["tote_pools"].as_array().expect("a list of pools");
        let pool = pools.iter().find(|pool| pool["product_type"] == *product).expect("every race has it");
        assert_eq!(to_cents(&pool["total"]), Some(*cents), "{place}");
    }
}

#[track_caller]
fn check_runner(entrant: &EntrantTruth, runner: &Value, at: Time, place: &str) {
    assert_eq!(runner["entrant_id"], entrant.id, "{place}");
    let scratched = entrant.scratched.filter(|s| s.at <= at);
    assert_eq!(runner["is_scratched"], scratched.is_some(), "{place}");
    assert_eq!(runner["scratch_time"], scratched.map_or(0, |s| s.at.us() / 1_000_000), "{place}");
    let odds = held(&entrant.odds, at).filter(|_| scratched.is_none());
    let told =
        ["fixed_win", "fixed_place", "pool_win", "pool_place"].map(|key| to_cents(&runner["odds"][key]));
    let cents = |value: u32| Some(u64::from(value));
    let truth = odds.map_or([None; 4], |o| {
        [cents(o.fixed_win), cents(o.fixed_place), o.pool_win.and_then(cents), o.pool_place.and_then(cents)]
    });
    assert_eq!(told, truth, "{place}");
    let six = runner["flucs_with_timestamp"]["last_six"].as_array().expect("it has opened");
    let told: Vec<(Time, u32)> = six
        .iter()
        .map(|fluc| {
            let at = fluc["timestamp"].as_str().and_then(Time::parse).expect("a time");
            (at, to_cents(&fluc["fluc"]).expect("a price") as u32)
        })
        .collect();
    let known: Vec<(Time, u32)> = entrant.flucs.iter().copied().filter(|(from, _)| *from <= at).collect();
    assert_eq!(told, known[known.len().saturating_sub(6)..], "{place}");
}

fn summed(body: &Value) -> BTreeMap<String, Share> {
    let mut sums: BTreeMap<String, Share> = BTreeMap::new();
    for row in body["data"]["money_tracker"]["entrants"].as_array().expect("a list of rows") {
        let share = sums.entry(row["entrant_id"].as_str().expect("an id").to_owned()).or_default();
        share.hold += row["hold_percentage"].as_u64().expect("a number") as u32;
        share.bet += row["bet_percentage"].as_u64().expect("a number") as u32;
    }
    sums
}

fn to_cents(value: &Value) -> Option<u64> {
    value.as_f64().map(|dollars| (dollars * 100.0).round() as u64)
}

#[test]
fn the_listing_agrees_with_the_events() {
    let upstream = upstream(&config(4));
    let day = &upstream.days()[0];
    for hours in [0, 3, 7, 11, 14] {
        let now = day.truth()[0].starts[0].1 + Span::hours(hours);
        let listed: BTreeMap<String, (String, String)> =
            meetings(&upstream, "date_from=2026-07-16&date_to=2026-07-16", now)
                .iter()
                .flat_map(|meeting| meeting["races"].as_array().cloned().expect("races"))
                .map(|race| {
                    let text = |key: &str| race[key].as_str().expect("a text").to_owned();
                    (text("id"), (text("status"), text("start_time")))
                })
                .collect();
        for race in day.truth() {
            let (status, start) = &listed[&race.id];
            assert_eq!(status, race.status_at(now).as_str());
            assert_eq!(Time::parse(start), Some(race.start_at(now)));
        }
    }
}

#[test]
fn a_change_is_served_from_the_next_renewal_and_not_before() {
    let day = Day::new(&config(5));
    for race in day.truth() {
        for (from, status) in &race.statuses[1..] {
            let seen = race.seen_from(*from);
            assert_eq!(race.status_at(seen), *status);
            assert!(seen - *from < Span::secs(15));
            assert_ne!(race.status_at(seen - Span::us(1)), *status);
        }
    }
}

#[test]
fn a_seed_makes_the_same_day_every_time() {
    let (a, b, other) = (upstream(&config(9)), upstream(&config(9)), upstream(&config(10)));
    let truth = a.days()[0].truth();
    assert_eq!(truth, b.days()[0].truth());
    assert_ne!(truth[0].id, other.days()[0].truth()[0].id);
    for race in truth.iter().step_by(7) {
        let now = race.starts[0].1 - Span::mins(9);
        // Asked in another order before, b answers the same.
        let _ = event(&b, &race.id, now + Span::mins(20));
        assert_eq!(get(&a, &event_path(&race.id), now), get(&b, &event_path(&race.id), now));
    }
}

#[test]
fn flucs_can_lag_one_refresh_behind_the_prices() {
    let upstream = upstream(&DayConfig { lagging_flucs_one_in: 1, ..config(2) });
    let race =
        upstream.days()[0].truth().into_iter().find(|race| race.actual_start.is_some()).expect("one ran");
    assert!(race.flucs_lag);
    let newest = |body: &Value, n: usize| {
        let runner = &body["data"]["runners"][n];
        let six = runner["flucs_with_timestamp"]["last_six"].as_array().expect("it has opened");
        (to_cents(&runner["odds"]["fixed_win"]), to_cents(&six[six.len() - 1]["fluc"]))
    };
    let (n, moved, cents) = race
        .entrants
        .iter()
        .enumerate()
        .filter(|(_, e)| e.scratched.is_none())
        .find_map(|(n, e)| {
            e.flucs.windows(2).find(|w| w[1].0 - w[0].0 > Span::mins(1)).map(|w| (n, w[1].0, w[1].1))
        })
        .expect("a runner with a move long after the one before");
    let seen = race.seen_from(moved);
    let (price, fluc) = newest(&event(&upstream, &race.id, seen), n);
    assert_eq!(price, Some(u64::from(cents)), "the price is there");
    assert_ne!(fluc, price, "its fluc is not");
    let later = event(&upstream, &race.id, seen + Span::secs(15));
    assert!(later["data"]["runners"][n]["flucs_with_timestamp"].to_string().contains(&dollars(cents)));
}

fn dollars(cents: u32) -> String {
    Value::from(f64::from(cents) / 100.0).to_string().trim_end_matches(".0").to_owned()
}
