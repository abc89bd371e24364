//! What is true at any time: which tables are open, which are shown, and whether a told drop was one.

use std::collections::BTreeMap;

use stakeout_core::Time;

use super::bucket::{Bucket, Slot};
use super::market::Market;
use super::replay::{Watch, around};
use super::seating::Seating;
use super::view::ViewKey;
use crate::timeline::Timeline;

/// What is true in a market.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'a> {
    market: &'a Market,
}

/// A time during which a slot could be booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What could be booked.
    pub slot: Slot,
    /// For which of the party sizes asked about.
    pub parties: Vec<u8>,
    /// From when; the distant past when it was open before the market began to move.
    pub from: Time,
    /// The first moment it could not; the far future when that never comes.
    pub until: Time,
}

/// A venue in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// With so many slots.
    Bookable(usize),
    /// With none.
    Unbookable,
    /// Not at all.
    Absent,
}

/// A drop that somebody told.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The bucket it was told for.
    pub bucket: Bucket,
    /// The slot.
    pub slot: Slot,
    /// When the last complete look before it began.
    pub since: Time,
    /// When the page was fetched that showed it.
    pub at: Time,
}

/// Whether a told drop was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was: open, and since the look before there was a moment when the venue had nothing.
    True {
        /// From when it was shown.
        opened: Time,
    },
    /// The slot was not shown then.
    NotOpen,
    /// It has been shown ever since the look before.
    AlreadyOpen,
    /// The venue has had other slots ever since the look before.
    VenueHadSlots,
}

/// What a complete look at a bucket finds of one venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The slots, with the party sizes that see them.
    pub(crate) slots: BTreeMap<Slot, Vec<u8>>,
    pub(crate) listed: bool,
}

impl<'a> Truth<'a> {
    pub(crate) fn new(market: &'a Market) -> Truth<'a> {
        Truth { market }
    }

    pub(crate) fn market(&self) -> &'a Market {
        self.market
    }

    /// What a complete look at a bucket shows at `now`: every slot with the party sizes that see it.
    pub fn shown(&self, bucket: Bucket, parties: &[u8], now: Time) -> BTreeMap<Slot, Vec<u8>> {
        let mut all = BTreeMap::new();
        for party in parties {
            let view = self.market.view(key(bucket, *party));
            for venue in 0..self.market.venues().len() as u32 {
                self.add(&mut all, venue, bucket, *party, view.line(venue).at(now));
            }
        }
        all
    }

    /// How a venue appears to a complete look at a bucket at `now`.
    pub fn listed(&self, venue: u64, bucket: Bucket, parties: &[u8], now: Time) -> Listed {
        let Some(number) = self.market.venue_number(venue) else { return Listed::Absent };
        let mut slots = BTreeMap::new();
        for party in parties {
            let view = self.market.view(key(bucket, *party));
            self.add(&mut slots, number, bucket, *party, view.line(number).at(now));
        }
        match slots.len() {
            0 if self.market.venues()[number as usize].absent_when_full => Listed::Absent,
            0 => Listed::Unbookable,
            count => Listed::Bookable(count),
        }
    }

    /// Every opening of every slot within the bucket's reach, whether shown or hidden behind others, by slot and time.
    pub fn openings(&self, bucket: Bucket, parties: &[u8]) -> Vec<Opening> {
        let reach = self.market.config().reach_minutes;
        let mut all: BTreeMap<Slot, Vec<(Time, Time, &Seating)>> = BTreeMap::new();
        for (venue, tables) in self.market.venues().iter().zip(self.market.tables(bucket.day)) {
            let near = |table: &&Seating| bucket.minute().abs_diff(table.minute) <= reach;
            for table in tables.iter().filter(near) {
                let Some(calendar) = self.market.calendar(bucket.day) else { continue };
                let slot = Slot { venue: venue.id, start: calendar.clock(table.minute) };
                let open = table.open.iter().map(|(from, until)| (*from, *until, table));
                if parties.iter().any(|party| table.takes(*party)) {
                    all.entry(slot).or_default().extend(open);
                }
            }
        }
        all.into_iter().flat_map(|(slot, open)| joined(slot, open, parties)).collect()
    }

    /// Every time during which a complete look at the bucket shows a slot, by slot and time. With a cap these are
    /// fewer and shorter than its [`openings`](Self::openings).
    pub fn showings(&self, bucket: Bucket, parties: &[u8]) -> Vec<Opening> {
        let mut all: Vec<Opening> = Vec::new();
        for venue in 0..self.market.venues().len() as u32 {
            let line = self.line(venue, bucket, parties);
            let mut open: BTreeMap<Slot, Opening> = BTreeMap::new();
            for (at, shown) in line.changes() {
                open.retain(|slot, opening| {
                    let still = shown.slots.contains_key(slot);
                    if !still {
                        all.push(Opening { until: *at, ..opening.clone() });
                    }
                    still
                });
                for (slot, seen_by) in &shown.slots {
                    let new = || Opening { slot: *slot, parties: vec![], from: *at, until: Time(i64::MAX) };
                    let known = &mut open.entry(*slot).or_insert_with(new).parties;
                    known.extend(seen_by);
                    known.sort_unstable();
                    known.dedup();
                }
            }
            all.extend(open.into_values());
        }
        all.sort_by_key(|opening| (opening.slot, opening.from));
        all
    }

    /// Whether a told drop was one, judged by its own bucket. A look that takes a while sees each venue at its own
    /// moment: what counts is what was so at any moment from `since` to `at`.
    pub fn verdict(&self, watch: &Watch, report: &Report) -> Verdict {
        let Some(venue) = self.market.venue_number(report.slot.venue) else { return Verdict::NotOpen };
        let line = self.line(venue, report.bucket, &watch.parties);
        let (at_since, at_last) = (line.until(report.since).len(), line.until(report.at).len());
        let meanwhile = &line.changes()[at_since.saturating_sub(1)..at_last];
        if !meanwhile.last().is_some_and(|(_, shown)| shown.slots.contains_key(&report.slot)) {
            return Verdict::NotOpen;
        }
        if meanwhile.iter().all(|(_, shown)| shown.slots.contains_key(&report.slot)) {
            return Verdict::AlreadyOpen;
        }
        if meanwhile.iter().all(|(_, shown)| !shown.slots.is_empty()) {
            return Verdict::VenueHadSlots;
        }
        Verdict::True { opened: around(&line, report.slot, report.at).0 }
    }

    /// What complete looks at a bucket find of one venue, over time; the first value has always held.
    pub(crate) fn line(&self, venue: u32, bucket: Bucket, parties: &[u8]) -> Timeline<Shown> {
        let listed_anyway = !self.market.venues()[venue as usize].absent_when_full;
        let views: Vec<_> = parties.iter().map(|party| self.market.view(key(bucket, *party))).collect();
        let times = views.iter().flat_map(|view| view.line(venue).changes().iter().map(|(at, _)| *at));
        let mut times: Vec<Time> = times.collect();
        times.sort_unstable();
        times.dedup();
        let shown = times.into_iter().map(|at| {
            let mut slots = BTreeMap::new();
            for (view, party) in views.iter().zip(parties) {
                self.add(&mut slots, venue, bucket, *party, view.line(venue).at(at));
            }
            let listed = listed_anyway || !slots.is_empty();
            (at, Shown { slots, listed })
        });
        Timeline::new(shown.collect())
    }

    /// Whether the bucket shows nothing of the venue at some times and something at others.
    pub(crate) fn is_sometimes_empty(&self, venue: u32, bucket: Bucket, parties: &[u8]) -> bool {
        let views: Vec<_> = parties.iter().map(|party| self.market.view(key(bucket, *party))).collect();
        let lines = || views.iter().map(|view| view.line(venue).changes());
        lines().any(|changes| changes.len() > 1)
            && lines().all(|changes| changes.iter().any(|(_, shown)| shown.is_empty()))
    }

    fn add(
        &self,
        slots: &mut BTreeMap<Slot, Vec<u8>>,
        venue: u32,
        bucket: Bucket,
        party: u8,
        shown: Option<&Vec<u16>>,
    ) {
        let (Some(calendar), Some(shown)) = (self.market.calendar(bucket.day), shown) else { return };
        let id = self.market.venues()[venue as usize].id;
        for n in shown {
            let minute = self.market.tables(bucket.day)[venue as usize][usize::from(*n)].minute;
            let seen_by = slots.entry(Slot { venue: id, start: calendar.clock(minute) }).or_default();
            // One start may have several tables.
            if !seen_by.contains(&party) {
                seen_by.push(party);
            }
        }
    }
}

fn key(bucket: Bucket, party: u8) -> ViewKey {
    ViewKey { day: bucket.day, minute: Some(bucket.minute()), party }
}

/// The openings of a slot's tables, joined where they meet.
fn joined(slot: Slot, mut open: Vec<(Time, Time, &Seating)>, parties: &[u8]) -> Vec<Opening> {
    open.sort_by_key(|(from, until, _)| (*from, *until));
    let mut all: Vec<Opening> = Vec::new();
    for (from, until, table) in open {
        let seen_by = parties.iter().copied().filter(|party| table.takes(*party));
        match all.last_mut() {
            Some(last) if from <= last.until => {
                last.until = last.until.max(until);
                last.parties.extend(seen_by);
                last.parties.sort_unstable();
                last.parties.dedup();
            }
            _ => all.push(Opening { slot, parties: seen_by.collect(), from, until }),
        }
    }
    all
}
