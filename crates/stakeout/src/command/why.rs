//! `stakeout why`: everything that explains a target.

mod explain;

use std::process::ExitCode;

use anyhow::Result;
use stakeout_core::Span;
use stakeout_store::{EventFilter, Store, TargetRow};

use self::explain::{Evidence, explain};
use super::now;
use crate::cli::WhyArgs;
use crate::config::Secrets;
use crate::open::Place;
use crate::{output, target};

/// Notable polls shown.
const POLLS: u32 = 10;

/// The window of the promise: how long anything could have gone unseen in it.
const WINDOW: Span = Span::hours(24);

/// How far back the events of the last changed poll are looked for.
const EVENTS_BACK: u64 = 10_000;

pub(super) async fn why(place: &Place, args: &WhyArgs) -> Result<ExitCode> {
    let store = place.read().await?;
    let row = target::resolve(&*store, &args.target).await?;
    let evidence = gather(place, &*store, row).await?;
    let why = explain(&evidence);
    if args.json {
        output::pretty(&why)?
    } else {
        output::line(&why.text(&evidence))?
    }
    Ok(ExitCode::SUCCESS)
}

async fn gather(place: &Place, store: &dyn Store, row: TargetRow) -> Result<Evidence> {
    let now = now();
    let polls = store.polls(row.id, POLLS).await?;
    let mut runs = store.runs(row.id, now - WINDOW, now).await?;
    runs.extend(row.state.run.clone());
    let newest = store.stats().await?.seq;
    let filter = EventFilter {
        source: Some(row.source.clone()),
        target: Some(row.spec.key.clone()),
        ..EventFilter::default()
    };
    let events = store.events(newest.saturating_sub(EVENTS_BACK), &filter, EVENTS_BACK as u32).await?;
    // Without its secrets a source cannot be made; what it would add is only the upstream's refresh time.
    let sources = place.loaded.sources(&Secrets::Environment).map(|wired| wired.sources).unwrap_or_default();
    let source = sources.iter().find(|source| source.name() == row.source);
    let refresh = source.map_or(Span::ZERO, |source| source.limits().refresh);
    let rules = source.map(|source| source.rules().len());
    Ok(Evidence { row, polls, runs, events, refresh, rules, now, window: WINDOW })
}
