//! A recorded event, flown again: the capture's own files, with its starts, laps and ends moved to now.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;
use stakeout_core::{Span, Time};

use super::config::Version;
use super::event::{Event, Saved};
use super::guid::Guid;
use super::line::{ALWAYS, Line};
use super::recorded::{RecordedRace, content};
use super::stamp::Venue;
use super::state::{Content, File};

/// A directory laid out like the upstream's paths: `events/<guid>/…` and `httpfiles/Channels.json`.
///
/// Races are flown in the order they were, in their own time; longer breaks between them are cut to [`Replay::gap`].
/// Scaled time is the business of the clock it is served by.
#[derive(Debug)]
pub struct Replay {
    /// The longest break between two races.
    pub gap: Span,
    /// From when the replay begins to the first start.
    pub lead: Span,
    event: Guid,
    venue: Venue,
    /// Files that stay as they are.
    fixed: BTreeMap<File, Recorded>,
    races: BTreeMap<Guid, RecordedRace>,
    results: Vec<Value>,
    channels: Option<Bytes>,
}

#[derive(Debug)]
struct Recorded {
    content: Content,
    body: Bytes,
}

/// Why a directory cannot be replayed.
#[derive(Debug)]
pub struct BadCapture {
    path: PathBuf,
    why: String,
}

impl fmt::Display for BadCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for BadCapture {}

impl Replay {
    /// Reads a capture; its dates are taken as UTC.
    ///
    /// # Errors
    /// When it has no event, or a file that cannot be read.
    pub fn new(dir: impl AsRef<Path>) -> Result<Replay, BadCapture> {
        Replay::in_zone(dir, "UTC")
    }

    /// Reads a capture whose dates are on the wall clock of that IANA zone.
    ///
    /// # Errors
    /// When it has no event, or a file that cannot be read.
    pub fn in_zone(dir: impl AsRef<Path>, zone: &str) -> Result<Replay, BadCapture> {
        let (dir, venue) = (dir.as_ref(), Venue::new(zone));
        let events = dir.join("events");
        let ids = subdirectories(&events)?;
        let Some((event, event_dir)) = ids.into_iter().next() else {
            return Err(BadCapture {
                path: events,
                why: "expected a directory named by an event's id".to_owned(),
            });
        };
        let mut replay = Replay {
            gap: Span::mins(1),
            lead: Span::secs(10),
            event,
            venue,
            fixed: BTreeMap::new(),
            races: BTreeMap::new(),
            results: Vec::new(),
            channels: read(&dir.join("httpfiles/Channels.json"))?,
        };
        for (file, name) in
            [(File::Event, "Event.json"), (File::Pilots, "Pilots.json"), (File::Rounds, "Rounds.json")]
        {
            if let Some(body) = read(&event_dir.join(name))? {
                let content = content(file, &body, &replay.venue).unwrap_or(Content::Missing);
                replay.fixed.insert(file, Recorded { content, body });
            }
        }
        if let Some(Value::Array(results)) =
            read(&event_dir.join("Results.json"))?.and_then(|body| parsed(&body))
        {
            replay.results = results;
        }
        for (id, race_dir) in subdirectories(&event_dir)? {
            let Some(body) = read(&race_dir.join("Race.json"))? else { continue };
            let result = read(&race_dir.join("Result.json"))?;
            match RecordedRace::read(&body, &replay.venue, result) {
                Some(race) => drop(replay.races.insert(id, race)),
                // Served as it is: half a file is a file.
                None => {
                    drop(replay.fixed.insert(File::Race(id), Recorded { content: Content::Missing, body }))
                }
            }
        }
        Ok(replay)
    }

    /// The event, flown again from `now` on.
    pub fn event(&self, now: Time) -> Event {
        let shifts = self.shifts(now);
        let (mut files, mut hint) = (BTreeMap::new(), Line::default());
        for (file, recorded) in &self.fixed {
            let saved = Saved { content: recorded.content.clone(), recorded: Some(recorded.body.clone()) };
            files.insert((self.event, *file), once(saved));
        }
        for (id, race) in &self.races {
            let flown = shifts.iter().find(|shift| shift.race == *id);
            files.insert((self.event, File::Race(*id)), race.saves(&self.venue, flown.map(|shift| shift.by)));
            if let Some(result) = &race.result {
                let content = content(File::Result(*id), result, &self.venue).unwrap_or(Content::Missing);
                let from = flown.map_or(ALWAYS, |shift| shift.end);
                let mut line = Line::default();
                line.push(from, Saved { content, recorded: Some(result.clone()) });
                files.insert((self.event, File::Result(*id)), line);
            }
        }
        for shift in &shifts {
            hint.push(shift.start - Span::secs(5), Some(shift.race));
        }
        if !self.results.is_empty() {
            files.insert((self.event, File::Results), self.results(&shifts));
        }
        Event {
            files,
            shown: once(self.event),
            hint,
            channels: once(self.channels.is_some()),
            recorded_channels: self.channels.clone(),
            blinds: Vec::new(),
            venue: self.venue.clone(),
            version: Version::Old,
            played: Vec::new(),
            began: shifts.first().map_or(now, |shift| shift.start),
            ended: shifts.iter().map(|shift| shift.end).max().unwrap_or(now),
            changes: OnceLock::new(),
        }
    }

    /// Where each race that was flown goes, in the order they were flown.
    fn shifts(&self, now: Time) -> Vec<Shift> {
        let mut flown: Vec<(Time, Time, Guid)> = self
            .races
            .iter()
            .filter_map(|(id, race)| race.flown().map(|(start, end)| (start, end, *id)))
            .collect();
        flown.sort_unstable();
        let (mut shifts, mut before): (Vec<Shift>, Option<(Time, Time)>) = (Vec::new(), None);
        for (start, end, race) in flown {
            let at = match before {
                None => now + self.lead,
                Some((recorded, moved)) => moved + (start - recorded).clamp(Span::ZERO, self.gap),
            };
            let by = at - start;
            shifts.push(Shift { race, start: at, end: end + by, by });
            before = Some((end, end + by));
        }
        shifts
    }

    /// A race's results are there once it has ended.
    fn results(&self, shifts: &[Shift]) -> Line<Saved> {
        let ends = |result: &Value| {
            let race = result["Race"].as_str().and_then(Guid::parse);
            shifts.iter().find(|shift| Some(shift.race) == race).map_or(ALWAYS, |shift| shift.end)
        };
        let mut line = Line::default();
        let mut times: Vec<Time> = shifts.iter().map(|shift| shift.end).collect();
        times.sort_unstable();
        for at in [ALWAYS].into_iter().chain(times) {
            let there: Vec<Value> =
                self.results.iter().filter(|result| ends(result) <= at).cloned().collect();
            let body = if there.is_empty() { String::new() } else { format!("{:#}", Value::Array(there)) };
            let body = Bytes::from(body);
            let content = content(File::Results, &body, &self.venue).unwrap_or(Content::Missing);
            line.push(at, Saved { content, recorded: Some(body) });
        }
        line
    }
}

/// A race's new place in time.
struct Shift {
    race: Guid,
    start: Time,
    end: Time,
    by: Span,
}

fn once<T>(value: T) -> Line<T> {
    let mut line = Line::default();
    line.push(ALWAYS, value);
    line
}

fn parsed(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

/// The bytes of a file; nothing when it is not there.
fn read(path: &Path) -> Result<Option<Bytes>, BadCapture> {
    match std::fs::read(path) {
        Ok(body) => Ok(Some(body.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BadCapture { path: path.to_owned(), why: error.to_string() }),
    }
}

/// The directories that are named by an id, in order.
fn subdirectories(dir: &Path) -> Result<Vec<(Guid, PathBuf)>, BadCapture> {
    let bad = |error: std::io::Error| BadCapture { path: dir.to_owned(), why: error.to_string() };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        if let Some(id) = entry.file_name().to_str().and_then(Guid::parse) {
            found.push((id, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}
