//! What the answer about one race says.

use std::collections::{BTreeSet, HashSet};

use stakeout_core::{Coverage, Facts, Failure, Fingerprint, Observation, Record, Scope, Time, Value};

use super::kinds::Kinds;
use super::status::{Status, stage, start_confirmed};
use super::tote::{self, Parent, Rows};
use super::wire::{Answer, EventData, Race};
use super::{entrants, money::Cents};
use crate::lenient::Leaf;
use crate::odd::Odd;

/// The note that remembers who had the lowest price.
pub(super) const FAVOURITE: &str = "favourite";
/// The note that remembers which lists the upstream has given of this race.
const LISTS: &str = "lists";
/// The note that remembers that the upstream says of this race's runners whether they were scratched.
const SAYS_SCRATCHED: &str = "says_scratched";

/// What is known about a race before its answer is read.
pub(super) struct Expected<'a> {
    /// The race that was asked for; an answer about another one is none.
    pub(super) event_id: Option<&'a str>,
    pub(super) meeting_id: Option<&'a str>,
    pub(super) start: Option<Time>,
    pub(super) facts: &'a Facts,
    pub(super) now: Time,
}

/// The observation that `body` amounts to.
pub(super) fn event(kinds: &Kinds, expected: &Expected<'_>, body: &[u8]) -> Result<Observation, Failure> {
    let answer: Answer<'_, EventData<'_>> = Answer::read_from(body)?;
    let as_of = answer.as_of();
    let data = &answer.data;
    let race_id = race_id(&data.race, expected)?;
    let mut odd = Odd::default();
    let life = Life::of(&data.race, expected, &mut odd);

    let meeting_id = meeting_id(&data.race, expected, &mut odd);
    let meeting = meeting_id.as_deref().map(|id| meeting_record(kinds, id, &data.race));
    let race = race_record(kinds, &race_id, meeting_id.as_deref(), &data.race, &life, &mut odd);
    let parent = Parent { kinds, race_id: &race_id, race: race.fingerprint };
    let lists = lists(parent, data, expected, &mut odd);

    let mut facts = Facts { start: life.start, stage: life.stage, ..expected.facts.clone() };
    let favourite = favourite(&lists, expected.facts);
    if let Some(favourite) = favourite {
        facts.notes.insert(FAVOURITE.to_owned(), favourite);
    }
    if lists.says_scratched {
        facts.notes.insert(SAYS_SCRATCHED.to_owned(), Value::Bool(true));
    }
    let coverage = lists.coverage(parent, life.status, &mut facts);
    let mut records: Vec<Record> = meeting.into_iter().chain([race]).collect();
    records.extend(lists.entrants);
    for (_, rows) in lists.tote {
        records.extend(rows.into_iter().flat_map(|rows| rows.records));
    }
    Ok(Observation { coverage, facts, as_of, warnings: odd.warnings(), ..Observation::complete(records) })
}

fn race_id(race: &Race<'_>, expected: &Expected<'_>) -> Result<String, Failure> {
    let Some(found) = race.event_id.text() else {
        return Err(Failure::malformed("expected a race with an event_id, found none"));
    };
    match expected.event_id {
        Some(wanted) if !wanted.eq_ignore_ascii_case(&found) => {
            Err(Failure::malformed(format!("asked for race {wanted}, answered with race {found}")))
        }
        Some(wanted) => Ok(wanted.to_owned()),
        None => Ok(found.into_owned()),
    }
}

/// The meeting that the catalogue knows the race by. An answer that names another one is wrong about that: taken at its
/// word, it would hang the race on a meeting that does not exist.
fn meeting_id(race: &Race<'_>, expected: &Expected<'_>, odd: &mut Odd) -> Option<String> {
    let found = race.meeting_id.text();
    match (expected.meeting_id, found) {
        (Some(known), Some(found)) if !known.eq_ignore_ascii_case(&found) => {
            odd.add("wrong_meeting", || format!("expected meeting {known}, found {found}"));
            Some(known.to_owned())
        }
        (Some(known), _) => Some(known.to_owned()),
        (None, found) => found.map(|id| id.into_owned()),
    }
}

/// What an answer says about where the race is in its life.
struct Life {
    status: Option<Status>,
    start: Option<Time>,
    actual_start: Option<Time>,
    stage: stakeout_core::Stage,
    confirmed: Option<bool>,
}

impl Life {
    fn of(race: &Race<'_>, expected: &Expected<'_>, odd: &mut Odd) -> Life {
        let status = known_status(&race.status, odd);
        let start = race.advertised_start.time();
        if start.is_none() {
            odd.add("no_start", || format!("expected advertised_start, found {:?}", race.advertised_start));
        }
        let actual_start = race.actual_start.time();
        let stage = stage(status, actual_start, expected.now, expected.facts.stage);
        Life {
            status,
            start: start.or(expected.facts.start).or(expected.start),
            actual_start,
            stage,
            confirmed: start_confirmed(status, stage),
        }
    }
}

/// The status, if it is one that anybody knows. A word of the upstream that is new is worth a warning, not a stop.
pub(super) fn known_status(leaf: &Leaf<'_>, odd: &mut Odd) -> Option<Status> {
    let status = match leaf {
        Leaf::Text(word) => Status::parse(word),
        _ => None,
    };
    if status.is_none() {
        odd.add("unknown_status", || format!("{leaf:?}: the schedule stays as it is"));
    }
    status
}

/// As stored. A word that nobody knows says nothing: the last one that was understood stays, so that a race that was
/// closed, then something unheard of, then closed again was closed once.
pub(super) fn status_name(status: Option<Status>) -> Value {
    status.map(|status| status.name().to_owned()).into()
}

/// A race's answer knows its meeting by name only; the catalogue fills in the rest.
fn meeting_record(kinds: &Kinds, id: &str, race: &Race<'_>) -> Record {
    let values = vec![
        Value::text(id),
        race.meeting_name.text_value(),
        Value::Null,
        race.country.text_value(),
        race.state.text_value(),
        race.category.text_value(),
        Value::Null,
        Value::Null,
        Value::Null,
    ];
    Record::new(&kinds.meetings, &[id], values)
}

/// The identity of a meeting.
pub(super) fn meeting_fingerprint(kinds: &Kinds, id: &str) -> Fingerprint {
    Fingerprint::of(&kinds.meetings.full_name(), &[id])
}

fn race_record(
    kinds: &Kinds,
    id: &str,
    meeting: Option<&str>,
    race: &Race<'_>,
    life: &Life,
    odd: &mut Odd,
) -> Record {
    let distance = race.distance.int().filter(|metres| *metres >= 0);
    if distance.is_none() && !race.distance.is_null() {
        odd.add("bad_field", || format!("expected metres, found {:?}", race.distance));
    }
    let values = vec![
        Value::text(id),
        status_name(life.status),
        race.advertised_start.time().into(),
        life.actual_start.into(),
        life.confirmed.into(),
        meeting.map(str::to_owned).into(),
        race.race_number.int().into(),
        race.description.text_value(),
        distance.into(),
        race.track_condition.text_value(),
        race.weather.text_value(),
        race.category.text_value(),
        race.country.text_value(),
        race.state.text_value(),
        race.protest.flag().into(),
        race.protest_reason.text_value(),
    ];
    let mut record = Record::new(&kinds.races, &[id], values);
    // A race that is open again has not started: what was known of that is undone, too.
    if life.status == Some(Status::Open) {
        record.cleared.push("actual_start");
    }
    match meeting {
        Some(meeting) => record.under(meeting_fingerprint(kinds, meeting)),
        None => record,
    }
}

/// How much of a list an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Some of its rows were not understood: whoever is missing may be one of them.
    InPart,
    /// It is not there, so this is no whole answer.
    Missing,
}

/// The lists of a race, each as far as it could be read.
struct Lists {
    entrants: Vec<Record>,
    /// A race without runners is not whole.
    runners: Extent,
    /// Whether it is said of any runner that it was scratched, or that it was not.
    says_scratched: bool,
    /// Pools, results, dividends; `None` where the answer had no such list.
    tote: [(&'static str, Option<Rows>); 3],
}

fn lists(parent: Parent<'_>, data: &EventData<'_>, expected: &Expected<'_>, odd: &mut Odd) -> Lists {
    let runners = if data.runners.0.is_some() { &data.runners } else { &data.entrants };
    let money = match data.money_tracker.entrants.0 {
        Some(_) => &data.money_tracker.entrants,
        None => &data.money_flow.entrant_liabilities,
    };
    let pools = data.tote_pools.items();
    let total = |product: &str| -> Option<Cents> { tote::pool_total(pools, product) };
    let field = entrants::Field {
        kinds: parent.kinds,
        race_id: parent.race_id,
        race: parent.race,
        win_pool: total("Win"),
        place_pool: total("Place"),
        now: expected.now,
        says_scratched: expected.facts.notes.contains_key(SAYS_SCRATCHED),
    };
    let entrants = entrants::records(&field, runners.items(), money.items(), odd);
    if runners.items().is_empty() {
        odd.add("no_runners", || "the answer has no runners".to_owned());
    }
    let ids: HashSet<String> = entrants.iter().map(|entrant| entrant.key.clone()).collect();
    Lists {
        says_scratched: runners.items().iter().any(|runner| !runner.is_scratched.is_null()),
        runners: match runners.items().len() {
            0 => Extent::Missing,
            all if all == entrants.len() => Extent::Whole,
            _ => Extent::InPart,
        },
        entrants,
        tote: [
            ("race_pools", data.tote_pools.0.as_ref().map(|rows| tote::pools(parent, rows, odd))),
            ("race_results", data.results.0.as_ref().map(|rows| tote::results(parent, rows, &ids, odd))),
            ("dividends", data.dividends.0.as_ref().map(|rows| tote::dividends(parent, rows, odd))),
        ],
    }
}

impl Lists {
    /// What absence proves. A list that the upstream gave before and does not give now is a gap in the answer, not an
    /// empty list; but a race that is open again has no results. A row that is odd in every answer leaves its list open
    /// and nothing else: the answer is a whole one, or the race would never have a baseline and never be told of.
    fn coverage(&self, parent: Parent<'_>, status: Option<Status>, facts: &mut Facts) -> Coverage {
        let mut given: BTreeSet<String> = match facts.notes.get(LISTS) {
            Some(Value::List(lists)) => lists.iter().filter_map(Value::as_text).map(str::to_owned).collect(),
            _ => BTreeSet::new(),
        };
        let mut extents = vec![(parent.race, self.runners)];
        for (name, rows) in &self.tote {
            let undone = status == Some(Status::Open) && *name != "race_pools";
            let extent = match rows {
                Some(rows) if rows.whole => Extent::Whole,
                Some(_) => Extent::InPart,
                None if undone || !given.contains(*name) => Extent::Whole,
                None => Extent::Missing,
            };
            extents.push((parent.group(name), extent));
            if rows.as_ref().is_some_and(|rows| !rows.records.is_empty()) {
                given.insert((*name).to_owned());
            }
        }
        if !given.is_empty() {
            let names = given.into_iter().map(Value::text).collect();
            facts.notes.insert(LISTS.to_owned(), Value::List(names));
        }
        let groups = |wanted: Extent| -> BTreeSet<Fingerprint> {
            extents.iter().filter(|(_, extent)| *extent == wanted).map(|(group, _)| *group).collect()
        };
        if !groups(Extent::Missing).is_empty() {
            return Coverage::Partial(Scope(groups(Extent::Whole)));
        }
        match groups(Extent::InPart) {
            open if open.is_empty() => Coverage::Complete,
            open => Coverage::CompleteBut(Scope(open)),
        }
    }
}

/// Who has the lowest fixed win price of those that run; of equals the one that had it before, then the lowest
/// number. Without any price, or while its own price, its own row or whether it runs cannot be read, it is still the one
/// from before.
fn favourite(lists: &Lists, before: &Facts) -> Option<Value> {
    let entrants = &lists.entrants;
    let before = before.notes.get(FAVOURITE).and_then(favourite_id);
    // Where nothing is said of it, a scratched runner must not come back.
    let runs = |record: &Record| record.get("is_scratched") == Some(&Value::Bool(false));
    let is_scratched = |record: &Record| record.get("is_scratched") == Some(&Value::Bool(true));
    let price = |record: &Record| record.get("win_odds").and_then(Value::as_f64);
    match entrants.iter().find(|record| before == Some(record.key.as_str())) {
        Some(held) if !is_scratched(held) && (!runs(held) || price(held).is_none()) => return None,
        None if before.is_some() && lists.runners != Extent::Whole => return None,
        _ => {}
    }
    let candidate = |record: &Record| {
        let odds = price(record).filter(|_| runs(record))?;
        let number = record.get("runner_number").and_then(Value::as_f64).unwrap_or(f64::MAX);
        Some((odds, before != Some(record.key.as_str()), number))
    };
    let ranked = entrants.iter().filter_map(|record| Some((candidate(record)?, record)));
    let (_, lowest) =
        ranked.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.total_cmp(&b.2)))?;
    let field = |name: &'static str| (name, lowest.get(name).cloned().unwrap_or_default());
    Some(Value::Map(["entrant_id", "name", "runner_number"].map(field).into()))
}

/// The id in a favourite's note.
pub(super) fn favourite_id(note: &Value) -> Option<&str> {
    match note {
        Value::Map(fields) => fields.get("entrant_id").and_then(Value::as_text),
        _ => None,
    }
}
