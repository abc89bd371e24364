//! The upstream's own types: only what is used of them, everything optional.
//!
//! Every file is a JSON array. The server has no error statuses: a file that does not exist is 200 with nothing, a path
//! that does not exist is 200 with the HTML page, and both are failures here.

use serde::de::{Deserialize, Deserializer, MapAccess};
use stakeout_core::Failure;

use super::scalar::guid;
use crate::lenient::{Fields, Leaf, List, upstream_object};

/// What precedes the event's path in the page.
const MANAGER: &str = "EventManager(";
const EVENTS: &str = "events/";

upstream_object! {
    /// `Event.json`, its one element.
    EventFile {
        "ID" => id: Leaf<'a>,
        "Name" => name: Leaf<'a>,
        "EventType" => event_type: Leaf<'a>,
        "Start" => start: Leaf<'a>,
        "End" => end: Leaf<'a>,
        "Laps" => laps: Leaf<'a>,
        "PBLaps" => pb_laps: Leaf<'a>,
        "RaceLength" => race_length: Leaf<'a>,
        "TimeZone" => time_zone: Leaf<'a>,
        "Races" => races: List<Leaf<'a>>,
        "Channels" => channels: List<Leaf<'a>>,
        "ChannelColors" => channel_colors: List<Leaf<'a>>,
        "ChannelDisplayNames" => channel_names: List<Leaf<'a>>,
        "PilotChannels" => pilot_channels: List<PilotChannel<'a>>,
        "RemovedPilots" => removed_pilots: List<Leaf<'a>>,
    }
}

upstream_object! {
    /// Who flies on which channel.
    PilotChannel {
        "Pilot" => pilot: Leaf<'a>,
        "Channel" => channel: Leaf<'a>,
    }
}

upstream_object! {
    /// One of `Pilots.json`.
    Pilot {
        "ID" => id: Leaf<'a>,
        "Name" => name: Leaf<'a>,
        "Phonetic" => phonetic: Leaf<'a>,
        "FirstName" => first_name: Leaf<'a>,
        "LastName" => last_name: Leaf<'a>,
        "PracticePilot" => practice_pilot: Leaf<'a>,
    }
}

upstream_object! {
    /// One of `Channels.json`.
    Channel {
        "ID" => id: Leaf<'a>,
        "Number" => number: Leaf<'a>,
        "Band" => band: Leaf<'a>,
        "ShortBand" => short_band: Leaf<'a>,
        "Frequency" => frequency: Leaf<'a>,
        "DisplayName" => display_name: Leaf<'a>,
    }
}

upstream_object! {
    /// One of `Rounds.json`.
    Round {
        "ID" => id: Leaf<'a>,
        "Name" => name: Leaf<'a>,
        "RoundNumber" => number: Leaf<'a>,
        "Order" => order: Leaf<'a>,
        "Valid" => valid: Leaf<'a>,
        "EventType" => event_type: Leaf<'a>,
        "RoundType" => round_type: Leaf<'a>,
    }
}

upstream_object! {
    /// `Race.json`, its one element.
    Race {
        "ID" => id: Leaf<'a>,
        "RaceNumber" => number: Leaf<'a>,
        "Round" => round: Leaf<'a>,
        "Start" => start: Leaf<'a>,
        "End" => end: Leaf<'a>,
        "TotalPausedTime" => paused: Leaf<'a>,
        "PilotChannels" => pilot_channels: List<PilotChannel<'a>>,
        "TargetLaps" => target_laps: Leaf<'a>,
        "Valid" => valid: Leaf<'a>,
        "Bracket" => bracket: Leaf<'a>,
        "Laps" => laps: List<Lap<'a>>,
        "Detections" => detections: List<Detection<'a>>,
    }
}

upstream_object! {
    /// A lap; its pilot is found through its detection.
    Lap {
        "ID" => id: Leaf<'a>,
        "Detection" => detection: Leaf<'a>,
        "LengthSeconds" => length_seconds: Leaf<'a>,
        "LapNumber" => number: Leaf<'a>,
        "StartTime" => start: Leaf<'a>,
        "EndTime" => end: Leaf<'a>,
    }
}

upstream_object! {
    /// A drone seen at the gate.
    Detection {
        "ID" => id: Leaf<'a>,
        "Time" => time: Leaf<'a>,
        "Pilot" => pilot: Leaf<'a>,
        "Channel" => channel: Leaf<'a>,
        "LapNumber" => lap_number: Leaf<'a>,
        "Valid" => valid: Leaf<'a>,
        "ValidityType" => validity_type: Leaf<'a>,
        "IsLapEnd" => is_lap_end: Leaf<'a>,
        "IsHoleshot" => is_holeshot: Leaf<'a>,
    }
}

upstream_object! {
    /// One of `Results.json`.
    RaceResult {
        "ID" => id: Leaf<'a>,
        "Race" => race: Leaf<'a>,
        "Round" => round: Leaf<'a>,
        "Pilot" => pilot: Leaf<'a>,
        "Position" => position: Leaf<'a>,
        "Points" => points: Leaf<'a>,
        "DNF" => dnf: Leaf<'a>,
        "Valid" => valid: Leaf<'a>,
        "LapsFinished" => laps_finished: Leaf<'a>,
        "Time" => time: Leaf<'a>,
        "ResultType" => result_type: Leaf<'a>,
    }
}

upstream_object! {
    /// The answer of `/current` where there is one.
    CurrentFile {
        "CurrentRace" => race: Leaf<'a>,
    }
}

/// Whether an answer is a page where a file was asked for.
pub(super) fn is_html(body: &[u8]) -> bool {
    trimmed(body).first() == Some(&b'<')
}

/// The elements of a file; at least one, because an empty list is what a half-written file looks like.
pub(super) fn elements<'a, T: Deserialize<'a>>(body: &'a [u8], what: &str) -> Result<Vec<T>, Failure> {
    let refused =
        |found: String| Failure::malformed(format!("expected {what} as a JSON list, found {found}"));
    let body = trimmed(body);
    if body.is_empty() {
        return Err(refused("nothing: the file does not exist or is being written".to_owned()));
    }
    if is_html(body) {
        return Err(refused("an HTML page: the upstream does not know the path".to_owned()));
    }
    let List(items) = serde_json::from_slice(body)
        .map_err(|error| refused(format!("{} bytes that are no JSON: {error}", body.len())))?;
    match items {
        Some(items) if items.is_empty() => Err(refused("an empty one".to_owned())),
        Some(items) => Ok(items),
        None => Err(refused("something else".to_owned())),
    }
}

/// The event that the page is about: `new EventManager("events/<guid>", …)`.
pub(super) fn event_of_page(body: &[u8]) -> Result<String, Failure> {
    let page = String::from_utf8_lossy(body);
    let after_manager = page.match_indices(MANAGER).map(|(at, found)| &page[at + found.len()..]);
    let id = |rest: &str| {
        let quoted = rest.trim_start().strip_prefix(['"', '\''])?;
        let path = quoted.split(['"', '\'']).next()?.trim_matches('/').strip_prefix(EVENTS)?;
        guid(path)
    };
    after_manager.filter_map(id).next().ok_or_else(|| {
        Failure::malformed(format!(
            "expected a page with new EventManager(\"events/<guid>\"), found {} bytes without one: is an event open?",
            body.len()
        ))
    })
}

/// Without the byte order mark and white space around it.
fn trimmed(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii()
}
