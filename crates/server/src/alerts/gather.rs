//! Reading the past that a rule looks at: events, histories of races, the poll log. Everything is bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use stakeout_core::alert::{EVENT_TYPE, Moment, Went};
use stakeout_core::{
    Facts, Field, FieldChange, FieldType, Fingerprint, Kind, Record, Span, Stage, TargetSpec, Time, Value,
};
use stakeout_sources::alert::{AlertConfig, When};
use stakeout_sources::racing::{FAMILY as RACING, MONEY_FLOW_HISTORY, ODDS_HISTORY, STATUS_HISTORY};
use stakeout_store::{
    EventFilter, HistoryWindow, PollOutcome, RecordFilter, Store, StoreError, StoredRecord,
};

use super::replay::{Happening, Past};

/// The most events and polls that are looked at.
const MOST_EVENTS: usize = 20_000;
/// The most races.
const MOST_RACES: usize = 500;
/// The most rows of one stream of a runner.
const MOST_ROWS: u32 = 5_000;
const PAGE: u32 = 1_000;
/// Prices and money move so long before a race at most, as far as this looks.
const BEFORE_START: Span = Span::hours(24);
/// A race is over so long after its start at the latest.
const AFTER_START: Span = Span::hours(2);
/// Failures in a row began so long before the first one that counts at most.
const FAILING_SINCE: Span = Span::hours(1);
/// The runners' fields that decide nothing about the past: what they say now is not what they said then.
const SCRATCHED: &str = "is_scratched";

/// What a rule looks at, within a time, of these sources.
pub async fn gather(
    store: &dyn Store,
    rule: &AlertConfig,
    sources: &[String],
    (since, until): (Time, Time),
) -> Result<Past, StoreError> {
    let mut past = Past { until, ..Past::default() };
    let meant = |name: &&String| rule.source.as_ref().is_none_or(|wanted| wanted == *name);
    let window = (since, until);
    match &rule.when {
        When::Event { event_type, .. } => events(store, &mut past, type_filter(event_type), window).await?,
        When::Drop { .. } => {
            events(store, &mut past, Some("tables.drop".into()), window).await?;
            if rule.repeat.is_some() {
                ends(store, &mut past).await?;
            }
        }
        When::Pilot { .. } => {
            // Who flies soon, and what was flown.
            for event_type in ["fpv.race.current_changed", "fpv.race.reseated", "fpv.race.ended"] {
                events(store, &mut past, Some(event_type.into()), window).await?;
            }
        }
        When::Odds { within, .. } => {
            for source in sources.iter().filter(meant) {
                races(store, &mut past, source, &[ODDS_HISTORY], within.0, window).await?;
            }
        }
        When::Money { within, .. } => {
            for source in sources.iter().filter(meant) {
                races(store, &mut past, source, &[MONEY_FLOW_HISTORY], within.0, window).await?;
            }
        }
        When::Indicator { .. } => {
            let streams = [ODDS_HISTORY, MONEY_FLOW_HISTORY];
            for source in sources.iter().filter(meant) {
                races(store, &mut past, source, &streams, BEFORE_START, window).await?;
            }
        }
        When::Start { before } => {
            for source in sources.iter().filter(meant) {
                starts(store, &mut past, source, (rule, before.0), window).await?;
            }
        }
        When::Unhealthy { .. } | When::Missed { .. } => polls(store, &mut past, window).await?,
    }
    past.happenings.sort_by_key(|happening| happening.at);
    Ok(past)
}

/// The types that the log is asked for; `None` when all have to be looked at.
fn type_filter(pattern: &str) -> Option<String> {
    match pattern.strip_suffix('*') {
        None => Some(pattern.to_owned()),
        Some(beginning) if beginning.ends_with('.') => Some(beginning.to_owned()),
        Some(_) => None,
    }
}

async fn events(
    store: &dyn Store,
    past: &mut Past,
    event_type: Option<String>,
    (since, until): (Time, Time),
) -> Result<(), StoreError> {
    let filter = EventFilter { event_type, ..EventFilter::default() };
    let mut before = u64::MAX;
    loop {
        let page = store.newest_events(before, &filter, PAGE).await?;
        let whole = page.len() as u32 == PAGE;
        for event in page {
            before = event.seq;
            if event.at < since {
                return Ok(());
            }
            // An alert is about what happened, not about alerts.
            if event.at >= until || event.event_type == EVENT_TYPE {
                continue;
            }
            let (source, at) = (event.source.clone(), event.at);
            past.happenings.push(Happening { told: vec![event], ..plain(source, at) });
        }
        past.cut = past.happenings.len() >= MOST_EVENTS;
        if !whole || past.cut {
            return Ok(());
        }
    }
}

/// When what was told of was there no more. Of what came and went several times only the last time is known.
async fn ends(store: &dyn Store, past: &mut Past) -> Result<(), StoreError> {
    let mut told: BTreeMap<String, Vec<Fingerprint>> = BTreeMap::new();
    for event in past.happenings.iter().flat_map(|happening| &happening.told) {
        told.entry(event.source.clone()).or_default().push(event.subject);
    }
    for (source, mut subjects) in told {
        subjects.sort_unstable();
        subjects.dedup();
        for page in subjects.chunks(PAGE as usize) {
            let held = store.records(&source, page).await?;
            let end = |record: StoredRecord| ((source.clone(), record.fingerprint), record.gone);
            past.ends.extend(held.into_iter().map(end));
        }
    }
    Ok(())
}

fn plain(source: String, at: Time) -> Happening {
    Happening {
        source,
        target: None,
        at,
        facts: Facts::default(),
        records: Vec::new(),
        moved: Vec::new(),
        told: Vec::new(),
        went: Went::default(),
    }
}

async fn polls(store: &dyn Store, past: &mut Past, (since, until): (Time, Time)) -> Result<(), StoreError> {
    let (mut before, mut found) = (None, Vec::new());
    'pages: loop {
        let page = store.newest_polls(before, PAGE).await?;
        let whole = page.len() as u32 == PAGE;
        for listed in page {
            before = Some(listed.row);
            if listed.poll.ended < since - FAILING_SINCE {
                break 'pages;
            }
            if let (Some(source), Some(target)) = (listed.source, listed.target) {
                found.push((source, target, listed.poll));
            }
        }
        past.cut = found.len() >= MOST_EVENTS;
        if !whole || past.cut {
            break;
        }
    }
    let mut before: BTreeMap<(String, String), (u64, Went)> = BTreeMap::new();
    for (source, target, poll) in found.into_iter().rev() {
        let (last, went) = before.entry((source.clone(), target.clone())).or_default();
        // Every failed poll and every missed one is in the log: between two that are not one after the other, one went well.
        let known = if *last + 1 == poll.poll_no { *went } else { Went::default() };
        let failures = if poll.outcome == PollOutcome::Failed { known.failures + 1 } else { 0 };
        *went = Went { failures, missed: poll.missed, missed_before: known.missed };
        *last = poll.poll_no;
        if poll.ended >= since && poll.ended < until {
            let went = *went;
            let spec = TargetSpec::new(&target, "");
            past.happenings.push(Happening { target: Some(spec), went, ..plain(source, poll.ended) });
        }
    }
    Ok(())
}

/// The races that may have something to do with this time.
async fn races_of(
    store: &dyn Store,
    source: &str,
    (since, until): (Time, Time),
) -> Result<(Vec<StoredRecord>, bool), StoreError> {
    let mut filter = RecordFilter {
        source: source.to_owned(),
        kind: Some(format!("{RACING}_races")),
        gone: true,
        limit: PAGE,
        ..RecordFilter::default()
    };
    let mut found: Vec<StoredRecord> = Vec::new();
    loop {
        let page = store.list_records(&filter).await?;
        filter.after = page.last().map(|listed| listed.row);
        let whole = page.len() as u32 == PAGE;
        found.extend(page.into_iter().map(|listed| listed.record).filter(|race| {
            start_of(&race.body)
                .is_some_and(|start| start >= since - AFTER_START && start <= until + BEFORE_START)
        }));
        if !whole {
            break;
        }
    }
    found.sort_by_key(|race| start_of(&race.body));
    let cut = found.len() > MOST_RACES;
    // The latest ones matter most.
    Ok((found.split_off(found.len().saturating_sub(MOST_RACES)), cut))
}

fn start_of(body: &Json) -> Option<Time> {
    body["start_time"].as_str().and_then(Time::parse)
}

async fn starts(
    store: &dyn Store,
    past: &mut Past,
    source: &str,
    (rule, before): (&AlertConfig, Span),
    (since, until): (Time, Time),
) -> Result<(), StoreError> {
    let (races, cut) = races_of(store, source, (since, until)).await?;
    past.cut |= cut;
    for race in races {
        let rows = stream(store, source, race.fingerprint, STATUS_HISTORY, (Time(0), until)).await?;
        for (n, (from, values)) in rows.iter().enumerate() {
            let Some(start) = values["start_time"].as_str().and_then(Time::parse) else { continue };
            let ends = rows.get(n + 1).map_or(until, |(at, _)| *at);
            let moment = (*from).max(start - before);
            let is_open = matches!(values["status"].as_str(), None | Some("Open" | "Closed"));
            let bells = std::iter::once(moment).chain(rule.bells(start, moment));
            for bell in bells.filter(|bell| is_open && *bell >= since && *bell < ends.min(until)) {
                let facts = Facts { start: Some(start), stage: Stage::Pending, ..Facts::default() };
                past.happenings.push(Happening {
                    target: Some(TargetSpec::new(format!("race/{}", race.key), "race")),
                    facts,
                    records: vec![record("races", &race, race.body.as_object().cloned().unwrap_or_default())],
                    ..plain(source.to_owned(), bell)
                });
            }
        }
    }
    Ok(())
}

async fn races(
    store: &dyn Store,
    past: &mut Past,
    source: &str,
    streams: &[&str],
    lookback: Span,
    (since, until): (Time, Time),
) -> Result<(), StoreError> {
    let (races, cut) = races_of(store, source, (since, until)).await?;
    past.cut |= cut;
    for race in races {
        let filter = RecordFilter {
            source: source.to_owned(),
            kind: Some(format!("{RACING}_entrants")),
            parent: Some(race.fingerprint),
            gone: true,
            limit: PAGE,
            ..RecordFilter::default()
        };
        let mut runners = Vec::new();
        for runner in store.list_records(&filter).await? {
            let runner = runner.record;
            let mut known = Vec::new();
            for name in streams {
                let rows = stream(store, source, runner.fingerprint, name, (since - lookback, until)).await?;
                past.rows.insert((runner.fingerprint, (*name).to_owned()), rows.clone());
                known.extend(rows);
            }
            runners.push(Runner::new(runner, known));
        }
        let facts = Facts { start: start_of(&race.body), ..Facts::default() };
        let target = TargetSpec::new(format!("race/{}", race.key), "race");
        for (at, records, moved) in looks(runners, since, until) {
            let (target, facts) = (Some(target.clone()), facts.clone());
            past.happenings.push(Happening { target, facts, records, moved, ..plain(source.to_owned(), at) });
        }
    }
    Ok(())
}

/// A stream within a time, with what held at its beginning.
async fn stream(
    store: &dyn Store,
    source: &str,
    record: Fingerprint,
    name: &str,
    (from, to): (Time, Time),
) -> Result<Vec<Moment>, StoreError> {
    let held = store.history_at(source, record, from).await?;
    let window = HistoryWindow { source: source.to_owned(), record, stream: Some(name.to_owned()), from, to };
    let rows = store.history_between(&window, MOST_ROWS).await?;
    let held = held.into_iter().filter(|row| row.stream == name && row.at < from);
    Ok(held.chain(rows).map(|row| (row.at, row.values)).collect())
}

/// A runner on its way through its history.
struct Runner {
    stored: StoredRecord,
    /// What is known of it at the moment; nothing before its first row.
    body: Option<Map<String, Json>>,
    /// The rows of all its streams, the newest first.
    rest: Vec<Moment>,
}

impl Runner {
    fn new(stored: StoredRecord, mut rest: Vec<Moment>) -> Runner {
        rest.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Runner { stored, body: None, rest }
    }

    /// Takes in what came at this moment; answers what moved.
    fn advance(&mut self, at: Time) -> Vec<FieldChange> {
        let mut moved = Vec::new();
        while self.rest.last().is_some_and(|(next, _)| *next <= at) {
            let Some((_, values)) = self.rest.pop() else { break };
            let first = self.body.is_none();
            let body = self.body.get_or_insert_with(|| {
                let mut body = self.stored.body.as_object().cloned().unwrap_or_default();
                body.insert(SCRATCHED.to_owned(), Json::Bool(false));
                body
            });
            for (field, new) in values.as_object().into_iter().flatten() {
                let old = body.insert(field.clone(), new.clone()).unwrap_or(Json::Null);
                if !first && old != *new {
                    moved.push(FieldChange { field: field.clone(), old, new: new.clone() });
                }
            }
        }
        moved
    }
}

type Look = (Time, Vec<Record>, Vec<(usize, Vec<FieldChange>)>);

/// A race as it was seen, moment by moment: what moved at the same time was seen in one poll.
fn looks(mut runners: Vec<Runner>, since: Time, until: Time) -> Vec<Look> {
    let mut looks = Vec::new();
    while let Some(at) = runners.iter().filter_map(|runner| runner.rest.last().map(|(at, _)| *at)).min() {
        let moved: Vec<Vec<FieldChange>> = runners.iter_mut().map(|runner| runner.advance(at)).collect();
        if at < since || at >= until {
            continue;
        }
        let known = runners.iter().zip(moved).filter_map(|(runner, moved)| {
            let body = runner.body.clone()?;
            Some((record("entrants", &runner.stored, body), moved))
        });
        let (records, moved): (Vec<Record>, Vec<Vec<FieldChange>>) = known.unzip();
        let moved: Vec<_> = moved.into_iter().enumerate().filter(|(_, fields)| !fields.is_empty()).collect();
        if !moved.is_empty() {
            looks.push((at, records, moved));
        }
    }
    looks
}

/// A stored record as a poll would have seen it. Its fields are those that are stored.
fn record(collection: &str, stored: &StoredRecord, body: Map<String, Json>) -> Record {
    let fields = body.keys().map(|name| Field::new(name, FieldType::Json)).collect();
    let kind = Arc::new(Kind {
        family: RACING.into(),
        collection: collection.into(),
        version: 1,
        fields,
        streams: vec![],
        merges: false,
        views: vec![],
    });
    let values = body.values().map(Value::from_json).collect();
    let mut record = Record::new(&kind, &[&stored.key], values);
    record.fingerprint = stored.fingerprint;
    record.key.clone_from(&stored.key);
    record.parent = stored.parent;
    record
}
