//! Texts that no store takes. PostgreSQL cannot hold a NUL, as a character or as `\u0000` within JSON that somebody reads
//! as such; SQLite could. What one refuses the other refuses, too, and says so before anything is written.

use serde_json::Value as Json;

use super::{EventWrite, PollCommit, Schedule};

impl PollCommit {
    /// What of this poll has a NUL in it, if anything has.
    pub fn nul(&self) -> Option<String> {
        if in_schedule(&self.schedule) || self.error.as_deref().is_some_and(is_in) {
            return Some(named("its schedule or error"));
        }
        for record in &self.records {
            if is_in(&record.key) || is_in_json(&record.body) {
                return Some(named(&format!("record {:?}", record.key)));
            }
        }
        if self.history.iter().any(|row| is_in_json(&row.values)) {
            return Some(named("a row of history"));
        }
        if let Some(event) = self.events.iter().find(|event| in_event(event)) {
            return Some(named(&format!("event {:?} about {:?}", event.event_type, event.subject_key)));
        }
        let wanted = self.reconcile.iter().flat_map(|reconcile| &reconcile.upserts);
        for wanted in wanted {
            if is_in(&wanted.spec.key) || is_in_value(&wanted.spec.params) || in_schedule(&wanted.schedule) {
                return Some(named(&format!("target {:?}", wanted.spec.key)));
            }
        }
        if let Some(kv) = self.kv.iter().find(|kv| is_in(&kv.key) || is_in_value(&kv.value)) {
            return Some(named(&format!("value {:?}", kv.key)));
        }
        let detail = self.log.as_ref().and_then(|log| log.detail.as_deref());
        detail.is_some_and(is_in).then(|| named("its line in the log"))
    }
}

fn named(what: &str) -> String {
    format!("a NUL character in {what}: no store holds it")
}

fn is_in(text: &str) -> bool {
    text.contains('\0')
}

fn in_schedule(schedule: &Schedule) -> bool {
    is_in(&schedule.phase) || is_in(&schedule.reason)
}

fn in_event(event: &EventWrite) -> bool {
    let texts = [Some(&event.subject_key), event.dedupe_key.as_ref()];
    texts.into_iter().flatten().any(|text| is_in(text)) || is_in_value(&event.data)
}

fn is_in_value(value: &Json) -> bool {
    match value {
        Json::String(text) => is_in(text),
        Json::Array(values) => values.iter().any(is_in_value),
        Json::Object(fields) => fields.iter().any(|(name, value)| is_in(name) || is_in_value(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Whether JSON text has one, which is always written as an escape. A backslash that is itself escaped begins none.
fn is_in_json(text: &str) -> bool {
    text.match_indices(r"\u0000").any(|(at, _)| {
        let before = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        before % 2 == 0
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nul_in_json_is_told_from_what_looks_like_one() {
        for (value, expected) in [
            (json!({"a": "x\0y"}), true),
            (json!({"a\0": 1}), true),
            (json!(["", ["\\\0"]]), true),
            (json!({"a": "\\u0000"}), false),
            (json!({"a": "\\\\u0000"}), false),
            (json!({"a": "\u{1}u0000"}), false),
        ] {
            assert_eq!(is_in_value(&value), expected, "{value}");
            assert_eq!(is_in_json(&value.to_string()), expected, "{value} as text");
        }
    }
}
