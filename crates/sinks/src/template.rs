//! Messages with gaps that an event fills: `{title}`, `{text}`, `{severity}`, `{type}`, `{id}`, `{at}`, `{source}`,
//! `{subject}`, `{data.path}`.
//!
//! A JSON message is read first and filled after: whatever an upstream writes stays within the text it was meant for.

use serde_json::{Map, Value as Json};
use stakeout_core::Event;

use crate::words::{Words, clip};

/// What can stand between braces, as messages name it.
const KNOWN: &str = "{title}, {text}, {severity}, {type}, {id}, {at}, {source}, {subject} and {data.…} with a path into the payload";

/// What fills a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    Title,
    Text,
    Severity,
    Type,
    Id,
    At,
    Source,
    Subject,
    Data(Vec<String>),
}

impl Slot {
    fn named(name: &str) -> Option<Slot> {
        Some(match name {
            "title" => Slot::Title,
            "text" => Slot::Text,
            "severity" => Slot::Severity,
            "type" => Slot::Type,
            "id" => Slot::Id,
            "at" => Slot::At,
            "source" => Slot::Source,
            "subject" => Slot::Subject,
            _ => {
                let path: Vec<String> = name.strip_prefix("data.")?.split('.').map(str::to_owned).collect();
                path.iter().all(|part| !part.is_empty()).then_some(Slot::Data(path))?
            }
        })
    }

    fn fill(&self, event: &Event, words: &Words) -> String {
        match self {
            Slot::Title => words.title.clone(),
            Slot::Text => words.text.clone(),
            Slot::Severity => words.severity.clone(),
            Slot::Type => event.event_type.clone(),
            Slot::Id => event.id.to_string(),
            Slot::At => event.at.to_string(),
            Slot::Source => event.source.clone(),
            Slot::Subject => clip(&event.subject_key),
            Slot::Data(path) => match at_path(&event.data, path) {
                None | Some(Json::Null) => String::new(),
                Some(Json::String(text)) => clip(text),
                Some(other) => clip(&other.to_string()),
            },
        }
    }
}

/// A value of the payload; in lists, parts of the path are places.
fn at_path<'a>(data: &'a Json, path: &[String]) -> Option<&'a Json> {
    path.iter().try_fold(data, |value, part| match value {
        Json::Array(list) => list.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Fixed(String),
    Gap(Slot),
}

/// A text with gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line(Vec<Part>);

impl Line {
    /// Reads a text. Braces around anything but a name are just braces.
    pub(crate) fn read(text: &str) -> Result<Line, String> {
        let mut parts = Vec::new();
        let mut fixed = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            fixed.push_str(before);
            match gap(from) {
                None => {
                    fixed.push('{');
                    rest = &from[1..];
                }
                Some(name) => {
                    let slot = Slot::named(name);
                    let slot = slot.ok_or_else(|| format!("unknown {{{name}}}: known are {KNOWN}"))?;
                    parts.extend((!fixed.is_empty()).then(|| Part::Fixed(std::mem::take(&mut fixed))));
                    parts.push(Part::Gap(slot));
                    rest = &from[name.len() + 2..];
                }
            }
        }
        fixed.push_str(rest);
        parts.extend((!fixed.is_empty()).then_some(Part::Fixed(fixed)));
        Ok(Line(parts))
    }

    /// The text of an event.
    pub(crate) fn fill(&self, event: &Event, words: &Words) -> String {
        let part = |part: &Part| match part {
            Part::Fixed(text) => text.clone(),
            Part::Gap(slot) => slot.fill(event, words),
        };
        self.0.iter().map(part).collect()
    }
}

/// The name of a gap that begins here: small letters first, then also digits, dots, `_` and capitals.
fn gap(from: &str) -> Option<&str> {
    let name = from.strip_prefix('{')?.split('}').next()?;
    let closed = from.as_bytes().get(name.len() + 1) == Some(&b'}');
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_lowercase());
    let goes_on = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    (closed && begins && goes_on).then_some(name)
}

/// A whole message with gaps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Template {
    /// Any text.
    Text(Line),
    /// JSON, whose texts have gaps.
    Json(Node),
}

impl Template {
    /// Reads a message, as JSON where it is JSON.
    pub(crate) fn read(text: &str, is_json: bool) -> Result<Template, String> {
        if !is_json {
            return Line::read(text).map(Template::Text);
        }
        let json: Json = serde_json::from_str(text)
            .map_err(|error| format!("not JSON, as its content type says it is: {error}"))?;
        Node::read(&json).map(Template::Json)
    }

    /// The message of an event.
    pub(crate) fn fill(&self, event: &Event) -> String {
        let words = Words::of(event);
        match self {
            Template::Text(line) => line.fill(event, &words),
            Template::Json(node) => node.fill(event, &words).to_string(),
        }
    }
}

/// A part of a JSON message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// What is the same in every message.
    Fixed(Json),
    /// A text with gaps.
    Line(Line),
    /// A list.
    List(Vec<Node>),
    /// An object.
    Table(Vec<(String, Node)>),
}

impl Node {
    fn read(json: &Json) -> Result<Node, String> {
        Ok(match json {
            Json::String(text) => Node::Line(Line::read(text)?),
            Json::Array(list) => Node::List(list.iter().map(Node::read).collect::<Result<_, _>>()?),
            Json::Object(table) => {
                let entry = |(key, value): (&String, &Json)| Ok((key.clone(), Node::read(value)?));
                Node::Table(table.iter().map(entry).collect::<Result<_, String>>()?)
            }
            fixed => Node::Fixed(fixed.clone()),
        })
    }

    fn fill(&self, event: &Event, words: &Words) -> Json {
        match self {
            Node::Fixed(json) => json.clone(),
            Node::Line(line) => Json::String(line.fill(event, words)),
            Node::List(list) => list.iter().map(|node| node.fill(event, words)).collect(),
            Node::Table(table) => {
                let entry = |(key, node): &(String, Node)| (key.clone(), node.fill(event, words));
                Json::Object(table.iter().map(entry).collect::<Map<_, _>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stakeout_core::{EventId, Fingerprint, Time};

    use super::*;

    fn event(data: Json) -> Event {
        Event {
            seq: 7,
            id: EventId(1),
            event_type: "alert.raised".to_owned(),
            source: "nz".to_owned(),
            target: "race".to_owned(),
            rule: "alert:shorter".to_owned(),
            subject: Fingerprint(2),
            subject_key: "Night Owl".to_owned(),
            at: Time::from_secs(1_800_000_000),
            dedupe_key: None,
            data,
        }
    }

    fn check(template: &str, is_json: bool, data: Json, expected: &str) {
        let filled = Template::read(template, is_json).expect(template).fill(&event(data));
        assert_eq!(filled, expected, "{template}");
    }

    #[test]
    fn gaps_are_filled_and_other_braces_stay() {
        let data = json!({"title": "Odds fell", "text": "4.2 → 3.1", "severity": "warning", "about": {"odds": [4.2, 3.1]}});
        check("{title}: {text} ({severity})", false, data.clone(), "Odds fell: 4.2 → 3.1 (warning)");
        check("{type} {source} {subject}", false, data.clone(), "alert.raised nz Night Owl");
        check("{at}", false, data.clone(), "2027-01-15T08:00:00.000Z");
        check("now {data.about.odds.1}, not {data.about.none}", false, data.clone(), "now 3.1, not ");
        check("{ {} {\"a\"} { title }", false, data.clone(), "{ {} {\"a\"} { title }");
        check("{{title}}", false, data, "{Odds fell}");
    }

    #[test]
    fn an_event_without_words_of_its_own_shows_what_it_has() {
        check("{title}|{severity}|{text}", false, json!({"a": 1}), "Raised – Night Owl|info|{\"a\":1}");
        let long = "ü".repeat(5_000);
        let filled = Template::read("{text}", false).expect("text").fill(&event(json!({ "text": long })));
        assert_eq!(filled.chars().count(), 1_501);
    }

    #[test]
    fn what_an_upstream_writes_stays_within_its_text() {
        let data = json!({"title": "a\", \"admin\": true, \"b\": \"\n\\", "text": "{id}"});
        let template = r#"{"chat": 5, "list": ["{title}"], "text": "{title} {text}", "on": true}"#;
        let filled = Template::read(template, true).expect("json").fill(&event(data.clone()));
        let json: Json = serde_json::from_str(&filled).expect("still JSON");
        let title = data["title"].as_str().expect("text");
        let expected = json!({"chat": 5, "list": [title], "text": format!("{title} {{id}}"), "on": true});
        assert_eq!(json, expected, "and what was filled in is not filled again");
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let refused = |text: &str, is_json| Template::read(text, is_json).expect_err(text);
        assert!(refused("{titel}", false).contains("unknown {titel}: known are {title}"));
        assert!(refused("{data}", false).contains("unknown"));
        assert!(refused("{data.}", false).contains("unknown"));
        assert!(refused(r#"{"n": {text}}"#, true).contains("not JSON"));
    }
}
