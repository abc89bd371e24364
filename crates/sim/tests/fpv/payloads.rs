//! The simulated shapes next to a recorded real event, where one is at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use stakeout_core::Span;
use stakeout_sim::fpv::{Replay, Version, What};

use super::*;

type Shape = BTreeMap<String, BTreeSet<&'static str>>;

/// Every key path with the kinds of value found there; elements of lists are `-`. Texts that are dates, durations or
/// ids are kinds of their own.
fn shape(value: &Value, path: &str, into: &mut Shape) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(text) if Guid::parse(text).is_some() => "id",
        Value::String(text) if is_date(text) => "date",
        Value::String(text) if is_duration(text) => "duration",
        Value::String(_) => "text",
        Value::Array(items) => {
            items.iter().for_each(|item| shape(item, &format!("{path}.-"), into));
            "list"
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| shape(field, &format!("{path}.{key}"), into));
            "object"
        }
    };
    into.entry(path.to_owned()).or_default().insert(kind);
}

/// `yyyy/MM/dd H:mm:ss.FFF`, hour not padded, no trailing zeros.
fn is_date(text: &str) -> bool {
    let Some((day, clock)) = text.split_once(' ') else { return false };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "1"));
    let parts: Vec<&str> = clock.split(':').collect();
    day.split('/').map(str::len).eq([4, 2, 2])
        && parts.len() == 3
        && (parts[0].len() == 1 || (parts[0].len() == 2 && !parts[0].starts_with('0')))
        && parts[1..].iter().all(|part| part.len() == 2)
        && (1..=3).contains(&fraction.len())
        && !fraction.ends_with('0')
}

/// `hh:mm:ss`, with no fraction or one of seven digits.
fn is_duration(text: &str) -> bool {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0000000"));
    clock.split(':').map(str::len).eq([2, 2, 2])
        && fraction.len() == 7
        && text.bytes().all(|b| b.is_ascii_digit() || b":.".contains(&b))
}

fn capture() -> Option<PathBuf> {
    let found = std::env::var_os("STAKEOUT_PAYLOADS").map(PathBuf::from);
    if found.is_none() {
        skipped("STAKEOUT_PAYLOADS is not set, so nothing is compared with a recorded event");
    }
    found.map(|dir| dir.join("fpvtrackside/event-14-races"))
}

#[expect(clippy::print_stdout, reason = "whoever runs the tests should know what was not compared")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// The shapes of Event, Pilots, Rounds, Race and Channels at that time.
fn shapes(upstream: &Upstream, now: Time) -> Shape {
    let mut all = Shape::new();
    for path in upstream.event().paths() {
        let Reply::Answer(answer) = upstream.honest(&path, now) else { continue };
        let name = path.rsplit('/').next().expect("a name");
        if let Ok(value) = serde_json::from_slice::<Value>(&answer.body) {
            shape(&value, name, &mut all);
        }
    }
    all
}

#[test]
fn dates_durations_and_ids_are_in_their_form_everywhere() {
    let upstream = Upstream::new(Event::with_all_incidents(1));
    let end = upstream.event().ended();
    let all = shapes(&upstream, end);
    let kinds = |path: &str| all[path].iter().copied().collect::<Vec<_>>();
    for path in
        ["Race.json.-.Start", "Race.json.-.End", "Race.json.-.Laps.-.StartTime", "Race.json.-.Laps.-.EndTime"]
    {
        assert_eq!(kinds(path), ["date"], "{path}");
    }
    for path in
        ["Race.json.-.Detections.-.Time", "Event.json.-.Start", "Event.json.-.End", "Event.json.-.LastOpened"]
    {
        assert_eq!(kinds(path), ["date"], "{path}");
    }
    for path in
        ["Race.json.-.TotalPausedTime", "Results.json.-.Time", "Event.json.-.RaceStartIgnoreDetections"]
    {
        assert_eq!(kinds(path), ["duration"], "{path}");
    }
    let sizes = upstream.event().paths().into_iter().filter(|path| path.ends_with("Race.json"));
    let sizes: Vec<usize> = sizes.map(|path| body(upstream.honest(&path, end)).len()).collect();
    assert!(sizes.iter().all(|size| *size < 39_000), "a race is at most 39 KB");
    assert!(sizes.iter().any(|size| *size > 12_000) && sizes.iter().any(|size| *size < 2_000));
}

#[test]
fn every_key_of_the_recorded_event_is_served_with_its_kinds_and_no_other() {
    let Some(dir) = capture() else { return };
    let recorded = Upstream::new(Replay::new(&dir).expect("a capture").event(Time::from_secs(1_800_000_000)));
    let real = shapes(&recorded, recorded.event().ended() + Span::mins(1));
    // Old, as the recorded one is.
    let event = Event::new(&EventConfig { version: Version::Old, ..small(1) });
    let upstream = Upstream::new(event);
    let ours = shapes(&upstream, upstream.event().ended() + Span::mins(1));
    for (path, kinds) in &real {
        let found = ours.get(path).unwrap_or_else(|| panic!("{path} is not served"));
        assert!(kinds.is_subset(found), "{path} is {kinds:?} in reality, here {found:?}");
    }
    let results = |path: &&String| path.starts_with("Result");
    let invented: Vec<&String> = ours
        .keys()
        .filter(|path| {
            !results(path) && !real.contains_key(*path) && **path != "Event.json.-.RemovedPilots.-"
        })
        .collect();
    assert_eq!(invented, Vec::<&String>::new(), "served here and not in reality");
}

#[test]
fn the_recorded_event_is_flown_again() {
    let Some(dir) = capture() else { return };
    let now = Time::from_secs(1_800_000_000);
    let upstream = Upstream::new(Replay::new(&dir).expect("a capture").event(now));
    let truth = upstream.event().truth();
    let end = upstream.event().ended();
    let count = |what: fn(&What) -> bool| truth.changes().iter().filter(|change| what(&change.what)).count();
    assert_eq!(truth.races(now).len(), 14);
    assert_eq!(truth.order(now).len(), 11, "three are invalid");
    assert_eq!(count(|what| matches!(what, What::Ended(_))), 4);
    assert_eq!(count(|what| matches!(what, What::Lap(_))), 65);
    let current = |now| truth.current(now).map(|current| (current.order, current.rule));
    assert_eq!((current(now), current(end)), (Some((1, 4)), Some((5, 2))));
    assert!(end - now < Span::mins(20), "breaks of hours are cut: {}", end - now);
}
