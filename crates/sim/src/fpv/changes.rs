//! Everything that changes in an event, with its time: what a watcher's delay is measured from.

use std::collections::BTreeMap;

use stakeout_core::Time;

use super::blind::readable_from;
use super::event::Event;
use super::guid::Guid;
use super::line::ALWAYS;
use super::state::{Content, File, Race};
use super::truth::{Current, LapTruth, View, laps};

/// Something became true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When the upstream saved it.
    pub at: Time,
    /// From when it can be read: later than `at` if the file could not be read then.
    pub visible_at: Time,
    /// The event it happened in.
    pub event: Guid,
    /// What became true.
    pub what: What,
}

/// What became true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Another race is current, or the same by another rule or at another place in the order.
    Current {
        /// What was.
        from: Option<Current>,
        /// What is.
        to: Option<Current>,
    },
    /// The race order is another.
    Order,
    /// The race is listed and has a file for the first time.
    Added(Guid),
    /// The race started.
    Started(Guid),
    /// The race ended.
    Ended(Guid),
    /// The race's start and end were set at once, without it being flown.
    Decided(Guid),
    /// The race is as if it had never been flown.
    Reset(Guid),
    /// The race had ended and goes on.
    Resumed(Guid),
    /// The race is no longer valid.
    Invalidated(Guid),
    /// A lap is told.
    Lap(LapTruth),
    /// The race's results were saved, for the first time or again with new ids.
    Results(Guid),
    /// Another event is open.
    Switched,
    /// Connections are refused from now on.
    Lost,
    /// Connections are taken again.
    Back,
}

impl What {
    /// The race it concerns.
    pub fn race(&self) -> Option<Guid> {
        match self {
            What::Current { to, .. } => to.map(|current| current.race),
            What::Lap(lap) => Some(lap.race),
            What::Added(race)
            | What::Started(race)
            | What::Ended(race)
            | What::Decided(race)
            | What::Reset(race)
            | What::Resumed(race)
            | What::Invalidated(race)
            | What::Results(race) => Some(*race),
            What::Order | What::Switched | What::Lost | What::Back => None,
        }
    }
}

/// Walks through all saves of the event.
pub(crate) fn changes(event: &Event) -> Vec<Change> {
    let mut saves: BTreeMap<Time, Vec<(Guid, File)>> = BTreeMap::new();
    for (key, line) in &event.files {
        for at in line.times().filter(|at| *at > ALWAYS) {
            saves.entry(at).or_default().push(*key);
        }
    }
    for at in event.shown.times().filter(|at| *at > ALWAYS) {
        saves.entry(at).or_default();
    }
    let mut walk = Walk::new(event);
    for (at, files) in saves {
        walk.step(at, &files);
    }
    let mut all = walk.all;
    for blind in event.blinds.iter().filter(|blind| blind.file.is_none()) {
        for (at, what) in [(blind.from, What::Lost), (blind.until, What::Back)] {
            all.push(Change { at, visible_at: at, event: event.id(at), what });
        }
    }
    all.sort_by_key(|change| change.at);
    all
}

struct Walk<'a> {
    event: &'a Event,
    open: Guid,
    order: Vec<Guid>,
    current: Option<Current>,
    all: Vec<Change>,
}

impl<'a> Walk<'a> {
    fn new(event: &'a Event) -> Walk<'a> {
        let view = View::at(event, ALWAYS);
        let order = view.ordered().iter().map(|race| race.id).collect();
        Walk { event, open: event.id(ALWAYS), order, current: view.current(), all: Vec::new() }
    }

    fn step(&mut self, at: Time, files: &[(Guid, File)]) {
        let event = self.event;
        let switched = std::mem::replace(&mut self.open, event.id(at)) != self.open;
        let here: Vec<File> =
            files.iter().filter(|(of, _)| *of == self.open).map(|(_, file)| *file).collect();
        let readable = |file| readable_from(&event.blinds, self.open, file, at);
        let visible_at = here.iter().map(|file| readable(*file)).max().unwrap_or(at);
        let mut whats = Vec::new();
        if switched {
            whats.push(What::Switched);
        }
        let mut reorders = switched;
        for file in here {
            match file {
                File::Race(id) => reorders |= self.race(at, id, &mut whats),
                File::Result(id) => whats.push(What::Results(id)),
                File::Event | File::Rounds => reorders = true,
                File::Pilots | File::Results => {}
            }
        }
        if reorders {
            self.reorder(at, &mut whats);
        }
        let open = self.open;
        self.all.extend(whats.into_iter().map(|what| Change { at, visible_at, event: open, what }));
    }

    /// What a save of a race changed; true when it may concern the order or the current race.
    fn race(&self, at: Time, id: Guid, whats: &mut Vec<What>) -> bool {
        let line = &self.event.files[&(self.open, File::Race(id))];
        let race = |saved: Option<&'a super::event::Saved>| match saved.map(|saved| &saved.content) {
            Some(Content::Race(race)) => Some(race),
            _ => None,
        };
        let (Some(new), old) = (race(line.at(at)), race(line.before(at))) else { return true };
        let Some(old) = old else {
            whats.push(What::Added(id));
            return true;
        };
        whats.extend(turned(old, new).map(|what| what(id)));
        if old.valid && !new.valid {
            whats.push(What::Invalidated(id));
        }
        let told = |lap: &LapTruth| old.laps.iter().any(|other| other.id == lap.id);
        whats.extend(laps(new).filter(|lap| !told(lap)).map(What::Lap));
        let placed = |race: &Race| (race.start, race.end, race.valid, race.round, race.number);
        placed(old) != placed(new) || old.slots != new.slots
    }

    fn reorder(&mut self, at: Time, whats: &mut Vec<What>) {
        let view = View::at(self.event, at);
        let order: Vec<Guid> = view.ordered().iter().map(|race| race.id).collect();
        if order != self.order {
            self.order = order;
            whats.push(What::Order);
        }
        let from = std::mem::replace(&mut self.current, view.current());
        if from != self.current {
            whats.push(What::Current { from, to: self.current });
        }
    }
}

/// How the race's course turned from one save to the next.
fn turned(old: &Race, new: &Race) -> Option<fn(Guid) -> What> {
    match ((old.start, old.end), (new.start, new.end)) {
        ((None, _), (Some(_), None)) => Some(What::Started),
        ((None, _), (Some(_), Some(_))) => Some(What::Decided),
        ((Some(_), None), (Some(_), Some(_))) => Some(What::Ended),
        ((Some(_), Some(_)), (Some(_), None)) => Some(What::Resumed),
        ((Some(_), _), (None, _)) => Some(What::Reset),
        _ => None,
    }
}
