//! `stakeout history`: what a record said, change by change.

mod find;
mod plot;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use stakeout_core::Time;
use stakeout_store::{HistoryRow, StoredRecord};

use super::now;
use crate::cli::HistoryArgs;
use crate::open::Place;
use crate::output::Table;
use crate::{output, when};

pub(super) async fn history(place: &Place, args: &HistoryArgs) -> Result<ExitCode> {
    let store = place.read().await?;
    let found = find::find(place, &*store, &args.record).await?;
    let rows =
        store.history(&found.source, found.record.fingerprint, args.stream.as_deref(), args.limit).await?;
    if args.json {
        rows.iter().try_for_each(output::json)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&about(&found.record, now()))?;
    if rows.is_empty() {
        output::line("no history: only fields that have a stream have one")?;
    } else if args.plot {
        let columns = std::env::var("COLUMNS").ok();
        let charts = plot::charts(&rows, plot::width(columns.as_deref()));
        output::line(&match charts.is_empty() {
            true => "no numbers to draw".to_owned(),
            false => format!("\n{}", charts.join("\n\n")),
        })?;
    } else {
        output::line(&table(&rows).render())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn about(record: &StoredRecord, now: Time) -> String {
    let name = record.body["name"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
    let seen =
        format!("{} {}{name}, first seen {}", record.kind, record.key, when::at(record.first_seen, now));
    let last = match record.gone {
        Some(gone) => format!("gone since {}", when::at(gone, now)),
        None => format!("last changed {}", when::at(record.last_changed, now)),
    };
    // A name is the upstream's text: it must not move the cursor.
    format!("{seen}\n{last}").chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

fn table(rows: &[HistoryRow]) -> Table {
    let mut table = Table::new(&["AT", "STREAM", "VALUES", "STAMPED BY"]);
    for row in rows {
        let stamped = match (row.upstream, row.gap) {
            (true, true) => "the upstream, after a gap",
            (true, false) => "the upstream",
            (false, _) => "the poll",
        };
        table.row([row.at.to_string(), row.stream.clone(), row.values.to_string(), stamped.to_owned()]);
    }
    table
}
