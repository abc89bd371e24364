//! `stakeout events`: the log of what was told.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use stakeout_core::Event;
use stakeout_store::{EventFilter, Store};

use super::run::Signals;
use crate::cli::EventsArgs;
use crate::open::Place;
use crate::output;

/// Events read at once.
const PAGE: u32 = 1_000;

/// How often the log is looked at when following; a read of one index entry.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) async fn events(place: &Place, args: &EventsArgs) -> Result<ExitCode> {
    let store = place.read().await?;
    let filter = EventFilter {
        source: args.source.clone(),
        event_type: args.event_type.clone(),
        ..EventFilter::default()
    };
    // Taken before the past is read: what comes in between is new.
    let newest = store.stats().await?.seq;
    let past = match (args.after, args.follow) {
        (None, _) => newest_events(&*store, &filter, newest, args.limit).await?,
        (Some(after), false) => store.events(after, &filter, args.limit).await?,
        (Some(_), true) => Vec::new(),
    };
    past.iter().try_for_each(|event| show(event, args.json))?;
    if args.follow {
        follow(&*store, &filter, args.after.unwrap_or(newest), args.json).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The newest `limit` events up to `newest`, the oldest of them first.
async fn newest_events(
    store: &dyn Store,
    filter: &EventFilter,
    newest: u64,
    limit: u32,
) -> Result<Vec<Event>> {
    let mut found = store.newest_events(newest.saturating_add(1), filter, limit).await?;
    found.reverse();
    Ok(found)
}

async fn follow(store: &dyn Store, filter: &EventFilter, mut after: u64, json: bool) -> Result<()> {
    let mut signals = Signals::listen()?;
    loop {
        let page = store.events(after, filter, PAGE).await?;
        for event in &page {
            show(event, json)?;
            after = event.seq;
        }
        if page.len() as u32 == PAGE {
            continue;
        }
        tokio::select! {
            _ = signals.next() => return Ok(()),
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

fn show(event: &Event, json: bool) -> Result<()> {
    if json { output::json(event) } else { output::line(&text(event)) }
}

/// `12  2026-01-10T02:00:00.000Z  json.changed  shop/main  A-17  price: 3 → 4`
fn text(event: &Event) -> String {
    let changes = event.data["changes"].as_array().into_iter().flatten();
    let changes: Vec<String> = changes
        .map(|change| {
            let field = change["field"].as_str().unwrap_or_default();
            format!("{field}: {} → {}", short(&change["old"]), short(&change["new"]))
        })
        .collect();
    let parts = [
        event.seq.to_string(),
        event.at.to_string(),
        event.event_type.clone(),
        format!("{}/{}", event.source, event.target),
        event.subject_key.clone(),
        changes.join(", "),
    ];
    let line = parts.join("  ");
    line.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A value as it fits in a line.
fn short(value: &serde_json::Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_fits_on_a_line() {
        let event: Event = serde_json::from_value(json!({
            "seq": 12, "id": "00000000000000000000000000000001", "type": "json.changed", "source": "shop",
            "target": "main", "rule": "changed", "subject": "00000000000000000000000000000002", "subject_key": "A\n17",
            "at": "2026-01-10T02:00:00Z",
            "data": { "changes": [{ "field": "price", "old": 3, "new": 4 }, { "field": "t", "old": null, "new": "é".repeat(99) }] },
        }))
        .expect("an event");
        assert_eq!(
            text(&event),
            format!(
                "12  2026-01-10T02:00:00.000Z  json.changed  shop/main  A 17  price: 3 → 4, t: null → \"{}…",
                "é".repeat(59)
            )
        );
    }
}
