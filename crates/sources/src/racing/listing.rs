//! The catalogue: which meetings and races there are, and which of them are to be watched.
//!
//! It lists two New Zealand dates, today and yesterday, because races run past midnight. A race becomes a target while
//! it is not yet final or abandoned, and stays one as long as its date is listed, so that its own last poll is never
//! cut short and its records stay; it retires when its date is older than yesterday. Races that were over before they
//! were first seen are recorded and not watched.

use std::collections::BTreeSet;

use serde_json::json;
use stakeout_core::{
    Coverage, Exchange, Facts, Failure, FailureClass, Fingerprint, Observation, PollContext, Record, Scope,
    Span, TargetSpec, Time, Value,
};

use super::kinds::Kinds;
use super::normalize::{known_status, meeting_fingerprint, status_name};
use super::nz_time::Date;
use super::plan::{PAGES_MAX, Page, RACE, RACE_PRIORITY, race_key};
use super::status::Status;
use super::wire::{Answer, ListedRace, Meeting, MeetingsCount, MeetingsData};
use crate::lenient::Leaf;
use crate::odd::Odd;

/// The note that remembers which races are targets.
const LISTED: &str = "listed";
/// The longest id that is put into a URL.
const ID_BYTES_MAX: usize = 100;

/// What to keep of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) countries: BTreeSet<String>,
    pub(super) categories: BTreeSet<String>,
}

impl Filter {
    /// Whether a meeting may be one to keep, as far as it says what it is.
    fn may_keep(&self, country: Option<&String>, category: Option<&String>) -> bool {
        country.is_none_or(|country| self.countries.contains(country))
            && category.is_none_or(|category| self.categories.contains(category))
    }
}

/// `AU` is how people write what the upstream calls `AUS`.
pub(super) fn country_code(country: &str) -> String {
    match country.trim().to_ascii_uppercase() {
        code if code == "AU" => "AUS".to_owned(),
        code => code,
    }
}

/// Whether a page was full, so that another one may follow. Reading it takes as long as understanding it, so it is read only
/// where it names at least half as many meetings as there could be.
pub(super) fn is_full(body: &[u8], page_size: usize) -> bool {
    if memchr::memmem::find_iter(body, b"\"meeting\"").take(page_size / 2).count() < page_size / 2 {
        return false;
    }
    let answer: Result<Answer<'_, MeetingsCount<'_>>, Failure> = Answer::read_from(body);
    answer.is_ok_and(|answer| answer.data.meetings.items().len() >= page_size)
}

/// The observation that the pages amount to. The catalogue may lag behind a race's own answer by about the upstream's refresh
/// time: its view of a race counts as older by twice that, so that it turns back nothing that the race has just said
/// itself. Should the catalogue be right after all, the race's next answer says so, too.
pub(super) fn listing(
    kinds: &Kinds,
    filter: &Filter,
    race_meaning: u64,
    exchanges: &[Exchange],
    context: &PollContext<'_>,
    refresh: Span,
) -> Result<Observation, Failure> {
    let facts = context.facts;
    let mut reading = Reading::new(kinds, filter, race_meaning, facts);
    let mut failure = None;
    let mut answered = false;
    for exchange in exchanges {
        match read_page(&mut reading, exchange) {
            Ok(()) => answered = true,
            Err(why) => {
                reading.odd.add("bad_page", || why.to_string());
                reading.coverage = Coverage::Partial(Scope::default());
                failure.get_or_insert(why);
            }
        }
    }
    match failure {
        Some(failure) if !answered => Err(failure),
        None if !answered => Err(Failure::new(FailureClass::Internal, "a listing without a request")),
        _ => {
            let seen = reading.as_of.unwrap_or(context.now) - refresh.times(2);
            Ok(reading.finish(facts, seen))
        }
    }
}

fn read_page(reading: &mut Reading<'_>, exchange: &Exchange) -> Result<(), Failure> {
    let response = exchange.result.as_ref().map_err(Failure::clone)?;
    let answer: Answer<'_, MeetingsData<'_>> = Answer::read_from(&response.body)?;
    let Some(meetings) = &answer.data.meetings.0 else {
        return Err(Failure::malformed("expected a list of meetings, found none"));
    };
    let page = Page::of(&exchange.request);
    if page.is_some_and(|page| page.number() + 1 >= PAGES_MAX && meetings.len() >= Page::SIZE) {
        reading.odd.add("too_many_pages", || format!("more than {PAGES_MAX} pages of one date"));
        reading.coverage = Coverage::Partial(Scope::default());
    }
    // The oldest page decides: an answer is as old as its oldest part.
    reading.as_of = match (reading.as_of, answer.as_of()) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    meetings.iter().for_each(|meeting| reading.meeting(meeting));
    Ok(())
}

struct Reading<'a> {
    kinds: &'a Kinds,
    filter: &'a Filter,
    race_meaning: u64,
    listed_before: BTreeSet<&'a str>,
    records: Vec<Record>,
    targets: Vec<TargetSpec>,
    listed: BTreeSet<String>,
    coverage: Coverage,
    as_of: Option<Time>,
    odd: Odd,
}

impl<'a> Reading<'a> {
    fn new(kinds: &'a Kinds, filter: &'a Filter, race_meaning: u64, facts: &'a Facts) -> Reading<'a> {
        let listed_before = match facts.notes.get(LISTED) {
            Some(Value::List(ids)) => ids.iter().filter_map(Value::as_text).collect(),
            _ => BTreeSet::new(),
        };
        Reading {
            kinds,
            filter,
            race_meaning,
            listed_before,
            records: Vec::new(),
            targets: Vec::new(),
            listed: BTreeSet::new(),
            coverage: Coverage::Complete,
            as_of: None,
            odd: Odd::default(),
        }
    }

    fn refuse(&mut self, code: &'static str, detail: impl FnOnce() -> String) {
        self.odd.add(code, detail);
        // It may be any of those that are known: nothing may be concluded from what is missing, and all that a listing
        // holds is in one group. But all of it was looked at, or what is odd in every listing would silence the others.
        if self.coverage == Coverage::Complete {
            self.coverage = Coverage::CompleteBut(Scope([Fingerprint::default()].into()));
        }
    }

    fn meeting(&mut self, meeting: &Meeting<'_>) {
        // Some fields are missing here and there; the races know their country too.
        let races = meeting.races.items();
        let country = meeting.country.text().or_else(|| races.iter().find_map(|race| race.country.text()));
        let country = country.map(|country| country_code(&country));
        let category = meeting.category.text().map(|category| category.to_ascii_uppercase());
        if !self.filter.may_keep(country.as_ref(), category.as_ref()) {
            return;
        }
        let (Some(id), Some(country), Some(category)) = (plain_id(&meeting.meeting), country, category)
        else {
            let name = meeting.name.text();
            return self.refuse("bad_meeting", || format!("{name:?} has no id, country or category"));
        };
        if meeting.races.0.is_none() {
            self.refuse("bad_meeting", || format!("{id} has no list of races"));
        }
        let date = meeting.date.text().and_then(|date| Date::parse(&date));
        let values = vec![
            Value::text(&id),
            meeting.name.text_value(),
            date.map(|date| date.to_string()).into(),
            Value::text(&country),
            meeting.state.text_value(),
            Value::text(&category),
            meeting.category_name.text_value(),
            meeting.track_condition.text_value(),
            meeting.tote_status.text_value(),
        ];
        let ends = date.map(Date::leaves_the_listing);
        self.records.push(Record { ends, ..Record::new(&self.kinds.meetings, &[&id], values) });
        for race in races {
            self.race(&id, &category, ends, race);
        }
    }

    fn race(&mut self, meeting: &str, category: &str, ends: Option<Time>, race: &ListedRace<'_>) {
        let Some(id) = plain_id(&race.id) else {
            let found = race.id.clone();
            return self.refuse("bad_race", || format!("{found:?} in meeting {meeting} is no id"));
        };
        let status = known_status(&race.status, &mut self.odd);
        let start = race.start_time.time();
        // The catalogue lags behind a race's own answer: it may confirm a start, never undo one.
        let confirmed = matches!(status, Some(Status::Interim | Status::Final)).then_some(true);
        let values = vec![
            Value::text(&id),
            status_name(status),
            start.into(),
            Value::Null,
            confirmed.into(),
            Value::text(meeting),
            race.race_number.int().into(),
            race.name.text_value(),
            race.distance.int().filter(|metres| *metres >= 0).into(),
            race.track_condition.text_value(),
            race.weather.text_value(),
            Value::text(category),
            race.country.text().map(|country| country_code(&country)).into(),
            race.state.text_value(),
            race.protest.flag().into(),
            race.protest_reason.text_value(),
        ];
        let parent = meeting_fingerprint(self.kinds, meeting);
        let record = Record::new(&self.kinds.races, &[&id], values).under(parent);
        self.records.push(Record { ends, ..record });
        if status.is_some_and(Status::is_terminal) && !self.listed_before.contains(id.as_str()) {
            return;
        }
        match start {
            Some(start) => self.target(id, meeting, start, ends),
            // Without a start the target that is known keeps its own; a new one waits for the next listing.
            None => self.refuse("bad_race", || format!("{id} has no start_time")),
        }
    }

    fn target(&mut self, id: String, meeting: &str, start: Time, ends: Option<Time>) {
        self.targets.push(TargetSpec {
            params: json!({ "event_id": id, "meeting_id": meeting }),
            priority: RACE_PRIORITY,
            meaning: self.race_meaning,
            start: Some(start),
            ends,
            ..TargetSpec::new(race_key(&id), RACE)
        });
        self.listed.insert(id);
    }

    /// `seen` is when its races were as it shows them, at the latest.
    fn finish(mut self, before: &Facts, seen: Time) -> Observation {
        let races =
            self.records.iter_mut().filter(|record| record.kind.collection == self.kinds.races.collection);
        races.for_each(|race| race.seen = Some(seen));
        if self.coverage != Coverage::Complete {
            self.listed.extend(self.listed_before.iter().map(|&id| id.to_owned()));
        }
        let mut facts = before.clone();
        let listed = self.listed.into_iter().map(Value::text).collect();
        facts.notes.insert(LISTED.to_owned(), Value::List(listed));
        Observation {
            coverage: self.coverage,
            facts,
            targets: Some(self.targets),
            as_of: self.as_of,
            warnings: self.odd.warnings(),
            ..Observation::complete(self.records)
        }
    }
}

/// An id that can stand in a URL and in a target's key as it is.
fn plain_id(leaf: &Leaf<'_>) -> Option<String> {
    let plain = |id: &str| {
        let fits = id.len() <= ID_BYTES_MAX;
        fits && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    // Dots alone would walk up the path.
    leaf.text().map(|id| id.into_owned()).filter(|id| plain(id) && id.bytes().any(|b| b != b'.'))
}
