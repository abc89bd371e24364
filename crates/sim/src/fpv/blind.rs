//! Times at which files cannot be read, by script.

use stakeout_core::Time;

use super::guid::Guid;
use super::state::File;

/// What is answered instead of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// Connections are refused, whatever is asked for.
    Off,
    /// No bytes.
    Nothing,
    /// `[]`.
    EmptyList,
    /// The page.
    Page,
    /// Half of the file.
    Half,
}

/// A time during which a file, or everything, cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blind {
    /// `None` is everything.
    pub(crate) file: Option<(Guid, File)>,
    pub(crate) from: Time,
    /// The first moment after it.
    pub(crate) until: Time,
    pub(crate) instead: Instead,
}

impl Blind {
    pub(crate) fn off(from: Time, until: Time) -> Blind {
        Blind { file: None, from, until, instead: Instead::Off }
    }

    fn holds(&self, event: Guid, file: File, at: Time) -> bool {
        (self.from..self.until).contains(&at) && self.file.is_none_or(|own| own == (event, file))
    }
}

/// The one that hides the file at that moment.
pub(crate) fn hiding(blinds: &[Blind], event: Guid, file: File, at: Time) -> Option<&Blind> {
    blinds.iter().find(|blind| blind.holds(event, file, at))
}

/// The first moment not before `at` at which the file can be read.
pub(crate) fn readable_from(blinds: &[Blind], event: Guid, file: File, mut at: Time) -> Time {
    while let Some(blind) = hiding(blinds, event, file, at) {
        at = blind.until;
    }
    at
}

/// The last moment not after `at` at which the file could be read.
pub(crate) fn last_readable(blinds: &[Blind], event: Guid, file: File, mut at: Time) -> Time {
    while let Some(blind) = hiding(blinds, event, file, at) {
        at = Time(blind.from.us() - 1);
    }
    at
}
