//! Recall: what is remembered of the records that are about to change, by the claim or else by the store. Unchanged polls
//! ask nothing.

use std::collections::BTreeMap;

use stakeout_core::compare::{Item, target_fingerprint};
use stakeout_core::{ContentHash, Fingerprint, Past, Record, Time};
use stakeout_store::{Known, StoreError, StoredRecord, TargetFilter, TargetRow};

use super::Job;
use super::compare::Compared;
use super::listed;
use super::others::{Others, others};

/// What was known before this poll.
#[derive(Default)]
pub(super) struct Recalled<'a> {
    /// As they are stored.
    pub(super) records: BTreeMap<Fingerprint, StoredRecord>,
    /// Those that the claim remembers, and nobody has to read.
    known: BTreeMap<Fingerprint, &'a Known>,
    /// Until when the upstream itself has told a record's stream: every answer repeats the latest moves.
    told: BTreeMap<Fingerprint, BTreeMap<String, Time>>,
    /// The keys of targets that the listing no longer has.
    pub(super) retired: Vec<String>,
    /// The targets that the listing describes otherwise than before, by key.
    pub(super) listed: BTreeMap<String, TargetRow>,
    /// What other targets hold of what appeared here.
    pub(super) others: Others,
}

impl Recalled<'_> {
    /// What a record said.
    pub(super) fn past(&self, fingerprint: Fingerprint) -> Option<&dyn Past> {
        if let Some(known) = self.known.get(&fingerprint) {
            return Some(&known.record);
        }
        Some(self.records.get(&fingerprint)?.body.as_object()?)
    }

    /// The hash of what it said.
    pub(super) fn content(&self, fingerprint: Fingerprint) -> Option<ContentHash> {
        let known = self.known.get(&fingerprint).map(|known| known.content);
        known.or_else(|| Some(self.records.get(&fingerprint)?.content))
    }

    /// Until when the upstream has told one of its streams.
    pub(super) fn told_until(&self, fingerprint: Fingerprint, stream: &str) -> Option<Time> {
        let until = match self.known.get(&fingerprint) {
            Some(known) => known.told.get(stream),
            None => self.told.get(&fingerprint)?.get(stream),
        };
        until.copied()
    }
}

/// Targets are listed in pages of this size when some of them are to be retired.
const PAGE: u32 = 1_000;

/// With `by_heart`, what the claim remembers is taken for what is stored; the commit finds out if it is not.
pub(super) async fn recall<'a>(
    job: &Job<'a>,
    compared: &Compared,
    by_heart: bool,
) -> Result<Recalled<'a>, StoreError> {
    let Some((observation, comparison)) = &compared.news else { return Ok(Recalled::default()) };
    let record = |item: &Item| match item {
        Item::Record(i) => Some(&observation.records[*i]),
        Item::Target(_) => None,
    };
    // Of what is new here it matters, too, who else holds it.
    let changed = || comparison.changed.iter().filter_map(record).map(|record| record.fingerprint);
    let known = |print| Some((print, job.claim.known.get(&print)?));
    let known: BTreeMap<_, _> =
        if by_heart { changed().filter_map(known).collect() } else { BTreeMap::new() };
    let touched = || {
        let touched = comparison.added.iter().chain(&comparison.changed).filter_map(record);
        touched.filter(|record| !known.contains_key(&record.fingerprint))
    };
    let mut wanted: Vec<Fingerprint> = touched()
        .map(|record| record.fingerprint)
        .chain(comparison.removed.iter().map(|entry| entry.fingerprint))
        .collect();
    let _busy = job.shared.clock.busy();
    let listed = listed::rows(job, observation, comparison).await?;
    if wanted.is_empty() {
        return Ok(Recalled { known, listed, ..Recalled::default() });
    }
    wanted.sort_unstable();
    let source = job.source.name();
    let (stored, told) = tokio::try_join!(
        job.shared.store.records(source, &wanted),
        told(job, source, touched().flat_map(told_streams).collect()),
    )?;
    let records: BTreeMap<_, _> = stored.into_iter().map(|record| (record.fingerprint, record)).collect();
    let mut gone: Vec<Fingerprint> = comparison.removed.iter().map(|entry| entry.fingerprint).collect();
    gone.retain(|fingerprint| !records.contains_key(fingerprint));
    let retired = match observation.targets.is_some() && !gone.is_empty() {
        true => keys_of(job, source, &gone).await?,
        false => Vec::new(),
    };
    let added: Vec<&Record> = comparison.added.iter().filter_map(record).collect();
    let others = others(job, compared, &added, &records).await?;
    Ok(Recalled { records, known, told, retired, listed, others })
}

async fn told(
    job: &Job<'_>,
    source: &str,
    streams: Vec<(Fingerprint, String)>,
) -> Result<BTreeMap<Fingerprint, BTreeMap<String, Time>>, StoreError> {
    let mut told: BTreeMap<Fingerprint, BTreeMap<String, Time>> = BTreeMap::new();
    if streams.is_empty() {
        return Ok(told);
    }
    let untils = job.shared.store.told_until(source, &streams).await?;
    for ((fingerprint, stream), until) in streams.into_iter().zip(untils) {
        told.entry(fingerprint).or_default().extend(until.map(|until| (stream, until)));
    }
    Ok(told)
}

/// The streams of a record that the upstream tells itself, each once.
fn told_streams(record: &Record) -> Vec<(Fingerprint, String)> {
    let mut streams: Vec<&str> = record.points.iter().map(|point| &*point.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    streams.into_iter().map(|stream| (record.fingerprint, stream.to_owned())).collect()
}

/// A listing's snapshot knows its targets by fingerprint; this finds their keys.
async fn keys_of(job: &Job<'_>, source: &str, gone: &[Fingerprint]) -> Result<Vec<String>, StoreError> {
    let mut keys = Vec::new();
    let mut after = None;
    loop {
        let filter = TargetFilter {
            source: Some(source.to_owned()),
            listed_by: Some(job.claim.target),
            after,
            limit: PAGE,
            ..TargetFilter::default()
        };
        let page = job.shared.store.targets(&filter).await?;
        let Some(last) = page.last() else { return Ok(keys) };
        after = Some(last.id);
        let found = page.into_iter().map(|row| row.spec.key);
        keys.extend(found.filter(|key| gone.contains(&target_fingerprint(key))));
    }
}
