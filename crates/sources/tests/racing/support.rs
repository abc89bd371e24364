//! A race as the upstream would tell it, and one target's life without an engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use stakeout_core::cadence::{self, Last, Next, Seat};
use stakeout_core::compare::{Basis, Item, Memory, Verdict, compare, kinds_meaning, meaning};
use stakeout_core::history::{changed_fields, rows};
use stakeout_core::judge::{Change, Draft, Judgement};
use stakeout_core::{
    Exchange, Facts, Failure, Fingerprint, Observation, Point, PollContext, Record, Request, Response,
    Snapshot, Source, Span, TargetSpec, Time, Value,
};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};

pub(crate) const RACE: &str = "0a1b2c3d-0000-4000-8000-000000000001";
pub(crate) const MEETING: &str = "0a1b2c3d-0000-4000-8000-00000000000f";

/// The advertised start of the race in the fixtures: 2026-01-10T02:00:00Z.
pub(crate) const START_SECS: i64 = 1_768_010_400;

pub(crate) fn start() -> Time {
    Time::from_secs(START_SECS)
}

/// T plus this much, written the way people do: `-21m`, `+15s`.
pub(crate) fn at(offset: &str) -> Time {
    let (sign, span) = offset.split_at(1);
    let span = Span::parse(span).expect("a valid span");
    if sign == "-" { start() - span } else { start() + span }
}

pub(crate) fn identity() -> Identity {
    Identity { from: "ops@example.org".into(), partner: "Example".into(), partner_id: "ex-1".into() }
}

pub(crate) fn source_with(config: Json) -> RacingSource {
    let config: RacingConfig = serde_json::from_value(config).expect("a configuration");
    RacingSource::new("nz", &config, identity()).expect("a source")
}

pub(crate) fn source() -> RacingSource {
    source_with(json!({}))
}

pub(crate) fn race_target() -> TargetSpec {
    TargetSpec {
        params: json!({ "event_id": RACE, "meeting_id": MEETING }),
        start: Some(start()),
        ..TargetSpec::new(format!("race/{RACE}"), "race")
    }
}

/// A runner with a price; `n` is its number.
pub(crate) fn runner(n: i64, win: f64) -> Json {
    json!({
        "entrant_id": format!("entrant-{n}"), "name": format!("Horse {n}"), "runner_number": n, "barrier": n + 1,
        "jockey": "J. Rider", "trainer_name": "T. Rainer", "is_scratched": false, "is_late_scratched": null,
        "scratch_time": 0, "scr_time": null, "is_emergency": false, "favourite": n == 1, "mover": false,
        "gear": null, "runner_change": { "01/06/2024": "Gelding" },
        "odds": { "fixed_win": win, "fixed_place": 1.8, "pool_win": 4.4, "pool_place": 1.5 },
    })
}

/// A whole real-shaped answer: three runners, an hour of betting left.
pub(crate) fn answer() -> Json {
    json!({
        "header": { "title": "Event", "generated_time": "2026-01-10T01:00:00.123456789Z", "url": "/x" },
        "params": { "id": RACE },
        "data": {
            "race": {
                "event_id": RACE, "meeting_id": MEETING, "meeting_name": "Awapuni", "status": "Open",
                "description": "PRYDA HANDICAP 1700", "advertised_start": START_SECS, "actual_start": 0,
                "race_date_nz": "2026-01-10", "start_time_nz": "15:00:00 NZDT", "race_number": 1, "type": "T",
                "country": "NZ", "state": "NZ", "distance": 1700, "weather": "Overcast", "track_condition": "Good",
            },
            "runners": [runner(1, 2.5), runner(2, 4.0), runner(3, 12.0)],
            "money_tracker": { "entrants": [
                { "entrant_id": "entrant-1", "hold_percentage": 30, "bet_percentage": 20 },
                { "entrant_id": "entrant-2", "hold_percentage": 5, "bet_percentage": 1.5 },
                { "entrant_id": "entrant-1", "hold_percentage": 12.5, "bet_percentage": 20 },
                { "entrant_id": "nobody", "hold_percentage": 58, "bet_percentage": 60 },
            ] },
            "tote_pools": [
                { "product_type": "Win", "total": 9151.38, "status": "OPEN" },
                { "product_type": "Place", "total": 3923.51, "status": "OPEN" },
                { "product_type": "EarlyQuadrella", "total": 8126.61, "status": "OPEN" },
                { "product_type": "RunningDouble", "total": 100, "status": "OPEN" },
            ],
            "results": [], "dividends": [], "error": "",
        },
    })
}

/// The answer with some of its race's fields replaced.
pub(crate) fn answer_with(race: Json) -> Json {
    let mut answer = answer();
    for (name, value) in race.as_object().expect("fields") {
        answer["data"]["race"][name] = value.clone();
    }
    answer
}

pub(crate) fn exchange(request: Request, body: String) -> Exchange {
    let response = Response { status: 200, body: body.into(), content_type: None, age: Span::ZERO };
    Exchange { request, result: Ok(response), sent: Time(0), ended: Time(1) }
}

/// What one answer about the race says, read at `now`.
pub(crate) fn read_at(body: &Json, now: Time, facts: &Facts) -> Result<Observation, Failure> {
    let exchanges = [exchange(Request::get("x"), body.to_string())];
    source().normalize(&race_target(), &exchanges, &PollContext { now, facts })
}

pub(crate) fn read(body: &Json) -> Result<Observation, Failure> {
    read_at(body, at("-60m"), &Facts::default())
}

pub(crate) fn of<'a>(observation: &'a Observation, collection: &str) -> Vec<&'a Record> {
    observation.records.iter().filter(|record| record.kind.collection == collection).collect()
}

pub(crate) fn one<'a>(observation: &'a Observation, collection: &str, key: &str) -> &'a Record {
    let found = observation.records.iter().find(|r| r.kind.collection == collection && r.key == key);
    found.unwrap_or_else(|| panic!("no {collection} {key}"))
}

pub(crate) fn codes(observation: &Observation) -> Vec<&'static str> {
    observation.warnings.iter().map(|warning| warning.code).collect()
}

/// A field of a record as JSON.
pub(crate) fn get(record: &Record, field: &str) -> Json {
    record.get(field).map_or(Json::Null, Value::to_json)
}

/// One target polled again and again: facts, snapshot and stored bodies go from poll to poll as the engine keeps them.
pub(crate) struct Watch {
    pub(crate) source: RacingSource,
    pub(crate) target: TargetSpec,
    pub(crate) facts: Facts,
    snapshot: Snapshot,
    memory: Memory,
    stored: BTreeMap<Fingerprint, Map<String, Json>>,
    /// Until when the upstream has told the moves of each.
    told: BTreeMap<Fingerprint, Time>,
    last: Last,
}

/// What one poll of a [`Watch`] brought.
pub(crate) struct Seen {
    pub(crate) verdict: Verdict,
    pub(crate) drafts: Vec<Draft>,
    /// Rows stamped by us, with the record's key.
    pub(crate) rows: Vec<(String, Kept)>,
    pub(crate) removed: usize,
}

/// A row of history as it is stored.
pub(crate) struct Kept {
    pub(crate) stream: String,
    pub(crate) values: Map<String, Json>,
}

impl Seen {
    pub(crate) fn types(&self) -> Vec<&str> {
        self.drafts.iter().map(|draft| draft.event_type.as_str()).collect()
    }
}

impl Watch {
    pub(crate) fn new(source: RacingSource) -> Watch {
        Watch {
            source,
            target: race_target(),
            facts: Facts { start: Some(start()), ..Facts::default() },
            snapshot: Snapshot::default(),
            memory: Memory::default(),
            stored: BTreeMap::new(),
            told: BTreeMap::new(),
            last: Last::default(),
        }
    }

    pub(crate) fn poll(&mut self, now: Time, body: &Json) -> Seen {
        let exchanges = [exchange(Request::get("x"), body.to_string())];
        let context = PollContext { now, facts: &self.facts };
        let observation = self.source.normalize(&self.target, &exchanges, &context).expect("an answer");
        self.take(now, &observation)
    }

    pub(crate) fn take(&mut self, now: Time, observation: &Observation) -> Seen {
        let basis = Basis {
            snapshot: &self.snapshot,
            memory: &self.memory,
            meaning: meaning(kinds_meaning(self.source.kinds()), &self.target),
            policy: self.source.doubt(),
            refresh: self.source.limits().refresh,
            sent: now,
            ended: now,
        };
        let comparison = compare(&basis, observation);
        let stage_since = match observation.facts.stage == self.facts.stage {
            true => self.facts.stage_since.or(Some(now)),
            false => Some(now),
        };
        let facts = Facts { stage_since, ..observation.facts.clone() };
        let merged = |items: &[Item]| -> Vec<Record> {
            let records = items.iter().filter_map(|item| match item {
                Item::Record(i) => Some(&observation.records[*i]),
                Item::Target(_) => None,
            });
            records.map(|r| r.merged_with(self.stored.get(&r.fingerprint)).into_owned()).collect()
        };
        let (added, changed) = (merged(&comparison.added), merged(&comparison.changed));
        let mut changes: Vec<Change<'_>> = added.iter().map(Change::Added).collect();
        for record in &changed {
            let fields = changed_fields(record, &self.stored[&record.fingerprint]);
            changes.push(Change::Changed { record, fields });
        }
        let judgement = Judgement {
            source: "nz",
            target: &self.target,
            at: now,
            facts_before: &self.facts,
            facts: &facts,
            before: &self.snapshot,
            memory: &self.memory,
            changes: &changes,
        };
        let told = comparison.verdict == Verdict::Changed;
        let drafts = if told { self.source.judge(&judgement) } else { vec![] };
        let mut written = Vec::new();
        for record in added.iter().chain(&changed) {
            let until = self.told.get(&record.fingerprint).copied();
            let is_news = |point: &Point| until.is_none_or(|until| point.at > until);
            let found = rows(record, self.stored.get(&record.fingerprint).map(|body| body as _), is_news);
            written.extend(found.into_iter().map(|row| {
                let stream = row.stream.to_owned();
                let values = serde_json::from_str(&row.text()).expect("an object");
                (record.key.clone(), Kept { stream, values })
            }));
        }
        for record in added.into_iter().chain(changed) {
            let told = record.points.iter().map(|point| point.at).max();
            self.told.extend(told.map(|told| (record.fingerprint, told)));
            self.stored.insert(record.fingerprint, record.body());
        }
        self.snapshot = comparison.next.clone().unwrap_or_else(|| self.snapshot.clone());
        self.memory = comparison.memory.clone();
        self.facts = facts;
        self.last = Last { slot: Some(now), ..Last::default() };
        Seen { verdict: comparison.verdict, drafts, rows: written, removed: comparison.removed.len() }
    }

    /// When to look again, had the last poll been answered at once.
    pub(crate) fn next(&self) -> Next {
        let seat = Seat { spread: 7, priority: self.target.priority, budgeted: None, bell: None };
        let now = self.last.slot.unwrap_or(start() - Span::hours(24));
        cadence::next(&self.source.plan(&self.target, &self.facts), &self.facts, &self.last, now, &seat)
    }

    pub(crate) fn stored(&self, key: &str, field: &str) -> Json {
        let found = self
            .stored
            .values()
            .find(|body| ["entrant_id", "race_id"].iter().any(|id| body.get(*id) == Some(&json!(key))));
        found.map_or(Json::Null, |body| body[field].clone())
    }
}
