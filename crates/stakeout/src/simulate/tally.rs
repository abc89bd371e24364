//! What the reports of simulated days are made of.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use stakeout_core::adherence::{LatenessHistogram, Quantile, Run};
use stakeout_core::{Span, Time};
use stakeout_store::{Store, TargetFilter, TargetId};

/// How the polls of one phase went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhaseAdherence {
    /// Polls made.
    pub polls: u64,
    /// Sent later than tolerated.
    pub late: u64,
    /// Due polls that were missed.
    pub missed: u64,
    /// The longest a change could go unseen between two polls.
    pub longest_gap_ms: i64,
    /// 99 of 100 polls were sent no later than this; `None` when beyond a minute.
    pub lateness_ms_p99: Option<f64>,
}

/// Half, all but one in a hundred, and all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half were no longer than this.
    pub p50: i64,
    /// 99 of 100 were no longer than this.
    pub p99: i64,
    /// None was longer than this.
    pub max: i64,
}

/// The stretches of polling of every target that there is.
pub(super) async fn runs(store: &dyn Store) -> Result<BTreeMap<TargetId, Vec<Run>>> {
    let mut runs = BTreeMap::new();
    let filter = TargetFilter { limit: 100_000, ..TargetFilter::default() };
    for row in store.targets(&filter).await? {
        let mut of_target = store.runs(row.id, Time(i64::MIN), Time(i64::MAX)).await?;
        of_target.extend(row.state.run);
        runs.insert(row.id, of_target);
    }
    Ok(runs)
}

pub(super) fn adherence<'a>(runs: impl IntoIterator<Item = &'a Run>) -> BTreeMap<String, PhaseAdherence> {
    let mut phases: BTreeMap<String, (PhaseAdherence, LatenessHistogram)> = BTreeMap::new();
    for run in runs {
        let (phase, histogram) = phases.entry(run.phase.clone()).or_default();
        phase.polls += run.polls;
        phase.late += run.late;
        phase.missed += run.missed;
        phase.longest_gap_ms = phase.longest_gap_ms.max(run.longest_gap.as_ms());
        histogram.merge(&run.histogram);
    }
    let finish = |(name, (mut phase, histogram)): (String, (PhaseAdherence, LatenessHistogram))| {
        let p99 = histogram.quantile(0.99).and_then(Quantile::at_most);
        phase.lateness_ms_p99 = p99.map(|span| span.as_secs_f64() * 1e3);
        (name, phase)
    };
    phases.into_iter().map(finish).collect()
}

pub(super) fn count<K: Ord>(items: impl Iterator<Item = K>) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts
}

pub(super) fn quantiles(mut delays: Vec<Span>) -> Option<Quantiles> {
    delays.sort_unstable();
    let at = |q: f64| delays.get(((delays.len() as f64 * q) as usize).min(delays.len().saturating_sub(1)));
    Some(Quantiles { p50: at(0.5)?.as_ms(), p99: at(0.99)?.as_ms(), max: at(1.0)?.as_ms() })
}
