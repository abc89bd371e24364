//! What changed since the last good poll: a merge of two sorted lists, with doubt where an answer is too bad to be true.
//!
//! **Invariants:** records are removed only where the observation proves their absence, or their own time has passed; a mass removal counts only
//! when a second answer agrees, whether there are events or not; a change of meaning is a new baseline and never an
//! event. What went with a confirmed mass removal may come back untold ([`Memory::removals`]), until two whole answers
//! have done without it; after a while only together ([`Removal::awaits_singly`]).

mod memory;
mod removal;

use std::collections::BTreeSet;

use crate::{ContentHasher, Coverage, Entry, Fingerprint, Observation, Snapshot, Span, TargetSpec, Time};

pub use memory::{Doubt, Memory};
pub use removal::{Removal, Return, SINGLY_AFTER};

/// When an answer is too bad to be true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubtPolicy {
    /// Doubt an answer that removes more than this share of what the target holds…
    pub share: f64,
    /// …and at least so many records.
    pub at_least: usize,
    /// Doubt an answer with nothing at all where there was something, however little.
    pub emptiness: bool,
    /// Whether an empty first answer needs a second one to become the baseline.
    pub confirm_empty_baseline: bool,
    /// Records without a group only accompany the others (a venue its slots): they are not counted, an answer with
    /// nothing else is empty, and of those that went it is remembered until the next answer.
    pub companions: bool,
}

impl Default for DoubtPolicy {
    fn default() -> DoubtPolicy {
        DoubtPolicy {
            share: 0.5,
            at_least: 5,
            emptiness: false,
            confirm_empty_baseline: false,
            companions: false,
        }
    }
}

/// What to compare with, and by which rules.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// What the target held.
    pub snapshot: &'a Snapshot,
    /// What the comparison remembers.
    pub memory: &'a Memory,
    /// What an answer means now: kinds' versions and parameters ([`meaning`]).
    pub meaning: u64,
    /// When to doubt.
    pub policy: DoubtPolicy,
    /// A doubted answer is confirmed no sooner than this after it.
    pub refresh: Span,
    /// When the poll was sent.
    pub sent: Time,
    /// When its answer was whole.
    pub ended: Time,
}

/// How the answer compares with what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing new.
    Unchanged,
    /// Something new, to be judged.
    Changed,
    /// Everything is taken as it is and nothing is told.
    Baseline,
    /// Nothing is taken until a second answer agrees.
    Doubted,
}

/// Something in an observation: a record, or a target that a listing wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An index into the observation's records.
    Record(usize),
    /// An index into the observation's targets.
    Target(usize),
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What it amounts to.
    pub verdict: Verdict,
    /// Not in the snapshot before.
    pub added: Vec<Item>,
    /// In the snapshot with other content.
    pub changed: Vec<Item>,
    /// In the snapshot, and proven absent now.
    pub removed: Vec<Entry>,
    /// The new snapshot, when it differs from the old one.
    pub next: Option<Snapshot>,
    /// What to remember.
    pub memory: Memory,
    /// Identities that the observation had more than once; the last of each counts.
    pub duplicates: usize,
}

impl Comparison {
    fn nothing(verdict: Verdict, memory: Memory) -> Comparison {
        Comparison {
            verdict,
            added: vec![],
            changed: vec![],
            removed: vec![],
            next: None,
            memory,
            duplicates: 0,
        }
    }
}

/// The identity of a target within its listing's snapshot.
pub fn target_fingerprint(key: &str) -> Fingerprint {
    Fingerprint::of("target", &[key])
}

/// What the kinds' versions mean together; with a target's own parameters, what an answer means.
pub fn kinds_meaning(kinds: &[std::sync::Arc<crate::Kind>]) -> u64 {
    let versions: Vec<String> = kinds.iter().map(|k| format!("{}={}", k.full_name(), k.version)).collect();
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    crate::spread(&versions)
}

/// What an answer means: when a kind's version or a deciding parameter moves, so does this number.
pub fn meaning(kinds: u64, target: &TargetSpec) -> u64 {
    crate::spread(&[&kinds.to_string(), &target.meaning.to_string()])
}

/// Compares an observation with what the target held.
pub fn compare(basis: &Basis<'_>, observation: &Observation) -> Comparison {
    let (items, duplicates) = sorted_items(observation);
    let merged = merge(basis, &items, observation);
    let complete = observation.coverage.is_whole();
    let same_meaning = basis.memory.meaning == Some(basis.meaning) && !basis.memory.rebaseline;

    let mut memory = basis.memory.clone();
    // An answer that was doubted and is confirmed now was a whole one, too: what neither has, was absent twice.
    let mut confirmed: Option<&Doubt> = None;
    let mut went = None;
    let empty = items.iter().all(|(entry, _)| !is_counted(basis, observation, entry));
    match doubt(basis, observation, empty, &merged.removed) {
        Trust::Plain => {}
        Trust::Confirmed => {
            confirmed = basis.memory.doubt.as_ref();
            let counted = merged.removed.iter().filter(|entry| is_counted(basis, observation, entry));
            went = Some((basis.ended, counted.count()));
        }
        Trust::Doubted(why) => {
            memory.doubt = Some(why);
            return Comparison { duplicates, ..Comparison::nothing(Verdict::Doubted, memory) };
        }
    }
    let unsure = !same_meaning && complete && empty && basis.policy.confirm_empty_baseline;
    if unsure && !confirms_emptiness(basis) {
        let at = basis.memory.doubt.as_ref().map_or(basis.sent, |d| d.at);
        memory.doubt = Some(Doubt { at, kept: vec![] });
        return Comparison::nothing(Verdict::Doubted, memory);
    }
    if same_meaning || complete {
        memory.doubt = None;
    }
    let added = merged.added.iter().filter(|item| is_counted_item(basis, observation, item)).count();
    let answer = removal::Answer { whole: complete, added, confirmed: went };
    memory.removals = removal::after(&answer, &basis.memory.removals, &basis.policy);
    if complete {
        (memory.meaning, memory.rebaseline) = (Some(basis.meaning), false);
        memory.unsure = unproven_and_empty(&observation.coverage, &merged.kept);
        if basis.policy.companions {
            memory.answers = if same_meaning { memory.answers.saturating_add(1).min(2) } else { 1 };
            memory.left = companions_that_left(&merged.removed);
            memory.left.retain(|one| confirmed.is_none_or(|first| first.kept.contains(one)));
        }
    }

    let differs = !(merged.added.is_empty() && merged.changed.is_empty() && merged.removed.is_empty());
    let verdict = match (same_meaning, differs) {
        (false, _) => Verdict::Baseline,
        (true, true) => Verdict::Changed,
        (true, false) => Verdict::Unchanged,
    };
    if differs {
        memory.version += 1;
    }
    let next = differs.then(|| Snapshot::new(merged.kept));
    let Merged { added, changed, removed, .. } = merged;
    Comparison { verdict, added, changed, removed, next, memory, duplicates }
}

/// Everything in the observation with its entry, sorted by identity, each once.
fn sorted_items(observation: &Observation) -> (Vec<(Entry, Item)>, usize) {
    let mut hasher = ContentHasher::new();
    let records = observation.records.iter().enumerate();
    let records = records.map(|(i, record)| (Entry::by(record, &mut hasher), Item::Record(i)));
    let targets = observation.targets.iter().flatten().enumerate().map(|(i, target)| {
        let entry = Entry {
            fingerprint: target_fingerprint(&target.key),
            group: Fingerprint::default(),
            content: target.content(),
            ends: target.ends,
        };
        (entry, Item::Target(i))
    });
    let mut items: Vec<(Entry, Item)> = records.chain(targets).collect();
    let seen = items.len();
    // The sort is stable: reversed first, the last of equal identities stands first and survives. It moves identities,
    // which are a fraction of the whole, and everything else once.
    items.reverse();
    items.sort_by_cached_key(|(entry, _)| entry.fingerprint);
    items.dedup_by_key(|(entry, _)| entry.fingerprint);
    let duplicates = seen - items.len();
    (items, duplicates)
}

struct Merged {
    added: Vec<Item>,
    changed: Vec<Item>,
    removed: Vec<Entry>,
    kept: Vec<Entry>,
}

/// Whether this entry is one of those that an answer is judged by.
fn is_counted(basis: &Basis<'_>, observation: &Observation, entry: &Entry) -> bool {
    // What a listing wants has no group and is all there is.
    !basis.policy.companions || observation.targets.is_some() || entry.group != Fingerprint::default()
}

fn is_counted_item(basis: &Basis<'_>, observation: &Observation, item: &Item) -> bool {
    match item {
        Item::Record(n) => {
            !basis.policy.companions || observation.records[*n].group != Fingerprint::default()
        }
        Item::Target(_) => true,
    }
}

/// The groups that a whole answer leaves open and of which nothing is held: seen with nothing they were not.
fn unproven_and_empty(coverage: &Coverage, kept: &[Entry]) -> Vec<Fingerprint> {
    let Coverage::CompleteBut(scope) = coverage else { return Vec::new() };
    let mut held: Vec<Fingerprint> = kept.iter().map(|entry| entry.group).collect();
    held.sort_unstable();
    scope.0.iter().filter(|group| held.binary_search(group).is_err()).copied().collect()
}

fn companions_that_left(removed: &[Entry]) -> Vec<Fingerprint> {
    let alone = removed.iter().filter(|entry| entry.group == Fingerprint::default());
    alone.map(|entry| entry.fingerprint).collect()
}

fn merge(basis: &Basis<'_>, new: &[(Entry, Item)], observation: &Observation) -> Merged {
    let (old, coverage) = (basis.snapshot, &observation.coverage);
    let mut merged = Merged {
        added: vec![],
        changed: vec![],
        removed: vec![],
        kept: Vec::with_capacity(old.len().max(new.len())),
    };
    let mut old = old.entries().iter().peekable();
    let absent = |entry: &Entry, merged: &mut Merged| {
        // What is over by itself needs no proof.
        let over = *coverage != Coverage::None && entry.ends.is_some_and(|ends| ends <= basis.sent);
        if over || coverage.proves_absence(entry.group) {
            merged.removed.push(*entry);
        } else {
            merged.kept.push(*entry);
        }
    };
    for (entry, item) in new {
        while let Some(before) = old.next_if(|o| o.fingerprint < entry.fingerprint) {
            absent(before, &mut merged);
        }
        let before = old.next_if(|o| o.fingerprint == entry.fingerprint);
        // What is stored of a list that this answer does not show whole may be more than it says. Under a mark of its
        // own the next answer that does show it whole is another, and is taken as it is.
        let same = before.is_some_and(|before| before.content == entry.content);
        let in_part = !same && is_gathered(item, observation) && !coverage.proves_absence(entry.group);
        let content = if in_part { entry.content.in_part() } else { entry.content };
        match before {
            None => merged.added.push(*item),
            Some(before) if before.content != content => merged.changed.push(*item),
            Some(_) => {}
        }
        merged.kept.push(Entry { content, ..*entry });
    }
    old.for_each(|entry| absent(entry, &mut merged));
    merged
}

/// Whether it has lists that several answers make up together.
fn is_gathered(item: &Item, observation: &Observation) -> bool {
    match item {
        Item::Record(n) => observation.records[*n].kind.fields.iter().any(|field| field.gathered),
        Item::Target(_) => false,
    }
}

enum Trust {
    Plain,
    Confirmed,
    Doubted(Doubt),
}

fn doubt(basis: &Basis<'_>, observation: &Observation, empty: bool, removed: &[Entry]) -> Trust {
    let counts = |e: &&Entry| {
        is_counted(basis, observation, e)
            && e.ends.is_none_or(|ends| ends > basis.sent)
            && !observation.reset_groups.contains(&e.group)
    };
    let held = basis.snapshot.entries().iter().filter(counts).count();
    let emptied = |n: usize| basis.policy.emptiness && empty && n > 0;
    let mass =
        |n: usize| emptied(n) || (n >= basis.policy.at_least && n as f64 > held as f64 * basis.policy.share);
    if !mass(removed.iter().filter(counts).count()) {
        return Trust::Plain;
    }
    let fresh = || {
        let removed: BTreeSet<Fingerprint> = removed.iter().map(|e| e.fingerprint).collect();
        let kept = basis.snapshot.entries().iter().map(|e| e.fingerprint);
        Doubt { at: basis.sent, kept: kept.filter(|f| !removed.contains(f)).collect() }
    };
    let Some(first) = &basis.memory.doubt else { return Trust::Doubted(fresh()) };
    let in_first: BTreeSet<Fingerprint> = first.kept.iter().copied().collect();
    let in_neither = removed.iter().filter(counts).filter(|e| !in_first.contains(&e.fingerprint)).count();
    if !mass(in_neither) {
        // Both are bad, but not in the same way: the newer one waits for its own second.
        Trust::Doubted(fresh())
    } else if basis.sent - first.at < basis.refresh {
        Trust::Doubted(first.clone())
    } else {
        Trust::Confirmed
    }
}

fn confirms_emptiness(basis: &Basis<'_>) -> bool {
    basis.memory.doubt.as_ref().is_some_and(|first| basis.sent - first.at >= basis.refresh)
}

#[cfg(test)]
mod tests;
