//! Known: what a claim that is kept remembers of the records its polls wrote. A target that is due again soon changes
//! the same few records again and again, and need not read what it has just written. Nobody has to be told when others
//! change them: a commit says what it builds on, and where that is no longer so the poll reads and judges again.

use std::collections::BTreeMap;

use stakeout_core::{ContentHash, Fingerprint, Record, Time};
use stakeout_store::{Known, PollCommit};

/// The most records that one claim remembers.
pub(super) const MOST: usize = 64;

/// A record that is being written, as it is worth remembering.
pub(super) fn of(record: &Record, content: ContentHash) -> Option<Known> {
    if !record.kind.content_says_all() {
        return None;
    }
    let mut told: BTreeMap<_, Time> = BTreeMap::new();
    for point in &record.points {
        // What is not new was told before, and the rest is told with this commit.
        let until = told.entry(point.stream.clone()).or_insert(point.at);
        *until = point.at.max(*until);
    }
    let record = Record {
        kind: record.kind.clone(),
        key: record.key.clone(),
        values: record.values.clone(),
        points: Vec::new(),
        told: Vec::new(),
        cleared: Vec::new(),
        ..*record
    };
    Some(Known { record, content, told })
}

/// What is remembered after a commit, with what it has `written`: of anything else that it wrote, what was known is outdated.
pub(super) fn after(
    mut known: BTreeMap<Fingerprint, Known>,
    written: Vec<Known>,
    commit: &PollCommit,
) -> BTreeMap<Fingerprint, Known> {
    let records = commit.records.iter().map(|record| record.fingerprint);
    for print in records.chain(commit.releases.iter().map(|release| release.fingerprint)) {
        known.remove(&print);
    }
    known.extend(written.into_iter().map(|known| (known.record.fingerprint, known)));
    if known.len() > MOST {
        known.clear();
    }
    known
}
