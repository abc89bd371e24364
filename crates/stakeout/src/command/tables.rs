//! `stakeout tables`: what is particular to restaurant tables.

use std::process::ExitCode;

use anyhow::Result;
use stakeout_store::{Store, TargetFilter};

use super::targets::{Verb, change};
use crate::cli::{RebaselineArgs, TablesAction};
use crate::open::Place;
use crate::{output, target};

/// Targets are read in pages of this size.
const PAGE: u32 = 1_000;
/// The role of a bucket's target.
const BUCKET: &str = "bucket";

pub(super) async fn tables(place: &Place, action: TablesAction) -> Result<ExitCode> {
    let TablesAction::Rebaseline(RebaselineArgs { bucket, .. }) = action;
    match bucket {
        Some(bucket) => change(place, &bucket, Verb::Rebaseline).await?,
        None => {
            let all = buckets(&*place.read().await?).await?;
            for bucket in &all {
                change(place, bucket, Verb::Rebaseline).await?;
            }
            output::line(&format!("{} buckets", all.len()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of all buckets.
async fn buckets(store: &dyn Store) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let filter = TargetFilter { after, limit: PAGE, ..TargetFilter::default() };
        let page = store.targets(&filter).await?;
        let Some(last) = page.last() else { return Ok(names) };
        after = Some(last.id);
        names.extend(page.iter().filter(|row| row.spec.role == BUCKET).map(target::name));
    }
}
