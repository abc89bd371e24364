//! Events: what the outside is told, each once.

use serde::{Deserialize, Serialize};

use crate::{EventId, Fingerprint, Time};

/// One field that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The field's name.
    pub field: String,
    /// What it was.
    pub old: serde_json::Value,
    /// What it is.
    pub new: serde_json::Value,
}

/// An event in the log. Its sequence number is the reader's cursor, its id the reader's dedupe key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The commit sequence number: a reader that has seen n never later finds a new one ≤ n.
    pub seq: u64,
    /// The same on every node and after every crash.
    pub id: EventId,
    /// The stable type name: `racing.race.final`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The source's name.
    pub source: String,
    /// The target's key.
    pub target: String,
    /// The rule that chose it.
    pub rule: String,
    /// The record it is about.
    pub subject: Fingerprint,
    /// That record's readable key.
    pub subject_key: String,
    /// When the poll that saw it was answered.
    pub at: Time,
    /// The domain's readable key, unique when present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// What happened: `record`, `changes`, and whatever the source adds.
    pub data: serde_json::Value,
}

/// A type in plain words, without the family that it belongs to: `racing.race.final` is "Race final".
pub fn headline(event_type: &str) -> String {
    let own = event_type.split_once('.').map_or(event_type, |(_, own)| own);
    let words = own.replace(['.', '_', '-'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::headline;

    #[test]
    fn a_type_is_said_in_plain_words() {
        for (event_type, words) in [
            ("racing.race.final", "Race final"),
            ("fpv.race.current_changed", "Race current changed"),
            ("tables.drop", "Drop"),
            ("own", "Own"),
            ("", ""),
        ] {
            assert_eq!(headline(event_type), words);
        }
    }
}
