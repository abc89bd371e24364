//! `stakeout try`: what a saved answer says, by the same reader that the engine uses. Writes nothing.

mod fpv;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use serde_json::Value as Json;
use stakeout_sources::racing::describe_file;
use stakeout_sources::tables::{DescribeOptions, describe_files};

use crate::cli::{TryTablesArgs, TryWhat};
use crate::output::{self, Table};

/// As much as the engine would read of an answer, and room for somebody's indentation.
const FILE_BYTES_MAX: u64 = 64 << 20;

pub(super) fn try_out(what: &TryWhat) -> Result<ExitCode> {
    match what {
        TryWhat::Racing(args) => {
            let body = read(&args.file)?;
            let seen = describe_file(&body, super::now()).map_err(|failure| {
                anyhow!("{} is not understood as the answer about a race: {failure}", args.file.display())
            })?;
            if args.json { output::pretty(&seen)? } else { output::line(&race(&seen))? }
        }
        TryWhat::Fpv(args) => fpv::try_out(args)?,
        TryWhat::Tables(args) => tables(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("{} cannot be read", path.display());
    let found = std::fs::metadata(path).with_context(cannot)?;
    if found.len() > FILE_BYTES_MAX {
        return Err(anyhow!(
            "{} has {} bytes: expected at most {FILE_BYTES_MAX}",
            path.display(),
            found.len()
        ));
    }
    std::fs::read(path).with_context(cannot)
}

fn tables(args: &TryTablesArgs) -> Result<()> {
    let body = read(&args.file)?;
    let previous = args.previous.as_deref().map(read).transpose()?;
    let options =
        DescribeOptions { party_size: args.party_size, zone: args.zone.clone(), slot_cap: args.slot_cap };
    let seen = describe_files(&body, previous.as_deref(), &options).map_err(|failure| {
        anyhow!("{} is not understood as a venue search: {failure}", args.file.display())
    })?;
    if args.json { output::pretty(&seen) } else { output::line(&slots(&seen)) }
}

/// A page of venues for people: its slots, what became of the earlier ones, and what was odd.
fn slots(seen: &Json) -> String {
    let mut table = Table::new(&["START", "VENUE", "NEIGHBORHOOD", "FOR", "SEATINGS", ""]);
    let is_in = |list: &str, slot: &Json| seen[list].as_array().is_some_and(|l| l.contains(&slot["slot_id"]));
    for slot in seen["slots"].as_array().into_iter().flatten() {
        let sizes = slot["party_sizes"].as_array().into_iter().flatten();
        let sizes: Vec<String> = sizes.map(ToString::to_string).collect();
        let seatings = slot["seatings"].as_array().into_iter().flatten();
        let seatings: Vec<String> = seatings.map(|seating| text(&seating["type"])).collect();
        let mark = match (is_in("drops", slot), is_in("added", slot)) {
            (true, _) => "drop",
            (false, true) => "added",
            (false, false) => "",
        };
        table.row([
            text(&slot["start"]),
            text(&slot["venue_name"]),
            text(&slot["neighborhood"]),
            sizes.join(", "),
            seatings.join(", "),
            mark.to_owned(),
        ]);
    }
    let count = |list: &str| seen[list].as_array().map_or(0, Vec::len);
    let sum = format!(
        "{} slots at {} venues, {} coverage: {} added, {} closed, {} drops",
        count("slots"),
        seen["venues"],
        text(&seen["coverage"]),
        count("added"),
        count("closed"),
        count("drops")
    );
    let mut parts = vec![table.render(), sum];
    parts.push(odd(seen));
    parts.join("\n\n")
}

fn odd(seen: &Json) -> String {
    let odd = seen["warnings"].as_array().into_iter().flatten();
    let odd: Vec<String> =
        odd.map(|w| format!("warning {}: {}", text(&w["code"]), text(&w["detail"]))).collect();
    if odd.is_empty() { "no warnings".to_owned() } else { odd.join("\n") }
}

/// The answer about a race for people: race, runners, pools, result, and what was odd.
fn race(seen: &Json) -> String {
    let mut parts = vec![about(seen)];
    let tables = [
        runners(seen),
        table(seen, "pools", &["PRODUCT", "TOTAL", "STATUS"], ["product_type", "total", "status"]),
        table(seen, "results", &["POSITION", "RUNNER", "NAME"], ["position", "runner_number", "name"]),
        table(seen, "dividends", &["DIVIDEND", "PAYS", "STATUS"], ["product", "dividend", "status"]),
    ];
    parts.extend(tables.into_iter().filter(|table| !table.is_empty()).map(|table| table.render()));
    parts.push(odd(seen));
    parts.join("\n\n")
}

fn about(seen: &Json) -> String {
    let race = &seen["race"];
    let mut table = Table::new(&["RACE", ""]);
    table.row(["id".to_owned(), text(&race["race_id"])]);
    let number = race["race_number"].as_i64().map(|n| format!(", race {n}")).unwrap_or_default();
    table.row([
        "name".to_owned(),
        format!("{} ({}{number})", text(&race["name"]), text(&seen["meeting"]["name"])),
    ]);
    for (label, field) in [("status", "status"), ("start", "start_time"), ("actual start", "actual_start")] {
        table.row([label.to_owned(), text(&race[field])]);
    }
    table.row(["stage".to_owned(), text(&seen["stage"])]);
    table.row(["as of".to_owned(), text(&seen["as_of"])]);
    table.row(["coverage".to_owned(), text(&seen["coverage"])]);
    let rows = seen["odds_history"].as_array().map_or(0, Vec::len);
    table.row(["odds history".to_owned(), format!("{rows} rows")]);
    table.render()
}

fn runners(seen: &Json) -> Table {
    let mut table = Table::new(&[
        "NO",
        "RUNNER",
        "FIXED WIN",
        "PLACE",
        "POOL WIN",
        "PLACE",
        "HOLD %",
        "BET %",
        "WIN POOL",
        "",
    ]);
    for runner in seen["entrants"].as_array().into_iter().flatten() {
        let marks = [
            ("is_scratched", "scratched"),
            ("is_late_scratched", "late"),
            ("is_emergency", "emergency"),
            ("favourite", "favourite"),
            ("mover", "mover"),
        ];
        let marks: Vec<&str> =
            marks.into_iter().filter(|(field, _)| runner[field] == true).map(|(_, mark)| mark).collect();
        let fields = [
            "runner_number",
            "name",
            "win_odds",
            "place_odds",
            "pool_win",
            "pool_place",
            "hold_percentage",
            "bet_percentage",
            "win_pool_amount",
        ];
        let [number, name, win, place, pool_win, pool_place, hold, bet, amount] =
            fields.map(|field| text(&runner[field]));
        let marks = marks.join(", ");
        table.row([number, name, win, place, pool_win, pool_place, hold, bet, amount, marks]);
    }
    table
}

fn table<const N: usize>(seen: &Json, list: &str, head: &[&str; N], fields: [&str; N]) -> Table {
    let mut table = Table::new(head);
    for item in seen[list].as_array().into_iter().flatten() {
        table.row(fields.map(|field| text(&item[field])));
    }
    table
}

/// A value without quotes; a dash for what is not said.
fn text(value: &Json) -> String {
    match value {
        Json::Null => "-".to_owned(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_reads_as_tables() {
        let body = json!({
            "race": { "event_id": "r1", "status": "", "advertised_start": 1_767_999_600, "description": "Cup" },
            "entrants": [
                { "entrant_id": "e1", "name": "Night Owl", "runner_number": 1, "is_scratched": false,
                  "odds": { "fixed_win": 5.0, "fixed_place": 1.8 } },
                { "entrant_id": "e2", "name": "Day Bird", "runner_number": 2, "is_scratched": true },
            ],
            "money_flow": { "entrant_liabilities": [{ "entrant_id": "e1", "hold_percentage": 12.5 }] },
        });
        let seen = describe_file(body.to_string().as_bytes(), crate::command::now()).expect("understood");
        let shown = race(&seen);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..4], ["RACE", "id            r1", "name          Cup (-)", "status        Open"]);
        let runner =
            |name: &str| lines.iter().find(|line| line.contains(name)).expect("its line").to_string();
        assert!(runner("Night Owl").starts_with("1   Night Owl  5          1.8"), "{shown}");
        assert!(runner("Night Owl").contains("12.5"), "{shown}");
        assert!(runner("Day Bird").ends_with("scratched"), "{shown}");
    }
}
