//! What an answer says, by what was asked; the plain lists are read here.

use std::collections::BTreeMap;

use stakeout_core::{Coverage, Failure, Observation, PollContext, Record, Scope, TargetSpec, Value};

use super::kinds::{Kinds, event_fingerprint, race_fingerprint};
use super::plan::{Asking, CHANNELS, CURRENT, EVENT, PAGE, PILOTS, RACE, RESULTS, ROUNDS, param};
use super::scalar::{id, seconds};
use super::wire::{Channel, Pilot, RaceResult, Round, elements};
use super::{discovery, race};
use crate::lenient::Leaf;
use crate::odd::Odd;

/// What normalisation needs to know besides the answer.
pub(super) struct Reader<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) asking: &'a Asking,
}

impl Reader<'_> {
    /// The observation that the body amounts to.
    pub(super) fn read(
        &self,
        target: &TargetSpec,
        body: &[u8],
        context: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        let event = param(target, "event").unwrap_or_default();
        match target.role.as_str() {
            PAGE => discovery::page(self.kinds, self.asking, body, context),
            CURRENT => discovery::current(body, context.facts),
            EVENT => discovery::event(self.kinds, self.asking, target, body),
            RACE => race::race(self.kinds, target, body, context.facts),
            PILOTS => list(elements(body, "Pilots.json")?, |row| pilot(self.kinds, event, row)),
            CHANNELS => list(elements(body, "Channels.json")?, |row| channel(self.kinds, row)),
            ROUNDS => list(elements(body, "Rounds.json")?, |row| round(self.kinds, event, row)),
            RESULTS => Ok(results(self.kinds, event, elements(body, "Results.json")?)),
            role => Err(Failure::malformed(format!("there is no target with the role {role:?}"))),
        }
    }
}

/// Every row that has an id; one that has none may be any of those that are known, so nothing is missed then.
fn list<T>(rows: Vec<T>, record: impl Fn(&T) -> Option<Record>) -> Result<Observation, Failure> {
    let found: Vec<Option<Record>> = rows.iter().map(record).collect();
    let rows = found.len();
    let records: Vec<Record> = found.into_iter().flatten().collect();
    if records.is_empty() {
        return Err(Failure::malformed(format!("expected rows with an ID, found {rows} without one")));
    }
    Ok(observation(records, rows))
}

fn observation(records: Vec<Record>, rows: usize) -> Observation {
    let mut odd = Odd::default();
    for _ in records.len()..rows {
        odd.add("bad_row", || "a row without an ID".to_owned());
    }
    let whole = records.len() == rows;
    let coverage = if whole { Coverage::Complete } else { Coverage::Partial(Scope::default()) };
    Observation { coverage, warnings: odd.warnings(), ..Observation::complete(records) }
}

fn pilot(kinds: &Kinds, event: &str, row: &Pilot<'_>) -> Option<Record> {
    let pilot = id(&row.id)?;
    let values = vec![
        Value::text(&pilot),
        Value::text(event),
        row.name.text_value(),
        row.phonetic.text_value(),
        row.first_name.text_value(),
        row.last_name.text_value(),
        row.practice_pilot.flag().into(),
        // These two are known to the event's own file.
        Value::Null,
        Value::Null,
    ];
    Some(Record::new(&kinds.pilots, &[event, &pilot], values).under(event_fingerprint(event)))
}

fn channel(kinds: &Kinds, row: &Channel<'_>) -> Option<Record> {
    let channel = id(&row.id)?;
    let number = row.number.int();
    let short = || {
        let band = row.short_band.text().or_else(|| row.band.text())?;
        Some(number.map_or(band.to_string(), |number| format!("{band}{number}")))
    };
    let name = row.display_name.text().map(|name| name.into_owned()).or_else(short);
    let values = vec![
        Value::text(&channel),
        name.into(),
        row.band.text_value(),
        number.into(),
        row.frequency.int().into(),
        // These two are known to the event's own file.
        Value::Null,
        Value::Null,
    ];
    Some(Record::new(&kinds.channels, &[&channel], values))
}

fn round(kinds: &Kinds, event: &str, row: &Round<'_>) -> Option<Record> {
    let round = id(&row.id)?;
    let values = vec![
        Value::text(&round),
        Value::text(event),
        row.number.int().into(),
        row.order.int().filter(|order| *order >= 0).into(),
        Value::Bool(row.valid.flag().unwrap_or(true)),
        row.name.text_value(),
        row.event_type.text_value(),
        row.round_type.text_value(),
    ];
    Some(Record::new(&kinds.rounds, &[&round], values).under(event_fingerprint(event)))
}

/// A result is the one of a pilot in a race: saving it again gives it a new id, and is no other result.
fn results(kinds: &Kinds, event: &str, rows: Vec<RaceResult<'_>>) -> Observation {
    let mut best: BTreeMap<Vec<String>, &RaceResult<'_>> = BTreeMap::new();
    let mut unreadable = 0;
    for row in &rows {
        let key = match (id(&row.race), id(&row.pilot), id(&row.id)) {
            (Some(race), Some(pilot), _) => vec![race, pilot],
            (_, _, Some(own)) => vec![own],
            _ => {
                unreadable += 1;
                continue;
            }
        };
        // Of several the last valid one counts.
        let stays = best.get(&key).is_some_and(|known| is_valid(&known.valid) && !is_valid(&row.valid));
        if !stays {
            best.insert(key, row);
        }
    }
    let records: Vec<Record> = best.iter().map(|(key, row)| result(kinds, event, key, row)).collect();
    let seen = records.len() + unreadable;
    observation(records, seen)
}

fn is_valid(flag: &Leaf<'_>) -> bool {
    flag.flag().unwrap_or(true)
}

fn result(kinds: &Kinds, event: &str, key: &[String], row: &RaceResult<'_>) -> Record {
    let race = id(&row.race);
    let values = vec![
        id(&row.id).into(),
        Value::text(event),
        race.clone().into(),
        id(&row.round).into(),
        id(&row.pilot).into(),
        row.result_type.text_value(),
        row.position.int().into(),
        row.points.number().into(),
        Value::Bool(row.dnf.flag().unwrap_or(false)),
        Value::Bool(is_valid(&row.valid)),
        row.laps_finished.int().into(),
        seconds(&row.time).into(),
    ];
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let parent = race.as_deref().map_or_else(|| event_fingerprint(event), race_fingerprint);
    Record::new(&kinds.results, &key, values).under(parent)
}
