//! Saved answers as people read them: what they say, and what would come of the second after the first.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use stakeout_core::compare::{Basis, Comparison, DoubtPolicy, Item, Memory, Verdict, compare};
use stakeout_core::judge::{Change, Judgement};
use stakeout_core::{
    Coverage, Entry, Facts, Failure, Observation, Record, Request, Snapshot, Span, TargetSpec, Time, Warning,
};

use super::kinds::{self, Kinds, Silence};
use super::normalize::{Answered, Reading, observe};
use super::provider::{Ask, Asked, Page, PartySizes, Provider};
use super::{clock, events, resy};
use crate::odd::Odd;

/// What a file does not say.
#[derive(Clone, Debug)]
pub struct DescribeOptions {
    /// For how many people was asked.
    pub party_size: u32,
    /// The IANA name of the market's time zone.
    pub zone: String,
    /// The most slots that the provider shows of a venue; 0 when it shows all.
    pub slot_cap: u32,
}

impl Default for DescribeOptions {
    fn default() -> DescribeOptions {
        DescribeOptions { party_size: 2, zone: "America/New_York".to_owned(), slot_cap: 3 }
    }
}

/// What an answer says, and what would be added, closed and told after `previous`: `slots`, `coverage`, `added`,
/// `closed`, `drops`, `warnings`. An answer that would close most of what was known closes nothing and says so.
pub fn describe_files(
    body: &[u8],
    previous: Option<&[u8]>,
    options: &DescribeOptions,
) -> Result<Json, Failure> {
    let kinds = Kinds::new();
    let (seen, date) = read(&kinds, body, None, options)?;
    let mut warnings = seen.warnings.clone();
    if let Coverage::CompleteBut(cut_off) = &seen.coverage {
        let n = cut_off.0.len();
        let detail = format!("the lists of {n} venues may have been cut off: nothing of theirs is closed");
        warnings.push(Warning { code: "slot_cap", detail });
    }
    let mut news = News::default();
    if let Some(body) = previous {
        let (before, _) = read(&kinds, body, Some(&date), options)?;
        news = compared(&before, &seen, &date, &mut warnings);
    }
    let slots: Vec<Json> = seen.records.iter().filter_map(slot).collect();
    let warning = |w: &Warning| json!({ "code": w.code, "detail": w.detail });
    Ok(json!({
        "slots": slots,
        "venues": seen.records.iter().filter(|r| r.kind.collection == "venues").count(),
        "coverage": seen.coverage.name(),
        "added": news.added,
        "closed": news.closed,
        "drops": news.drops,
        "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
    }))
}

#[derive(Default)]
struct News {
    added: Vec<String>,
    closed: Vec<String>,
    drops: Vec<String>,
}

/// Reads a file as the only page of a bucket; the bucket's date is that of the earliest slot unless given.
fn read(
    kinds: &Kinds,
    body: &[u8],
    date: Option<&str>,
    options: &DescribeOptions,
) -> Result<(Observation, String), Failure> {
    let page = resy::read(body)?;
    let zone = TimeZone::get(&options.zone).map_err(|_| {
        Failure::malformed(format!("{:?} is no time zone: expected an IANA name", options.zone))
    })?;
    let earliest = page.hits.iter().flat_map(|hit| &hit.slots).map(|offer| offer.start).min();
    let own = earliest.map(|start| clock::canonical(start)[..10].to_owned());
    let date = date.map(str::to_owned).or(own).unwrap_or_else(|| "-".to_owned());
    let facts = Facts::default();
    let reading = Reading {
        kinds,
        provider: &Saved,
        bucket_id: &date,
        date: &date,
        zone: &zone,
        party_sizes: &PartySizes::from([options.party_size]),
        slot_cap: options.slot_cap,
        max_pages: u32::MAX,
        follow: &BTreeSet::new(),
        only_market: true,
        facts: &facts,
    };
    let asked = Asked { party_size: options.party_size, page: 1 };
    let pages = [Answered { asked, page, at: Time(0) }];
    Ok((observe(&reading, &pages, true, Odd::default()), date))
}

/// What the engine would make of the second answer, had the first been its baseline. Nobody knows when the files were
/// saved, so no slot's time has passed.
fn compared(before: &Observation, seen: &Observation, date: &str, warnings: &mut Vec<Warning>) -> News {
    let policy = DoubtPolicy { companions: true, emptiness: true, ..DoubtPolicy::default() };
    let at = |memory: &Memory, snapshot: &Snapshot, observation: &Observation| -> Comparison {
        let basis = Basis {
            snapshot,
            memory,
            meaning: 1,
            policy,
            refresh: Span::ZERO,
            sent: Time(i64::MIN),
            ended: Time(i64::MIN),
        };
        compare(&basis, observation)
    };
    let first = at(&Memory::default(), &Snapshot::default(), before);
    let snapshot = first.next.unwrap_or_default();
    if !before.coverage.is_whole() {
        let detail = "it is only a part of an answer: nothing can be a drop after it".to_owned();
        warnings.push(Warning { code: "previous_is_no_baseline", detail });
    }
    let second = at(&first.memory, &snapshot, seen);
    let mut news = News::default();
    let added: Vec<&Record> = match second.verdict {
        Verdict::Doubted => {
            // It would be compared with again, so what it adds is still to come; what it closes is not believed.
            let missing = missing(&snapshot, seen);
            let detail = format!(
                "{missing} of {} slots are missing: nothing is closed until a second answer agrees",
                members(snapshot.entries())
            );
            warnings.push(Warning { code: "doubted", detail });
            return news;
        }
        _ => second.added.iter().filter_map(|item| record(seen, item)).collect(),
    };
    let slots = added.iter().filter(|record| record.kind.collection == "slots");
    news.added = slots.map(|record| record.fingerprint.to_string()).collect();
    let gone = second.removed.iter().filter(|entry| is_member(entry));
    news.closed = gone.map(|entry| entry.fingerprint.to_string()).collect();
    if second.verdict == Verdict::Changed {
        let changes: Vec<Change<'_>> = added.into_iter().map(Change::Added).collect();
        let judgement = Judgement {
            source: "try",
            target: &TargetSpec::new(date, super::market::BUCKET),
            at: Time(0),
            facts_before: &Facts::default(),
            facts: &Facts::default(),
            before: &snapshot,
            memory: &first.memory,
            changes: &changes,
        };
        let rules = kinds::rules(&Silence { quiet: Span::ZERO, seen_ttl: None });
        let nobody = BTreeSet::new();
        let drops = events::judge(&rules, &nobody, &nobody, &judgement);
        news.drops = drops.iter().map(|draft| draft.subject.to_string()).collect();
    }
    news
}

fn record<'a>(seen: &'a Observation, item: &Item) -> Option<&'a Record> {
    match item {
        Item::Record(i) => Some(&seen.records[*i]),
        Item::Target(_) => None,
    }
}

fn is_member(entry: &Entry) -> bool {
    entry.group != stakeout_core::Fingerprint::default()
}

fn members(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| is_member(entry)).count()
}

fn missing(snapshot: &Snapshot, seen: &Observation) -> usize {
    let there: BTreeSet<_> = seen.records.iter().map(|record| record.fingerprint).collect();
    let gone = |entry: &&Entry| is_member(entry) && !there.contains(&entry.fingerprint);
    let proven =
        |entry: &&Entry| seen.coverage != Coverage::None && seen.coverage.proves_absence(entry.group);
    snapshot.entries().iter().filter(gone).filter(proven).count()
}

fn slot(record: &Record) -> Option<Json> {
    if record.kind.collection != "slots" {
        return None;
    }
    let mut body = record.body();
    let mut take = |name: &str| body.remove(name).unwrap_or_default();
    Some(json!({
        "slot_id": take("slot_id"),
        "venue_id": take("venue_id"),
        "venue_name": take("venue_name"),
        "neighborhood": take("neighborhood"),
        "start": take("start"),
        "starts_at": take("starts_at"),
        "seatings": take("seatings"),
        "party_sizes": take("party_sizes"),
    }))
}

/// A provider that is not asked: its answer is a file.
struct Saved;

impl Provider for Saved {
    fn name(&self) -> &'static str {
        resy::NAME
    }
    fn request(&self, _: &Ask<'_>) -> Request {
        Request::get("")
    }
    fn asked(&self, _: &Request) -> Option<Asked> {
        None
    }
    fn pages(&self, _: &[u8]) -> Result<Option<u32>, Failure> {
        Ok(None)
    }
    fn read<'a>(&self, body: &'a [u8]) -> Result<Page<'a>, Failure> {
        resy::read(body)
    }
}
