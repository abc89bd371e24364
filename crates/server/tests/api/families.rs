//! The families' own pages: races, drones and tables, each from its simulated upstream through the real engine.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::Source;
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Control, Engine, EngineConfig, EngineHandle};
use stakeout_server::{Server, ServerConfig};
use stakeout_sim::{fpv, nztab, resy};
use stakeout_sources::fpv::{FpvConfig, FpvSource};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};
use stakeout_store::sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;

use crate::support::within;

/// Sixty times as fast as life: within seconds every upstream has something to show.
const SPEED: f64 = 60.0;

pub(crate) struct Day {
    engine: EngineHandle,
    pub(crate) control: Control,
    http: reqwest::Client,
    base: String,
    stop: CancellationToken,
    server: tokio::task::JoinHandle<()>,
}

impl Day {
    pub(crate) async fn start(clock: Clock, source: Arc<dyn Source>) -> Day {
        Day::on(Arc::new(SqliteStore::in_memory().expect("store")), clock, source).await
    }

    /// On a store that somebody else looks into, too.
    pub(crate) async fn on(store: Arc<SqliteStore>, clock: Clock, source: Arc<dyn Source>) -> Day {
        let mut config =
            EngineConfig::new(store.clone(), vec![source], Arc::new(HttpFetch::new().expect("client")));
        config.clock = clock;
        let engine = Engine::start(config).await.expect("starts");
        let server = Server::bind(ServerConfig::new(([127, 0, 0, 1], 0).into()), store).await.expect("binds");
        let base = format!("http://{}", server.address());
        let (control, stop) = (engine.control(), CancellationToken::new());
        let server = tokio::spawn(server.run(control.clone(), stop.clone()));
        // On a busy machine a connection that waits for the next question may be closed before it comes.
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("client");
        Day { engine, control, http, base, stop, server }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Json) {
        let response = self.http.get(format!("{}{path}", self.base)).send().await.expect("an answer");
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.expect("a body")).unwrap_or_default())
    }

    /// Asks after every poll until the answer is as wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Json) -> bool) -> Json {
        let mut polled = self.control.polled();
        within(async {
            loop {
                let (status, answer) = self.get(path).await;
                if status == 200 && wanted(&answer) {
                    return answer;
                }
                polled.changed().await.expect("the engine lives");
            }
        })
        .await
    }

    /// A list part by part, as the `Link` headers lead through it.
    pub(crate) async fn parts(&self, path: String) -> Vec<Json> {
        let (mut parts, mut next) = (Vec::new(), Some(path));
        while let Some(path) = next {
            let response = self.http.get(format!("{}{path}", self.base)).send().await.expect("an answer");
            assert_eq!(response.status(), 200, "{path}");
            let link = response.headers().get("link").map(|link| link.to_str().expect("text").to_owned());
            next = link.and_then(|link| Some(link.strip_prefix('<')?.split_once('>')?.0.to_owned()));
            parts.push(serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON"));
        }
        parts
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.server).await.expect("stops");
        self.engine.shutdown().await.expect("stops");
    }
}

fn some(json: &Json) -> bool {
    json.as_array().is_some_and(|items| !items.is_empty())
}

#[tokio::test]
async fn races_have_runners_a_timeline_and_results() {
    let clock = Clock::scaled(SPEED);
    let time = clock.clone();
    let upstream = nztab::serve(Arc::new(nztab::demo(clock.now())), move || time.now());
    let base_url = upstream.url("").trim_end_matches('/').to_owned();
    let config = RacingConfig { base_url, ..RacingConfig::default() };
    let identity = Identity { from: "a@example.org".into(), partner: "p".into(), partner_id: "i".into() };
    let source = RacingSource::new("nz", &config, identity).expect("a source");
    let day = Day::start(clock, Arc::new(source)).await;

    let meetings = day.until("/v1/racing/nz/meetings", some).await;
    let date = meetings[0]["body"]["date"].as_str().expect("a date");
    let dated = day.get(&format!("/v1/racing/nz/meetings?date={date}")).await.1;
    assert!(some(&dated) && dated.as_array().expect("meetings").iter().all(|m| m["body"]["date"] == date));
    assert_eq!(day.get("/v1/racing/nz/meetings?date=1900-01-01").await.1, json!([]));
    let next = day.until("/v1/racing/nz/next", |race| some(&race["entrants"])).await;
    assert!(next["meeting"]["body"]["name"].is_string());
    let upcoming = day.until("/v1/racing/nz/races?upcoming=true&limit=5", some).await;
    let starts: Vec<&str> = upcoming
        .as_array()
        .expect("races")
        .iter()
        .filter_map(|race| race["body"]["start_time"].as_str())
        .collect();
    assert!(starts.is_sorted() && starts.len() > 1, "{starts:?}");
    let id = next["race"]["key"].as_str().expect("an id");
    let race = day.get(&format!("/v1/racing/nz/races/{id}")).await.1;
    assert_eq!((&race["race"]["key"], some(&race["entrants"])), (&json!(id), true));
    assert_eq!(race["target"]["key"], json!(format!("race/{id}")), "how it is polled");
    let entrants = day.get(&format!("/v1/racing/nz/races/{id}/entrants")).await.1;
    assert_eq!(entrants.as_array().map(Vec::len), race["entrants"].as_array().map(Vec::len));
    let place = day.get(&format!("/v1/racing/nz/races/{id}/timeline?pool=place")).await;
    assert_eq!(
        (place.0, place.1["lines"].as_array().map(Vec::len)),
        (200, entrants.as_array().map(Vec::len))
    );
    assert_eq!(day.get(&format!("/v1/racing/nz/races/{id}/timeline?pool=none")).await.0, 400);
    races_are_listed_by_meeting_and_page_by_page(&day, next["meeting"]["key"].as_str().expect("an id")).await;
    let timeline = day
        .until(&format!("/v1/racing/nz/races/{id}/timeline"), |grid| {
            grid["lines"].as_array().is_some_and(|lines| {
                lines.iter().any(|line| {
                    line["cells"]
                        .as_array()
                        .is_some_and(|cells| cells.iter().any(|cell| cell["odds"].is_number()))
                })
            })
        })
        .await;
    let columns = timeline["buckets"].as_array().map(Vec::len);
    assert!(
        timeline["lines"]
            .as_array()
            .expect("lines")
            .iter()
            .all(|line| line["cells"].as_array().map(Vec::len) == columns)
    );
    a_poll_that_is_told_carries_the_start(&day).await;
    let over = day
        .until("/v1/records/nz?kind=racing_race_results&gone=true&limit=1", |page| some(&page["items"]))
        .await;
    let race = over["items"][0]["body"]["race"].as_str().expect("a race").to_owned();
    let results = day.get(&format!("/v1/racing/nz/races/{race}/results")).await.1;
    assert_eq!(results["results"][0]["body"]["position"], 1, "{results}");
    assert_eq!(day.get("/v1/racing/nz/races/none").await.0, 404);
    assert_eq!(day.get("/v1/fpv/nz/event").await.0, 404, "a racing source flies no drones");
    day.stop().await;
}

/// A board counts down to it, and learns of another one with the poll that saw it.
async fn a_poll_that_is_told_carries_the_start(day: &Day) {
    let url = format!("{}/v1/events/stream?polls=nz&type=none.", day.base);
    let mut stream = within(day.http.get(url).send()).await.expect("a stream");
    let mut text = String::new();
    let race = |text: &str| {
        let told =
            text.lines().filter_map(|line| serde_json::from_str::<Json>(line.strip_prefix("data: ")?).ok());
        told.into_iter().find(|poll| poll["target"].as_str().is_some_and(|key| key.starts_with("race/")))
    };
    let poll = loop {
        if let Some(poll) = race(&text) {
            break poll;
        }
        let bytes = within(stream.chunk()).await.expect("a chunk").expect("it goes on");
        text.push_str(std::str::from_utf8(&bytes).expect("text"));
    };
    assert!(poll["start"].is_string(), "{poll}");
}

async fn races_are_listed_by_meeting_and_page_by_page(day: &Day, meeting: &str) {
    let of_meeting = format!("/v1/racing/nz/races?meeting={meeting}");
    let whole = day.get(&of_meeting).await.1;
    let ids = |races: &Json| -> Vec<String> {
        let races = races.as_array().expect("races");
        races.iter().map(|race| race["key"].as_str().expect("an id").to_owned()).collect()
    };
    let whole = ids(&whole);
    assert!(whole.len() > 2, "{whole:?}");
    let mut found = Vec::new();
    for page in day.parts(format!("{of_meeting}&limit=2")).await {
        assert!(ids(&page).len() <= 2);
        found.extend(ids(&page));
    }
    assert_eq!(found, whole);
    assert_eq!(day.get("/v1/racing/nz/races?after=none").await.0, 404);
}

#[tokio::test]
async fn drones_have_an_event_races_leaders_and_an_overlay() {
    let clock = Clock::scaled(SPEED / 2.0);
    let time = clock.clone();
    let upstream = fpv::serve(Arc::new(fpv::demo(clock.now())), move || time.now());
    let config: FpvConfig =
        serde_json::from_value(json!({ "url": upstream.url("").trim_end_matches('/') })).expect("config");
    let day = Day::start(clock, Arc::new(FpvSource::new("track", &config).expect("a source"))).await;

    let event = day.until("/v1/fpv/track/event", |event| event["races"].as_u64() > Some(0)).await;
    assert!(event["pilots"].as_u64() > Some(0) && event["name"].is_string(), "{event}");
    let races = day.until("/v1/fpv/track/races", |races| races["current"].is_object()).await;
    assert!(races["current"]["race_id"].is_string());
    let board = day
        .until("/v1/fpv/track/leaderboard", |board| some(board) && board[0]["best_lap_seconds"].is_number())
        .await;
    let leader = board[0]["pilot"].as_str().expect("a pilot");
    let pilot = day.get(&format!("/v1/fpv/track/pilots/{leader}")).await.1;
    assert_eq!((&pilot["id"], &pilot["standing"]["pilot"]), (&json!(leader), &json!(leader)));
    let overlay = day.get("/v1/fpv/track/overlay").await.1;
    assert_eq!(overlay["event"]["id"], event["id"]);
    let race = races["current"]["race_id"].as_str().expect("an id");
    assert_eq!(day.get(&format!("/v1/fpv/track/leaderboard?race={race}")).await.0, 200);
    assert_eq!(day.get("/v1/fpv/track/leaderboard?race=none").await.0, 404);
    // What the source publishes is on the stream, too, and under its name.
    let values = day.until("/v1/kv", some).await;
    let (namespace, key) = (values[0]["namespace"].as_str(), values[0]["key"].as_str());
    let path = format!("/v1/kv/{}/{}", namespace.expect("a namespace"), key.expect("a key"));
    assert_eq!(day.get(&path).await.0, 200);
    let mut stream =
        within(day.http.get(format!("{}/v1/events/stream?kv=all", day.base)).send()).await.expect("a stream");
    let mut text = String::new();
    // Said at the beginning, and again when one changes: the next race becomes the current one sooner or later.
    while text.matches("event: kv\n").count() <= values.as_array().map_or(0, Vec::len) {
        let bytes = within(stream.chunk()).await.expect("a chunk").expect("it goes on");
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    day.stop().await;
}

#[tokio::test]
async fn tables_that_open_are_shown_until_they_close() {
    let clock = Clock::scaled(SPEED);
    let time = clock.clone();
    let upstream = resy::serve(Arc::new(resy::demo(clock.now())), move || time.now());
    let config = json!({
        "base_url": upstream.url("").trim_end_matches('/'), "days": 4, "time_slots": ["19:30"], "party_sizes": [2],
        "budget": "600/min", "min_interval": "15s", "max_interval": "30s",
        "limits": { "requests_per_second": 100, "burst": 50, "min_gap": "0s", "jitter": "0ms" },
    });
    let config: TablesConfig = serde_json::from_value(config).expect("a configuration");
    let credentials = Credentials { api_key: "key".into(), auth_token: "token".into() };
    let source = TablesSource::new("nyc", &config, credentials).expect("a source");
    let day = Day::start(clock, Arc::new(source)).await;

    let buckets = day
        .until("/v1/tables/nyc/buckets", |buckets| some(buckets) && buckets[0]["last_scan"].is_string())
        .await;
    assert!(buckets[0]["polls"].as_u64() > Some(0), "{buckets}");
    day.until("/v1/tables/nyc/buckets", |buckets| {
        let counted = |bucket: &Json| {
            bucket["open_slots"].as_u64() > Some(0)
                && bucket["venues_open"].as_u64() > Some(0)
                && bucket["venues_open"].as_u64() <= bucket["open_slots"].as_u64()
        };
        buckets.as_array().is_some_and(|buckets| buckets.iter().any(counted))
    })
    .await;
    day.until("/v1/tables/nyc/venues", some).await;
    venues_are_listed_part_by_part(&day).await;
    let opened = day.until("/v1/tables/nyc/just-opened", some).await;
    let venue = opened[0]["venues"][0]["venue_id"].as_str().expect("a venue").to_owned();
    let slot = &opened[0]["venues"][0]["slots"][0];
    let moment = |name: &str| slot[name].as_str().expect("a time").to_owned();
    assert!(
        moment("first_seen") <= moment("opened_at") && moment("opened_at") <= moment("last_seen"),
        "{slot}"
    );
    what_is_open_comes_with_health_and_part_by_part(&day).await;
    a_venue_has_a_past_and_can_be_followed(&day, &venue).await;
    let without = day.get(&format!("/v1/tables/nyc/still-open?exclude={venue}")).await.1;
    assert!(!without.to_string().contains(&format!("\"venue_id\":\"{venue}\"")), "{without}");
    let only = day.get(&format!("/v1/tables/nyc/still-open?follow={venue}")).await.1;
    for shown in only.as_array().expect("days") {
        assert!(shown["venues"].as_array().expect("venues").iter().all(|v| v["venue_id"] == venue.as_str()));
    }
    let refused = [
        "limit=0",
        "after=-1",
        "minutes=0",
        "minutes=100001",
        "date=tomorrow",
        "date=2026-2-8",
        "from=8pm",
        "to=25:00",
    ];
    for query in refused {
        let (status, problem) = day.get(&format!("/v1/tables/nyc/just-opened?{query}")).await;
        assert_eq!(status, 400, "{query}");
        let name = query.split('=').next().expect("a name");
        assert!(problem["detail"].as_str().is_some_and(|words| words.contains(name)), "{problem}");
    }
    let path = format!("{}/v1/tables/nyc/rebaseline", day.base);
    let anew = day.http.post(path).send().await.expect("an answer");
    assert_eq!(anew.status(), 200);
    let anew = anew.bytes().await.expect("a body");
    assert_eq!(serde_json::from_slice::<Json>(&anew).expect("JSON"), json!({ "buckets": 4 }));
    let early = day.get("/v1/tables/nyc/still-open?to=9:00").await;
    assert_eq!(early, (200, json!([])), "an hour of one digit is no text to compare");
    day.stop().await;
}

async fn a_venue_has_a_past_and_can_be_followed(day: &Day, venue: &str) {
    let path = format!("/v1/tables/nyc/venues/{venue}");
    let view = day.until(&path, |view| some(&view["drops"])).await;
    assert_eq!((&view["venue"]["body"]["venue_id"], &view["followed"]), (&json!(venue), &json!(false)));
    let drop = &view["drops"][0];
    let slots = view["slots"].as_array().expect("slots");
    assert!(slots.iter().any(|slot| slot["slot_id"] == drop["slot_id"]), "{view}");
    assert_eq!(drop["open"].as_bool(), Some(drop["closed_at"].is_null()), "{drop}");
    assert_eq!(drop["open"].as_bool(), Some(drop["state"] == "open"), "{drop}");
    // A table that is gone was there from when to when.
    let closed = |view: &Json| {
        view["drops"].as_array().and_then(|drops| drops.iter().find(|drop| drop["open"] == false)).cloned()
    };
    let view = day.until(&path, |view| closed(view).is_some()).await;
    let drop = closed(&view).expect("one is closed");
    assert!(drop["closed_at"].as_str() > drop["opened_at"].as_str() || drop["closed_at"].is_null(), "{drop}");
    assert!(drop["opened_hour"].as_u64().is_some_and(|hour| hour < 24), "{drop}");
    assert!(["closed", "passed"].map(|state| json!(state)).contains(&drop["state"]), "{drop}");

    let wish = async |method: reqwest::Method, what: &str| {
        let answer =
            day.http.request(method, format!("{}{path}/{what}", day.base)).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{what}");
        serde_json::from_slice::<Json>(&answer.bytes().await.expect("a body")).expect("JSON")
    };
    assert_eq!(wish(reqwest::Method::PUT, "follow").await, json!({ "follow": [venue], "exclude": [] }));
    assert_eq!(wish(reqwest::Method::PUT, "follow").await["follow"], json!([venue]), "twice is once");
    assert_eq!(day.get(&path).await.1["followed"], true);
    assert_eq!(day.get("/v1/settings").await.1["source.nyc.follow"], json!([venue]));
    assert_eq!(wish(reqwest::Method::DELETE, "follow").await["follow"], json!([]));
    assert_eq!(wish(reqwest::Method::PUT, "exclude").await["exclude"], json!([venue]));
    assert_eq!(day.get(&path).await.1["excluded"], true);
    assert_eq!(wish(reqwest::Method::DELETE, "exclude").await["exclude"], json!([]));
    assert_eq!(day.get("/v1/tables/nyc/venues/none").await.0, 404);
    let nobody = day.http.put(format!("{}/v1/tables/nyc/venues/none/follow", day.base)).send().await;
    assert_eq!(nobody.expect("an answer").status(), 404);
}

async fn venues_are_listed_part_by_part(day: &Day) {
    let ids = |venues: &Json| -> Vec<String> {
        let venues = venues.as_array().expect("venues");
        venues.iter().map(|venue| venue["key"].as_str().expect("an id").to_owned()).collect()
    };
    // All that are there, as long as no poll brings another one meanwhile.
    within(async {
        loop {
            let before = ids(&day.get("/v1/tables/nyc/venues").await.1);
            let parts = day.parts("/v1/tables/nyc/venues?limit=7".to_owned()).await;
            assert!(parts.iter().all(|part| ids(part).len() <= 7));
            let found: Vec<String> = parts.iter().flat_map(ids).collect();
            if before == ids(&day.get("/v1/tables/nyc/venues").await.1) {
                assert!(found.len() > 7, "{found:?}");
                assert_eq!(found, before);
                return;
            }
        }
    })
    .await;
    assert_eq!(day.get("/v1/tables/nyc/venues?limit=1001").await.0, 400);
}

async fn what_is_open_comes_with_health_and_part_by_part(day: &Day) {
    let seqs = |days: &Json| -> Vec<u64> {
        let slots =
            days.as_array().into_iter().flatten().flat_map(|day| day["venues"].as_array().expect("venues"));
        let slots = slots.flat_map(|venue| venue["slots"].as_array().expect("slots"));
        let mut seqs: Vec<u64> = slots.filter_map(|slot| slot["seq"].as_u64()).collect();
        seqs.sort_unstable();
        seqs
    };
    let open = day.until("/v1/tables/nyc/still-open", |open| seqs(open).len() > 1).await;
    for date in open.as_array().expect("days") {
        let buckets = date["buckets"].as_array().expect("buckets");
        assert_eq!(buckets.len(), 1, "one time a day: {buckets:?}");
        assert_eq!(buckets[0]["bucket_id"], format!("{}_19:30", date["date"].as_str().expect("a date")));
        assert_eq!(buckets[0]["stale"], false);
        assert!(buckets[0]["last_scan"].is_string() && buckets[0]["polls"].as_u64() > Some(0));
    }
    let first = seqs(&open)[0];
    let after = day.get(&format!("/v1/tables/nyc/still-open?after={first}")).await.1;
    assert!(seqs(&after).iter().all(|seq| *seq > first), "{after}");
    let parts: Vec<Vec<u64>> =
        day.parts("/v1/tables/nyc/still-open?limit=1".to_owned()).await.iter().map(seqs).collect();
    assert!(parts.iter().all(|part| part.len() <= 1), "{parts:?}");
    let walked: Vec<u64> = parts.into_iter().flatten().collect();
    assert!(walked.len() > 1 && walked.is_sorted(), "{walked:?}");
}
