//! What the upstream's files hold.

use stakeout_core::{Span, Time};

use super::guid::Guid;

/// A file of one event's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum File {
    Event,
    Pilots,
    Rounds,
    /// All results of the event.
    Results,
    /// A race.
    Race(Guid),
    /// The results of one race.
    Result(Guid),
}

impl File {
    /// Where it is served.
    pub(crate) fn path(self, event: Guid) -> String {
        match self {
            File::Event => format!("/events/{event}/Event.json"),
            File::Pilots => format!("/events/{event}/Pilots.json"),
            File::Rounds => format!("/events/{event}/Rounds.json"),
            File::Results => format!("/events/{event}/Results.json"),
            File::Race(race) => format!("/events/{event}/{race}/Race.json"),
            File::Result(race) => format!("/events/{event}/{race}/Result.json"),
        }
    }

    /// The event and file that a path names.
    pub(crate) fn read(path: &str) -> Option<(Guid, File)> {
        let mut steps = path.strip_prefix("/events/")?.split('/');
        let event = Guid::parse(steps.next()?)?;
        let file = match (steps.next()?, steps.next(), steps.next()) {
            ("Event.json", None, None) => File::Event,
            ("Pilots.json", None, None) => File::Pilots,
            ("Rounds.json", None, None) => File::Rounds,
            ("Results.json", None, None) => File::Results,
            (race, Some("Race.json"), None) => File::Race(Guid::parse(race)?),
            (race, Some("Result.json"), None) => File::Result(Guid::parse(race)?),
            _ => return None,
        };
        Some((event, file))
    }
}

/// What one file holds from one save to the next.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// No such file.
    Missing,
    Event(EventFile),
    Pilots(Vec<Pilot>),
    Rounds(Vec<Round>),
    Race(Race),
    Results(Vec<Outcome>),
}

#[derive(Clone, Debug)]
pub(crate) struct EventFile {
    pub(crate) id: Guid,
    pub(crate) name: String,
    pub(crate) start: Time,
    pub(crate) laps: u32,
    pub(crate) race_length: Span,
    pub(crate) last_opened: Time,
    pub(crate) slots: Vec<Slot>,
    pub(crate) removed_pilots: Vec<Guid>,
    pub(crate) rounds: Vec<Guid>,
    pub(crate) channels: Vec<Guid>,
    /// In no useful order.
    pub(crate) races: Vec<Guid>,
}

#[derive(Clone, Debug)]
pub(crate) struct Pilot {
    pub(crate) id: Guid,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) id: Guid,
    pub(crate) number: u32,
    /// Steps of 100; −1 is not set.
    pub(crate) order: i64,
    pub(crate) valid: bool,
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
}

/// A pilot on a channel. Either may be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) id: Guid,
    pub(crate) pilot: Guid,
    pub(crate) channel: Guid,
}

#[derive(Clone, Debug)]
pub(crate) struct Race {
    pub(crate) id: Guid,
    pub(crate) event: Guid,
    pub(crate) round: Guid,
    pub(crate) number: u32,
    pub(crate) bracket: &'static str,
    pub(crate) start: Option<Time>,
    pub(crate) end: Option<Time>,
    pub(crate) paused: Span,
    pub(crate) slots: Vec<Slot>,
    pub(crate) target_laps: u32,
    pub(crate) valid: bool,
    pub(crate) laps: Vec<Lap>,
    pub(crate) detections: Vec<Detection>,
}

impl Race {
    pub(crate) fn pilots(&self) -> impl Iterator<Item = Guid> + '_ {
        self.slots.iter().map(|slot| slot.pilot).filter(|pilot| pilot.is_some())
    }

    /// Back to unflown.
    pub(crate) fn reset(&mut self) {
        (self.start, self.end, self.paused) = (None, None, Span::ZERO);
        self.laps.clear();
        self.detections.clear();
    }

    pub(crate) fn detection(&self, id: Guid) -> Option<&Detection> {
        self.detections.iter().find(|detection| detection.id == id)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lap {
    pub(crate) id: Guid,
    pub(crate) detection: Guid,
    /// 0 is the holeshot.
    pub(crate) number: u32,
    pub(crate) start: Time,
    pub(crate) end: Time,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Detection {
    pub(crate) id: Guid,
    pub(crate) pilot: Guid,
    pub(crate) channel: Guid,
    pub(crate) at: Time,
    pub(crate) lap: u32,
    pub(crate) valid: bool,
    pub(crate) lap_end: bool,
}

/// A pilot's result in a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) id: Guid,
    pub(crate) pilot: Guid,
    pub(crate) race: Guid,
    pub(crate) round: Guid,
    pub(crate) event: Guid,
    pub(crate) position: u32,
    pub(crate) points: u32,
    pub(crate) dnf: bool,
    pub(crate) laps: u32,
    pub(crate) time: Span,
}
