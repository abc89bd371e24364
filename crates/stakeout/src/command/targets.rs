//! `stakeout targets`: what is polled, and the few things one may do to it.

use std::process::ExitCode;

use anyhow::Result;
use stakeout_core::Time;
use stakeout_store::{Store, TargetFilter, TargetRow};

use super::{ask, now};
use crate::cli::{TargetsAction, TargetsArgs, TargetsListArgs};
use crate::control::Request;
use crate::open::{Door, Place};
use crate::output::Table;
use crate::{output, target, when};

/// Targets are read in pages of this size.
const PAGE: u32 = 1_000;

pub(super) async fn targets(place: &Place, args: TargetsArgs) -> Result<ExitCode> {
    match args.action {
        None => list(place, &args.list).await?,
        Some(TargetsAction::List(args)) => list(place, &args).await?,
        Some(TargetsAction::Enable(arg)) => change(place, &arg.target, Verb::Enable).await?,
        Some(TargetsAction::Disable(arg)) => change(place, &arg.target, Verb::Disable).await?,
        Some(TargetsAction::PollNow(arg)) => change(place, &arg.target, Verb::PollNow).await?,
        Some(TargetsAction::Rebaseline(arg)) => change(place, &arg.target, Verb::Rebaseline).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(place: &Place, args: &TargetsListArgs) -> Result<()> {
    let store = place.read().await?;
    let mut table =
        Table::new(&["TARGET", "STATE", "DUE", "EVERY", "PHASE", "LAST POLL", "RECORDS", "ERROR"]);
    let (mut after, mut left) = (None, args.limit);
    while left > 0 {
        let limit = left.min(PAGE);
        let filter = TargetFilter { source: args.source.clone(), after, limit, ..TargetFilter::default() };
        let page = store.targets(&filter).await?;
        for row in &page {
            if args.json {
                output::json(row)?;
            } else {
                table.row(cells(row, now()));
            }
        }
        left -= page.len() as u32;
        after = page.last().map(|row| row.id);
        if (page.len() as u32) < limit {
            break;
        }
    }
    match (args.json, table.is_empty(), &args.source) {
        (true, ..) => Ok(()),
        (false, false, _) => output::line(&table.render()),
        (false, true, Some(source)) => output::line(&format!("source {source} has no targets")),
        (false, true, None) => output::line("no targets yet: `stakeout run` or `stakeout poll` finds them"),
    }
}

fn cells(row: &TargetRow, now: Time) -> [String; 8] {
    let state = match (row.enabled, &row.owner) {
        (false, _) => "off".to_owned(),
        (true, Some(owner)) => format!("held by {owner}"),
        (true, None) => "on".to_owned(),
    };
    let last = match (row.last_outcome, row.last_polled) {
        (Some(outcome), Some(at)) => format!("{}, {}", outcome.name(), when::relative(at, now)),
        _ => "never".to_owned(),
    };
    [
        target::name(row),
        state,
        row.schedule
            .due
            .filter(|_| row.enabled)
            .map_or_else(|| "never".to_owned(), |due| when::relative(due, now)),
        row.schedule.interval.to_string(),
        row.schedule.phase.clone(),
        last,
        row.records.to_string(),
        row.last_error.clone().unwrap_or_default(),
    ]
}

/// What to do with a target.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Enable,
    Disable,
    PollNow,
    Rebaseline,
}

/// Does it, through the running process if there is one.
pub(super) async fn change(place: &Place, typed: &str, verb: Verb) -> Result<()> {
    // Found beside the running process, so that a typing mistake is told the same way either way.
    let row = target::resolve(&*place.read().await?, typed).await?;
    let name = target::name(&row);
    match place.door().await? {
        Door::Running { socket, pid } => {
            let target = name.clone();
            let request = match verb {
                Verb::Enable => Request::Enable { target },
                Verb::Disable => Request::Disable { target },
                Verb::PollNow => Request::PollNow { target },
                Verb::Rebaseline => Request::Rebaseline { target },
            };
            ask::running(&socket, &pid, &request).await?;
        }
        Door::Direct(store) => directly(&*store, &row, verb).await?,
    }
    output::line(&match verb {
        Verb::Enable => format!("{name} is on"),
        Verb::Disable => format!("{name} is off"),
        Verb::PollNow => format!("{name} is due now"),
        Verb::Rebaseline => format!("the next complete answer of {name} is its new baseline, without events"),
    })
}

async fn directly(store: &dyn Store, row: &TargetRow, verb: Verb) -> Result<()> {
    match verb {
        Verb::Enable => store.set_enabled(row.id, true, now()).await?,
        Verb::Disable => store.set_enabled(row.id, false, now()).await?,
        Verb::PollNow => store.poll_now(row.id, now()).await?,
        Verb::Rebaseline => store.rebaseline(row.id).await?,
    }
    Ok(())
}
