//! What there is to watch: the page names the event, the event's own file its races; `/current` is a hint.

use std::collections::BTreeSet;

use stakeout_core::{
    Coverage, Facts, Failure, Observation, PollContext, Record, Scope, TargetSpec, Time, Value,
};

use super::kinds::{Kinds, event_fingerprint, part};
use super::plan::{Asking, SUPPORTED, param};
use super::scalar::{self, id, moment, seconds};
use super::wire::{CurrentFile, EventFile, elements, event_of_page, is_html};
use crate::lenient::{Fields as _, Leaf};
use crate::odd::Odd;

/// The note of the page: the event that is open.
pub(super) const OPEN_EVENT: &str = "event";
/// The note of the page: since when.
const OPEN_SINCE: &str = "event_seen_at";
/// The note of the page: the events that were open before, the latest last.
const EARLIER: &str = "earlier_events";
/// The most of them that are remembered.
const EARLIER_MAX: usize = 50;
/// The note of `current`: the race that the upstream names.
pub(super) const HINT: &str = "race";

/// The page: the event that is open, its fixed targets, and which event is current. All of it is one observation, so
/// the flag flips in the very commit that exchanges the targets.
pub(super) fn page(
    kinds: &Kinds,
    asking: &Asking,
    body: &[u8],
    context: &PollContext<'_>,
) -> Result<Observation, Failure> {
    let event = event_of_page(body)?;
    let before = context.facts;
    let open_before = before.notes.get(OPEN_EVENT).and_then(Value::as_text);
    let mut earlier: Vec<String> = match before.notes.get(EARLIER) {
        Some(Value::List(ids)) => ids.iter().filter_map(Value::as_text).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let same = open_before == Some(event.as_str());
    let since = before.notes.get(OPEN_SINCE).and_then(Value::as_text).and_then(Time::parse);
    let since = since.filter(|_| same).unwrap_or(context.now);
    if !same {
        earlier.extend(open_before.map(str::to_owned));
        earlier.retain(|id| *id != event);
        earlier.drain(..earlier.len().saturating_sub(EARLIER_MAX));
    }
    let flag = |id: &str, current: bool| {
        let known = [
            ("event_id", Value::text(id)),
            ("is_current", Value::Bool(current)),
            ("seen_at", current.then_some(since).into()),
        ];
        Record::new(&kinds.events, &[id], part(&kinds.events, &known))
    };
    let mut records: Vec<Record> = earlier.iter().map(|id| flag(id, false)).collect();
    records.push(flag(&event, true));
    let mut facts = before.clone();
    facts.notes.insert(EARLIER.to_owned(), Value::List(earlier.into_iter().map(Value::text).collect()));
    facts.notes.insert(OPEN_SINCE.to_owned(), since.into());
    facts.notes.insert(OPEN_EVENT.to_owned(), Value::text(&event));
    Ok(Observation { facts, targets: Some(asking.of_event(&event)), ..Observation::complete(records) })
}

/// The event's own file: what it is called, who takes part on which channel in which colour, and its races.
pub(super) fn event(
    kinds: &Kinds,
    asking: &Asking,
    target: &TargetSpec,
    body: &[u8],
) -> Result<Observation, Failure> {
    let files: Vec<EventFile<'_>> = elements(body, "Event.json")?;
    let wanted = param(target, "event").unwrap_or_default();
    let Some(file) = files.iter().find(|file| id(&file.id).is_none_or(|id| id == wanted)) else {
        return Err(Failure::malformed(format!("expected the event {wanted}, found another one")));
    };
    let mut odd = Odd::default();
    let zone = zone_name(file, asking.zone.as_deref(), &mut odd);
    let mut records = vec![event_record(kinds, wanted, file, zone.as_deref())];
    records.extend(pilots(kinds, wanted, file));
    records.extend(channels(kinds, file));

    let mut whole = file.races.0.is_some();
    if !whole {
        odd.add("no_races", || "Event.json has no list of races".to_owned());
    }
    let mut races = BTreeSet::new();
    for leaf in file.races.items() {
        match id(leaf) {
            Some(race) => drop(races.insert(race)),
            None => {
                odd.add("bad_race_id", || format!("{leaf:?}"));
                whole = false;
            }
        }
    }
    let targets = races.iter().map(|race| asking.race(wanted, race, zone.as_deref())).collect();
    // An id that cannot be read may be any of those that are known: then nothing may be concluded from what is missing.
    let coverage = if whole { Coverage::Complete } else { Coverage::Partial(Scope::default()) };
    let warnings = odd.warnings();
    Ok(Observation { coverage, targets: Some(targets), warnings, ..Observation::complete(records) })
}

fn zone_name(file: &EventFile<'_>, configured: Option<&str>, odd: &mut Odd) -> Option<String> {
    let own = file.time_zone.text();
    let known = own.as_deref().filter(|name| scalar::zone(name).is_some());
    if let (Some(own), None) = (&own, known) {
        odd.add("unknown_zone", || own.to_string());
    }
    known.or(configured).map(str::to_owned)
}

fn event_record(kinds: &Kinds, event: &str, file: &EventFile<'_>, zone: Option<&str>) -> Record {
    let tz = zone.and_then(scalar::zone);
    let values = vec![
        Value::text(event),
        Value::Null,
        Value::Null,
        file.name.text_value(),
        file.event_type.text_value(),
        moment(&file.start, tz.as_ref()),
        moment(&file.end, tz.as_ref()),
        file.laps.int().into(),
        file.pb_laps.int().into(),
        seconds(&file.race_length).into(),
        zone.map(str::to_owned).into(),
    ];
    Record::new(&kinds.events, &[event], values)
}

/// Who takes part, on which channel, and who does not any more.
fn pilots(kinds: &Kinds, event: &str, file: &EventFile<'_>) -> Vec<Record> {
    let removed: BTreeSet<String> = file.removed_pilots.items().iter().filter_map(id).collect();
    let record = |pilot: String, channel: Option<String>| {
        let gone = removed.contains(&pilot);
        let known = [
            ("pilot_id", Value::text(&pilot)),
            ("event", Value::text(event)),
            ("channel", channel.into()),
            ("removed", Value::Bool(gone)),
        ];
        let values = part(&kinds.pilots, &known);
        Record::new(&kinds.pilots, &[event, &pilot], values).under(event_fingerprint(event))
    };
    let flying = file.pilot_channels.items().iter();
    let flying = flying.filter_map(|seat| Some((id(&seat.pilot)?, id(&seat.channel))));
    let only_removed = removed.iter().map(|pilot| (pilot.clone(), None));
    // Of a pilot that comes twice the last counts: the one with a channel.
    only_removed.chain(flying).map(|(pilot, channel)| record(pilot, channel)).collect()
}

/// The event's colours and names of its channels, each at the channel's place in the list.
fn channels(kinds: &Kinds, file: &EventFile<'_>) -> Vec<Record> {
    let colours = file.channel_colors.items();
    let record = |(place, leaf): (usize, &Leaf<'_>)| {
        let channel = id(leaf)?;
        let colour = if colours.is_empty() { None } else { colours[place % colours.len()].text() };
        let name = file.channel_names.items().get(place).and_then(Leaf::text);
        let known = [
            ("channel_id", Value::text(&channel)),
            ("display_name", name.map(|name| name.into_owned()).into()),
            ("colour", colour.map(|colour| colour.into_owned()).into()),
        ];
        Some(Record::new(&kinds.channels, &[&channel], part(&kinds.channels, &known)))
    };
    file.channels.items().iter().enumerate().filter_map(record).collect()
}

/// The upstream's own word on the current race. Old versions answer any unknown path with the page.
pub(super) fn current(body: &[u8], before: &Facts) -> Result<Observation, Failure> {
    let mut facts = before.clone();
    let mut note = |name: &str, value: Value| drop(facts.notes.insert(name.to_owned(), value));
    if is_html(body) {
        note(SUPPORTED, Value::Bool(false));
        note(HINT, Value::Null);
    } else {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let file = CurrentFile::object(&mut reader).and_then(|file| reader.end().map(|()| file));
        let file = file.map_err(|error| {
            Failure::malformed(format!(
                "expected {{\"CurrentRace\": …}}, found {} bytes: {error}",
                body.len()
            ))
        })?;
        note(SUPPORTED, Value::Bool(true));
        note(HINT, id(&file.race).into());
    }
    Ok(Observation { facts, ..Observation::complete(Vec::new()) })
}
