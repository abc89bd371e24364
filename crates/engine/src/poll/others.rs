//! Others: what other targets hold of the groups in which something appeared here. What they hold is known, and what
//! stands beside it is no first; but a target that has not looked for too long says nothing about now. What they lost
//! in a mass removal may still be there: most likely it was an outage.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::compare::{Removal, Return, Verdict};
use stakeout_core::judge::{Effect, Gate};
use stakeout_core::{Fingerprint, Record, Time};
use stakeout_store::{
    EventWrite, Lapsed, Sibling, StoreError, StoredRecord, TargetFilter, TargetId, TargetRow,
};

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
    /// The groups of which a record has gone with this target's mass removals, or after the first of them.
    gone_since: BTreeSet<Fingerprint>,
    /// What went with the mass removals of other targets, which may yet find it again.
    lost: Lost,
}

#[derive(Default)]
pub(super) struct Lost {
    pub(super) records: BTreeSet<Fingerprint>,
    /// Their groups, as long as the mass is not back: until then nobody has seen them without these records.
    pub(super) groups: BTreeSet<Fingerprint>,
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

    /// The groups of which something has gone with this target's mass removals, or after the first of them.
    pub(super) fn gone_since(&self) -> impl Iterator<Item = Fingerprint> {
        self.gone_since.iter().copied()
    }

    /// What went with the mass removals of other targets, which may yet find it again.
    pub(super) fn lost(&self) -> &Lost {
        &self.lost
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
    let siblings = job.shared.store.siblings(job.source.name(), &families).await?;
    if siblings.is_empty() {
        return Ok(Others::default());
    }
    // Only now: who let go of a sibling that is gone has committed that together with why.
    let elsewhere = Elsewhere::of(job).await?;
    let held = || siblings.iter().filter(|sibling| sibling.gone.is_none());
    let prints: BTreeSet<Fingerprint> = held().map(|sibling| sibling.fingerprint).collect();
    let lapsed = lapsed(job, &elsewhere.blind, &prints).await?;
    let counts = held().filter(|sibling| {
        let lapsed = lapsed.get(&sibling.fingerprint).copied().unwrap_or(0);
        // What was let go of since it was recalled is for the commit to decide.
        sibling.holders > lapsed && records.get(&sibling.fingerprint).is_none_or(|known| known.gone.is_none())
    });
    let groups = counts.map(|sibling| sibling.group).collect();
    let first = news.memory.removals.first();
    let since = |sibling: &&Sibling| first.is_some_and(|removal| sibling.gone >= Some(removal.at));
    let gone_since = siblings.iter().filter(since).map(|sibling| sibling.group).collect();
    let now = job.shared.clock.now();
    Ok(Others { groups, gone_since, lost: lost(&elsewhere.removals, &siblings, now), lapsed })
}

/// Which siblings went with one of these mass removals and may yet return: what is over by itself will not. Whatever
/// is taken off shortly before its time goes like that every day, all of it at once.
fn lost(removals: &[Removal], siblings: &[Sibling], now: Time) -> Lost {
    let mut lost = Lost::default();
    let may_return = |sibling: &&Sibling| sibling.ends.is_none_or(|ends| ends > now);
    for removal in removals {
        let went = siblings.iter().filter(|sibling| sibling.gone == Some(removal.at));
        for sibling in went.filter(may_return) {
            lost.records.insert(sibling.fingerprint);
            if matches!(removal.back, Return::Awaited | Return::InPart) {
                lost.groups.insert(sibling.group);
            }
        }
    }
    lost
}

/// How often each of these records is held by one of these targets.
async fn lapsed(
    job: &Job<'_>,
    blind: &[TargetId],
    prints: &BTreeSet<Fingerprint>,
) -> Result<BTreeMap<Fingerprint, u32>, StoreError> {
    let mut lapsed = BTreeMap::new();
    if prints.is_empty() {
        return Ok(lapsed);
    }
    for target in blind {
        let snapshot = job.shared.store.snapshot(*target).await?;
        for print in prints.iter().filter(|print| snapshot.get(**print).is_some()) {
            *lapsed.entry(*print).or_default() += 1;
        }
    }
    Ok(lapsed)
}

/// What is to know about the other targets of the source.
#[derive(Default)]
struct Elsewhere {
    /// Those that have not looked for too long.
    blind: Vec<TargetId>,
    /// The mass removals of the rest that are still taken for outages.
    removals: Vec<Removal>,
}

impl Elsewhere {
    async fn of(job: &Job<'_>) -> Result<Elsewhere, StoreError> {
        let mut elsewhere = Elsewhere::default();
        let mut after = None;
        loop {
            let source = Some(job.source.name().to_owned());
            let filter = TargetFilter { source, after, limit: PAGE, ..TargetFilter::default() };
            let page = job.shared.store.targets(&filter).await?;
            page.iter().filter(|row| row.id != job.claim.target).for_each(|row| elsewhere.add(job, row));
            after = page.last().map(|row| row.id);
            if page.len() < PAGE as usize {
                return Ok(elsewhere);
            }
        }
    }

    fn add(&mut self, job: &Job<'_>, row: &TargetRow) {
        let (now, memory) = (job.shared.clock.now(), &row.state.memory);
        // Who never had a whole answer has been blind since the first poll.
        let looked = row.state.last_look().or_else(|| Some(row.state.run.as_ref()?.from));
        let holds_for = job.source.holds_for();
        if holds_for.zip(looked).is_some_and(|(holds_for, looked)| looked <= now - holds_for) {
            self.blind.push(row.id);
        } else {
            let doubt = job.source.doubt();
            self.removals.extend(memory.removals.iter().filter(|removal| removal.awaits_singly(&doubt, now)));
        }
    }
}
