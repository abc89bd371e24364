//! Where a race is in its life, by the upstream's words.

use stakeout_core::{Stage, Time};

/// A race's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Bets are taken.
    Open,
    /// Bets are no longer taken; the start may still be minutes away.
    Closed,
    /// Run, with a provisional result.
    Interim,
    /// Run, with its result.
    Final,
    /// It will not be run, or does not count.
    Abandoned,
}

impl Status {
    /// By the upstream's word, in any case; an empty one is an open race. `None` for a word nobody knows.
    pub fn parse(word: &str) -> Option<Status> {
        let word = word.trim();
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        match () {
            () if word.is_empty() || is("open") => Some(Status::Open),
            () if is("closed") => Some(Status::Closed),
            () if is("interim") => Some(Status::Interim),
            () if is("final") || is("finalized") || is("finalised") => Some(Status::Final),
            () if is("abandoned") => Some(Status::Abandoned),
            () => None,
        }
    }

    /// The word that is stored and shown.
    pub fn name(self) -> &'static str {
        match self {
            Status::Open => "Open",
            Status::Closed => "Closed",
            Status::Interim => "Interim",
            Status::Final => "Final",
            Status::Abandoned => "Abandoned",
        }
    }

    /// Whether nothing more will happen.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Final | Status::Abandoned)
    }
}

/// The stage that follows from a status, given the stage before.
///
/// Closed confirms a start only together with an actual start that is not in the future; alone it changes nothing. A
/// return to Open undoes everything. An unknown status (`None`) keeps the schedule as it is.
pub(super) fn stage(status: Option<Status>, actual_start: Option<Time>, now: Time, before: Stage) -> Stage {
    match status {
        Some(Status::Open) => Stage::Pending,
        Some(Status::Closed) if actual_start.is_some_and(|start| start <= now) => Stage::Started,
        Some(Status::Closed) if before == Stage::Pending => Stage::Pending,
        Some(Status::Closed | Status::Interim) => Stage::Started,
        Some(Status::Final | Status::Abandoned) => Stage::Over,
        None => before,
    }
}

/// Whether the race has started, as far as this answer proves it either way.
pub(super) fn start_confirmed(status: Option<Status>, stage: Stage) -> Option<bool> {
    match status? {
        Status::Open => Some(false),
        Status::Closed => Some(stage == Stage::Started),
        Status::Interim | Status::Final => Some(true),
        // It may have been abandoned on the way to the gates or in the last furlong.
        Status::Abandoned => None,
    }
}
