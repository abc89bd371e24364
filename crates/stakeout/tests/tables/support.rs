//! An upstream that plays scenes, and an engine that watches it in virtual time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value as Json, json};
use stakeout_core::{Event, Failure, FailureClass, Request, Response, Source, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Control, Engine, EngineConfig, Fetch, virtual_runtime};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{EventFilter, Store, TargetFilter, TargetRow, Validators};
use tempfile::TempDir;

/// Two in the afternoon in New York.
pub(crate) const START: &str = "2026-02-26T19:00:00Z";
pub(crate) const TODAY: &str = "2026-02-26";

pub(crate) fn start() -> Time {
    Time::parse(START).expect("a time")
}

/// One page of one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) day: String,
    pub(crate) time: String,
    pub(crate) size: u64,
    pub(crate) page: u64,
}

/// What an upstream answers at a moment.
pub(crate) type Scene = dyn Fn(Time, &Question) -> Result<Json, Failure> + Send + Sync;

pub(crate) struct Upstream {
    scene: Box<Scene>,
    pub(crate) log: Mutex<Vec<(Time, Question)>>,
}

#[async_trait]
impl Fetch for Upstream {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let asked: Json = serde_json::from_slice(&request.body).expect("a JSON body");
        let text = |value: &Json| value.as_str().expect("text").to_owned();
        let filter = &asked["slot_filter"];
        let question = Question {
            day: text(&filter["day"]),
            time: text(&filter["time_filter"]),
            size: filter["party_size"].as_u64().expect("a number"),
            page: asked["page"].as_u64().expect("a number"),
        };
        let now = clock.now();
        self.log.lock().expect("lock").push((now, question.clone()));
        let body = (self.scene)(now, &question)?;
        // A text stands for a body that is no JSON.
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let response = Response { status: 200, body: body.into(), content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

/// A venue on today's date; times as `HH:MM`.
pub(crate) fn venue(id: i64, times: &[&str]) -> Json {
    venue_on(TODAY, id, times)
}

pub(crate) fn venue_on(date: &str, id: i64, times: &[&str]) -> Json {
    let slot = |clock: &&str| {
        json!({ "date": { "start": format!("{date} {clock}:00"), "end": null },
            "config": { "id": 1, "type": "Dining Room" } })
    };
    json!({ "id": { "resy": id }, "name": format!("Venue {id}"), "neighborhood": "Tribeca",
        "availability": { "slots": times.iter().map(slot).collect::<Vec<_>>() } })
}

pub(crate) fn page(venues: &[Json]) -> Json {
    page_of(venues.len(), 1, venues)
}

/// A page of several.
pub(crate) fn page_of(total: usize, pages: u32, venues: &[Json]) -> Json {
    json!({ "meta": { "total": total, "total_pages": pages }, "search": { "hits": venues } })
}

pub(crate) fn failure(class: FailureClass) -> Failure {
    Failure::new(class, "simulated")
}

/// One bucket (today, 20:30), one party size, exactly one poll a minute.
pub(crate) fn every_minute(more: Json) -> Json {
    let mut config = json!({
        "days": 1, "time_slots": ["20:30"], "party_sizes": [2], "budget": "600/min",
        "min_interval": "1min", "max_interval": "1min", "limits": { "jitter": "0ms" },
    });
    let more = more.as_object().expect("a table").clone();
    config.as_object_mut().expect("a table").extend(more);
    config
}

pub(crate) fn source(config: &Json) -> Arc<dyn Source> {
    let config: TablesConfig = serde_json::from_value(config.clone()).expect("a configuration");
    let credentials = Credentials { api_key: "k3y-s3cret".into(), auth_token: "t0ken-s3cret".into() };
    Arc::new(TablesSource::new("nyc", &config, credentials).expect("a source"))
}

/// A database that several engines may watch with, one after the other.
pub(crate) struct World {
    directory: TempDir,
    pub(crate) now: Time,
}

/// What came of a watch.
pub(crate) struct Watched {
    pub(crate) log: Vec<(Time, Question)>,
    pub(crate) events: Vec<Event>,
    pub(crate) targets: BTreeMap<String, TargetRow>,
}

impl World {
    pub(crate) fn new() -> World {
        World::at(START)
    }

    pub(crate) fn at(start: &str) -> World {
        let now = Time::parse(start).expect("a time");
        World { directory: tempfile::tempdir().expect("a directory"), now }
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("stakeout.db")
    }

    /// Watches for so long; the scene is given the minute since this watch began.
    pub(crate) fn watch(
        &mut self,
        config: &Json,
        span: Span,
        scene: impl Fn(i64, &Question) -> Result<Json, Failure> + Send + Sync + 'static,
    ) -> Watched {
        let begin = self.now;
        let by_minute =
            move |now: Time, question: &Question| scene((now - begin).as_us() / 60_000_000, question);
        self.watch_with(config, span, by_minute, async |_: Control| {})
    }

    pub(crate) fn watch_with(
        &mut self,
        config: &Json,
        span: Span,
        scene: impl Fn(Time, &Question) -> Result<Json, Failure> + Send + Sync + 'static,
        meanwhile: impl AsyncFnOnce(Control),
    ) -> Watched {
        let upstream = Arc::new(Upstream { scene: Box::new(scene), log: Mutex::default() });
        let (events, targets) = self.run(config, span, upstream.clone(), meanwhile);
        let log = upstream.log.lock().expect("lock").clone();
        Watched { log, events, targets }
    }

    /// Watches whatever answers for so long.
    pub(crate) fn run(
        &mut self,
        config: &Json,
        span: Span,
        fetch: Arc<dyn Fetch>,
        meanwhile: impl AsyncFnOnce(Control),
    ) -> (Vec<Event>, BTreeMap<String, TargetRow>) {
        let (runtime, clock) = virtual_runtime(self.now).expect("a runtime");
        let store = SqliteStore::open(self.database(), OpenOptions::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let mut engine = EngineConfig::new(Arc::clone(&store), vec![source(config)], fetch);
        engine.clock = clock.clone();
        engine.node = "test".into();
        self.now += span;
        let until = self.now;
        let (events, targets) = runtime.block_on(async {
            let engine = Engine::start(engine).await.expect("start");
            meanwhile(engine.control()).await;
            clock.sleep_until(until).await;
            engine.shutdown().await.expect("stop");
            let events = store.events(0, &EventFilter::default(), 100_000).await.expect("events");
            let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
            (events, store.targets(&filter).await.expect("targets"))
        });
        (events, targets.into_iter().map(|row| (row.spec.key.clone(), row)).collect())
    }

    pub(crate) fn sql(&self) -> Connection {
        Connection::open_with_flags(self.database(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("open")
    }

    /// The first column of every row, as text.
    pub(crate) fn column(&self, query: &str) -> Vec<String> {
        let conn = self.sql();
        let mut statement = conn.prepare(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let rows = statement.query_map([], |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Null => "NULL".to_owned(),
                rusqlite::types::ValueRef::Integer(n) => n.to_string(),
                rusqlite::types::ValueRef::Real(n) => n.to_string(),
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                rusqlite::types::ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
            })
        });
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    }
}

impl Watched {
    /// The drops, as `minute venue@clock`, the minute counted from the very start.
    pub(crate) fn drops(&self) -> Vec<String> {
        let drops = self.events.iter().filter(|event| event.event_type == "tables.drop");
        let shown = drops.map(|event| {
            let opened = event.data["opened_at"].as_str().and_then(Time::parse).expect("a time");
            let minute = (opened - start()).as_us() / 60_000_000;
            let text = |field: &str| event.data[field].as_str().expect("text").to_owned();
            format!("{minute} {}@{}", text("venue_id"), &text("start")[11..])
        });
        shown.collect()
    }
}
