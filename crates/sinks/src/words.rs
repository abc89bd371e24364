//! An event in words, for people.

use serde_json::Value as Json;
use stakeout_core::Event;
use stakeout_core::event::headline;

/// The longest text that is put into a message: chats refuse what is longer than about two thousand characters.
const CHARS_MAX: usize = 1_500;

/// What people read of an event: an alert brings its own words, of other events the type in plain
/// words and the payload are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) severity: String,
}

impl Words {
    pub(crate) fn of(event: &Event) -> Words {
        let own = |key: &str| event.data.get(key).and_then(Json::as_str).map(clip);
        Words {
            title: own("title")
                .unwrap_or_else(|| clip(&format!("{} – {}", headline(&event.event_type), event.subject_key))),
            text: own("text").unwrap_or_else(|| clip(&event.data.to_string())),
            severity: own("severity").unwrap_or_else(|| "info".to_owned()),
        }
    }
}

/// The beginning of a text that is too long.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stakeout_core::{EventId, Fingerprint, Time};

    use super::*;

    #[test]
    fn an_event_without_words_of_its_own_is_called_by_its_type_in_plain_words() {
        let event = |data: Json| Event {
            seq: 1,
            id: EventId::of_trigger("nz", "r", "s", "t"),
            event_type: "racing.race.final".to_owned(),
            source: "nz".to_owned(),
            target: "race/r".to_owned(),
            rule: "final".to_owned(),
            subject: Fingerprint::default(),
            subject_key: "The Cup".to_owned(),
            at: Time(0),
            dedupe_key: None,
            data,
        };
        assert_eq!(Words::of(&event(json!({}))).title, "Race final – The Cup");
        assert_eq!(Words::of(&event(json!({ "title": "3 Fast won" }))).title, "3 Fast won");
    }
}
