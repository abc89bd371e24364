//! The records of a venue: itself, and a slot for every time at which somebody may sit.
//!
//! A city has thousands of them in every answer, and they say much of the same: what all slots of a bucket, a venue or
//! a time have in common is written once and shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use stakeout_core::{Record, Time, Value};

use super::clock;
use super::normalize::{Answered, Listed, Reading};
use super::provider::{Hit, Offer};

/// Writes the records of a bucket.
pub(super) struct Writer<'a> {
    reading: &'a Reading<'a>,
    bucket_id: Value,
    provider: Value,
    date: Value,
    written: Written<'a>,
}

/// One way to sit, on one page.
struct Offered<'a> {
    offer: &'a Offer<'a>,
    on: &'a Answered<'a>,
}

impl Offered<'_> {
    /// What tells the seatings of one time apart.
    fn seating(&self) -> (Option<&str>, Option<i64>) {
        (self.offer.seating.as_deref(), self.offer.config_id)
    }
}

/// Where a slot's own id stands among its fields.
const SLOT_ID: usize = 1;

impl<'a> Writer<'a> {
    pub(super) fn new(reading: &'a Reading<'a>) -> Writer<'a> {
        Writer {
            reading,
            bucket_id: reading.bucket_id.into(),
            provider: reading.provider.name().into(),
            date: reading.date.into(),
            written: Written { zone: reading.zone, times: BTreeMap::new(), stamp: None },
        }
    }

    /// A venue, as the first page that lists it says.
    pub(super) fn venue(&self, hit: &Hit<'_>, id: &str) -> Record {
        let values = vec![
            id.into(),
            self.provider.clone(),
            hit.name.as_deref().into(),
            hit.neighborhood.as_deref().into(),
            hit.price_range.into(),
            hit.url_slug.as_deref().into(),
            hit.rating.into(),
            hit.rating_count.into(),
            hit.image.as_deref().into(),
        ];
        Record::new(&self.reading.kinds.venues, &[self.reading.provider.name(), id], values)
    }

    /// Its slots in order of time. Seatings of one time are one slot, and all are kept.
    pub(super) fn slots(&mut self, venue: &[Listed<'_>], mut each: impl FnMut(Record)) {
        let Listed { id, hit, .. } = venue[0];
        let who = [id.into(), hit.name.as_deref().into(), hit.neighborhood.as_deref().into()];
        let offers = venue
            .iter()
            .flat_map(|listed| listed.hit.slots.iter().map(|offer| Offered { offer, on: listed.on }));
        let mut offers: Vec<Offered<'_>> = offers.collect();
        offers.sort_by_key(|offered| offered.offer.start);
        for slot in offers.chunk_by_mut(|one, next| one.offer.start == next.offer.start) {
            each(self.slot(id, &who, slot));
        }
    }

    fn slot(&mut self, venue_id: &str, who: &[Value; 3], offers: &mut [Offered<'_>]) -> Record {
        // The first page that showed it.
        let seen = offers[0].on.at;
        let seen_at = self.written.stamp(seen);
        offers.sort_by(|one, other| one.seating().cmp(&other.seating()));
        let seatings = offers.chunk_by(|one, next| one.seating() == next.seating());
        let seatings = Value::List(seatings.map(|offers| self.written.seating(offers)).collect());
        let time = self.written.time(offers[0].offer.start);
        let [id, name, neighborhood] = who.clone();
        let values = vec![
            self.bucket_id.clone(),
            Value::Null,
            self.provider.clone(),
            id,
            name,
            neighborhood,
            self.date.clone(),
            (&time.here).into(),
            time.utc.clone(),
            seatings,
            sizes(offers),
            seen_at,
        ];
        let key = [self.reading.provider.name(), venue_id, &time.here];
        let record = Record::new(&self.reading.kinds.slots, &key, values);
        let mut record = Record { ends: time.at, seen: Some(seen), ..record };
        record.values[SLOT_ID] = record.fingerprint.text();
        record
    }
}

/// Times as they are written in records: a bucket has thousands of slots and a few dozen times.
struct Written<'a> {
    zone: &'a TimeZone,
    times: BTreeMap<DateTime, Moment>,
    stamp: Option<(Time, Value)>,
}

struct Moment {
    /// On the venue's clock.
    here: Arc<str>,
    at: Option<Time>,
    utc: Value,
}

impl Written<'_> {
    fn time(&mut self, time: DateTime) -> &Moment {
        self.times.entry(time).or_insert_with(|| {
            let at = clock::instant(time, self.zone);
            Moment { here: clock::canonical(time).into(), at, utc: at.into() }
        })
    }

    /// When a page was read; the next slot is mostly of the same page.
    fn stamp(&mut self, at: Time) -> Value {
        match &self.stamp {
            Some((of, text)) if *of == at => text.clone(),
            _ => self.stamp.insert((at, at.into())).1.clone(),
        }
    }

    fn seating(&mut self, offers: &[Offered<'_>]) -> Value {
        let (seating, config_id) = offers[0].seating();
        let end = offers.iter().filter_map(|offered| offered.offer.end).max();
        let end = end.map(|end| Value::from(&self.time(end).here));
        let fields = [
            ("config_id", config_id.into()),
            ("end", end.into()),
            ("party_sizes", sizes(offers)),
            ("type", seating.into()),
        ];
        Value::Map(fields.into())
    }
}

/// The party sizes to which these were shown, each once, in order.
fn sizes(offers: &[Offered<'_>]) -> Value {
    let mut sizes: Vec<Value> = Vec::with_capacity(offers.len());
    for size in offers.iter().map(|offered| i64::from(offered.on.asked.party_size)) {
        // A handful at most: looked through sooner than sorted.
        let place = sizes.iter().position(|known| !matches!(known, Value::Int(known) if *known < size));
        match place.map(|place| (place, &sizes[place])) {
            None => sizes.push(Value::Int(size)),
            Some((_, Value::Int(known))) if *known == size => {}
            Some((place, _)) => sizes.insert(place, Value::Int(size)),
        }
    }
    Value::List(sizes)
}
