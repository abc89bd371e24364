//! What a perfect watcher would tell, given when it looks: the rules of drops, venue by venue.
//!
//! Written straight from the rules, on purpose without anything in common with the code it is compared with.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, Time as Clock};
use stakeout_core::{Span, Time};

use super::bucket::{Bucket, Slot};
use super::truth::{Shown, Truth};
use crate::timeline::Timeline;

/// What a watcher watches, and how it decides.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The times of day it searches for; with a date each is a bucket.
    pub times: Vec<Clock>,
    /// The party sizes that one look asks for.
    pub parties: Vec<u8>,
    /// How long a slot stays untold after it was told.
    pub quiet: Span,
    /// How long a look at another bucket counts.
    pub fresh: Span,
}

impl Default for Watch {
    /// 15:00 and 20:30, for two and for four; half an hour of quiet, four hours fresh.
    fn default() -> Watch {
        Watch {
            times: vec![Clock::constant(15, 0, 0, 0), Clock::constant(20, 30, 0, 0)],
            parties: vec![2, 4],
            quiet: Span::mins(30),
            fresh: Span::hours(4),
        }
    }
}

/// One complete look at a bucket: every party size, every page, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Look {
    /// When.
    pub at: Time,
    /// At what.
    pub bucket: Bucket,
}

/// A slot that opened at a venue that had none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    /// When the watcher saw it and told.
    pub seen: Time,
    /// The bucket that showed it first.
    pub bucket: Bucket,
    /// What opened.
    pub slot: Slot,
    /// The party sizes that saw it.
    pub parties: Vec<u8>,
    /// From when it was shown without a break, up to the look.
    pub opened: Time,
    /// The first moment it is not shown any more; the far future when it stays.
    pub closed: Time,
}

impl Drop {
    /// The first of these looks (in order of time) that could have seen it.
    pub fn first_seen(&self, looks: &[Time]) -> Option<Time> {
        let next = looks.get(looks.partition_point(|at| *at < self.opened));
        next.copied().filter(|at| *at < self.closed)
    }
}

/// When one bucket is looked at.
enum Looks {
    At(Vec<Time>),
    Always { from: Time, until: Time },
}

impl Looks {
    /// The first look from `from` on and before `until`, and how many there are.
    fn within(&self, from: Time, until: Time) -> Option<(Time, usize)> {
        match self {
            Looks::At(times) => {
                let (first, end) =
                    (times.partition_point(|at| *at < from), times.partition_point(|at| *at < until));
                (first < end).then(|| (times[first], end - first))
            }
            Looks::Always { from: first, until: end } => {
                let (from, until) = (from.max(*first), until.min(*end));
                (from < until).then_some((from, usize::MAX))
            }
        }
    }

    fn last_before(&self, at: Time) -> Option<Time> {
        match self {
            Looks::At(times) => times[..times.partition_point(|look| *look <= at)].last().copied(),
            Looks::Always { from, .. } => (*from <= at).then_some(at),
        }
    }
}

/// What one bucket remembers of one venue.
struct Memory {
    shown: Shown,
    /// Looks in a row that found it so.
    looks: usize,
}

impl Memory {
    /// Whether the venue is known to have had nothing: seen with nothing, or not seen twice.
    fn had_none(&self) -> bool {
        self.shown.slots.is_empty() && (self.shown.listed || self.looks >= 2)
    }
}

/// The first look that found a venue as it then was, until it changed.
struct Visit<'a> {
    at: Time,
    bucket: usize,
    shown: &'a Shown,
    looks: usize,
}

impl Truth<'_> {
    /// The drops that a watcher tells that looks all the time from `from` until `until`, in order of time. What is
    /// open at `from` is its baseline.
    pub fn drops(&self, watch: &Watch, from: Time, until: Time) -> Vec<Drop> {
        let dates: Vec<Date> = self.market().dates().collect();
        self.replay(watch, &dates, |_| Looks::Always { from, until })
    }

    /// The drops that a watcher tells that looks at these moments: the first complete look at a bucket (the second,
    /// where the first finds nothing at all) is its baseline.
    pub fn expected(&self, watch: &Watch, looks: &[Look]) -> Vec<Drop> {
        let mut by_bucket: BTreeMap<Bucket, Vec<Time>> = BTreeMap::new();
        looks.iter().for_each(|look| by_bucket.entry(look.bucket).or_default().push(look.at));
        for (bucket, times) in &mut by_bucket {
            times.sort_unstable();
            times.dedup();
            if self.shown(*bucket, &watch.parties, times[0]).is_empty() {
                times.remove(0);
            }
        }
        let dates: BTreeSet<Date> = by_bucket.keys().map(|bucket| bucket.day).collect();
        let dates: Vec<Date> = dates.into_iter().collect();
        self.replay(watch, &dates, |bucket| Looks::At(by_bucket.get(&bucket).cloned().unwrap_or_default()))
    }

    fn replay(&self, watch: &Watch, dates: &[Date], looks: impl Fn(Bucket) -> Looks) -> Vec<Drop> {
        let mut drops = Vec::new();
        for date in dates {
            let buckets: Vec<(Bucket, Looks)> = watch
                .times
                .iter()
                .map(|time| Bucket::new(*date, *time))
                .map(|bucket| (bucket, looks(bucket)))
                .collect();
            for venue in 0..self.market().venues().len() as u32 {
                // Most venues always have something, or never.
                if !buckets.iter().any(|(bucket, _)| self.is_sometimes_empty(venue, *bucket, &watch.parties))
                {
                    continue;
                }
                let line = |(bucket, _): &(Bucket, Looks)| self.line(venue, *bucket, &watch.parties);
                let lines: Vec<Timeline<Shown>> = buckets.iter().map(line).collect();
                drops.extend(of_venue(watch, &buckets, &lines));
            }
        }
        drops.sort_by_key(|drop| (drop.seen, drop.slot, drop.bucket));
        drops
    }
}

/// One venue on one date, through all its buckets.
fn of_venue(watch: &Watch, buckets: &[(Bucket, Looks)], lines: &[Timeline<Shown>]) -> Vec<Drop> {
    let mut memories: Vec<Option<Memory>> = buckets.iter().map(|_| None).collect();
    let mut told: BTreeMap<Slot, Time> = BTreeMap::new();
    let mut drops = Vec::new();
    for visit in visits(buckets, lines) {
        let (bucket, own_looks) = &buckets[visit.bucket];
        let Some(before) = memories[visit.bucket].take() else {
            memories[visit.bucket] = Some(Memory { shown: visit.shown.clone(), looks: visit.looks });
            continue;
        };
        let open_elsewhere = memories.iter().zip(buckets).any(|(memory, (_, looks))| {
            let fresh = looks.last_before(visit.at).is_some_and(|last| visit.at - last <= watch.fresh);
            fresh && memory.as_ref().is_some_and(|memory| !memory.shown.slots.is_empty())
        });
        if before.had_none() && !open_elsewhere {
            for (slot, parties) in &visit.shown.slots {
                if told.get(slot).is_some_and(|last| visit.at - *last < watch.quiet) {
                    continue;
                }
                told.insert(*slot, visit.at);
                let (opened, closed) = around(&lines[visit.bucket], *slot, visit.at);
                let (bucket, parties) = (*bucket, parties.clone());
                drops.push(Drop { seen: visit.at, bucket, slot: *slot, parties, opened, closed });
            }
        }
        let again = if before.shown == *visit.shown { before.looks } else { 0 };
        let looks = visit.looks.saturating_add(again);
        memories[visit.bucket] = Some(Memory { shown: visit.shown.clone(), looks });
        debug_assert!(own_looks.last_before(visit.at) == Some(visit.at), "a visit is a look");
    }
    drops
}

/// Every look that finds something else than the one before, in order of time.
fn visits<'a>(buckets: &[(Bucket, Looks)], lines: &'a [Timeline<Shown>]) -> Vec<Visit<'a>> {
    let mut visits = Vec::new();
    for (bucket, ((_, looks), line)) in buckets.iter().zip(lines).enumerate() {
        let changes = line.changes();
        for (n, (from, shown)) in changes.iter().enumerate() {
            let until = changes.get(n + 1).map_or(Time(i64::MAX), |(next, _)| *next);
            if let Some((at, looks)) = looks.within(*from, until) {
                visits.push(Visit { at, bucket, shown, looks });
            }
        }
    }
    visits.sort_by_key(|visit| (visit.at, visit.bucket));
    visits
}

/// From when until when a slot is shown without a break around that moment.
pub(crate) fn around(line: &Timeline<Shown>, slot: Slot, at: Time) -> (Time, Time) {
    let (before, after) = line.changes().split_at(line.until(at).len());
    let held = before.iter().rev().take_while(|(_, shown)| shown.slots.contains_key(&slot));
    let opened = held.last().map_or(at, |(from, _)| *from);
    let gone = after.iter().find(|(_, shown)| !shown.slots.contains_key(&slot));
    (opened, gone.map_or(Time(i64::MAX), |(from, _)| *from))
}
