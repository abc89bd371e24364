//! `stakeout why`: everything that explains a target.

mod text;

use std::process::ExitCode;

use anyhow::Result;
use stakeout_server::why::{explain, gather};

use self::text::text;
use super::now;
use crate::cli::WhyArgs;
use crate::config::Secrets;
use crate::open::Place;
use crate::{output, target};

pub(super) async fn why(place: &Place, args: &WhyArgs) -> Result<ExitCode> {
    let store = place.read().await?;
    let row = target::resolve(&*store, &args.target).await?;
    // Without its secrets a source cannot be made; what it would add is only the upstream's refresh time.
    let sources = place.loaded.sources(&Secrets::Environment).map(|wired| wired.sources).unwrap_or_default();
    let source = sources.into_iter().find(|source| source.name() == row.source);
    let why = explain(&gather(&*store, row, source.as_deref(), now()).await?);
    if args.json {
        output::pretty(&why)?
    } else {
        output::line(&text(&why, now()))?
    }
    Ok(ExitCode::SUCCESS)
}
