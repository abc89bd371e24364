//! An FPVTrackside that is a set of files, and a source that watches it without an engine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use stakeout_core::compare::{
    Basis, Item, Memory, Verdict, compare, kinds_meaning, meaning, target_fingerprint,
};
use stakeout_core::derive::{Derived, Held, Holdings, Link, Published};
use stakeout_core::history::changed_fields;
use stakeout_core::judge::{Change, Judgement};
use stakeout_core::{
    Exchange, Facts, Failure, Fingerprint, Observation, PollContext, Record, Response, Snapshot, Source,
    Span, TargetSpec, Time,
};
use stakeout_sources::fpv::{FpvConfig, FpvSource};

/// When the stories begin.
pub(crate) const START: Time = Time::from_secs(1_738_140_000);
pub(crate) const NONE: &str = "0001/01/01 0:00:00";

/// A GUID that can be told from others at a glance: `guid("e", 1)`.
pub(crate) fn guid(sort: &str, n: u32) -> String {
    let digit = sort.bytes().next().map_or(0, |b| b % 16);
    format!("{digit:08x}-0000-4000-8000-{n:012x}")
}

pub(crate) fn event(n: u32) -> String {
    guid("e", n)
}
pub(crate) fn race(n: u32) -> String {
    guid("r", n)
}
pub(crate) fn round(n: u32) -> String {
    guid("o", n)
}
pub(crate) fn pilot(n: u32) -> String {
    guid("p", n)
}
pub(crate) fn channel(n: u32) -> String {
    guid("c", n)
}

/// A moment on the venue's clock, so many seconds after 9:59:00, written the way the upstream does.
pub(crate) fn clock(seconds: u32) -> String {
    let seconds = 9 * 3_600 + 59 * 60 + seconds;
    format!("2025/01/29 {}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

pub(crate) fn source_with(config: Json) -> FpvSource {
    let mut full = json!({ "url": "http://trackside.local:8080/" });
    full.as_object_mut().expect("a table").extend(config.as_object().expect("a table").clone());
    let config: FpvConfig = serde_json::from_value(full).expect("a configuration");
    FpvSource::new("track", &config).expect("a source")
}

/// A race as its file says it: two pilots, nothing flown.
pub(crate) fn race_file(n: u32, round_n: u32, number: i64) -> Json {
    json!({
        "ID": race(n), "RaceNumber": number, "Round": round(round_n), "Start": NONE, "End": NONE,
        "TotalPausedTime": "00:00:00", "TargetLaps": 4, "Valid": true, "Bracket": "None", "Event": event(1),
        "PilotChannels": [
            { "Pilot": pilot(1), "Channel": channel(1) }, { "Pilot": pilot(2), "Channel": channel(2) },
        ],
        "Laps": [], "Detections": [],
    })
}

pub(crate) fn round_file(n: u32, order: i64) -> Json {
    json!({ "ID": round(n), "Name": "", "RoundNumber": n, "Order": order, "Valid": true, "EventType": "Race" })
}

/// A lap with its detection: pilot `p` completes lap `number` so many seconds after the race's start at `from`.
pub(crate) fn fly(file: &mut Json, p: u32, number: i64, from: u32, end: u32, seconds: f64) {
    let n = p * 1_000 + number as u32;
    let list = |name: &str, file: &mut Json, value: Json| {
        file[name].as_array_mut().expect("a list").push(value);
    };
    let at = clock(from + end);
    list(
        "Detections",
        file,
        json!({
            "ID": guid("d", n), "Time": at, "Pilot": pilot(p), "Channel": channel(p), "LapNumber": number, "Valid": true,
            "ValidityType": "Auto", "IsLapEnd": true, "IsHoleshot": number == 0,
        }),
    );
    list(
        "Laps",
        file,
        json!({
            "ID": guid("l", n), "Detection": guid("d", n), "LengthSeconds": seconds, "LapNumber": number,
            "StartTime": clock(from), "EndTime": at,
        }),
    );
}

struct Watched {
    spec: TargetSpec,
    lister: Option<String>,
    facts: Facts,
    snapshot: Snapshot,
    memory: Memory,
}

/// What a source holds of an upstream, as the engine would keep it.
pub(crate) struct World {
    pub(crate) source: FpvSource,
    /// The upstream: path to body.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) now: Time,
    targets: BTreeMap<String, Watched>,
    records: BTreeMap<Fingerprint, Held>,
    pub(crate) focused: Option<String>,
    pub(crate) published: Option<Json>,
    /// Who flies soon, as it is published.
    pub(crate) upcoming: Option<Published>,
    /// Type and subject of everything told.
    pub(crate) told: Vec<(String, String)>,
    /// Records written because of what follows from others.
    pub(crate) derived_writes: usize,
}

impl World {
    /// An event with these races; two to a round, the rounds in steps of 100.
    pub(crate) fn new(races: u32) -> World {
        World::with(source_with(json!({})), races)
    }

    pub(crate) fn with(source: FpvSource, races: u32) -> World {
        let mut world = World {
            targets: BTreeMap::new(),
            records: BTreeMap::new(),
            files: BTreeMap::new(),
            now: START,
            focused: None,
            published: None,
            upcoming: None,
            told: Vec::new(),
            derived_writes: 0,
            source,
        };
        for spec in world.source.roots(START) {
            world.add(spec, None);
        }
        world.open(1, races);
        world
    }

    /// Puts an event with its files there and opens it.
    pub(crate) fn open(&mut self, event_n: u32, races: u32) {
        let id = event(event_n);
        let page = format!("<html><script>var m = new EventManager(\"events/{id}\", x);</script></html>");
        self.files.insert(String::new(), page);
        let ids: Vec<String> = (1..=races).map(|n| race(event_n * 100 + n)).collect();
        let file = json!([{
            "ID": id, "Name": format!("Event {event_n}"), "EventType": "Race", "Start": "2025/01/29 0:00:00", "End": NONE,
            "Laps": 4, "PBLaps": 2, "RaceLength": "00:02:00", "Races": ids, "Channels": [channel(1), channel(2)],
            "ChannelColors": ["#FF0000", "#0000FF"], "ChannelDisplayNames": [null, "Blue"], "RemovedPilots": [],
            "PilotChannels": [{ "Pilot": pilot(1), "Channel": channel(1) }, { "Pilot": pilot(2), "Channel": channel(2) }],
        }]);
        self.put(&format!("events/{id}/Event.json"), &file);
        let pilots = json!([{ "ID": pilot(1), "Name": "Bob" }, { "ID": pilot(2), "Name": "Joe" }]);
        self.put(&format!("events/{id}/Pilots.json"), &pilots);
        let rounds: Vec<Json> = (1..=races.div_ceil(2)).map(|n| round_file(n, i64::from(n) * 100)).collect();
        self.put(&format!("events/{id}/Rounds.json"), &json!(rounds));
        let channels = json!([
            { "ID": channel(1), "Number": 1, "Band": "Raceband", "ShortBand": "R", "Frequency": 5658, "DisplayName": null },
            { "ID": channel(2), "Number": 2, "Band": "Raceband", "ShortBand": "R", "Frequency": 5695 },
        ]);
        self.put("httpfiles/Channels.json", &channels);
        for n in 1..=races {
            let mut file = race_file(event_n * 100 + n, n.div_ceil(2), i64::from((n - 1) % 2 + 1));
            file["Event"] = json!(id);
            self.put(&format!("events/{id}/{}/Race.json", race(event_n * 100 + n)), &json!([file]));
        }
    }

    pub(crate) fn put(&mut self, path: &str, body: &Json) {
        self.files.insert(path.to_owned(), body.to_string());
    }

    /// Edits a race of the first event; `n` counts from 1.
    pub(crate) fn edit(&mut self, n: u32, edit: impl FnOnce(&mut Json)) {
        let path = race_path(n);
        let mut file: Json = serde_json::from_str(&self.files[&path]).expect("json");
        edit(&mut file[0]);
        self.put(&path, &file);
    }

    /// Gives a race a start and an end, in seconds on the venue's clock.
    pub(crate) fn set(&mut self, n: u32, start: Option<u32>, end: Option<u32>) {
        let written = |at: Option<u32>| at.map_or(NONE.to_owned(), clock);
        self.edit(n, |file| {
            file["Start"] = json!(written(start));
            file["End"] = json!(written(end));
        });
    }

    pub(crate) fn edit_file(&mut self, name: &str, edit: impl FnOnce(&mut Json)) {
        let path = format!("events/{}/{name}", event(1));
        let mut file: Json = serde_json::from_str(&self.files[&path]).expect("json");
        edit(&mut file);
        self.put(&path, &file);
    }

    fn add(&mut self, spec: TargetSpec, lister: Option<String>) {
        let facts = self.targets.get(&spec.key).map(|known| known.facts.clone()).unwrap_or_default();
        let (snapshot, memory) =
            self.targets.remove(&spec.key).map(|known| (known.snapshot, known.memory)).unwrap_or_default();
        self.targets.insert(spec.key.clone(), Watched { spec, lister, facts, snapshot, memory });
    }

    /// The answer of the real server: never an error status.
    fn answer(&self, path: &str) -> String {
        match self.files.get(path) {
            Some(body) => body.clone(),
            None if path.starts_with("events/") => String::new(),
            None => self.files[""].clone(),
        }
    }

    /// Polls everything that is known, page first, races last, then looks at all of it.
    pub(crate) fn round(&mut self) {
        self.poll_all();
        self.derive();
    }

    pub(crate) fn poll_all(&mut self) {
        let mut done = BTreeSet::new();
        loop {
            let rank = |key: &String| (!key.starts_with("page"), !key.starts_with("event"), key.clone());
            let next =
                self.targets.keys().filter(|key| !done.contains(*key)).min_by_key(|key| rank(key)).cloned();
            let Some(key) = next else { break };
            let _ = self.poll(&key);
            done.insert(key);
        }
    }

    pub(crate) fn observe(&self, key: &str) -> Result<Observation, Failure> {
        let watched = &self.targets[key];
        let context = PollContext { now: self.now, facts: &watched.facts };
        let request = self.source.requests(&watched.spec, &[], &context).remove(0);
        let path = request.url.strip_prefix("http://trackside.local:8080/").expect("our host").to_owned();
        let body = self.answer(&path).into();
        let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
        let exchange = Exchange { request, result: Ok(response), sent: self.now, ended: self.now };
        self.source.normalize(&watched.spec, &[exchange], &context)
    }

    pub(crate) fn poll(&mut self, key: &str) -> Result<Verdict, Failure> {
        let seen = self.observe(key)?;
        let watched = &self.targets[key];
        let basis = Basis {
            snapshot: &watched.snapshot,
            memory: &watched.memory,
            meaning: meaning(kinds_meaning(self.source.kinds()), &watched.spec),
            policy: self.source.doubt(),
            refresh: self.source.limits().refresh,
            sent: self.now,
            ended: self.now,
        };
        let found = compare(&basis, &seen);
        if found.verdict == Verdict::Doubted {
            self.targets.get_mut(key).expect("it is there").memory = found.memory;
            return Ok(Verdict::Doubted);
        }
        let records = |items: &[Item]| -> Vec<Record> {
            let records = items.iter().filter_map(|item| match item {
                Item::Record(i) => Some(&seen.records[*i]),
                Item::Target(_) => None,
            });
            records.map(|r| self.kept(r)).collect()
        };
        let (added, changed) = (records(&found.added), records(&found.changed));
        let mut changes: Vec<Change<'_>> = added.iter().map(Change::Added).collect();
        for record in &changed {
            let fields = changed_fields(record, &self.records[&record.fingerprint].body);
            changes.push(Change::Changed { record, fields });
        }
        let judgement = Judgement {
            source: "track",
            target: &watched.spec,
            at: self.now,
            facts_before: &watched.facts,
            facts: &seen.facts,
            before: &watched.snapshot,
            memory: &watched.memory,
            changes: &changes,
        };
        if found.verdict == Verdict::Changed {
            let drafts = self.source.judge(&judgement);
            self.told.extend(drafts.into_iter().map(|draft| (draft.event_type, draft.subject_key)));
        }
        for record in added.iter().chain(&changed) {
            self.write(record);
        }
        let watched = self.targets.get_mut(key).expect("it is there");
        watched.snapshot = found.next.clone().unwrap_or_else(|| watched.snapshot.clone());
        watched.memory = found.memory.clone();
        watched.facts = seen.facts.clone();
        for item in found.added.iter().chain(&found.changed) {
            if let Item::Target(i) = item {
                self.add(seen.targets.as_ref().expect("a listing")[*i].clone(), Some(key.to_owned()));
            }
        }
        let gone: BTreeSet<Fingerprint> = found.removed.iter().map(|entry| entry.fingerprint).collect();
        let listed = |watched: &&Watched| {
            watched.lister.as_deref() == Some(key) && gone.contains(&target_fingerprint(&watched.spec.key))
        };
        let retired: Vec<String> = self.targets.values().filter(listed).map(|w| w.spec.key.clone()).collect();
        retired.iter().for_each(|key| self.retire(key));
        self.let_go();
        Ok(found.verdict)
    }

    fn retire(&mut self, key: &str) {
        self.targets.remove(key);
        let listed = self.targets.values().filter(|w| w.lister.as_deref() == Some(key));
        let listed: Vec<String> = listed.map(|w| w.spec.key.clone()).collect();
        listed.iter().for_each(|key| self.retire(key));
    }

    /// Records that nobody holds are gone.
    fn let_go(&mut self) {
        let held = |print: &Fingerprint| self.targets.values().any(|w| w.snapshot.get(*print).is_some());
        let gone: Vec<Fingerprint> = self.records.keys().filter(|print| !held(print)).copied().collect();
        for print in gone {
            self.records.remove(&print);
        }
    }

    /// A polled record as it is to be stored: the order of a race is none of its business.
    fn kept(&self, record: &Record) -> Record {
        let known = self.records.get(&record.fingerprint).map(|held| &held.body);
        let mut record = record.merged_with(known).into_owned();
        if let (Some(at), Some(known)) = (record.kind.position("race_order"), known) {
            record.values[at] = stakeout_core::Value::from_json(&known["race_order"]);
        }
        record
    }

    fn write(&mut self, record: &Record) {
        let held = Held { kind: record.kind.full_name(), key: record.key.clone(), body: record.body() };
        self.records.insert(record.fingerprint, held);
    }

    /// What follows from all of it now.
    pub(crate) fn derived(&self) -> Derived {
        // No more than the engine would show it.
        let kinds = self.source.derives().expect("something follows").kinds;
        let records: Vec<Held> = self.held().into_iter().filter(|held| kinds.contains(&held.kind)).collect();
        let targets: Vec<String> = self.targets.keys().cloned().collect();
        let focused = self.focused.as_deref();
        self.source.derive(&Holdings {
            now: self.now,
            records: &records,
            targets: &targets,
            focused,
            published: self.upcoming.as_slice(),
            link: Link::default(),
        })
    }

    pub(crate) fn derive(&mut self) {
        let derived = self.derived();
        self.derived_writes += derived.records.len();
        derived.records.iter().for_each(|record| self.write(record));
        let drafts = derived.drafts.into_iter();
        self.told.extend(drafts.map(|draft| (draft.event_type, draft.subject_key)));
        self.focused = derived.focus.map(|spec| {
            let key = spec.key.clone();
            if let Some(known) = self.targets.get(&key) {
                assert_eq!(known.spec, spec, "the focus and the listing mean the same target");
            }
            key
        });
        for mut published in derived.published {
            if published.namespace == "upcoming" {
                self.upcoming = Some(published);
                continue;
            }
            published.value.as_object_mut().expect("an object").remove(&published.stamp.expect("a stamp"));
            self.published = Some(published.value);
        }
    }

    /// Past the time in which a new event may still be coming in.
    pub(crate) fn settle(&mut self) {
        self.now += Span::secs(60);
    }

    pub(crate) fn held(&self) -> Vec<Held> {
        self.records.values().cloned().collect()
    }

    pub(crate) fn keys(&self) -> Vec<&str> {
        self.targets.keys().map(String::as_str).collect()
    }

    pub(crate) fn spec(&self, key: &str) -> &TargetSpec {
        &self.targets[key].spec
    }

    pub(crate) fn facts(&self, key: &str) -> &Facts {
        &self.targets[key].facts
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.records.values().filter(|held| held.kind == kind).count()
    }

    pub(crate) fn body(&self, kind: &str, key: &str) -> &Map<String, Json> {
        let found = self.records.values().find(|held| held.kind == kind && held.key == key);
        &found.unwrap_or_else(|| panic!("no {kind} {key}")).body
    }

    /// The order of a race of the first event.
    pub(crate) fn order(&self, n: u32) -> Json {
        self.body("fpv_races", &race(100 + n))["race_order"].clone()
    }

    /// The types of what was told since the last call.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told).into_iter().map(|(told, _)| told).collect()
    }

    /// The published race as a number of the first event, with its order.
    pub(crate) fn current(&self) -> (Option<u32>, Option<i64>) {
        let Some(value) = &self.published else { return (None, None) };
        let number = (1..100).find(|n| value["raceId"] == json!(race(100 + n)));
        (number, value["order"].as_i64())
    }
}

pub(crate) fn race_path(n: u32) -> String {
    format!("events/{}/{}/Race.json", event(1), race(100 + n))
}

pub(crate) fn race_target(n: u32) -> String {
    format!("race/{}", race(100 + n))
}
