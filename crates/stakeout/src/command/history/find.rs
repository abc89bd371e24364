//! Which record a person means.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use stakeout_core::Fingerprint;
use stakeout_store::{RecordFilter, Store, StoredRecord, TargetFilter};

use crate::UsageError;
use crate::open::Place;

/// The families whose name may be left out before a kind.
const FAMILIES: &[&str] = &["json", "racing", "fpv", "tables"];
/// Targets that are looked through for the names of sources.
const TARGETS_MAX: u32 = 10_000;
/// Records that are looked through for a name, at once.
const PAGE: u32 = 1_000;
/// Records among which those with a history are preferred; more are too many to name anyway.
const CHOSEN_MAX: usize = 50;
/// Records listed in a message.
const LISTED: usize = 5;

/// A record and the source that has it.
pub(super) struct Found {
    pub(super) source: String,
    pub(super) record: StoredRecord,
}

impl Found {
    fn named(&self) -> String {
        let name = self.record.body["name"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{} {} {:?}{name}", self.source, self.record.kind, self.record.key)
    }
}

/// The record that one word means, or three: source, kind and key.
pub(super) async fn find(place: &Place, store: &dyn Store, words: &[String]) -> Result<Found> {
    match words {
        [one] => anywhere(place, store, one).await,
        [source, kind, key] => {
            let mut records = of_kinds(store, source, &with_families(kind), key).await?;
            if records.is_empty() {
                bail!(
                    "source {source:?} has no record of kind {kind:?} with the key {key:?}: `stakeout events --source {source}` shows keys; the view {kind} in the database lists records"
                );
            }
            Ok(records.swap_remove(0))
        }
        _ => Err(UsageError("expected one RECORD, or SOURCE KIND KEY".to_owned()).into()),
    }
}

/// By key or fingerprint in any source; else by the beginning of a name.
async fn anywhere(place: &Place, store: &dyn Store, word: &str) -> Result<Found> {
    let mut found = Vec::new();
    let mut kinds: BTreeSet<String> = place.loaded.kind_names();
    let sources = sources(place, store).await?;
    // A source that is no longer configured is a JSON source by its own name, unless its kinds are fixed anyway.
    kinds.extend(sources.iter().map(|source| format!("json_{}", source.replace('-', "_"))));
    for source in &sources {
        found.extend(of_kinds(store, source, &kinds, word).await?);
    }
    if found.is_empty() {
        found = with_history(store, by_name(store, &sources, word).await?).await?;
    }
    match (found.len(), found.pop()) {
        (0, _) | (_, None) => bail!(
            "no source has a record {word:?}: expected a key, a fingerprint, or the beginning of a name. `stakeout events` shows keys"
        ),
        (1, Some(only)) => Ok(only),
        (more, last) => {
            let listed: Vec<String> = found.iter().chain(&last).take(LISTED).map(Found::named).collect();
            let rest = if more > LISTED { format!(" and {} more", more - LISTED) } else { String::new() };
            bail!("{word:?} may be any of {}{rest}: say more of it, or SOURCE KIND KEY", listed.join(", "))
        }
    }
}

async fn sources(place: &Place, store: &dyn Store) -> Result<BTreeSet<String>> {
    let mut names: BTreeSet<String> = place.loaded.config.source.keys().cloned().collect();
    let targets = store.targets(&TargetFilter { limit: TARGETS_MAX, ..TargetFilter::default() }).await?;
    names.extend(targets.into_iter().map(|row| row.source));
    Ok(names)
}

fn with_families(kind: &str) -> BTreeSet<String> {
    let families = FAMILIES.iter().map(|family| format!("{family}_{kind}"));
    std::iter::once(kind.to_owned()).chain(families).collect()
}

/// The records with this key or fingerprint. A key may have a `|` of its own, so both readings are tried.
async fn of_kinds(
    store: &dyn Store,
    source: &str,
    kinds: &BTreeSet<String>,
    key: &str,
) -> Result<Vec<Found>> {
    let parts: Vec<&str> = key.split('|').collect();
    let mut prints: BTreeSet<Fingerprint> = Fingerprint::parse(key).into_iter().collect();
    for kind in kinds {
        prints.insert(Fingerprint::of(kind, &parts));
        prints.insert(Fingerprint::of(kind, &[key]));
    }
    let prints: Vec<Fingerprint> = prints.into_iter().collect();
    let records = store.records(source, &prints).await?;
    Ok(records.into_iter().map(|record| Found { source: source.to_owned(), record }).collect())
}

/// Of several, those that have a history: nobody who asks for one means a result of the same name.
async fn with_history(store: &dyn Store, found: Vec<Found>) -> Result<Vec<Found>> {
    if found.len() < 2 || found.len() > CHOSEN_MAX {
        return Ok(found);
    }
    let mut have = Vec::new();
    for one in &found {
        have.push(!store.history(&one.source, one.record.fingerprint, None, 1).await?.is_empty());
    }
    if !have.contains(&true) {
        return Ok(found);
    }
    Ok(found.into_iter().zip(have).filter_map(|(one, has)| has.then_some(one)).collect())
}

/// The records whose name begins so, those that are gone among them.
async fn by_name(store: &dyn Store, sources: &BTreeSet<String>, word: &str) -> Result<Vec<Found>> {
    let wanted = word.trim().to_lowercase();
    let mut found = Vec::new();
    if wanted.is_empty() {
        return Ok(found);
    }
    for source in sources {
        let mut filter =
            RecordFilter { source: source.clone(), gone: true, limit: PAGE, ..RecordFilter::default() };
        loop {
            let page = store.list_records(&filter).await?;
            filter.after = page.last().map(|listed| listed.row);
            let whole = page.len() < PAGE as usize;
            let named = page.into_iter().map(|listed| listed.record).filter(|record| {
                let name = record.body["name"].as_str().unwrap_or_default();
                name.to_lowercase().starts_with(&wanted)
            });
            found.extend(named.map(|record| Found { source: source.clone(), record }));
            if whole {
                break;
            }
        }
    }
    Ok(found)
}
