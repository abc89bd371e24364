//! `stakeout history`: what a record said, change by change.

use std::process::ExitCode;

use anyhow::{Result, bail};
use stakeout_core::Fingerprint;
use stakeout_store::{Store, StoredRecord};

use super::now;
use crate::cli::HistoryArgs;
use crate::open::Place;
use crate::output::Table;
use crate::{output, when};

/// The families whose name may be left out before a kind.
const FAMILIES: &[&str] = &["json"];

pub(super) async fn history(place: &Place, args: &HistoryArgs) -> Result<ExitCode> {
    let store = place.read()?;
    let Some(record) = find(&*store, args).await? else {
        bail!(
            "source {:?} has no record of kind {:?} with the key {:?}: `stakeout events --source {}` shows keys; the view {} in the database lists records",
            args.source,
            args.kind,
            args.key,
            args.source,
            args.kind
        );
    };
    let rows = store.history(&args.source, record.fingerprint, args.stream.as_deref(), args.limit).await?;
    if args.json {
        rows.iter().try_for_each(output::json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let now = now();
    output::line(&format!(
        "{} {}, first seen {}",
        record.kind,
        record.key,
        when::at(record.first_seen, now)
    ))?;
    output::line(&match record.gone {
        Some(gone) => format!("gone since {}", when::at(gone, now)),
        None => format!("last changed {}", when::at(record.last_changed, now)),
    })?;
    let mut table = Table::new(&["AT", "STREAM", "VALUES", "STAMPED BY"]);
    for row in &rows {
        let stamped = if row.upstream { "the upstream" } else { "the poll" };
        table.row([row.at.to_string(), row.stream.clone(), row.values.to_string(), stamped.to_owned()]);
    }
    output::line(&match table.is_empty() {
        true => "no history: only fields that the configuration names have one".to_owned(),
        false => table.render(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The record that kind and key mean. A key may have a `|` of its own, so both readings are tried.
async fn find(store: &dyn Store, args: &HistoryArgs) -> Result<Option<StoredRecord>> {
    let kinds =
        std::iter::once(args.kind.clone()).chain(FAMILIES.iter().map(|f| format!("{f}_{}", args.kind)));
    let parts: Vec<&str> = args.key.split('|').collect();
    let mut prints: Vec<Fingerprint> = Fingerprint::parse(&args.key).into_iter().collect();
    for kind in kinds {
        prints.push(Fingerprint::of(&kind, &parts));
        prints.push(Fingerprint::of(&kind, &[&args.key]));
    }
    Ok(store.records(&args.source, &prints).await?.into_iter().next())
}
