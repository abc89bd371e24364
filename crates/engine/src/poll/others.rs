//! Others: what other targets hold of the groups in which something appeared here. What they hold is known, and what
//! stands beside it is no first; but a target that has not looked for too long says nothing about now.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::compare::Verdict;
use stakeout_core::judge::{Effect, Gate};
use stakeout_core::{Fingerprint, Record, Time};
use stakeout_store::{EventWrite, Lapsed, StoreError, StoredRecord, TargetFilter, TargetId, TargetRow};

use super::Job;
use super::compare::Compared;

/// Targets are listed in pages of this size.
const PAGE: u32 = 1_000;

/// What other targets hold.
#[derive(Default)]
pub(super) struct Others {
    /// How many of a record's holders no longer count.
    lapsed: BTreeMap<Fingerprint, u32>,
    /// The groups of which somebody who counts holds a record.
    groups: BTreeSet<Fingerprint>,
    /// The groups of which a record has gone with this target's mass removal, or after it.
    gone_since: BTreeSet<Fingerprint>,
}

impl Others {
    /// Whether another target that counts holds this record.
    pub(super) fn hold(&self, stored: &StoredRecord) -> bool {
        stored.holders > self.lapsed.get(&stored.fingerprint).copied().unwrap_or(0)
    }

    /// Whether what the event requires cannot be, because of what others hold. The commit looks again, under lock.
    pub(super) fn forbid(&self, event: &EventWrite, group: Fingerprint) -> bool {
        event.requires == Effect::AppearedFirst && self.groups.contains(&group)
    }

    /// The groups of which something has gone with this target's mass removal, or after it.
    pub(super) fn gone_since(&self) -> impl Iterator<Item = Fingerprint> {
        self.gone_since.iter().copied()
    }

    pub(super) fn lapsed(&self) -> Vec<Lapsed> {
        let lapsed = self.lapsed.iter();
        lapsed.map(|(fingerprint, holders)| Lapsed { fingerprint: *fingerprint, holders: *holders }).collect()
    }
}

/// Finds out about others, if a rule asks and something appeared in a group that this target held nothing of.
pub(super) async fn others(
    job: &Job<'_>,
    compared: &Compared,
    added: &[&Record],
    records: &BTreeMap<Fingerprint, StoredRecord>,
) -> Result<Others, StoreError> {
    let asked = job.source.rules().iter().any(|rule| rule.gate == Gate::GroupWasZero);
    let changed = compared.news.as_ref().filter(|(_, news)| asked && news.verdict == Verdict::Changed);
    let Some((_, news)) = changed else { return Ok(Others::default()) };
    let held: BTreeSet<Fingerprint> = job.claim.snapshot.entries().iter().map(|entry| entry.group).collect();
    let family = |record: &&Record| Some((record.parent?, record.group));
    let families: BTreeSet<_> = added.iter().filter_map(family).filter(|(_, g)| !held.contains(g)).collect();
    if families.is_empty() {
        return Ok(Others::default());
    }
    let families: Vec<_> = families.into_iter().collect();
    let siblings = job.shared.store.siblings(job.source.name(), &families, news.memory.cleared).await?;
    let (siblings, gone): (Vec<_>, Vec<_>) = siblings.into_iter().partition(|sibling| sibling.holders > 0);
    let gone_since = gone.iter().map(|sibling| sibling.group).collect();
    if siblings.is_empty() {
        return Ok(Others { gone_since, ..Others::default() });
    }
    let prints: BTreeSet<Fingerprint> = siblings.iter().map(|sibling| sibling.fingerprint).collect();
    let mut others = Others { lapsed: lapsed(job, &prints).await?, groups: BTreeSet::new(), gone_since };
    let counts = siblings.iter().filter(|sibling| {
        let lapsed = others.lapsed.get(&sibling.fingerprint).copied().unwrap_or(0);
        // What was let go of since it was recalled is for the commit to decide.
        sibling.holders > lapsed && records.get(&sibling.fingerprint).is_none_or(|known| known.gone.is_none())
    });
    others.groups = counts.map(|sibling| sibling.group).collect();
    Ok(others)
}

/// How often each of these records is held by a target that has not looked for too long.
async fn lapsed(
    job: &Job<'_>,
    prints: &BTreeSet<Fingerprint>,
) -> Result<BTreeMap<Fingerprint, u32>, StoreError> {
    let mut lapsed = BTreeMap::new();
    let Some(holds_for) = job.source.holds_for() else { return Ok(lapsed) };
    for target in blind(job, job.shared.clock.now() - holds_for).await? {
        let snapshot = job.shared.store.snapshot(target).await?;
        for print in prints.iter().filter(|print| snapshot.get(**print).is_some()) {
            *lapsed.entry(*print).or_default() += 1;
        }
    }
    Ok(lapsed)
}

/// The other targets of the source whose last whole answer was before `since`.
async fn blind(job: &Job<'_>, since: Time) -> Result<Vec<TargetId>, StoreError> {
    let is_blind = |row: &TargetRow| {
        // Who never had a whole answer has been blind since the first poll.
        let looked = row.state.last_look().or_else(|| Some(row.state.run.as_ref()?.from));
        row.id != job.claim.target && looked.is_some_and(|looked| looked <= since)
    };
    let mut blind = Vec::new();
    let mut after = None;
    loop {
        let source = Some(job.source.name().to_owned());
        let filter = TargetFilter { source, after, limit: PAGE, ..TargetFilter::default() };
        let page = job.shared.store.targets(&filter).await?;
        let Some(last) = page.last() else { return Ok(blind) };
        after = Some(last.id);
        let full = page.len() == PAGE as usize;
        blind.extend(page.iter().filter(|row| is_blind(row)).map(|row| row.id));
        if !full {
            return Ok(blind);
        }
    }
}
