//! An event from a seed: the same every time, flown as drones are.

use std::collections::BTreeMap;

use stakeout_core::Span;
use stakeout_sim::fpv::{LapTruth, Version, What};

use super::*;

fn everything(event: Event) -> Vec<Bytes> {
    let (upstream, mut all) = (Upstream::new(event), Vec::new());
    let paths = upstream.event().paths();
    for now in moments(upstream.event(), 200) {
        all.extend(paths.iter().filter_map(|path| match upstream.honest(path, now) {
            Reply::Answer(answer) => Some(answer.body),
            _ => None,
        }));
    }
    all
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(everything(Event::with_all_incidents(3)), everything(Event::with_all_incidents(3)));
    assert_eq!(Event::new(&small(3)).truth().changes(), Event::new(&small(3)).truth().changes());
    assert_ne!(Event::new(&small(3)).truth().changes(), Event::new(&small(4)).truth().changes());
}

#[test]
fn by_plan_every_race_is_flown_in_order() {
    let event = Event::new(&EventConfig::new(1));
    let truth = event.truth();
    let flown: Vec<Guid> = truth
        .changes()
        .iter()
        .filter_map(|change| if let What::Started(race) = change.what { Some(race) } else { None })
        .collect();
    assert_eq!(flown.len(), 60);
    assert_eq!(flown, truth.order(event.ended()));
    let before = truth.current(event.began() - Span::secs(1)).expect("a current race");
    assert_eq!((before.race, before.order, before.rule), (flown[0], 1, 4));
    let after = truth.current(event.ended() + Span::secs(1)).expect("a current race");
    assert_eq!((after.race, after.order, after.rule), (flown[59], 60, 3));
    let hours = (event.ended() - event.began()).as_secs_f64() / 3_600.0;
    assert!((2.5..4.5).contains(&hours), "{hours} hours");
}

#[test]
fn laps_come_in_bursts_as_long_as_laps_are() {
    let event = Event::new(&EventConfig::new(2));
    let laps: Vec<(Time, LapTruth)> = event
        .truth()
        .changes()
        .iter()
        .filter_map(|change| if let What::Lap(lap) = change.what { Some((change.at, lap)) } else { None })
        .collect();
    assert!(laps.len() > 900, "{} laps", laps.len());
    for (told, lap) in &laps {
        let (length, late) = (lap.end - lap.start, *told - lap.end);
        assert!(late > Span::ZERO && late <= Span::ms(30), "told {late} after its end");
        let bounds = if lap.number == 0 || !lap.valid { (2, 12) } else { (20, 40) };
        assert!(length >= Span::secs(bounds.0) && length <= Span::secs(bounds.1), "{lap:?} is {length}");
    }
    let mut gaps: Vec<i64> = laps
        .windows(2)
        .filter(|pair| pair[0].1.race == pair[1].1.race && pair[0].1.number == pair[1].1.number)
        .map(|pair| (pair[1].1.end - pair[0].1.end).as_ms())
        .collect();
    gaps.sort_unstable();
    let typical = gaps.iter().filter(|gap| (500..=2_000).contains(*gap)).count();
    assert!(typical * 100 / gaps.len() > 70, "{typical} of {}", gaps.len());
    assert!(gaps.iter().any(|gap| *gap <= 30), "some cross together");
}

#[test]
fn a_pilot_flies_once_a_race_and_everybody_flies() {
    let event = Event::new(&EventConfig::new(5));
    let mut starts: BTreeMap<Guid, u32> = BTreeMap::new();
    for race in event.truth().races(event.ended()) {
        let mut pilots = race.pilots.clone();
        pilots.sort_unstable();
        pilots.dedup();
        assert_eq!((pilots.len(), race.pilots.len()), (4, 4));
        pilots.into_iter().for_each(|pilot| *starts.entry(pilot).or_default() += 1);
    }
    assert_eq!(starts.len(), 24);
    assert!(starts.values().all(|n| (3..=20).contains(n)), "{starts:?}");
}

#[test]
fn brackets_have_no_pilots_until_they_are_due() {
    let event = Event::new(&EventConfig::new(1));
    let truth = event.truth();
    let order = truth.order(event.began());
    let empty = |now| truth.races(now).iter().filter(|race| race.pilots.is_empty()).count();
    assert_eq!((empty(event.began()), empty(event.ended())), (12, 0));
    // The last race before the brackets is over: all that are left have nobody, so the first of them is current.
    let over = truth.changes().iter().find(|change| change.what == What::Ended(order[47])).expect("flown").at;
    let current = truth.current(over).expect("a current race");
    assert_eq!((current.race, current.rule), (order[48], 2));
    assert!(empty(over) == 12);
}

#[test]
fn versions_differ() {
    let now = small(1).start;
    let old = Upstream::new(Event::new(&EventConfig { version: Version::Old, ..small(1) }));
    let new = Upstream::new(Event::new(&small(1)));
    assert!(body(old.honest("/current", now)).starts_with(b"<html>"));
    let hint: Value = serde_json::from_slice(&body(new.honest("/current", now))).expect("JSON");
    assert_eq!(hint["CurrentRace"], new.event().truth().order(now)[0].to_string());
    let before: Value =
        serde_json::from_slice(&body(new.honest("/current", now - Span::hours(1)))).expect("JSON");
    assert!(before["CurrentRace"].is_null());
    let zone = |upstream| list(upstream, "Event.json", now).expect("an event")[0].get("TimeZone").cloned();
    assert_eq!((zone(&old), zone(&new)), (None, Some("Australia/Sydney".into())));
}
