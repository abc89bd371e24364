//! What an alert says to people.

use serde_json::Value as Json;
use stakeout_core::alert::Told;
use stakeout_core::event::headline;
use stakeout_core::{Record, Value};

/// A headline, and a sentence.
pub(super) struct Words {
    pub(super) title: String,
    pub(super) text: String,
}

impl Words {
    pub(super) fn new(title: impl Into<String>, text: impl Into<String>) -> Words {
        Words { title: title.into(), text: text.into() }
    }
}

/// A runner as people call it: number and name.
pub(super) fn runner(record: &Record) -> String {
    let text = |field: &str| record.get(field).and_then(Value::as_text);
    let number = record.get("runner_number").and_then(Value::as_f64);
    match (number, text("name")) {
        (Some(number), Some(name)) => format!("{number} {name}"),
        (None, Some(name)) => name.to_owned(),
        (_, None) => record.key.clone(),
    }
}

/// A number as people write it: at most two decimals, no more than needed.
pub(super) fn number(n: f64) -> String {
    let text = format!("{n:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An event in a few words: what happened, in those of the source if it has any, and the name of what it is about.
pub(super) fn event(told: &Told<'_>) -> Words {
    let record = &told.data["record"];
    let named = ["name", "venue_name"].iter().find_map(|field| record[field].as_str());
    let about = named.unwrap_or(told.subject_key);
    let mut moved = Vec::new();
    for change in told.data["changes"].as_array().into_iter().flatten().take(3) {
        let Some(field) = change["field"].as_str() else { continue };
        moved.push(format!("{field}: {} → {}", plain(&change["old"]), plain(&change["new"])));
    }
    let text = if moved.is_empty() { about.to_owned() } else { format!("{about}: {}", moved.join(", ")) };
    let title = match told.data["title"].as_str() {
        Some(title) => title.to_owned(),
        None => format!("{} – {about}", headline(told.event_type)),
    };
    Words::new(title, text)
}

/// A table that opened.
pub(super) fn table(data: &Json) -> Words {
    let text = |field: &str| data[field].as_str().unwrap_or("?");
    let sizes: Vec<String> =
        data["party_sizes"].as_array().into_iter().flatten().map(Json::to_string).collect();
    let when = text("start").replace('T', " ");
    let place = data["neighborhood"].as_str().map(|place| format!(" ({place})")).unwrap_or_default();
    Words::new(
        format!("{} has a table", text("venue_name")),
        format!("{}{place}: {when}, party of {}", text("venue_name"), sizes.join(" or ")),
    )
}

fn plain(value: &Json) -> String {
    match value {
        Json::Null => "–".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
