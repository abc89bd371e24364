//! What the feed shows: drops that are still open, by date and venue. Pure functions over what the store holds.
//!
//! Whoever asks gives the events of type [`DROP`](super::DROP) (the store's cursor is their sequence number, never a
//! clock), the records of their subjects as they are now, and the buckets. Everything else follows.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, Time as Clock};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use stakeout_core::{Event, Fingerprint, Span, Time};

use super::clock;

/// How long a drop is "just opened" unless somebody says otherwise.
pub const JUST_OPENED: Span = Span::mins(30);
/// A bucket that was not scanned for this long says nothing about now.
pub const STALE_AFTER: Span = Span::hours(4);

/// A slot's record as it is now.
#[derive(Clone, Debug)]
pub struct SlotNow<'a> {
    /// Its fields.
    pub body: &'a Map<String, Json>,
    /// When it was first seen.
    pub first_seen: Time,
    /// When the last whole scan began of any bucket that still holds it.
    pub scanned: Option<Time>,
    /// When it closed; `None` while it is open.
    pub gone: Option<Time>,
}

/// How a bucket is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BucketHealth {
    /// The bucket.
    pub bucket_id: String,
    /// Its last good scan.
    pub last_scan: Option<Time>,
    /// How many polls it has had.
    pub polls: u64,
    /// How old the last scan is.
    pub staleness_ms: Option<i64>,
    /// Not scanned for four hours: what it last saw is not shown as just opened.
    pub stale: bool,
}

impl BucketHealth {
    /// The health of a bucket at `now`.
    pub fn at(now: Time, bucket_id: &str, last_scan: Option<Time>, polls: u64) -> BucketHealth {
        let age = last_scan.map(|scan| now - scan);
        BucketHealth {
            bucket_id: bucket_id.to_owned(),
            last_scan,
            polls,
            staleness_ms: age.map(Span::as_ms),
            stale: age.is_none_or(|age| age >= STALE_AFTER),
        }
    }

    /// The date that it searches: an id ends with date and time, whether a market's name is in front or not.
    pub fn date(&self) -> &str {
        self.bucket_id.rsplit('_').nth(1).unwrap_or_default()
    }
}

/// Which slots are wanted; what is not said is not filtered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// On this date.
    pub date: Option<Date>,
    /// Seen by a search for so many people.
    pub party_size: Option<u32>,
    /// Not before this time of the day.
    pub from: Option<Clock>,
    /// Not after this time of the day.
    pub to: Option<Clock>,
    /// In any spelling of small and capital letters.
    pub neighborhood: Option<String>,
    /// Only these venues, when there are any.
    pub follow: BTreeSet<String>,
    /// None of these venues.
    pub exclude: BTreeSet<String>,
    /// Only drops with a greater sequence number: those that a reader has not seen.
    pub after: Option<u64>,
    /// At most so many slots, those with the least sequence numbers.
    pub most: Option<usize>,
}

/// What the feed shows, or a part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// By date.
    pub days: Vec<Day>,
    /// Where the next part begins: the last sequence number of this one. `None` when this is all.
    pub next: Option<u64>,
}

/// A date that somebody filters by: `2026-02-28`.
pub fn date(text: &str) -> Option<Date> {
    clock::date_of(text.trim())
}

/// A time of the day that somebody filters by: `18:30`, `9:00` or `18:30:00`.
pub fn time_of_day(text: &str) -> Option<Clock> {
    clock::clock_of(text.trim())
}

/// The open slots of a date.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Day {
    /// `YYYY-MM-DD`
    pub date: String,
    /// Its venues by name.
    pub venues: Vec<VenueOpen>,
    /// Its buckets by id: how fresh what is said about this date is.
    pub buckets: Vec<BucketHealth>,
}

/// The open slots of a venue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VenueOpen {
    /// Its id.
    pub venue_id: String,
    /// Its name.
    pub venue_name: Option<String>,
    /// Where it is.
    pub neighborhood: Option<String>,
    /// By time.
    pub slots: Vec<SlotOpen>,
}

/// A slot that opened and still is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlotOpen {
    /// Its id.
    pub slot_id: Fingerprint,
    /// On the venue's clock.
    pub start: String,
    /// The party sizes that saw it.
    pub party_sizes: Vec<u32>,
    /// When its page was read for the first time with it.
    pub opened_at: Time,
    /// When the slot was ever first seen.
    pub first_seen: Time,
    /// When it was last seen: the beginning of the last whole scan that had it, or its own page if that was read later.
    pub last_seen: Time,
    /// `nonempty_prev` or `empty_prev`: what the bucket had before.
    pub evidence: String,
    /// The bucket that saw it first.
    pub bucket_id: String,
    /// The event's sequence number: a reader's cursor.
    pub seq: u64,
}

/// Everything the feed is made of.
#[derive(Clone, Copy, Debug)]
pub struct Holding<'a> {
    /// The drops, in sequence order.
    pub drops: &'a [Event],
    /// The subjects of the drops, by fingerprint.
    pub slots: &'a BTreeMap<Fingerprint, SlotNow<'a>>,
    /// The buckets that exist.
    pub buckets: &'a BTreeMap<String, BucketHealth>,
}

/// The drops of the last `within` that are still open, without those that only a stale bucket knows.
pub fn just_opened(holding: &Holding<'_>, now: Time, within: Span, filter: &Filter) -> Shown {
    let fresh = |drop: &OpenDrop<'_>| {
        let health = holding.buckets.get(&drop.event.target);
        now - drop.opened_at <= within && health.is_some_and(|health| !health.stale)
    };
    by_date(holding, filter, fresh)
}

/// All drops that are still open, whenever they opened.
pub fn still_open(holding: &Holding<'_>, filter: &Filter) -> Shown {
    by_date(holding, filter, |_| true)
}

/// When the page that first had a drop was read.
pub fn opened_at(drop: &Event) -> Time {
    drop.data["opened_at"].as_str().and_then(Time::parse).unwrap_or(drop.at)
}

/// A drop whose slot is open.
struct OpenDrop<'a> {
    event: &'a Event,
    slot: &'a SlotNow<'a>,
    opened_at: Time,
}

impl<'a> OpenDrop<'a> {
    fn of(event: &'a Event, slots: &'a BTreeMap<Fingerprint, SlotNow<'a>>) -> Option<OpenDrop<'a>> {
        let slot = slots.get(&event.subject).filter(|slot| slot.gone.is_none())?;
        Some(OpenDrop { event, slot, opened_at: opened_at(event) })
    }

    fn text(&self, field: &str) -> Option<&'a str> {
        self.slot.body.get(field).and_then(Json::as_str)
    }

    fn party_sizes(&self) -> Vec<u32> {
        let sizes = self.slot.body.get("party_sizes").and_then(Json::as_array);
        sizes.into_iter().flatten().filter_map(|n| u32::try_from(n.as_u64()?).ok()).collect()
    }

    fn passes(&self, filter: &Filter) -> bool {
        let venue = self.text("venue_id").unwrap_or_default();
        let start = self.text("start").and_then(clock::local);
        let clock = start.map(|start| start.time());
        let date = self.text("date").and_then(clock::date_of);
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_ref().is_none_or(|w| found.is_some_and(|f| f.to_lowercase() == w.trim().to_lowercase()))
        };
        filter.after.is_none_or(|after| self.event.seq > after)
            && filter.date.is_none_or(|wanted| date == Some(wanted))
            && same(&filter.neighborhood, self.text("neighborhood"))
            && filter.party_size.is_none_or(|size| self.party_sizes().contains(&size))
            && filter.from.is_none_or(|from| clock.is_some_and(|clock| clock >= from))
            && filter.to.is_none_or(|to| clock.is_some_and(|clock| clock <= to))
            && (filter.follow.is_empty() || filter.follow.contains(venue))
            && !filter.exclude.contains(venue)
    }

    /// A scan takes a minute: whoever saw a page of it has seen the slot later than the scan began.
    fn last_seen(&self) -> Time {
        let page = self.text("seen_at").and_then(Time::parse);
        self.opened_at.max(page.unwrap_or(self.opened_at)).max(self.slot.scanned.unwrap_or(self.opened_at))
    }

    fn open(&self) -> SlotOpen {
        SlotOpen {
            slot_id: self.event.subject,
            start: self.text("start").unwrap_or_default().to_owned(),
            party_sizes: self.party_sizes(),
            opened_at: self.opened_at,
            first_seen: self.slot.first_seen,
            last_seen: self.last_seen(),
            evidence: self.event.data["evidence"].as_str().unwrap_or_default().to_owned(),
            bucket_id: self.event.target.clone(),
            seq: self.event.seq,
        }
    }
}

fn by_date(holding: &Holding<'_>, filter: &Filter, wanted: impl Fn(&OpenDrop<'_>) -> bool) -> Shown {
    // Of several drops of one slot the newest counts: it closed in between.
    let mut newest: BTreeMap<Fingerprint, OpenDrop<'_>> = BTreeMap::new();
    for drop in holding.drops.iter().filter_map(|event| OpenDrop::of(event, holding.slots)) {
        newest.insert(drop.event.subject, drop);
    }
    let mut shown: Vec<OpenDrop<'_>> =
        newest.into_values().filter(|drop| drop.passes(filter) && wanted(drop)).collect();
    shown.sort_by_key(|drop| drop.event.seq);
    let most = filter.most.unwrap_or(usize::MAX);
    let more = shown.len() > most;
    shown.truncate(most);
    let next = shown.last().filter(|_| more).map(|drop| drop.event.seq);
    Shown { days: days(holding, &shown), next }
}

fn days(holding: &Holding<'_>, shown: &[OpenDrop<'_>]) -> Vec<Day> {
    let mut days: BTreeMap<String, BTreeMap<String, VenueOpen>> = BTreeMap::new();
    for drop in shown {
        let text = |field: &str| drop.text(field).map(str::to_owned);
        let venue_id = text("venue_id").unwrap_or_default();
        let venues = days.entry(text("date").unwrap_or_default()).or_default();
        let venue = venues.entry(venue_id.clone()).or_insert_with(|| VenueOpen {
            venue_id,
            venue_name: text("venue_name"),
            neighborhood: text("neighborhood"),
            slots: Vec::new(),
        });
        venue.slots.push(drop.open());
    }
    let day = |(date, venues): (String, BTreeMap<String, VenueOpen>)| {
        let mut venues: Vec<VenueOpen> = venues.into_values().collect();
        venues.iter_mut().for_each(|venue| venue.slots.sort_by(|a, b| a.start.cmp(&b.start)));
        venues.sort_by(|a, b| (&a.venue_name, &a.venue_id).cmp(&(&b.venue_name, &b.venue_id)));
        let buckets = holding.buckets.values().filter(|health| health.date() == date).cloned().collect();
        Day { date, venues, buckets }
    };
    days.into_iter().map(day).collect()
}
