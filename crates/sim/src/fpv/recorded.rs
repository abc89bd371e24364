//! Reading recorded files, as far as the truth needs it, and moving a recorded race in time.

use bytes::Bytes;
use serde_json::Value;
use stakeout_core::{Span, Time};

use super::event::Saved;
use super::guid::Guid;
use super::line::{ALWAYS, Line};
use super::stamp::Venue;
use super::state::{Content, Detection, EventFile, File, Lap, Outcome, Pilot, Race, Round, Slot};

/// A race as it was recorded, whole.
#[derive(Debug)]
pub(crate) struct RecordedRace {
    value: Value,
    race: Race,
    /// Its `Result.json`.
    pub(crate) result: Option<Bytes>,
}

impl RecordedRace {
    /// Nothing when it is no race.
    pub(crate) fn read(body: &[u8], venue: &Venue, result: Option<Bytes>) -> Option<RecordedRace> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let race = race(value.get(0)?, venue)?;
        Some(RecordedRace { value, race, result })
    }

    /// When it started and ended; the end of one that never did is its last detection.
    pub(crate) fn flown(&self) -> Option<(Time, Time)> {
        let start = self.race.start?;
        let last = self.race.detections.iter().map(|detection| detection.at).max();
        Some((start, self.race.end.or(last).unwrap_or(start).max(start)))
    }

    /// The file from before the start to after the end, everything `by` later than recorded; one that was not flown
    /// is as recorded.
    pub(crate) fn saves(&self, venue: &Venue, by: Option<Span>) -> Line<Saved> {
        let mut line = Line::default();
        let Some((by, (start, end))) = by.zip(self.flown()) else {
            line.push(ALWAYS, saved(self.value.clone(), venue));
            return line;
        };
        line.push(ALWAYS, saved(self.until(venue, Time(start.us() - 1), by), venue));
        let mut times: Vec<Time> = self.race.detections.iter().map(|detection| detection.at).collect();
        times.extend(self.race.laps.iter().map(|lap| lap.end));
        times.retain(|at| (start..end).contains(at));
        times.extend([start, end]);
        times.sort_unstable();
        times.dedup();
        for at in times {
            line.push(at + by, saved(self.until(venue, at, by), venue));
        }
        line
    }

    /// The file as it was at `at`, `by` later.
    fn until(&self, venue: &Venue, at: Time, by: Span) -> Value {
        let mut whole = self.value.clone();
        let Some((start, end)) = self.flown() else { return whole };
        let before =
            |text: &Value| text.as_str().and_then(|text| venue.parse(text)).flatten().is_none_or(|t| t <= at);
        if let Some(race) = whole.get_mut(0) {
            if at < end {
                for (list, time) in [("Laps", "EndTime"), ("Detections", "Time")] {
                    if let Some(items) = race.get_mut(list).and_then(Value::as_array_mut) {
                        items.retain(|item| at >= start && before(&item[time]));
                    }
                }
                race["End"] = venue.date(None).into();
            }
            if at < start {
                race["Start"] = venue.date(None).into();
                race["TotalPausedTime"] = "00:00:00".into();
            }
            shift(race, venue, by);
        }
        whole
    }
}

fn saved(value: Value, venue: &Venue) -> Saved {
    let content = value.get(0).and_then(|value| race(value, venue)).map_or(Content::Missing, Content::Race);
    Saved { content, recorded: Some(format!("{value:#}").into()) }
}

/// Moves every date in it.
fn shift(value: &mut Value, venue: &Venue, by: Span) {
    match value {
        Value::String(text) => {
            if let Some(Some(at)) = venue.parse(text) {
                *text = venue.date(Some(at + by));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shift(item, venue, by)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shift(field, venue, by)),
        _ => {}
    }
}

/// What a recorded file holds; nothing when it is not what its name says.
pub(crate) fn content(file: File, body: &[u8], venue: &Venue) -> Option<Content> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let items = value.as_array()?;
    Some(match file {
        File::Event => Content::Event(event(items.first()?, venue)?),
        File::Pilots => Content::Pilots(items.iter().filter_map(pilot).collect()),
        File::Rounds => Content::Rounds(items.iter().filter_map(round).collect()),
        File::Race(_) => Content::Race(race(items.first()?, venue)?),
        File::Results | File::Result(_) => Content::Results(items.iter().filter_map(outcome).collect()),
    })
}

fn event(value: &Value, venue: &Venue) -> Option<EventFile> {
    let ids = |key| list(value, key).iter().filter_map(|id| Guid::parse(id.as_str()?)).collect();
    Some(EventFile {
        id: guid(value, "ID")?,
        name: value["Name"].as_str().unwrap_or_default().to_owned(),
        start: date(value, "Start", venue).unwrap_or_default(),
        laps: count(value, "Laps"),
        race_length: Span::ZERO,
        last_opened: date(value, "LastOpened", venue).unwrap_or_default(),
        slots: list(value, "PilotChannels").iter().filter_map(slot).collect(),
        removed_pilots: ids("RemovedPilots"),
        rounds: ids("Rounds"),
        channels: ids("Channels"),
        races: ids("Races"),
    })
}

fn race(value: &Value, venue: &Venue) -> Option<Race> {
    Some(Race {
        id: guid(value, "ID")?,
        event: guid(value, "Event").unwrap_or_default(),
        round: guid(value, "Round").unwrap_or_default(),
        number: count(value, "RaceNumber"),
        bracket: "None",
        start: date(value, "Start", venue),
        end: date(value, "End", venue),
        paused: Span::ZERO,
        slots: list(value, "PilotChannels").iter().filter_map(slot).collect(),
        target_laps: count(value, "TargetLaps"),
        valid: value["Valid"].as_bool().unwrap_or(true),
        laps: list(value, "Laps").iter().filter_map(|lap| read_lap(lap, venue)).collect(),
        detections: list(value, "Detections").iter().filter_map(|seen| detection(seen, venue)).collect(),
    })
}

fn read_lap(value: &Value, venue: &Venue) -> Option<Lap> {
    Some(Lap {
        id: guid(value, "ID")?,
        detection: guid(value, "Detection")?,
        number: count(value, "LapNumber"),
        start: date(value, "StartTime", venue)?,
        end: date(value, "EndTime", venue)?,
    })
}

fn detection(value: &Value, venue: &Venue) -> Option<Detection> {
    Some(Detection {
        id: guid(value, "ID")?,
        pilot: guid(value, "Pilot").unwrap_or_default(),
        channel: guid(value, "Channel").unwrap_or_default(),
        at: date(value, "Time", venue)?,
        lap: count(value, "LapNumber"),
        valid: value["Valid"].as_bool().unwrap_or(true),
        lap_end: value["IsLapEnd"].as_bool().unwrap_or(true),
    })
}

fn slot(value: &Value) -> Option<Slot> {
    let part = |key| guid(value, key).unwrap_or_default();
    Some(Slot { id: guid(value, "ID")?, pilot: part("Pilot"), channel: part("Channel") })
}

fn pilot(value: &Value) -> Option<Pilot> {
    Some(Pilot { id: guid(value, "ID")?, name: value["Name"].as_str().unwrap_or_default().to_owned() })
}

fn round(value: &Value) -> Option<Round> {
    Some(Round {
        id: guid(value, "ID")?,
        number: count(value, "RoundNumber"),
        order: value["Order"].as_i64().unwrap_or(-1),
        valid: value["Valid"].as_bool().unwrap_or(true),
        name: "",
        kind: "Round",
    })
}

fn outcome(value: &Value) -> Option<Outcome> {
    let part = |key| guid(value, key).unwrap_or_default();
    Some(Outcome {
        id: guid(value, "ID")?,
        pilot: part("Pilot"),
        race: part("Race"),
        round: part("Round"),
        event: part("Event"),
        position: count(value, "Position"),
        points: count(value, "Points"),
        dnf: value["DNF"].as_bool().unwrap_or(false),
        laps: count(value, "LapsFinished"),
        time: Span::ZERO,
    })
}

fn guid(value: &Value, key: &str) -> Option<Guid> {
    Guid::parse(value[key].as_str()?)
}

fn count(value: &Value, key: &str) -> u32 {
    value[key].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

fn date(value: &Value, key: &str, venue: &Venue) -> Option<Time> {
    venue.parse(value[key].as_str()?).flatten()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}
