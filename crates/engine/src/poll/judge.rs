//! Judge: what of the news is written to history, and what is told.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::alert::{Occasion, RULE_PREFIX, Ring, Went};
use stakeout_core::compare::{Comparison, Item, Verdict};
use stakeout_core::judge::{Change, Draft, Judgement};
use stakeout_core::record::object_text;
use stakeout_core::{
    ContentHash, EventId, Fingerprint, LastOutcome, Observation, Past, Point, Record, Time, history,
};
use stakeout_store::{
    Base, EventWrite, HistoryWrite, Known, KvSet, Lapsed, PollOutcome, Reconcile, RecordWrite, Release,
    Stamp, StoreError,
};

use super::Job;
use super::back::Back;
use super::compare::Compared;
use super::fetch::Fetched;
use super::plan::Planned;
use super::recall::Recalled;
use super::{known, listed, standing};
use crate::alerts;

/// Everything a poll wants to write besides its schedule.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) records: Vec<RecordWrite>,
    pub(super) releases: Vec<Release>,
    pub(super) lapsed: Vec<Lapsed>,
    pub(super) history: Vec<HistoryWrite>,
    pub(super) events: Vec<EventWrite>,
    pub(super) reconcile: Option<Reconcile>,
    pub(super) kv: Vec<KvSet>,
    /// What the claim remembers of it, where it is kept.
    pub(super) known: Vec<Known>,
    pub(super) changes: u32,
    /// The same, by the kind of record.
    pub(super) updated: BTreeMap<String, u32>,
    /// Occasions of events that will most likely come about: those that the quiet time or another target's hold suppresses say
    /// nothing about how much happens here.
    pub(super) newsworthy: u32,
}

/// The records of a poll that are new or changed.
struct News<'a> {
    /// When they were true, where they do not say themselves: by the upstream's own stamp where it gives one, so that a late answer to one target does
    /// not undo what another target has seen.
    seen: Time,
    added: Vec<Fresh<'a>>,
    changed: Vec<Fresh<'a>>,
}

/// A record as it is to be stored, and the hash of what it says.
struct Fresh<'a> {
    record: Cow<'a, Record>,
    content: ContentHash,
}

pub(super) async fn judge(
    job: &Job<'_>,
    fetched: &Fetched,
    compared: &Compared,
    planned: &Planned,
    recalled: Result<Recalled<'_>, StoreError>,
) -> Result<Judged, StoreError> {
    let recalled = recalled?;
    let mut judged = Judged::default();
    let (standing, kv) = standing::told(job, fetched);
    judged.kv = kv;
    let believed = compared.news.as_ref().filter(|_| compared.outcome != PollOutcome::Doubted);
    let Some((observation, comparison)) = believed else {
        judged.events.extend(standing);
        ring(job, fetched, compared, planned, &[], &[], &mut judged).await?;
        return Ok(judged);
    };
    let news = news(fetched, observation, comparison, &recalled);
    let changes = changes(job, fetched, &news, comparison, &recalled, &mut judged);
    let is_kept = planned.schedule.due.is_some_and(|due| job.shared.keeps(due, fetched.ended));
    if is_kept && job.shared.holds_few() && news.added.len() + news.changed.len() <= known::MOST {
        let written = news.added.iter().chain(&news.changed);
        judged.known = written.filter_map(|fresh| known::of(&fresh.record, fresh.content)).collect();
    }
    judged.changes = changes.len() as u32;
    judged.updated = by_kind(&changes);
    judged.reconcile = listed::reconcile(job, fetched.ended, observation, comparison, &recalled);
    // A baseline is taken as it is: everything is kept, nothing is told. But a target's first look is no baseline for
    // what other targets have known all along.
    let changes = match comparison.verdict {
        Verdict::Changed => changes,
        Verdict::Baseline if is_first_look(job) => {
            changes.into_iter().filter(|change| matches!(change, Change::Changed { .. })).collect()
        }
        Verdict::Baseline | Verdict::Unchanged | Verdict::Doubted => Vec::new(),
    };
    if !changes.is_empty() {
        let judgement = Judgement {
            source: job.source.name(),
            target: &job.claim.spec,
            at: fetched.ended,
            facts_before: &job.claim.state.facts,
            facts: &compared.facts,
            before: &job.claim.snapshot,
            memory: &job.claim.state.memory,
            changes: &changes,
        };
        judged.events = events(job, fetched, comparison, job.source.judge(&judgement));
        let groups: BTreeMap<Fingerprint, Fingerprint> =
            news.added.iter().map(|fresh| (fresh.record.fingerprint, fresh.record.group)).collect();
        let group = |event: &EventWrite| groups.get(&event.subject).copied().unwrap_or_default();
        judged.events.retain(|event| !recalled.others.forbid(event, group(event)));
        judged.lapsed = recalled.others.lapsed();
        // What opens together in one group happened once: a burst says little about how often the next one comes.
        let occasion = |event: &EventWrite| match group(event) {
            group if group == Fingerprint::default() => event.subject,
            group => group,
        };
        let news = judged.events.iter().filter(|event| is_newsworthy(event, &recalled));
        judged.newsworthy = news.map(occasion).collect::<BTreeSet<Fingerprint>>().len() as u32;
    }
    judged.events.extend(standing);
    ring(job, fetched, compared, planned, &observation.records, &changes, &mut judged).await?;
    // Rows are locked in fingerprint order, everywhere.
    judged.records.sort_by_key(|write| write.fingerprint);
    judged.history.sort_by_key(|write| write.fingerprint);
    judged.releases.sort_by_key(|release| release.fingerprint);
    Ok(judged)
}

/// Whom of those who asked is this to be told?
async fn ring(
    job: &Job<'_>,
    fetched: &Fetched,
    compared: &Compared,
    planned: &Planned,
    records: &[Record],
    changes: &[Change<'_>],
    judged: &mut Judged,
) -> Result<(), StoreError> {
    let rules = job.shared.alerts.now();
    if rules.is_empty() {
        return Ok(());
    }
    let failures = match planned.last.outcome {
        LastOutcome::Good => 0,
        LastOutcome::Failed { failures, .. } => failures,
    };
    let missed = planned.account.missed;
    let occasion = Occasion {
        source: job.source.name(),
        target: Some(&job.claim.spec),
        at: fetched.ended,
        looked: job.claim.state.last_look(),
        facts: Some((&job.claim.state.facts, &compared.facts)),
        records,
        changes,
        told: &[],
        went: Went { failures, missed, missed_before: missed_before(job, missed).await? },
    };
    let held = match records.is_empty() && rules.wants_records(&occasion) {
        true => alerts::held(&*job.shared.store, job.source, &job.claim.snapshot).await?,
        false => Vec::new(),
    };
    let occasion = if held.is_empty() { occasion } else { Occasion { records: &held, ..occasion } };
    // A poll is committed once under its number, so it tells rings of the same rule and subject apart.
    let id = |ring: &Ring, ordinal: u32| {
        let rule = format!("{RULE_PREFIX}{}", ring.alert);
        let poll_no = job.claim.poll_no + 1;
        EventId::of_poll(job.source.name(), job.claim.incarnation, &rule, ring.subject, poll_no, ordinal)
    };
    let rings = alerts::rings(&*job.shared.store, &*rules, &occasion, &judged.events, id).await?;
    judged.events.extend(rings);
    Ok(())
}

/// How many polls were missed before the poll before this one. Asked only where it matters: when some were missed again.
async fn missed_before(job: &Job<'_>, missed: u64) -> Result<u64, StoreError> {
    if missed == 0 {
        return Ok(0);
    }
    let newest = job.shared.store.polls(job.claim.target, 1).await?;
    // What was missed is always in the log: what is not the newest there came in time.
    let before = newest.first().filter(|poll| poll.poll_no == job.claim.poll_no);
    Ok(before.map_or(0, |poll| poll.missed))
}

fn is_first_look(job: &Job<'_>) -> bool {
    let memory = &job.claim.state.memory;
    memory.meaning.is_none() && !memory.rebaseline && job.claim.snapshot.is_empty()
}

/// The changes, with their record and history writes collected on the way.
fn changes<'a>(
    job: &Job<'_>,
    fetched: &Fetched,
    news: &'a News<'_>,
    comparison: &Comparison,
    recalled: &Recalled<'_>,
    judged: &mut Judged,
) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    let moved = |record: &Record| match recalled.past(record.fingerprint) {
        Some(old) => history::changed_fields(record, old),
        None => Vec::new(),
    };
    let added = news.added.iter().map(|fresh| &*fresh.record);
    let memories = (&job.claim.state.memory, &comparison.memory);
    let back = Back::of(added, &job.source.doubt(), fetched.ended, memories, recalled);
    for added in &news.added {
        keep(fetched, news, added, recalled, true, judged);
        let added = &*added.record;
        let stored = recalled.records.get(&added.fingerprint);
        if stored.is_some_and(|stored| stored.gone.is_none() && recalled.others.hold(stored)) {
            // New to this target, but another one holds it: to the world it is known, and may have changed.
            changes.push(Change::Changed { record: added, fields: moved(added) });
        } else if !back.has(added) {
            changes.push(Change::Added(added));
        }
    }
    for changed in &news.changed {
        keep(fetched, news, changed, recalled, false, judged);
        changes.push(Change::Changed { record: &changed.record, fields: moved(&changed.record) });
    }
    for entry in &comparison.removed {
        let Some(stored) = recalled.records.get(&entry.fingerprint) else { continue };
        let natural = entry.ends.is_some_and(|ends| ends <= fetched.sent);
        judged.releases.push(Release { fingerprint: entry.fingerprint, natural });
        changes.push(Change::Removed {
            fingerprint: entry.fingerprint,
            kind: stored.kind.clone(),
            key: stored.key.clone(),
            body: stored.body.as_object().cloned().unwrap_or_default(),
            natural,
        });
    }
    changes
}

fn by_kind(changes: &[Change<'_>]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for change in changes {
        let kind = match change {
            Change::Added(record) | Change::Changed { record, .. } => record.kind.full_name(),
            Change::Removed { kind, .. } => kind.clone(),
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// The records that were added or changed, as they are to be stored.
fn news<'a>(
    fetched: &Fetched,
    observation: &'a Observation,
    comparison: &Comparison,
    recalled: &Recalled<'_>,
) -> News<'a> {
    let entry = |record: &Record| comparison.next.as_ref().and_then(|next| next.get(record.fingerprint));
    let fresh = |record: &'a Record| {
        let stored = recalled.records.get(&record.fingerprint);
        let record = record.merged_with(recalled.past(record.fingerprint));
        // What an answer does not show whole may have more than it shows; what is gone has nothing to add.
        let held = stored.filter(|stored| stored.gone.is_none()).and_then(|stored| stored.body.as_object());
        let record = match held.filter(|_| !observation.coverage.proves_absence(record.group)) {
            Some(held) => match record.gathered_with(held) {
                Cow::Owned(gathered) => Cow::Owned(gathered),
                Cow::Borrowed(_) => record,
            },
            None => record,
        };
        // What was taken as it is has been hashed for the comparison; lists seen in part have a mark there.
        let gathers = record.kind.fields.iter().any(|field| field.gathered);
        let content = match (&record, entry(&record)) {
            (Cow::Borrowed(_), Some(entry)) if !gathers => entry.content,
            _ => record.content(),
        };
        Fresh { record, content }
    };
    let merged = |items: &[Item]| {
        let index = |item: &Item| match item {
            Item::Record(i) => Some(*i),
            Item::Target(_) => None,
        };
        // In the answer's own order, laps as they were flown and runners by number: so it is told. Identity says nothing.
        let mut indices: Vec<usize> = items.iter().filter_map(index).collect();
        indices.sort_unstable();
        indices.into_iter().map(|i| fresh(&observation.records[i])).collect()
    };
    News {
        seen: observation.as_of.unwrap_or(fetched.sent),
        added: merged(&comparison.added),
        changed: merged(&comparison.changed),
    }
}

/// Writes a record, and the history that its change calls for.
fn keep(
    fetched: &Fetched,
    news: &News<'_>,
    fresh: &Fresh<'_>,
    recalled: &Recalled<'_>,
    added: bool,
    judged: &mut Judged,
) {
    let record = &*fresh.record;
    let old = recalled.past(record.fingerprint);
    let is_news = |point: &Point| {
        recalled.told_until(record.fingerprint, &point.stream).is_none_or(|until| point.at > until)
    };
    let observed = history::rows(record, old, is_news).into_iter().map(|row| HistoryWrite {
        fingerprint: record.fingerprint,
        stream: row.stream.to_owned(),
        at: fetched.ended,
        values: row.text(),
        said: String::new(),
        stamp: Stamp::Observed,
        oldest_known: false,
    });
    judged.history.extend(observed);
    judged.history.extend(stamped(record, old, is_news));
    judged.records.push(RecordWrite {
        kind: record.kind.full_name(),
        fingerprint: record.fingerprint,
        key: record.key.clone(),
        parent: record.parent,
        group: record.group,
        content: fresh.content,
        ends: record.ends,
        body: record.body_text(),
        seen: record.seen.unwrap_or(news.seen),
        added,
        base: Base::Recalled(recalled.content(record.fingerprint)),
    });
}

/// The moves that the upstream stamped itself and had not told before.
fn stamped(record: &Record, old: Option<&dyn Past>, is_news: impl Fn(&Point) -> bool) -> Vec<HistoryWrite> {
    let write = |point: &Point| {
        let kind = &*record.kind;
        let stream = kind.streams.iter().find(|s| s.name == point.stream)?;
        let named = stream.fields.iter().zip(&point.values).map(|(name, value)| {
            // What the upstream does not say about that moment is what was known before it.
            let value = match kind.position(name).filter(|_| value.is_null()) {
                Some(place) => match old.and_then(|old| old.value(kind, place)) {
                    Some(carried) => Cow::Owned(carried),
                    None => Cow::Borrowed(&record.values[place]),
                },
                None => Cow::Borrowed(value),
            };
            (name.as_str(), value)
        });
        let said = stream.fields.iter().map(String::as_str).zip(&point.values);
        Some(HistoryWrite {
            fingerprint: record.fingerprint,
            said: object_text(said.filter(|(_, value)| !value.is_null()).collect()),
            stream: point.stream.to_string(),
            at: point.at,
            values: object_text(named.collect()),
            stamp: Stamp::Upstream,
            oldest_known: point.oldest_known,
        })
    };
    record.points.iter().filter(|point| is_news(point)).filter_map(write).collect()
}

/// Whether the record was not away only briefly, so that its last event still keeps it quiet.
fn is_newsworthy(event: &EventWrite, recalled: &Recalled<'_>) -> bool {
    let gone = recalled.records.get(&event.subject).and_then(|stored| stored.gone);
    match (event.quiet.max(event.unseen_for), gone) {
        (Some(quiet), Some(gone)) => event.at - gone >= quiet,
        _ => true,
    }
}

/// Gives each draft its identity: the same on every node and after every crash.
fn events(job: &Job<'_>, fetched: &Fetched, comparison: &Comparison, drafts: Vec<Draft>) -> Vec<EventWrite> {
    let mut ordinals: BTreeMap<(String, Fingerprint), u32> = BTreeMap::new();
    let with_id = |draft: Draft| {
        let ordinal = ordinals.entry((draft.rule.clone(), draft.subject)).or_default();
        let id = EventId::of_poll(
            job.source.name(),
            job.claim.incarnation,
            &draft.rule,
            draft.subject,
            comparison.memory.version,
            *ordinal,
        );
        *ordinal += 1;
        EventWrite {
            id,
            event_type: draft.event_type,
            rule: draft.rule,
            subject: draft.subject,
            subject_key: draft.subject_key,
            at: draft.at.unwrap_or(fetched.ended),
            dedupe_key: draft.dedupe_key,
            data: draft.data,
            requires: draft.requires,
            quiet: draft.quiet,
            unseen_for: draft.unseen_for,
            follows: None,
            sinks: Vec::new(),
        }
    };
    drafts.into_iter().map(with_id).collect()
}
