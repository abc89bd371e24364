//! From pages to slots: one slot per venue and time, whoever saw it, and how much the pages prove.
//!
//! A poll asks for every party size, page by page. It is whole only if every page answered, the total stood still and
//! the venues add up to it, and if no page has lost all it had. A venue whose list of slots is as long as the provider ever shows may have more, and where
//! two venues have one id, nobody can tell whose slots these are.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use stakeout_core::{
    Coverage, Exchange, Facts, Failure, FailureClass, Fingerprint, Observation, Scope, Time, Value,
};

use super::kinds::Kinds;
use super::provider::{Asked, Hit, Page, PartySizes, Provider};
use super::shown::Shown;
use super::slots::Writer;
use crate::odd::Odd;

/// The note that counts followed venues without a table in a bucket: where a drop would matter most.
pub(super) const WAITED_FOR: &str = "waited_for";
/// The note that names the followed venues that a bucket has ever listed, where there are several markets.
const MET: &str = "met";

const MISSING_PAGE: &str = "missing_page";
const VENUES_MISSING: &str = "venues_do_not_add_up";
/// The warnings that whoever asks for a few pages only has to expect.
pub(super) const OF_A_PART: [&str; 2] = [MISSING_PAGE, VENUES_MISSING];

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
    /// Whether there is no other market that a venue may belong to.
    pub(super) only_market: bool,
    /// The facts of the last good poll.
    pub(super) facts: &'a Facts,
}

/// A page with its question and the moment it was read.
pub(super) struct Answered<'a> {
    pub(super) asked: Asked,
    pub(super) page: Page<'a>,
    pub(super) at: Time,
}

/// A venue on one page.
pub(super) struct Listed<'a> {
    pub(super) id: &'a str,
    pub(super) hit: &'a Hit<'a>,
    pub(super) on: &'a Answered<'a>,
}

/// What the exchanges of a poll amount to.
pub(super) fn bucket(reading: &Reading<'_>, exchanges: &[Exchange]) -> Result<Observation, Failure> {
    let mut odd = Odd::default();
    let mut pages = Vec::with_capacity(exchanges.len());
    for (n, exchange) in exchanges.iter().enumerate() {
        match &exchange.result {
            Ok(response) => {
                let Some(asked) = reading.provider.asked(&exchange.request) else {
                    return Err(Failure::new(
                        FailureClass::Internal,
                        "a request that is no page of a bucket",
                    ));
                };
                // A page that is not understood is no part of an answer: the whole poll failed.
                let page = reading.provider.read(&response.body).map_err(|failure| failure.about(n))?;
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
    let listed = listed(pages);
    let whole = answered && is_whole(reading, pages, &listed, &mut odd) && shown.emptied.is_empty();
    unreadable(pages, &mut odd);
    let mut records = Vec::with_capacity(listed.len());
    let mut writer = Writer::new(reading);
    let mut cut_off = BTreeSet::new();
    let mut waited_for = 0;
    for venue in by_venue(&listed) {
        let (id, group) = (venue[0].id, reading.group(venue[0].id));
        let muddled = is_muddled(venue);
        if muddled {
            let name = &venue[0].hit.name;
            odd.add("one_id_for_two", || format!("{id} is {name:?} and somebody else, too"));
        }
        if muddled || reading.is_cut_off(venue) {
            cut_off.insert(group);
        }
        let shows_any = !muddled && venue.iter().any(|listed| !listed.hit.slots.is_empty());
        if !shows_any && !muddled && reading.follow.contains(id) {
            waited_for += 1;
        }
        // Only a whole answer proves that a venue has nothing at all.
        if whole || shows_any {
            let at = records.len();
            records.push(writer.venue(venue[0].hit, id));
            if shows_any {
                let parent = records[at].fingerprint;
                writer.slots(venue, |slot| records.push(slot.under(parent).in_group(group)));
            }
        }
    }
    let coverage = match (whole, cut_off.is_empty()) {
        (true, true) => Coverage::Complete,
        (true, false) => Coverage::CompleteBut(Scope(cut_off)),
        (false, _) => Coverage::Partial(Scope::default()),
    };
    let mut facts = Facts { notes: reading.facts.notes.clone(), ..Facts::default() };
    shown.note(&mut facts);
    let is_listed = |id: &str| listed.binary_search_by(|one| one.id.cmp(id)).is_ok();
    let met = reading.met(is_listed);
    note_met(reading, &met, &mut facts);
    if whole {
        // Some venues are not listed at all while they are full.
        waited_for += met.iter().filter(|id| !is_listed(id)).count() as i64;
        facts.notes.remove(WAITED_FOR);
        if waited_for > 0 {
            facts.notes.insert(WAITED_FOR.to_owned(), Value::Int(waited_for));
        }
    }
    Observation { coverage, facts, warnings: odd.warnings(), ..Observation::complete(records) }
}

/// Whether the pages are all there is.
fn is_whole(reading: &Reading<'_>, pages: &[Answered<'_>], listed: &[Listed<'_>], odd: &mut Odd) -> bool {
    let mut whole = true;
    let mut doubt = |code: &'static str, detail: String| {
        odd.add(code, || detail);
        whole = false;
    };
    for &size in reading.party_sizes {
        let of_size: Vec<&Answered<'_>> = pages.iter().filter(|a| a.asked.party_size == size).collect();
        let Some(first) = of_size.iter().find(|a| a.asked.page == 1) else {
            doubt(MISSING_PAGE, format!("page 1 for {size} people"));
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
            doubt(MISSING_PAGE, format!("page {n} of {last} for {size} people"));
        }
        if of_size.iter().any(|a| a.page.total != Some(total)) {
            doubt("total_moved", format!("for {size} people it was {total} on the first page only"));
        }
        let is_of_size = |venue: &&[Listed<'_>]| venue.iter().any(|l| l.on.asked.party_size == size);
        let unique = by_venue(listed).filter(is_of_size).count() as u64;
        if unique != total {
            doubt(VENUES_MISSING, format!("{unique} of {total} venues for {size} people"));
        }
    }
    whole
}

/// Everything that is listed, by venue, and of one venue in the order of the pages.
fn listed<'a>(pages: &'a [Answered<'a>]) -> Vec<Listed<'a>> {
    let hits = pages.iter().flat_map(|on| on.page.hits.iter().map(move |hit| (on, hit)));
    let mut listed: Vec<Listed<'a>> =
        hits.filter_map(|(on, hit)| Some(Listed { id: hit.venue_id.as_deref()?, hit, on })).collect();
    listed.sort_by(|one, other| one.id.cmp(other.id));
    listed
}

/// The venues, each with all that is listed of it.
fn by_venue<'l, 'a>(listed: &'l [Listed<'a>]) -> impl Iterator<Item = &'l [Listed<'a>]> {
    listed.chunk_by(|one, next| one.id == next.id)
}

/// What of the pages could not be read, in their order.
fn unreadable(pages: &[Answered<'_>], odd: &mut Odd) {
    for hit in pages.iter().flat_map(|answered| &answered.page.hits) {
        if hit.venue_id.is_none() {
            odd.add("bad_venue", || format!("{:?} has no id", hit.name));
        } else if hit.unread() > 0 {
            let unread = hit.unread();
            odd.add("bad_slot", || format!("{unread} slots of {:?} have no time that can be read", hit.name));
        }
    }
}

/// Whether another venue has the same id: then these are nobody's slots.
fn is_muddled(venue: &[Listed<'_>]) -> bool {
    let first = &venue[0].hit.name;
    venue.iter().any(|l| matches!((first, &l.hit.name), (Some(one), Some(other)) if one != other))
}

/// Remembers which of the followed venues belong to this market; where there is only one, all of them do.
fn note_met(reading: &Reading<'_>, met: &[&str], facts: &mut Facts) {
    facts.notes.remove(MET);
    if !reading.only_market && !met.is_empty() {
        let met = met.iter().map(|id| Value::from(*id)).collect();
        facts.notes.insert(MET.to_owned(), Value::List(met));
    }
}

impl Reading<'_> {
    /// The followed venues that may open here. Of several markets a venue belongs to those that have ever listed it.
    fn met(&self, is_listed: impl Fn(&str) -> bool) -> Vec<&str> {
        let before = match self.facts.notes.get(MET) {
            Some(Value::List(before)) => before.as_slice(),
            _ => &[],
        };
        let known = |id: &&str| before.iter().any(|known| known.as_text() == Some(id));
        let followed = self.follow.iter().map(String::as_str);
        followed.filter(|id| self.only_market || is_listed(id) || known(id)).collect()
    }

    /// Whether the venue's list may have been cut off, or some of it was not understood.
    fn is_cut_off(&self, venue: &[Listed<'_>]) -> bool {
        let at_cap = |hit: &Hit<'_>| self.slot_cap > 0 && hit.shown >= self.slot_cap as usize;
        venue.iter().any(|listed| listed.hit.unread() > 0 || at_cap(listed.hit))
    }

    /// A venue on the bucket's date: what the gate looks at, and what other buckets of that date share.
    fn group(&self, venue_id: &str) -> Fingerprint {
        Fingerprint::of("tables_venue_days", &[self.provider.name(), venue_id, self.date])
    }
}
