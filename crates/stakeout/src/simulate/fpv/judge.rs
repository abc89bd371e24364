//! What was told of a simulated event against what happened in it.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::{Event, Span, Time};
use stakeout_sim::fpv::{Guid, Truth, What};

use super::trackside::Look;

/// What can be seen for so long must be told, whatever the looks were.
const MUST_BE_SEEN: Span = Span::secs(1);

/// The laps against what was told of them.
#[derive(Debug, Default)]
pub(super) struct Laps {
    /// Valid laps that were flown.
    pub(super) flown: usize,
    /// Of them: told.
    pub(super) told: usize,
    /// Of them: gone before anybody could have looked.
    pub(super) unseen: usize,
    /// Of them: not told, though a look saw them or should have.
    pub(super) missed: Vec<(String, Time)>,
    /// Told, and never flown, or told twice.
    pub(super) invented: Vec<(String, Time)>,
    /// From the moment a lap could be read to its event.
    pub(super) delays: Vec<Span>,
}

/// A lap that counts, from when on it could be read and until when.
struct Flown {
    race: Guid,
    lap: String,
    from: Time,
    until: Time,
}

fn flown(truth: &Truth<'_>) -> Vec<Flown> {
    let changes = truth.changes();
    let laps = changes.iter().filter_map(|change| match &change.what {
        What::Lap(lap) if lap.valid => Some((change, lap)),
        _ => None,
    });
    laps.map(|(change, lap)| {
        let gone = changes
            .iter()
            .find(|other| other.at > change.at && other.what == What::Reset(lap.race))
            .map_or(Time(i64::MAX), |reset| reset.at);
        Flown { race: lap.race, lap: lap.id.to_string(), from: change.visible_at, until: gone }
    })
    .collect()
}

pub(super) fn laps(truth: &Truth<'_>, looks: &[Look], events: &[Event]) -> Laps {
    let mut told: BTreeMap<&str, Vec<Time>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.event_type == "fpv.lap.completed") {
        let lap = event.data["record"]["lap_id"].as_str().unwrap_or(&event.subject_key);
        told.entry(lap).or_default().push(event.at);
    }
    let by_path = whole_looks(looks);
    let mut verdict = Laps::default();
    for lap in flown(truth) {
        verdict.flown += 1;
        if let Some(times) = told.remove(lap.lap.as_str()) {
            verdict.told += 1;
            verdict.delays.extend(times.first().map(|at| *at - lap.from));
            verdict.invented.extend(times.iter().skip(1).map(|at| (lap.lap.clone(), *at)));
            continue;
        }
        let end = format!("/{}/Race.json", lap.race);
        let mut of_race =
            by_path.iter().filter(|(path, _)| path.ends_with(&end)).flat_map(|(_, times)| times);
        let seen = of_race.any(|read| (lap.from..lap.until).contains(read));
        if seen || lap.until.us().saturating_sub(lap.from.us()) >= MUST_BE_SEEN.as_us() {
            verdict.missed.push((lap.lap, lap.from));
        } else {
            verdict.unseen += 1;
        }
    }
    let left =
        told.into_iter().flat_map(|(lap, times)| times.into_iter().map(move |at| (lap.to_owned(), at)));
    verdict.invented.extend(left);
    verdict
}

fn whole_looks(looks: &[Look]) -> BTreeMap<&str, Vec<Time>> {
    let mut by_path: BTreeMap<&str, Vec<Time>> = BTreeMap::new();
    for look in looks.iter().filter(|look| look.whole) {
        by_path.entry(&look.path).or_default().push(look.read);
    }
    by_path
}

/// The turns in the races' lives against what was told of them: type, race and when.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) expected: usize,
    pub(super) missed: Vec<(String, String, Time)>,
    pub(super) wrong: Vec<(String, String, Time)>,
}

/// Every start, end, reset, resumption, invalidation and other event, told once each and in their order.
pub(super) fn turns(truth: &Truth<'_>, began: Time, events: &[Event]) -> Turns {
    let mut expected: BTreeMap<(String, String), Vec<Time>> = BTreeMap::new();
    for change in truth.changes().iter().filter(|change| change.at > began) {
        let (name, subject) = match &change.what {
            What::Started(race) => ("race.started", race),
            What::Ended(race) | What::Decided(race) => ("race.ended", race),
            What::Reset(race) => ("race.reset", race),
            What::Resumed(race) => ("race.resumed", race),
            What::Invalidated(race) => ("race.invalidated", race),
            What::Switched => ("event.switched", &change.event),
            _ => continue,
        };
        expected.entry((format!("fpv.{name}"), subject.to_string())).or_default().push(change.visible_at);
    }
    let mut verdict = Turns { expected: expected.values().map(Vec::len).sum(), ..Turns::default() };
    let judged: BTreeSet<String> =
        ["race.started", "race.ended", "race.reset", "race.resumed", "race.invalidated", "event.switched"]
            .map(|name| format!("fpv.{name}"))
            .into();
    for event in events.iter().filter(|event| judged.contains(&event.event_type)) {
        let key = (event.event_type.clone(), event.subject_key.clone());
        // Of several the one that happened first is told first, and never before it happened.
        match expected.get_mut(&key).filter(|times| times.first().is_some_and(|at| *at <= event.at)) {
            Some(times) => drop(times.remove(0)),
            None => verdict.wrong.push((key.0, key.1, event.at)),
        }
    }
    let left = expected.into_iter().flat_map(|((name, subject), times)| {
        times.into_iter().map(move |at| (name.clone(), subject.clone(), at))
    });
    verdict.missed.extend(left);
    verdict
}
