//! Racing: what an answer costs to understand, what five races cost on top of the upstream, and a whole day.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use serde::Deserialize;
use stakeout::simulate::racing::{RacingDay, RacingReport};
use stakeout_core::compare::{Basis, Memory, Verdict, compare};
use stakeout_core::{
    Exchange, Facts, PollContext, Request, Response, Snapshot, Source, Span, TargetSpec, Time,
};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Engine, EngineConfig};
use stakeout_sim::nztab::{Body, Day, DayConfig, Upstream, nz_date, nz_time, serve};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_sources::written;
use stakeout_store::Store as _;
use stakeout_store::sqlite::{OpenOptions, SqliteStore};

use crate::args::Pace;
use crate::bare_day;
use crate::scene::runtime;
use crate::table::{Met, Row, grouped};

const RACES: usize = 5;
const ROUNDS: u64 = 20;
const EXTRA_MS_MAX: f64 = 25.0;
const PARSE_MAX: f64 = 1.5;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![understanding(pace)?, runtime()?.block_on(five_races())?];
    rows.push(day("a simulated race day, 96 races, lean bodies", false, 2.0)?);
    rows.push(day("a simulated race day, 96 races, full-size bodies", true, 10.0)?);
    Ok(rows)
}

fn date() -> jiff::civil::Date {
    nz_date(Time::from_secs(1_768_000_000))
}

fn upstream() -> Arc<Upstream> {
    let mut config = DayConfig::new(1, date());
    config.body = Body::Full;
    Arc::new(Upstream::new([Day::new(&config)]))
}

fn source(base_url: &str) -> anyhow::Result<Arc<RacingSource>> {
    let mut config = RacingConfig { base_url: base_url.to_owned(), ..RacingConfig::default() };
    config.limits.requests_per_second = Some(10_000.0);
    config.limits.burst = Some(1_000);
    config.limits.concurrency = Some(RACES as u32);
    config.limits.jitter = Some(written::Duration(Span::ZERO));
    let identity =
        Identity { from: "bench@example.org".into(), partner: "Bench".into(), partner_id: "1".into() };
    Ok(Arc::new(RacingSource::new("nz", &config, identity)?))
}

pub(crate) fn headers() -> Vec<(String, String)> {
    [("From", "bench@example.org"), ("X-Partner", "Bench"), ("X-Partner-ID", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// What any typed parser has to read of an event.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
pub(crate) struct Typed {
    header: Option<serde_json::Value>,
    data: TypedData,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedData {
    race: TypedRace,
    runners: Vec<TypedRunner>,
    money_tracker: Option<TypedMoney>,
    tote_pools: Option<Vec<TypedPool>>,
    results: Option<Vec<serde_json::Value>>,
    dividends: Option<Vec<serde_json::Value>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedRace {
    event_id: String,
    meeting_id: Option<String>,
    status: Option<String>,
    description: Option<String>,
    advertised_start: Option<i64>,
    actual_start: Option<i64>,
    race_number: Option<i64>,
    distance: Option<i64>,
    weather: Option<String>,
    track_condition: Option<String>,
    country: Option<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedRunner {
    entrant_id: String,
    name: Option<String>,
    runner_number: Option<i64>,
    barrier: Option<serde_json::Value>,
    jockey: Option<String>,
    trainer_name: Option<String>,
    is_scratched: Option<bool>,
    is_late_scratched: Option<bool>,
    scratch_time: Option<i64>,
    odds: Option<std::collections::BTreeMap<String, f64>>,
    flucs_with_timestamp: Option<TypedFlucs>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedFlucs {
    open: Option<TypedFluc>,
    last_six: Option<Vec<TypedFluc>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedFluc {
    timestamp: Option<String>,
    fluc: Option<f64>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedMoney {
    entrants: Option<Vec<TypedHold>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedHold {
    entrant_id: Option<String>,
    hold_percentage: Option<f64>,
    bet_percentage: Option<f64>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedPool {
    product_type: Option<String>,
    total: Option<f64>,
    status: Option<String>,
}

/// Parse, normalise and compare a full-size event of which nothing changed, against a typed parse of the same bytes.
fn understanding(pace: Pace) -> anyhow::Result<Row> {
    let upstream = upstream();
    let race = upstream.days()[0].truth().first().context("a race")?.clone();
    let now = race.starts[0].1 - Span::mins(3);
    let path = format!(
        "/affiliates/v1/racing/events/{}?with_money_tracker=true&with_tote_trends_data=true",
        race.id
    );
    let body: Bytes = upstream.honest(&path, &headers(), now).body;
    let source = source("http://127.0.0.1")?;
    let target = TargetSpec::new(format!("race/{}", race.id), "race");
    let exchange = Exchange {
        request: Request::get(path),
        result: Ok(Response { status: 200, body: body.clone(), content_type: None, age: Span::ZERO }),
        sent: now,
        ended: now,
    };
    let facts = Facts::default();
    let context = PollContext { now, facts: &facts };
    let look = |snapshot: &Snapshot, memory: &Memory| {
        let observation = source.normalize(&target, std::slice::from_ref(&exchange), &context)?;
        let policy = source.doubt();
        let basis =
            Basis { snapshot, memory, meaning: 1, policy, refresh: Span::ZERO, sent: now, ended: now };
        anyhow::Ok(compare(&basis, &observation))
    };
    let first = look(&Snapshot::default(), &Memory::default())?;
    let (snapshot, memory) = (first.next.unwrap_or_default(), first.memory);
    let window = pace.secs(3, 1);
    // Turn by turn, so that both see the same machine.
    let (mut ours, mut typed) = (f64::MAX, f64::MAX);
    let end = Instant::now() + window;
    while Instant::now() < end {
        ours = ours.min(micros(20, || {
            let again = look(&snapshot, &memory).map(|comparison| comparison.verdict);
            assert!(matches!(again, Ok(Verdict::Unchanged)));
        }));
        typed = typed.min(micros(20, || {
            assert!(serde_json::from_slice::<Typed>(&body).is_ok());
        }));
    }
    Ok(Row {
        what: format!(
            "a full-size racing event ({} KB), understood and compared, unchanged",
            body.len() / 1_000
        ),
        ours: format!("{ours:.0} µs"),
        floor: format!("typed serde_json of the same {typed:.0} µs"),
        ratio: Some(ours / typed),
        target: format!("≤ {PARSE_MAX} ×"),
        met: Met::when(ours <= PARSE_MAX * typed),
    })
}

fn micros(times: u32, mut work: impl FnMut()) -> f64 {
    let began = Instant::now();
    (0..times).for_each(|_| work());
    began.elapsed().as_secs_f64() * 1e6 / f64::from(times)
}

/// Five races are asked for at once: the time until all are committed, against a bare client that only reads them.
async fn five_races() -> anyhow::Result<Row> {
    let upstream = upstream();
    let start = nz_time(date(), 15, 0);
    let clock = Clock::scaled_from(start, 1.0);
    // The upstream is a minute further on in each round, so that there is something new every time.
    let ahead = Arc::new(AtomicI64::new(0));
    let (time, minutes) = (clock.clone(), Arc::clone(&ahead));
    let server =
        serve(Arc::clone(&upstream), move || time.now() + Span::mins(minutes.load(Ordering::Relaxed)));
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(directory.path().join("bench.db"), OpenOptions::default())?);
    let source = source(server.url("/").trim_end_matches('/'))?;
    let mut config = EngineConfig::new(store.clone(), vec![source], Arc::new(HttpFetch::new()?));
    config.clock = clock.clone();
    let engine = Engine::start(config).await?;
    let control = engine.control();
    let mut polled = control.polled();
    let mut races = Vec::new();
    while races.len() < RACES && polled.changed().await.is_ok() {
        let filter = stakeout_store::TargetFilter { limit: 1_000, ..Default::default() };
        let on = store.targets(&filter).await?.into_iter();
        let on = on.filter(|row| row.spec.role == "race" && row.poll_no > 0 && row.schedule.due.is_some());
        races = on.map(|row| row.spec.key).take(RACES).collect::<Vec<String>>();
    }
    anyhow::ensure!(races.len() == RACES, "only {} races are on", races.len());
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let before = store.stats().await?.history;
    for _ in 0..ROUNDS {
        ahead.fetch_add(1, Ordering::Relaxed);
        let mut polled = control.polled();
        let goal = *polled.borrow_and_update() + RACES as u64;
        let began = Instant::now();
        for race in &races {
            control.poll_now("nz", race).await?;
        }
        polled.wait_for(|polled| *polled >= goal).await?;
        ours.push(began.elapsed());
        bare.push(read_all(&server.url(""), &races).await?);
    }
    let rows = store.stats().await?.history - before;
    anyhow::ensure!(rows >= ROUNDS * RACES as u64, "only {rows} rows of history: hardly anything was new");
    engine.shutdown().await?;
    let (ours, bare) = (median_ms(ours), median_ms(bare));
    Ok(Row {
        what: format!(
            "five full-size races fetched, compared, stored durably; {} rows of history a round",
            rows / ROUNDS
        ),
        ours: format!("{ours:.1} ms"),
        floor: format!("bare client reads the five {bare:.1} ms"),
        ratio: Some(ours / bare),
        target: format!("< {EXTRA_MS_MAX:.0} ms beyond upstream time"),
        met: Met::when(ours - bare < EXTRA_MS_MAX),
    })
}

async fn read_all(base: &str, races: &[String]) -> anyhow::Result<Duration> {
    let client = reqwest::Client::new();
    let began = Instant::now();
    let mut reads = tokio::task::JoinSet::new();
    for race in races {
        let id = race.trim_start_matches("race/");
        let base = base.trim_end_matches('/');
        let url = format!(
            "{base}/affiliates/v1/racing/events/{id}?with_money_tracker=true&with_tote_trends_data=true&with_will_pays=true"
        );
        let mut request = client.get(url);
        for (name, value) in headers() {
            request = request.header(name, value);
        }
        reads.spawn(async move { request.send().await?.bytes().await });
    }
    while let Some(read) = reads.join_next().await {
        read??;
    }
    Ok(began.elapsed())
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The same day so many times: machines are noisy.
const DAYS: usize = 5;

fn day(what: &str, full_bodies: bool, most_secs: f64) -> anyhow::Result<Row> {
    let mut floor = f64::MAX;
    let mut reports = Vec::with_capacity(DAYS);
    // Turn by turn, so that both see the same machine.
    for _ in 0..DAYS {
        let finished = RacingDay { full_bodies, ..RacingDay::new(1) }.run()?;
        floor = floor.min(bare_day::seconds(&finished)?);
        reports.push(finished.report);
    }
    reports.sort_by_key(|report| report.took_ms);
    let secs = |report: &RacingReport| report.took_ms as f64 / 1e3;
    let (first, median, last) = (&reports[0], &reports[DAYS / 2], &reports[DAYS - 1]);
    Ok(Row {
        what: what.to_owned(),
        ours: format!(
            "{:.2} s, of {DAYS} runs {:.2}–{:.2} s ({} requests, {} misses, {} wrong events)",
            secs(median),
            secs(first),
            secs(last),
            grouped(median.requests as f64),
            median.misses,
            median.wrong_events
        ),
        floor: format!(
            "the same answers read by typed serde_json, as many rows in bare SQLite: {floor:.2} s"
        ),
        ratio: Some(secs(first) / floor),
        target: format!("≤ {most_secs:.0} s"),
        met: Met::when(secs(median) <= most_secs),
    })
}
