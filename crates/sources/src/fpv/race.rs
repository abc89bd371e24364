//! What an answer about one race says: the race, its detections, its laps.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use stakeout_core::{
    Coverage, Facts, Failure, Fingerprint, Observation, Record, Scope, Stage, TargetSpec, Value,
};

use super::kinds::{Kinds, event_fingerprint, race_fingerprint};
use super::plan::param;
use super::scalar::{self, id, moment, seconds};
use super::wire::{Detection, Lap, Race, elements};
use crate::odd::Odd;

/// The observation of a race's file.
pub(super) fn race(
    kinds: &Kinds,
    target: &TargetSpec,
    body: &[u8],
    before: &Facts,
) -> Result<Observation, Failure> {
    let files: Vec<Race<'_>> = elements(body, "Race.json")?;
    let wanted = param(target, "race").unwrap_or_default();
    let Some(file) = files.iter().find(|file| id(&file.id).is_none_or(|id| id == wanted)) else {
        return Err(Failure::malformed(format!("expected the race {wanted}, found another one")));
    };
    let zone = param(target, "zone").and_then(scalar::zone);
    let mut reading = Reading {
        kinds,
        race: wanted,
        group: race_fingerprint(wanted),
        zone: zone.as_ref(),
        records: Vec::with_capacity(1 + file.laps.items().len() + file.detections.items().len()),
        whole: file.laps.0.is_some() && file.detections.0.is_some(),
        odd: Odd::default(),
    };
    let (start, end) = (moment(&file.start, reading.zone), moment(&file.end, reading.zone));
    let stage = match (start.is_null(), end.is_null()) {
        (true, _) => Stage::Pending,
        (false, true) => Stage::Started,
        (false, false) => Stage::Over,
    };
    reading.records.push(race_record(kinds, target, file, start, end));
    reading.detections_and_laps(file);
    Ok(reading.finish(stage, file, before))
}

fn race_record(kinds: &Kinds, target: &TargetSpec, file: &Race<'_>, start: Value, end: Value) -> Record {
    let (race, event) =
        (param(target, "race").unwrap_or_default(), param(target, "event").unwrap_or_default());
    let seat = |pilot: String, channel: Option<String>| {
        Value::Map([("pilot", pilot.into()), ("channel", channel.into())].into())
    };
    let seats = file.pilot_channels.items().iter();
    let seats = seats.filter_map(|it| Some(seat(id(&it.pilot)?, id(&it.channel)))).collect();
    let values = vec![
        Value::text(race),
        Value::text(event),
        id(&file.round).into(),
        file.number.int().into(),
        // Follows from all races together: see `derive`.
        Value::Null,
        start,
        end,
        seconds(&file.paused).into(),
        file.target_laps.int().into(),
        // Old versions do not say: then nobody has taken it out.
        Value::Bool(file.valid.flag().unwrap_or(true)),
        file.bracket.text_value(),
        Value::List(seats),
    ];
    Record::new(&kinds.races, &[race], values).under(event_fingerprint(event))
}

struct Reading<'a> {
    kinds: &'a Kinds,
    race: &'a str,
    group: Fingerprint,
    zone: Option<&'a TimeZone>,
    records: Vec<Record>,
    /// Whether what is missing is gone.
    whole: bool,
    odd: Odd,
}

/// What a lap takes from its detection.
struct Seen {
    pilot: Option<String>,
    channel: Option<String>,
    valid: bool,
}

impl Reading<'_> {
    fn detections_and_laps(&mut self, file: &Race<'_>) {
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        for detection in file.detections.items() {
            let Some(key) = id(&detection.id) else {
                self.odd.add("bad_detection", || format!("{:?} is no id", detection.id));
                self.whole = false;
                continue;
            };
            let (pilot, channel) = (id(&detection.pilot), id(&detection.channel));
            let valid = detection.valid.flag().unwrap_or(true);
            self.detection(&key, detection, pilot.clone(), channel.clone(), valid);
            seen.insert(key, Seen { pilot, channel, valid });
        }
        for lap in file.laps.items() {
            let detection = id(&lap.detection);
            // A lap is its detection: when the program computes its laps again they get new ids, the detections do not.
            let Some(key) = detection.clone().or_else(|| id(&lap.id)) else {
                self.odd.add("bad_lap", || format!("{:?} is no id", lap.id));
                self.whole = false;
                continue;
            };
            let by = detection.as_ref().and_then(|detection| seen.get(detection));
            if by.is_none() {
                self.odd.add("lap_without_detection", || format!("{key} in race {}", self.race));
            }
            self.lap(&key, lap, detection.clone(), by);
        }
    }

    fn detection(
        &mut self,
        key: &str,
        detection: &Detection<'_>,
        pilot: Option<String>,
        channel: Option<String>,
        valid: bool,
    ) {
        let values = vec![
            Value::text(key),
            Value::text(self.race),
            pilot.into(),
            channel.into(),
            moment(&detection.time, self.zone),
            detection.lap_number.int().into(),
            Value::Bool(valid),
            detection.validity_type.text_value(),
            detection.is_lap_end.flag().into(),
            detection.is_holeshot.flag().into(),
        ];
        let record = Record::new(&self.kinds.detections, &[key], values);
        self.records.push(record.under(self.group).in_group(self.group));
    }

    fn lap(&mut self, key: &str, lap: &Lap<'_>, detection: Option<String>, by: Option<&Seen>) {
        let values = vec![
            id(&lap.id).into(),
            Value::text(self.race),
            by.and_then(|by| by.pilot.clone()).into(),
            by.and_then(|by| by.channel.clone()).into(),
            detection.into(),
            lap.number.int().into(),
            lap.length_seconds.number().into(),
            moment(&lap.start, self.zone),
            moment(&lap.end, self.zone),
            // Whose lap it was is only known with the detection.
            by.map(|by| by.valid).into(),
        ];
        let record = Record::new(&self.kinds.laps, &[key], values);
        self.records.push(record.under(self.group).in_group(self.group));
    }

    fn finish(self, stage: Stage, file: &Race<'_>, before: &Facts) -> Observation {
        // A race without a start has flown nothing: that its laps are gone is what a reset looks like.
        let flew_nothing = file.laps.items().is_empty() && file.detections.items().is_empty();
        let reset = stage == Stage::Pending && flew_nothing && self.whole;
        let coverage = if self.whole { Coverage::Complete } else { Coverage::Partial(Scope::default()) };
        Observation {
            coverage,
            facts: Facts { stage, ..before.clone() },
            reset_groups: if reset { BTreeSet::from([self.group]) } else { BTreeSet::new() },
            warnings: self.odd.warnings(),
            ..Observation::complete(self.records)
        }
    }
}
