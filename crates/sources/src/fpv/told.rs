//! The events that no rule makes: the turns in a race's life, another event, and what follows from all races together.

use serde_json::Value as Json;
use stakeout_core::Fingerprint;
use stakeout_core::judge::{Draft, Effect};

use super::kinds::FAMILY;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Reset,
    Started,
    Ended,
    Resumed,
    Invalidated,
    Switched,
    CurrentChanged,
    Reseated,
    Lost,
    Back,
}

impl Told {
    pub(super) const ALL: [Told; 10] = [
        Told::Reset,
        Told::Started,
        Told::Ended,
        Told::Resumed,
        Told::Invalidated,
        Told::Switched,
        Told::CurrentChanged,
        Told::Reseated,
        Told::Lost,
        Told::Back,
    ];

    /// What would be its rule, and its type without the family.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Told::Reset => ("race_reset", "race.reset"),
            Told::Started => ("race_started", "race.started"),
            Told::Ended => ("race_ended", "race.ended"),
            Told::Resumed => ("race_resumed", "race.resumed"),
            Told::Invalidated => ("race_invalidated", "race.invalidated"),
            Told::Switched => ("event_switched", "event.switched"),
            Told::CurrentChanged => ("current_changed", "race.current_changed"),
            Told::Reseated => ("reseated", "race.reseated"),
            Told::Lost => ("upstream_lost", "upstream.lost"),
            Told::Back => ("upstream_back", "upstream.back"),
        }
    }

    pub(super) fn event_type(self) -> String {
        format!("{FAMILY}.{}", self.names().1)
    }

    /// Told of this, whatever has happened to it.
    pub(super) fn draft(self, (subject, key): (Fingerprint, &str), data: Json) -> Draft {
        Draft {
            rule: self.names().0.to_owned(),
            event_type: self.event_type(),
            subject,
            subject_key: key.to_owned(),
            at: None,
            data,
            dedupe_key: None,
            requires: Effect::Any,
            quiet: None,
            unseen_for: None,
        }
    }
}
