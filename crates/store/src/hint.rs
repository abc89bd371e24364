//! A word from another process that something changed.

/// What somebody may want to look at sooner than he would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Events came about.
    Events,
    /// Targets were created, re-planned or switched.
    Plans,
    /// A live setting changed.
    Settings,
}

impl Hint {
    /// Reads the word that stands for it; words of later versions mean nothing.
    pub(crate) fn parse(word: &str) -> Option<Hint> {
        match word {
            "events" => Some(Hint::Events),
            "plans" => Some(Hint::Plans),
            "settings" => Some(Hint::Settings),
            _ => None,
        }
    }
}
