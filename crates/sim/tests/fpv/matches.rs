//! The truth, found again in what is served.

use std::collections::BTreeMap;

use stakeout_core::Span;
use stakeout_sim::fpv::{LapTruth, RaceTruth};

use super::*;

const UNSET: &str = "0001/01/01 0:00:00";

/// The race order, the current race with its rule, and the races by id.
type Served = (Vec<String>, Option<(String, u8)>, BTreeMap<String, Value>);

/// The race order and the current race, worked out from the served texts alone.
fn served(upstream: &Upstream, now: Time) -> Option<Served> {
    let text = |value: &Value, key: &str| value[key].as_str().expect("a text").to_owned();
    let event = list(upstream, "Event.json", now)?.remove(0);
    let rounds: BTreeMap<String, i64> = list(upstream, "Rounds.json", now)?
        .iter()
        .filter(|round| round["Valid"] == true)
        .map(|round| {
            let (order, number) = (round["Order"].as_i64(), round["RoundNumber"].as_i64());
            let set = order.filter(|order| *order >= 0);
            (text(round, "ID"), set.or(number.map(|number| number * 100)).expect("an order"))
        })
        .collect();
    let mut races = BTreeMap::new();
    for id in event["Races"].as_array().expect("races") {
        let id = id.as_str().expect("an id");
        let path = format!("/events/{}/{id}/Race.json", text(&event, "ID"));
        let answer = body(upstream.honest(&path, now));
        if answer.is_empty()
            && !upstream.event().truth().races(now).iter().any(|race| race.id.to_string() == id)
        {
            continue;
        }
        races.insert(id.to_owned(), serde_json::from_slice::<Vec<Value>>(&answer).ok()?.into_iter().next()?);
    }
    let mut keyed: Vec<(i64, i64, String)> = races
        .values()
        .filter(|race| race["Valid"] == true)
        .filter_map(|race| {
            let order = rounds.get(&text(race, "Round"))?;
            Some((*order, race["RaceNumber"].as_i64()?, text(race, "ID")))
        })
        .collect();
    keyed.sort();
    let order: Vec<String> = keyed.into_iter().map(|(_, _, id)| id).collect();
    let set = |id: &String, key: &str| races[id][key] != UNSET;
    let manned = |id: &&String| {
        let slots = races[*id]["PilotChannels"].as_array().expect("slots");
        slots.iter().any(|slot| slot["Pilot"] != "00000000-0000-0000-0000-000000000000")
    };
    let active = order.iter().filter(|id| set(id, "Start") && !set(id, "End"));
    let done = |id: &&String| set(id, "Start") && set(id, "End");
    let date = |id: &String, key: &str| sortable(races[id][key].as_str().expect("a date"));
    let completed = (0..order.len()).rfind(|n| done(&&order[*n]));
    let current = active.max_by_key(|id| date(id, "Start")).map(|id| (id.clone(), 1)).or_else(|| {
        let (from, rule) = completed.map_or((0, 4), |last| (last + 1, 2));
        let left: Vec<&String> = order[from..].iter().filter(|id| !done(id)).collect();
        let next = left.iter().copied().find(manned).or(left.first().copied());
        next.map(|id| (id.clone(), rule)).or_else(|| completed.map(|last| (order[last].clone(), 3)))
    });
    Some((order, current, races))
}

/// The date with its hour padded and its fraction filled.
fn sortable(date: &str) -> String {
    let (day, clock) = date.split_once(' ').expect("a date and a time");
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    format!("{day} {clock:0>8}.{fraction:0<3}")
}

#[track_caller]
fn check(event: Event, step: usize, at_least: usize) {
    let upstream = Upstream::new(event);
    let truth = upstream.event().truth();
    let mut compared = 0;
    for now in moments(upstream.event(), step).into_iter().filter(|now| !truth.is_off(*now)) {
        let Some((order, current, races)) = served(&upstream, now) else { continue };
        let ids = |list: Vec<Guid>| list.iter().map(Guid::to_string).collect::<Vec<_>>();
        assert_eq!(order, ids(truth.order(now)), "the order at {now}");
        let true_current = truth.current(now);
        assert_eq!(current, true_current.map(|c| (c.race.to_string(), c.rule)), "the current race at {now}");
        assert_eq!(true_current, truth.current_readable(now), "everything could be read at {now}");
        let (true_races, true_laps) = (truth.races(now), truth.laps(now));
        assert_eq!(races.len(), true_races.len());
        for race in true_races {
            check_race(&races[&race.id.to_string()], &race, &true_laps);
        }
        compared += 1;
    }
    assert!(compared >= at_least, "only {compared} moments compared");
}

fn check_race(served: &Value, race: &RaceTruth, laps: &[LapTruth]) {
    let start = served["Start"].as_str().expect("a date");
    assert_eq!((start != UNSET, served["End"] != UNSET), (race.start.is_some(), race.end.is_some()));
    if let Some(at) = race.start {
        let rounded = Time(at.us() + 500).to_string();
        assert!(rounded.contains(&sortable(start)[14..]), "{rounded} is written {start}");
    }
    let by_detection: BTreeMap<&str, &Value> = served["Detections"]
        .as_array()
        .expect("detections")
        .iter()
        .map(|detection| (detection["ID"].as_str().expect("an id"), detection))
        .collect();
    let told: Vec<(String, u64, bool, f64)> = served["Laps"]
        .as_array()
        .expect("laps")
        .iter()
        .map(|lap| {
            let detection = by_detection[lap["Detection"].as_str().expect("an id")];
            assert_eq!(detection["Time"], lap["EndTime"]);
            let pilot = detection["Pilot"].as_str().expect("a pilot").to_owned();
            let number = lap["LapNumber"].as_u64().expect("a number");
            (pilot, number, detection["Valid"] == true, lap["LengthSeconds"].as_f64().expect("a length"))
        })
        .collect();
    let own = laps.iter().filter(|lap| lap.race == race.id);
    let expected: Vec<(String, u64, bool, f64)> = own
        .map(|lap| (lap.pilot.to_string(), lap.number.into(), lap.valid, (lap.end - lap.start).as_secs_f64()))
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn what_is_served_is_what_is_true() {
    check(Event::new(&small(1)), 7, 100);
}

#[test]
fn with_every_incident_too() {
    check(Event::with_all_incidents(1), 17, 150);
    check(Event::with_all_incidents(2), 61, 50);
}

#[test]
fn every_change_of_the_current_race_is_listed() {
    let event = Event::with_all_incidents(4);
    let truth = event.truth();
    let mut listed = truth.current(event.began() - Span::hours(1));
    let mut changes = truth.changes().iter().peekable();
    let mut now = event.began() - Span::mins(1);
    while now < event.ended() {
        while let Some(change) = changes.next_if(|change| change.at <= now) {
            if let stakeout_sim::fpv::What::Current { from, to } = &change.what {
                assert_eq!(*from, listed, "at {}", change.at);
                assert_ne!(from, to);
                listed = *to;
            }
        }
        assert_eq!(truth.current(now), listed, "at {now}");
        now += Span::ms(3_700);
    }
}
