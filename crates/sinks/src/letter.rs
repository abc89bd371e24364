//! What a mail says: about one event, or about several.

use sha2::{Digest, Sha256};
use stakeout_core::Event;

use crate::words::Words;

/// The longest subject.
const SUBJECT_CHARS: usize = 150;

/// A mail, but for who writes to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    /// The part of the Message-ID before the host: the same whenever the same events are mailed.
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) html: String,
}

impl Letter {
    /// A mail about these events, in their order.
    pub(crate) fn about(events: &[&Event]) -> Letter {
        let told: Vec<(&Event, Words)> = events.iter().map(|event| (*event, Words::of(event))).collect();
        let first = told.first().map(|(_, words)| words.title.as_str()).unwrap_or_default();
        let subject = match told.len() {
            0 | 1 => first.to_owned(),
            more => format!("{first} (and {} more)", more - 1),
        };
        Letter {
            id: id(events),
            subject: one_line(&subject),
            text: told.iter().map(|(event, words)| text(event, words)).collect::<Vec<_>>().join("\n\n"),
            html: page(&told),
        }
    }
}

/// That of the event; of several, one that stands for all of them in their order: a part of them is another mail.
fn id(events: &[&Event]) -> String {
    if let [one] = events {
        return one.id.to_string();
    }
    let mut hash = Sha256::new();
    events.iter().for_each(|event| hash.update(event.id.0.to_be_bytes()));
    let half = hash.finalize().iter().take(16).fold(0u128, |so_far, byte| so_far << 8 | u128::from(*byte));
    format!("digest.{half:032x}")
}

/// Without line ends, which would end the header, and of a length that lists can show.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SUBJECT_CHARS).collect()
}

fn text(event: &Event, words: &Words) -> String {
    format!(
        "{}\n{}\n\n{} · {} · {} · {}",
        words.title, words.text, words.severity, event.source, event.at, event.id
    )
}

/// Plain enough for every mail program: nothing is fetched, nothing runs.
fn page(told: &[(&Event, Words)]) -> String {
    let part = |(event, words): &(&Event, Words)| {
        format!(
            "<h2>{}</h2>\n<p style=\"white-space: pre-wrap\">{}</p>\n<p><small>{} · {} · {} · {}</small></p>\n",
            escape(&words.title),
            escape(&words.text),
            escape(&words.severity),
            escape(&event.source),
            event.at,
            event.id,
        )
    };
    let parts: Vec<String> = told.iter().map(part).collect();
    format!("<!DOCTYPE html>\n<html><body>\n{}</body></html>\n", parts.join("<hr>\n"))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stakeout_core::{EventId, Fingerprint, Time};

    use super::*;

    fn event(id: u128, title: &str) -> Event {
        Event {
            seq: 7,
            id: EventId(id),
            event_type: "alert.raised".to_owned(),
            source: "nz".to_owned(),
            target: "race".to_owned(),
            rule: "alert:shorter".to_owned(),
            subject: Fingerprint(2),
            subject_key: "Night Owl".to_owned(),
            at: Time::from_secs(1_800_000_000),
            dedupe_key: None,
            data: json!({"title": title, "text": "4.2 → 3.1", "severity": "warning"}),
        }
    }

    #[test]
    fn one_event_is_one_letter_under_its_own_id() {
        let event = event(1, "Odds fell");
        let letter = Letter::about(&[&event]);
        assert_eq!((letter.id, letter.subject), (event.id.to_string(), "Odds fell".to_owned()));
        assert_eq!(
            letter.text,
            format!("Odds fell\n4.2 → 3.1\n\nwarning · nz · 2027-01-15T08:00:00.000Z · {}", event.id)
        );
    }

    #[test]
    fn several_events_are_one_letter_that_names_them_all() {
        let events = [event(1, "Odds fell"), event(2, "Odds rose"), event(3, "Off")];
        let events: Vec<&Event> = events.iter().collect();
        let letter = Letter::about(&events);
        assert_eq!(letter.subject, "Odds fell (and 2 more)");
        // Computed by other means: it must never change, or a digest that is sent again would be another mail.
        assert_eq!(letter.id, "digest.0b64f478d99c825f63acfab02a6523db");
        for event in events {
            let id = event.id.to_string();
            assert!(letter.text.contains(&id) && letter.html.contains(&id), "{id}");
        }
    }

    #[test]
    fn a_digest_is_another_mail_than_any_part_of_it() {
        let events = [1, 2, 3, 4].map(|n| event(n, "Odds fell"));
        let id = |numbers: &[usize]| {
            let some: Vec<&Event> = numbers.iter().map(|n| &events[*n]).collect();
            Letter::about(&some).id
        };
        let whole = id(&[0, 1, 2, 3]);
        assert_eq!(whole, id(&[0, 1, 2, 3]), "the same whenever it is sent");
        for part in [&[0, 3][..], &[0, 1, 3], &[0, 2, 3], &[1, 2, 3], &[0, 2, 1, 3], &[0]] {
            assert_ne!(whole, id(part), "{part:?}");
        }
    }

    #[test]
    fn what_an_upstream_writes_is_neither_markup_nor_a_header() {
        let letter = Letter::about(&[&event(1, "<script>alert('1')</script>\r\nBcc: all@example.org")]);
        assert!(!letter.html.contains("<script>"), "{}", letter.html);
        assert!(!letter.subject.contains(['\r', '\n']), "{:?}", letter.subject);
    }
}
