//! Vitals: how a running engine is doing, for whoever watches the watcher.

use std::time::Duration;

use stakeout_core::adherence::LatenessHistogram;

use crate::lane::LaneState;
use crate::stats::Totals;

/// How the engine is doing.
#[derive(Clone, Debug)]
pub struct Vitals {
    /// By source, in the order of their names.
    pub sources: Vec<SourceVitals>,
    /// Targets held until they are due.
    pub held: u64,
    /// Polls that wait to be committed.
    pub committing: u64,
    /// How long commits took.
    pub commits: LatenessHistogram,
    /// The sum of all commit times.
    pub commit_time: Duration,
}

/// How a source is doing.
#[derive(Clone, Debug)]
pub struct SourceVitals {
    /// Its name.
    pub name: String,
    /// What its polls came to since the start.
    pub totals: Totals,
    /// Its queue and its limits.
    pub lane: LaneState,
}
