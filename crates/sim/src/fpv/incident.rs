//! The things that go differently from plan, each of them seen in real events.

use stakeout_core::Time;

use super::guid::Guid;

/// One of the edge cases a watcher must survive, numbered from 1 in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Incident {
    /// For moments a file is answered with no bytes, `[]`, the page, or half of itself.
    Unreadable,
    /// A race is listed whose file is not there: one never comes, one comes late.
    NoRaceFile,
    /// A race is deleted: still listed, no longer valid.
    DeletedRace,
    /// Two rounds have the same order, so that their races interleave.
    SameOrder,
    /// Two races are flown in the wrong order.
    OutOfOrder,
    /// The program crashes in mid-race: that race seems active for ever, next to the ones flown after it.
    SeveralActive,
    /// A race is reset, one in flight and one that had ended: start, end and laps are gone; both are flown again.
    Reset,
    /// A race that had ended goes on.
    Resume,
    /// Another event is opened.
    EventSwitch,
    /// The director sets the result of an unflown race: start and end appear together.
    ResultSet,
    /// The last race is over and nothing follows.
    LastFinished,
    /// Two pilots cross the line at the same moment.
    SameMillisecond,
    /// Races are there before their round and the channels are.
    BeforeItsRound,
    /// A round is inserted between two, the rounds after it are renumbered, and so are two races.
    InsertedRound,
    /// Races before and after ten o'clock, which sort wrongly as text; one starts on a whole second.
    UnpaddedHours,
    /// A slot without a pilot, one without a channel, a detection of nobody.
    ZeroGuids,
    /// Results are saved again with new ids.
    ResavedResults,
    /// The upstream is off for hours, then back.
    UpstreamOff,
}

impl Incident {
    /// All of them, in order of their numbers.
    pub const ALL: [Incident; 18] = [
        Incident::Unreadable,
        Incident::NoRaceFile,
        Incident::DeletedRace,
        Incident::SameOrder,
        Incident::OutOfOrder,
        Incident::SeveralActive,
        Incident::Reset,
        Incident::Resume,
        Incident::EventSwitch,
        Incident::ResultSet,
        Incident::LastFinished,
        Incident::SameMillisecond,
        Incident::BeforeItsRound,
        Incident::InsertedRound,
        Incident::UnpaddedHours,
        Incident::ZeroGuids,
        Incident::ResavedResults,
        Incident::UpstreamOff,
    ];

    /// Its number, from 1.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// When it happens in the program, relative to others: those that concern later races come first. `None` is
    /// not tied to a turn of the program.
    pub(crate) fn turn_rank(self) -> Option<u32> {
        match self {
            Incident::BeforeItsRound => Some(0),
            Incident::NoRaceFile => Some(1),
            Incident::DeletedRace => Some(2),
            Incident::InsertedRound => Some(3),
            Incident::SameOrder
            | Incident::EventSwitch
            | Incident::LastFinished
            | Incident::UnpaddedHours => None,
            other => Some(10 + other.number()),
        }
    }
}

/// An incident that took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Which.
    pub incident: Incident,
    /// From when it shows.
    pub from: Time,
    /// Until when it shows.
    pub until: Time,
    /// The races it befell.
    pub races: Vec<Guid>,
}
