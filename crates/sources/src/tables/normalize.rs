//! From pages to slots: one slot per venue and time, whoever saw it, and how much the pages prove.
//!
//! A poll asks for every party size, page by page. It is whole only if every page answered, the total stood still and
//! the venues add up to it, and if no page has lost all it had. A venue whose list of slots is as long as the provider ever shows may have more, and where
//! two venues have one id, nobody can tell whose slots these are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use stakeout_core::{
    Coverage, Exchange, Facts, Failure, FailureClass, Fingerprint, Observation, Record, Scope, Time, Value,
};

use super::clock;
use super::kinds::Kinds;
use super::provider::{Asked, Hit, Offer, Page, PartySizes, Provider};
use super::shown::Shown;
use crate::odd::Odd;

/// The note that counts followed venues without a table in a bucket: where a drop would matter most.
pub(super) const WAITED_FOR: &str = "waited_for";

/// What the reading of a bucket needs to know.
pub(super) struct Reading<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) provider: &'a dyn Provider,
    pub(super) bucket_id: &'a str,
    pub(super) date: &'a str,
    pub(super) zone: &'a TimeZone,
    pub(super) party_sizes: &'a PartySizes,
    /// The most slots that the provider shows of a venue; 0 when it shows all.
    pub(super) slot_cap: u32,
    /// The most pages that are asked for.
    pub(super) max_pages: u32,
    pub(super) follow: &'a BTreeSet<String>,
    /// The facts of the last good poll.
    pub(super) facts: &'a Facts,
}

/// A page with its question and the moment it was read.
pub(super) struct Answered<'a> {
    pub(super) asked: Asked,
    pub(super) page: Page<'a>,
    pub(super) at: Time,
}

/// A venue, as all pages together show it.
struct Venue<'a> {
    /// Where it was first on a page: what it is called, and where it is.
    hit: &'a Hit<'a>,
    /// Its list may have been cut off, or some of it was not understood.
    unsure: bool,
    /// Another venue has the same id.
    muddled: bool,
    slots: BTreeMap<DateTime, Slot<'a>>,
}

struct Slot<'a> {
    seatings: BTreeMap<(Option<&'a str>, Option<i64>), Seating>,
    party_sizes: PartySizes,
    seen_at: Time,
}

struct Seating {
    end: Option<DateTime>,
    party_sizes: PartySizes,
}

/// What the exchanges of a poll amount to.
pub(super) fn bucket(reading: &Reading<'_>, exchanges: &[Exchange]) -> Result<Observation, Failure> {
    let mut odd = Odd::default();
    let mut pages = Vec::with_capacity(exchanges.len());
    for exchange in exchanges {
        match &exchange.result {
            Ok(response) => {
                let Some(asked) = reading.provider.asked(&exchange.request) else {
                    return Err(Failure::new(
                        FailureClass::Internal,
                        "a request that is no page of a bucket",
                    ));
                };
                // A page that is not understood is no part of an answer: the whole poll failed.
                let page = reading.provider.read(&response.body)?;
                pages.push(Answered { asked, page, at: exchange.ended });
            }
            Err(failure) if is_refused(failure) => return Err(failure.clone()),
            Err(failure) => odd.add("failed_page", || failure.to_string()),
        }
    }
    if pages.is_empty() {
        return Err(Failure::new(FailureClass::Internal, "a bucket without a page"));
    }
    let answered = exchanges.iter().all(|exchange| exchange.result.is_ok());
    Ok(observe(reading, &pages, answered, odd))
}

/// Whether the provider refuses our credentials: an expired token is sent to a login page.
pub(super) fn is_refused(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::Redirect | FailureClass::Forbidden)
}

pub(super) fn observe(
    reading: &Reading<'_>,
    pages: &[Answered<'_>],
    answered: bool,
    mut odd: Odd,
) -> Observation {
    let shown = Shown::of(pages, reading.facts);
    for page in &shown.emptied {
        odd.add("emptied_page", || {
            format!("not one table on the page (party size/number) {page}, which had many")
        });
    }
    let whole = answered && is_whole(reading, pages, &mut odd) && shown.emptied.is_empty();
    let venues = venues(reading, pages, &mut odd);
    let mut records = Vec::with_capacity(venues.values().map(|venue| 1 + venue.slots.len()).sum());
    let mut written = Written::new(reading.zone);
    let mut cut_off = BTreeSet::new();
    let mut waited_for = 0;
    for (id, venue) in &venues {
        let group = reading.group(id);
        if venue.unsure || venue.muddled {
            cut_off.insert(group);
        }
        if venue.slots.is_empty() && !venue.muddled && reading.follow.contains(*id) {
            waited_for += 1;
        }
        let record = reading.venue(id, venue);
        let parent = record.fingerprint;
        // Only a whole answer proves that a venue has nothing at all.
        if whole || !venue.slots.is_empty() {
            records.push(record);
        }
        for (start, slot) in &venue.slots {
            let record = reading.slot(id, venue.hit, *start, slot, &mut written);
            records.push(record.under(parent).in_group(group));
        }
    }
    let coverage = match (whole, cut_off.is_empty()) {
        (true, true) => Coverage::Complete,
        (true, false) => Coverage::CompleteBut(Scope(cut_off)),
        (false, _) => Coverage::Partial(Scope::default()),
    };
    let mut facts = Facts { notes: reading.facts.notes.clone(), ..Facts::default() };
    shown.note(&mut facts);
    if whole {
        // Some venues are not listed at all while they are full.
        waited_for += reading.follow.iter().filter(|id| !venues.contains_key(id.as_str())).count() as i64;
        facts.notes.remove(WAITED_FOR);
        if waited_for > 0 {
            facts.notes.insert(WAITED_FOR.to_owned(), Value::Int(waited_for));
        }
    }
    Observation { coverage, facts, warnings: odd.warnings(), ..Observation::complete(records) }
}

/// Whether the pages are all there is.
fn is_whole(reading: &Reading<'_>, pages: &[Answered<'_>], odd: &mut Odd) -> bool {
    let mut whole = true;
    let mut doubt = |code: &'static str, detail: String| {
        odd.add(code, || detail);
        whole = false;
    };
    for &size in reading.party_sizes {
        let of_size: Vec<&Answered<'_>> = pages.iter().filter(|a| a.asked.party_size == size).collect();
        let Some(first) = of_size.iter().find(|a| a.asked.page == 1) else {
            doubt("missing_page", format!("page 1 for {size} people"));
            continue;
        };
        let Some(total) = first.page.total else {
            doubt("no_total", format!("the pages for {size} people do not say how many venues there are"));
            continue;
        };
        let last = first.page.pages.unwrap_or(1);
        if last > reading.max_pages {
            doubt("too_many_pages", format!("{last} pages for {size} people, at most {}", reading.max_pages));
        } else if let Some(n) = (1..=last).find(|n| !of_size.iter().any(|a| a.asked.page == *n)) {
            doubt("missing_page", format!("page {n} of {last} for {size} people"));
        }
        if of_size.iter().any(|a| a.page.total != Some(total)) {
            doubt("total_moved", format!("for {size} people it was {total} on the first page only"));
        }
        let named = of_size.iter().flat_map(|a| &a.page.hits).filter_map(|hit| hit.venue_id.as_deref());
        let unique = named.collect::<HashSet<&str>>().len() as u64;
        if unique != total {
            doubt("venues_do_not_add_up", format!("{unique} of {total} venues for {size} people"));
        }
    }
    whole
}

/// The venues of all pages by id, each with its slots.
fn venues<'a>(
    reading: &Reading<'_>,
    pages: &'a [Answered<'a>],
    odd: &mut Odd,
) -> BTreeMap<&'a str, Venue<'a>> {
    let mut venues: BTreeMap<&str, Venue<'a>> = BTreeMap::new();
    for answered in pages {
        for hit in &answered.page.hits {
            let Some(id) = hit.venue_id.as_deref() else {
                odd.add("bad_venue", || format!("{:?} has no id", hit.name));
                continue;
            };
            let venue = venues.entry(id).or_insert_with(|| Venue::new(hit));
            reading.add(venue, hit, answered, odd);
        }
    }
    for (id, venue) in venues.iter_mut().filter(|(_, venue)| venue.muddled) {
        odd.add("one_id_for_two", || format!("{id} is {:?} and somebody else, too", venue.hit.name));
        venue.slots.clear();
    }
    venues
}

impl<'a> Venue<'a> {
    fn new(hit: &'a Hit<'a>) -> Venue<'a> {
        Venue { hit, unsure: false, muddled: false, slots: BTreeMap::new() }
    }
}

impl Reading<'_> {
    fn add<'a>(&self, venue: &mut Venue<'a>, hit: &'a Hit<'a>, answered: &Answered<'_>, odd: &mut Odd) {
        venue.muddled |= matches!((&venue.hit.name, &hit.name), (Some(one), Some(other)) if one != other);
        let unread = hit.shown - hit.slots.len();
        if unread > 0 {
            odd.add("bad_slot", || format!("{unread} slots of {:?} have no time that can be read", hit.name));
        }
        venue.unsure |= unread > 0 || (self.slot_cap > 0 && hit.shown >= self.slot_cap as usize);
        for offer in &hit.slots {
            let slot = venue.slots.entry(offer.start).or_insert_with(|| Slot {
                seatings: BTreeMap::new(),
                party_sizes: PartySizes::new(),
                seen_at: answered.at,
            });
            slot.add(offer, answered.asked.party_size);
        }
    }

    /// A venue on the bucket's date: what the gate looks at, and what other buckets of that date share.
    fn group(&self, venue_id: &str) -> Fingerprint {
        Fingerprint::of("tables_venue_days", &[self.provider.name(), venue_id, self.date])
    }

    fn venue(&self, id: &str, venue: &Venue<'_>) -> Record {
        let hit = venue.hit;
        let values = vec![
            Value::text(id),
            Value::text(self.provider.name()),
            hit.name.as_deref().into(),
            hit.neighborhood.as_deref().into(),
            hit.price_range.into(),
            hit.url_slug.as_deref().into(),
            hit.rating.into(),
            hit.rating_count.into(),
            hit.image.as_deref().into(),
        ];
        Record::new(&self.kinds.venues, &[self.provider.name(), id], values)
    }

    fn slot(
        &self,
        venue_id: &str,
        hit: &Hit<'_>,
        start: DateTime,
        slot: &Slot<'_>,
        written: &mut Written<'_>,
    ) -> Record {
        let provider = self.provider.name();
        let seatings = slot.seatings(written);
        let seen_at = written.stamp(slot.seen_at);
        let time = written.time(start);
        let values = vec![
            Value::text(self.bucket_id),
            Value::Null,
            Value::text(provider),
            Value::text(venue_id),
            hit.name.as_deref().into(),
            hit.neighborhood.as_deref().into(),
            Value::text(self.date),
            Value::text(&time.here),
            time.utc.as_deref().into(),
            seatings,
            sizes(&slot.party_sizes),
            seen_at,
        ];
        let key = [provider, venue_id, &time.here];
        let mut record = Record { ends: time.at, ..Record::new(&self.kinds.slots, &key, values) };
        record.values[SLOT_ID] = Value::Text(record.fingerprint.to_string());
        record
    }
}

/// Where a slot's own id stands among its fields.
const SLOT_ID: usize = 1;

/// Times as they are written in records: a bucket has thousands of slots and a few dozen times.
struct Written<'a> {
    zone: &'a TimeZone,
    times: HashMap<DateTime, Moment>,
    stamp: Option<(Time, String)>,
}

struct Moment {
    /// On the venue's clock.
    here: String,
    at: Option<Time>,
    utc: Option<String>,
}

impl Written<'_> {
    fn new(zone: &TimeZone) -> Written<'_> {
        Written { zone, times: HashMap::new(), stamp: None }
    }

    fn time(&mut self, time: DateTime) -> &Moment {
        self.times.entry(time).or_insert_with(|| {
            let at = clock::instant(time, self.zone);
            Moment { here: clock::canonical(time), at, utc: at.map(|at| at.to_string()) }
        })
    }

    /// When a page was read; the next slot is mostly of the same page.
    fn stamp(&mut self, at: Time) -> Value {
        match &self.stamp {
            Some((of, text)) if *of == at => Value::text(text),
            _ => {
                let text = at.to_string();
                self.stamp = Some((at, text.clone()));
                Value::Text(text)
            }
        }
    }
}

impl<'a> Slot<'a> {
    fn add(&mut self, offer: &'a Offer<'a>, party_size: u32) {
        self.party_sizes.insert(party_size);
        let seating = self.seatings.entry((offer.seating.as_deref(), offer.config_id));
        let seating = seating.or_insert_with(|| Seating { end: offer.end, party_sizes: PartySizes::new() });
        seating.end = seating.end.max(offer.end);
        seating.party_sizes.insert(party_size);
    }

    fn seatings(&self, written: &mut Written<'_>) -> Value {
        let one = |((seating, config_id), about): (&(Option<&str>, Option<i64>), &Seating)| {
            let end = about.end.map(|end| written.time(end).here.clone());
            let fields = [
                ("type", (*seating).into()),
                ("config_id", (*config_id).into()),
                ("end", end.into()),
                ("party_sizes", sizes(&about.party_sizes)),
            ];
            Value::Map(fields.map(|(name, value): (&str, Value)| (name.to_owned(), value)).into())
        };
        Value::List(self.seatings.iter().map(one).collect())
    }
}

fn sizes(sizes: &PartySizes) -> Value {
    Value::List(sizes.iter().map(|n| Value::Int(i64::from(*n))).collect())
}
