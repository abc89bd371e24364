//! `stakeout try fpv`: what a captured event says.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value as Json;
use stakeout_sources::fpv::{FpvConfig, FpvSource, describe_dir, overlay_dir};

use super::text;
use crate::UsageError;
use crate::cli::TryFpvArgs;
use crate::output::{self, Table};

/// Events that a capture may have: its directory is listed, not searched.
const EVENTS_MAX: usize = 10_000;

pub(super) fn try_out(args: &TryFpvArgs) -> Result<()> {
    let events = events(&args.dir)?;
    // A source by the same zone says whether there is such a zone.
    let config = FpvConfig { zone: args.zone.clone(), ..FpvConfig::at("http://localhost:8080") };
    FpvSource::new("try", &config)
        .map_err(|refused| UsageError(format!("--{}: {}", refused.key, refused.message)))?;
    let zone = args.zone.as_deref();
    // What is missing is the capture's own affair; what is there is read like an answer.
    let read = |path: &str| super::read(&args.dir.join(path)).ok();
    let not_understood =
        |failure| anyhow!("{} is not understood as a captured event: {failure}", args.dir.display());
    if args.overlay {
        let now = super::super::now();
        return output::pretty(&overlay_dir(&events, zone, now, read).map_err(not_understood)?);
    }
    let seen = describe_dir(&events, zone, read).map_err(not_understood)?;
    if seen["event"]["name"].is_null() && seen["order"].as_array().is_none_or(Vec::is_empty) {
        bail!(
            "{} has nothing of an event that can be read{}",
            args.dir.display(),
            warnings(&seen).map(|warnings| format!(":\n{warnings}")).unwrap_or_default()
        );
    }
    if args.json { output::pretty(&seen) } else { output::line(&event(&seen)) }
}

/// The names of the directories under `events/`, in order.
fn events(directory: &Path) -> Result<Vec<String>> {
    let place = directory.join("events");
    let layout =
        "expected a directory laid out like FPVTrackside's paths, with events/EVENT/Event.json in it";
    let found =
        std::fs::metadata(directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    if !found.is_dir() {
        bail!("{} is a file: {layout}", directory.display());
    }
    let entries = match std::fs::read_dir(&place) {
        Ok(entries) => entries,
        Err(error) => bail!("{} has no readable events/ ({error}): {layout}", directory.display()),
    };
    let mut names = Vec::new();
    for entry in entries.take(EVENTS_MAX) {
        let entry = entry.with_context(|| format!("{} cannot be read", place.display()))?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    if names.is_empty() {
        bail!("{} is empty: {layout}", place.display());
    }
    names.sort();
    Ok(names)
}

/// An event for people: what it is, its races in their order, the leaderboard, and what was odd.
fn event(seen: &Json) -> String {
    let mut parts = vec![about(seen)];
    let tables = [order(seen), leaderboard(seen)];
    parts.extend(tables.into_iter().filter(|table| !table.is_empty()).map(|table| table.render()));
    parts.push(warnings(seen).unwrap_or_else(|| "no warnings".to_owned()));
    parts.join("\n\n")
}

fn about(seen: &Json) -> String {
    let event = &seen["event"];
    let mut table = Table::new(&["EVENT", ""]);
    let fields = [
        ("id", "event_id"),
        ("name", "name"),
        ("type", "event_type"),
        ("start", "start"),
        ("zone", "zone"),
        ("laps", "laps"),
    ];
    for (label, field) in fields {
        table.row([label.to_owned(), text(&event[field])]);
    }
    let current = &seen["current"];
    let shown = match current["race_id"].as_str() {
        Some(race) => format!("{} ({race}): {}", text(&current["order"]), why(current["rule"].as_str())),
        None => "none: there is no race that could be it".to_owned(),
    };
    table.row(["current race".to_owned(), shown]);
    table.render()
}

/// The rules by which a race is the current one, in words.
fn why(rule: Option<&str>) -> &'static str {
    match rule {
        Some("active") => "it is being flown",
        Some("next") => "it comes after the last completed one",
        Some("last_completed") => "all races are flown",
        Some("first") => "it is the first, and nothing is flown yet",
        _ => "by a rule that has no name here",
    }
}

fn order(seen: &Json) -> Table {
    let mut table = Table::new(&["ORDER", "RACE", ""]);
    for race in seen["order"].as_array().into_iter().flatten() {
        let current = if race["race_id"] == seen["current"]["race_id"] { "current" } else { "" };
        table.row([text(&race["order"]), text(&race["race_id"]), current.to_owned()]);
    }
    table
}

fn leaderboard(seen: &Json) -> Table {
    let consecutive = format!("BEST {}", text(&seen["consecutive_laps"]));
    let mut table = Table::new(&["POSITION", "PILOT", "LAPS", &consecutive, "BEST LAP", "HOLESHOT"]);
    for standing in seen["leaderboard"].as_array().into_iter().flatten() {
        let seconds =
            |field: &str| standing[field].as_f64().map_or_else(|| "-".to_owned(), |s| format!("{s:.3}"));
        table.row([
            text(&standing["position"]),
            standing["name"].as_str().map_or_else(|| text(&standing["pilot"]), str::to_owned),
            text(&standing["laps"]),
            seconds("best_consecutive_seconds"),
            seconds("best_lap_seconds"),
            seconds("holeshot_seconds"),
        ]);
    }
    table
}

fn warnings(seen: &Json) -> Option<String> {
    let odd = seen["warnings"].as_array().into_iter().flatten();
    let odd: Vec<String> =
        odd.map(|w| format!("warning {}: {}", text(&w["code"]), text(&w["detail"]))).collect();
    (!odd.is_empty()).then(|| odd.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_reads_as_tables() {
        let seen = json!({
            "event": { "event_id": "e1", "name": "Club Day" },
            "order": [{ "race_id": "r1", "order": 1 }, { "race_id": "r2", "order": 2 }],
            "current": { "race_id": "r2", "order": 2, "rule": "next" },
            "consecutive_laps": 3,
            "leaderboard": [{ "position": 1, "name": "Joe", "laps": 4, "best_lap_seconds": 5.0071 }],
            "warnings": [{ "code": "no_file", "detail": "events/e1/r3/Race.json" }],
        });
        let shown = event(&seen);
        for line in [
            "name          Club Day",
            "current race  2 (r2): it comes after the last completed one",
            "2      r2    current",
            "POSITION  PILOT  LAPS  BEST 3  BEST LAP  HOLESHOT",
            "1         Joe    4     -       5.007     -",
            "warning no_file: events/e1/r3/Race.json",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line:?} is missing:\n{shown}");
        }
    }
}
