//! The first seed's list of tests, as far as it needs the engine and a database. Items 7.1, 7.2, 7.3, 7.5 and 7.6 are
//! pure and live with the source, in `crates/sources/tests/racing`.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use stakeout::simulate::nztab::{Asked, InProcess};
use stakeout::simulate::racing::RacingDay;
use stakeout_core::{Source, Span, Stage, Time};
use stakeout_engine::{Engine, EngineConfig, EngineError, virtual_runtime};
use stakeout_sim::nztab::{Category, Day, DayConfig, Fault, Faults, Upstream, nz_date, nz_time};
use stakeout_sources::racing::{Identity, RacingConfig, RacingSource};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{EventFilter, PollOutcome, Retention, Store, TargetFilter};

fn read(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("open for reading")
}

fn count(conn: &Connection, sql: &str) -> i64 {
    conn.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn source(concurrency: Option<u32>) -> Arc<dyn Source> {
    let mut config = RacingConfig::default();
    config.limits.concurrency = concurrency;
    // Without jitter all that is due is due at once.
    config.limits.jitter = Some(stakeout_sources::written::Duration(Span::ZERO));
    let identity =
        Identity { from: "test@example.org".into(), partner: "Test".into(), partner_id: "test".into() };
    Arc::new(RacingSource::new("nz", &config, identity).expect("a valid source"))
}

fn day(seed: u64, races: u32) -> (Arc<Upstream>, jiff::civil::Date) {
    let date = nz_date(Time::parse("2026-01-10T00:00:00Z").expect("a time"));
    let upstream = Upstream::new([Day::new(&DayConfig::new(seed, date).with_races(races))]);
    (Arc::new(upstream), date)
}

/// Nothing refers to something that is not there.
const ORPHANS: [(&str, &str); 8] = [
    (
        "SELECT count(*) FROM odds_history o LEFT JOIN entrants e ON e.entrant_id = o.entrant WHERE e.entrant_id IS NULL",
        "odds without an entrant",
    ),
    (
        "SELECT count(*) FROM money_flow_history m LEFT JOIN entrants e ON e.entrant_id = m.entrant WHERE e.entrant_id IS NULL",
        "money without an entrant",
    ),
    (
        "SELECT count(*) FROM entrants e LEFT JOIN races r ON r.race_id = e.race WHERE r.race_id IS NULL",
        "entrants without a race",
    ),
    (
        "SELECT count(*) FROM races r LEFT JOIN meetings m ON m.meeting_id = r.meeting WHERE m.meeting_id IS NULL",
        "races without a meeting",
    ),
    (
        "SELECT count(*) FROM status_history h LEFT JOIN races r ON r.race_id = h.race WHERE r.race_id IS NULL",
        "a status without a race",
    ),
    (
        "SELECT count(*) FROM race_pools p LEFT JOIN races r ON r.race_id = p.race WHERE r.race_id IS NULL",
        "pools without a race",
    ),
    (
        "SELECT count(*) FROM race_results x LEFT JOIN entrants e ON e.entrant_id = x.entrant WHERE e.entrant_id IS NULL",
        "results without an entrant",
    ),
    (
        "SELECT count(*) FROM dividends d LEFT JOIN races r ON r.race_id = d.race WHERE r.race_id IS NULL",
        "dividends without a race",
    ),
];

#[test]
fn seed_7_4_database_operations_for_entrants_odds_and_money() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("day.db");
    let simulated = RacingDay { races: 8, database: Some(path.clone()), ..RacingDay::new(11) };
    let finished = simulated.run().expect("the day runs");
    let truth: Vec<_> = finished.upstream.days().iter().flat_map(|day| day.truth()).collect();
    let conn = read(&path);
    assert_eq!(count(&conn, "SELECT count(*) FROM races"), truth.len() as i64);
    let polled: Vec<_> = truth
        .iter()
        .filter(|race| {
            finished.asked.iter().any(|asked| asked.path.contains(&format!("/events/{}?", race.id)))
        })
        .collect();
    let entrants: usize = polled.iter().map(|race| race.entrants.len()).sum();
    assert_eq!(
        count(&conn, "SELECT count(*) FROM entrants"),
        entrants as i64,
        "one row each, however often polled"
    );
    for (sql, what) in [
        ("SELECT count(*) FROM odds_history WHERE win_odds IS NULL AND place_odds IS NULL", "empty odds rows"),
        // Change-only: no row says what the row before it said.
        ("SELECT count(*) FROM (SELECT hold_percentage h, bet_percentage b, win_pool_amount w, place_pool_amount p,
              lag(hold_percentage) OVER o lh, lag(bet_percentage) OVER o lb, lag(win_pool_amount) OVER o lw, lag(place_pool_amount) OVER o lp
          FROM money_flow_history WINDOW o AS (PARTITION BY entrant ORDER BY timestamp))
          WHERE h IS lh AND b IS lb AND w IS lw AND p IS lp AND lh IS NOT NULL", "repeated money rows"),
    ].into_iter().chain(ORPHANS) {
        assert_eq!(count(&conn, sql), 0, "{what}");
    }
    assert!(count(&conn, "SELECT count(*) FROM odds_history") > 100);
    assert!(count(&conn, "SELECT count(*) FROM money_flow_history") > 100);
    let final_races = truth.iter().filter(|race| race.final_at.is_some()).count();
    assert_eq!(count(&conn, "SELECT count(*) FROM races WHERE status = 'Final'"), final_races as i64);
    assert_eq!(count(&conn, "SELECT count(DISTINCT race) FROM race_results"), final_races as i64);
}

#[test]
fn seed_7_7_api_down_and_invalid_data_lose_nothing() {
    let (upstream, date) = day(21, 32);
    let start = nz_time(date, 11, 0);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
    let mut config = EngineConfig::new(store.clone(), vec![source(None)], fetch);
    config.clock = clock.clone();
    let well = runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        clock.sleep_until(start + Span::hours(2)).await;
        let before = store.stats().await.expect("stats");
        assert!(before.records > 50, "{before:?}");
        for fault in [
            Fault::Unavailable,
            Fault::ServerError,
            Fault::TooMany,
            Fault::Timeout,
            Fault::Reset,
            Fault::Truncated,
            Fault::Empty,
            Fault::MissingFields,
        ] {
            upstream.set_faults(Faults::none(1).with(fault, 1.0));
            clock.sleep_until(clock.now() + Span::mins(20)).await;
            let during = store.stats().await.expect("stats");
            assert!(
                during.records >= before.records,
                "{fault:?}: {} → {} records",
                before.records,
                during.records
            );
        }
        let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
        let rows = store.targets(&filter).await.expect("targets");
        assert!(
            rows.iter().any(|row| row.last_outcome == Some(PollOutcome::Failed) && row.last_error.is_some())
        );
        // The upstream is well again, and so are we.
        upstream.set_faults(Faults::none(1));
        let well = clock.now();
        clock.sleep_until(start + Span::hours(14)).await;
        engine.shutdown().await.expect("stop");
        well
    });
    let end = start + Span::hours(14) - Span::mins(10);
    let mut after = 0;
    let events = runtime.block_on(store.events(0, &EventFilter::default(), 1_000_000)).expect("events");
    for race in upstream.days().iter().flat_map(|day| day.truth()) {
        let finals =
            events.iter().filter(|e| e.subject_key == race.id && e.event_type == "racing.race.final").count();
        assert!(finals <= 1, "{}: {finals} finals", race.id);
        let watched = ["NZ", "AUS"].contains(&race.country) && race.category != Category::Greyhound;
        if watched && race.final_at.is_some_and(|at| (well..end).contains(&at)) {
            assert_eq!(finals, 1, "{} ended when the upstream was well again", race.id);
            after += 1;
        }
    }
    assert!(after >= 3, "only {after} races ended after the outage");
}

#[test]
fn seed_7_7_a_database_error_stops_the_engine_with_a_clear_message() {
    let (upstream, date) = day(22, 16);
    let start = nz_time(date, 11, 0);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let dir = tempfile::tempdir().expect("dir");
    let options = OpenOptions { max_page_count: Some(150), ..OpenOptions::default() };
    let store = Arc::new(SqliteStore::open(dir.path().join("small.db"), options).expect("open"));
    let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
    let mut config = EngineConfig::new(store, vec![source(None)], fetch);
    config.clock = clock.clone();
    let error = runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        let error = tokio::select! {
            error = engine.stopped() => error,
            () = clock.sleep_until(start + Span::hours(24)) => panic!("a full disk goes unnoticed"),
        };
        let _ = engine.shutdown().await;
        error
    });
    assert!(matches!(&error, EngineError::Store(_)), "{error:?}");
    assert!(error.to_string().contains("disk is full"), "{error}");
}

#[test]
fn seed_7_8_polling_a_race_again_and_again_adds_nothing() {
    let (upstream, date) = day(31, 8);
    let first = upstream.days()[0].truth()[0].clone();
    let start = first.starts[0].1 - Span::mins(50);
    assert!(start > nz_time(date, 0, 0));
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
    let mut config = EngineConfig::new(store.clone(), vec![source(None)], fetch.clone());
    config.clock = clock.clone();
    runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        let control = engine.control();
        clock.sleep_until(start + Span::secs(10)).await;
        let key = format!("race/{}", first.id);
        // Time stands still while the test itself looks at the store.
        let still = clock.busy();
        let row = store.target("nz", &key).await.expect("read").expect("listed");
        let polls = row.poll_no;
        let before = store.stats().await.expect("stats");
        drop(still);
        // Several at once, and again, while the upstream still serves the same renewal.
        for round in 0..5 {
            for _ in 0..4 {
                control.poll_now("nz", &key).await.expect("poll now");
            }
            clock.sleep_until(start + Span::ms(10_000 + 200 * (round + 1))).await;
        }
        let _still = clock.busy();
        let row = store.target("nz", &key).await.expect("read").expect("listed");
        assert!(row.poll_no >= polls + 5, "{} polls before, {} after", polls, row.poll_no);
        let after = store.stats().await.expect("stats");
        assert_eq!(
            (before.records, before.history, before.events),
            (after.records, after.history, after.events)
        );
    });
}

#[test]
fn seed_7_8_two_engines_on_one_store_tell_everything_once_and_pruning_orphans_nothing() {
    let (upstream, date) = day(32, 16);
    let start = nz_time(date, 9, 0);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("shared.db");
    let store = Arc::new(SqliteStore::open(&path, OpenOptions::default()).expect("open"));
    let end = start + Span::hours(16);
    runtime.block_on(async {
        let mut engines = Vec::new();
        for node in ["one", "two"] {
            let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
            let mut config = EngineConfig::new(store.clone(), vec![source(None)], fetch.clone());
            config.clock = clock.clone();
            config.node = node.to_owned();
            engines.push((Engine::start(config).await.expect("start"), fetch));
        }
        clock.sleep_until(end).await;
        for (engine, fetch) in engines {
            engine.shutdown().await.expect("stop");
            assert!(!fetch.answered().is_empty(), "both had something to do");
        }
    });
    let events = runtime.block_on(store.events(0, &EventFilter::default(), 1_000_000)).expect("events");
    let mut finals = 0;
    for race in upstream.days().iter().flat_map(|day| day.truth()) {
        let told =
            events.iter().filter(|e| e.subject_key == race.id && e.event_type == "racing.race.final").count();
        assert!(told <= 1, "{}: {told} finals", race.id);
        finals += told;
    }
    assert!(finals >= 5, "only {finals} results");
    let rows = |sql: &str| count(&read(&path), sql);
    let before = rows("SELECT count(*) FROM odds_history");
    let short = Span::hours(1);
    let retention = Retention { events: short, history: short, polls: short, gone_records: short };
    // A day later: most of the history is older than that.
    while runtime.block_on(store.prune(&retention, end + Span::hours(24), 1_000)).expect("prune").more {}
    assert!(rows("SELECT count(*) FROM odds_history") < before / 2, "of {before} rows of history");
    for (sql, what) in ORPHANS {
        assert_eq!(rows(sql), 0, "{what}");
    }
}

#[test]
fn races_whose_day_has_left_the_catalogue_can_still_be_read_with_all_that_refers_to_them() {
    let (_, date) = day(33, 8);
    let days = (0..4).map(|n| {
        let date = date.checked_add(jiff::Span::new().days(n)).expect("a date");
        Day::new(&DayConfig::new(33 + n as u64, date).with_races(8))
    });
    let upstream = Arc::new(Upstream::new(days));
    let start = nz_time(date, 9, 0);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("days.db");
    let store = Arc::new(SqliteStore::open(&path, OpenOptions::default()).expect("open"));
    let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
    let mut config = EngineConfig::new(store.clone(), vec![source(None)], fetch);
    config.clock = clock.clone();
    let read_at = |day: usize, conn: &Connection, of: &str| {
        let truth = upstream.days()[day].truth();
        let ids: Vec<String> = truth.iter().map(|race| format!("'{}'", race.id)).collect();
        count(conn, &format!("SELECT count(*) FROM {of} IN ({})", ids.join(", ")))
    };
    const RESULTS: &str = "race_results WHERE race";
    const RACES: &str = "races WHERE gone_at IS NOT NULL AND race_id";
    let engine = runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        clock.sleep_until(start + Span::hours(20)).await;
        engine
    });
    let results = read_at(0, &read(&path), RESULTS);
    assert!(results >= 9 && read_at(0, &read(&path), RACES) == 0, "{results} placings while they are in it");
    runtime.block_on(async {
        clock.sleep_until(start + Span::hours(80)).await;
        engine.shutdown().await.expect("stop");
    });
    let conn = read(&path);
    assert_eq!(read_at(0, &conn, RACES), 8, "left the catalogue");
    assert_eq!(read_at(0, &conn, RESULTS), results, "the placings that counted");
    for (sql, what) in ORPHANS {
        assert_eq!(count(&conn, sql), 0, "{what}");
    }
}

#[test]
fn of_twenty_due_races_the_closest_to_its_start_goes_first() {
    let (upstream, date) = day(41, 200);
    // In the thick of the day: many races are within their hour, and some are overdue.
    let start = nz_time(date, 16, 30);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
    let mut config = EngineConfig::new(store, vec![source(Some(1))], fetch.clone());
    config.clock = clock.clone();
    runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        clock.sleep_until(start + Span::mins(1)).await;
        engine.shutdown().await.expect("stop");
    });
    let truth = upstream.days()[0].truth();
    let mut order: Vec<i64> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let asked = fetch.answered();
    for asked in &asked {
        let Some(race) = truth.iter().find(|race| asked.path.contains(&format!("/events/{}?", race.id)))
        else {
            continue;
        };
        if !seen.contains(&race.id.as_str()) {
            seen.push(&race.id);
            order.push((race.start_at(start) - start).as_us().max(0));
        }
    }
    assert!(order.len() >= 20, "only {} races were due", order.len());
    let twenty = &order[..20];
    assert!(twenty.is_sorted(), "µs to the start, in the order of asking: {twenty:?}");
}

#[test]
fn of_races_that_are_due_at_once_those_that_have_started_come_last() {
    let (upstream, date) = day(43, 300);
    let start = nz_time(date, 16, 0);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
    let mut config = EngineConfig::new(store.clone(), vec![source(Some(1))], fetch.clone());
    config.clock = clock.clone();
    let (started, asked) = runtime.block_on(async {
        let engine = Engine::start(config.clone()).await.expect("start");
        clock.sleep_until(start + Span::mins(30)).await;
        engine.shutdown().await.expect("stop");
        // Nobody looks while all of them become due.
        let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
        let mut rows = store.targets(&filter).await.expect("targets");
        // Those within their hour.
        let soon = clock.now() + Span::mins(6);
        rows.retain(|row| row.spec.role == "race" && row.schedule.due.is_some_and(|due| due < soon));
        for row in &rows {
            store.poll_now(row.id, clock.now()).await.expect("due");
        }
        rows.retain(|row| row.state.facts.stage != Stage::Pending);
        let started: Vec<String> =
            rows.into_iter().map(|row| row.spec.key.replace("race/", "/events/")).collect();
        let before = fetch.answered().len();
        let engine = Engine::start(config).await.expect("start");
        clock.sleep_until(clock.now() + Span::mins(1)).await;
        engine.shutdown().await.expect("stop");
        (started, fetch.answered().split_off(before))
    });
    let mut races: Vec<&Asked> = Vec::new();
    for asked in asked.iter().filter(|asked| asked.path.contains("/events/")) {
        if !races.iter().any(|race| race.path == asked.path) {
            races.push(asked);
        }
    }
    let has_started: Vec<bool> =
        races.iter().map(|asked| started.iter().any(|race| asked.path.contains(race))).collect();
    let last = has_started.iter().filter(|started| **started).count();
    assert!(last >= 2 && races.len() >= last + 20, "{} races, {last} of them have started", races.len());
    assert!(has_started.is_sorted(), "false before true, in the order of asking: {has_started:?}");
}

#[test]
fn a_service_that_starts_looks_at_the_catalogue_but_not_whenever_it_is_started_again() {
    let (upstream, date) = day(42, 16);
    let start = nz_time(date, 9, 5);
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(InProcess::new(upstream));
    let mut config = EngineConfig::new(store, vec![source(None)], fetch.clone());
    config.clock = clock.clone();
    let looks = || fetch.answered().iter().filter(|asked| asked.path.contains("/meetings")).count();
    runtime.block_on(async {
        // At 9:05 for the first time, ten seconds later, and ten minutes later; by itself it would be due at half past.
        for (after, expected) in [(Span::ZERO, true), (Span::secs(10), false), (Span::mins(10), true)] {
            clock.sleep_until(start + after).await;
            let before = looks();
            let engine = Engine::start(config.clone()).await.expect("start");
            clock.sleep_until(start + after + Span::secs(5)).await;
            engine.shutdown().await.expect("stop");
            assert_eq!(looks() > before, expected, "started {after} after the first time");
        }
    });
}

#[test]
fn every_collection_and_field_that_the_seed_names_can_be_queried() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("views.db");
    let store = SqliteStore::open(&path, OpenOptions::default()).expect("open");
    let kinds: Vec<_> = source(None).kinds().iter().map(|kind| (**kind).clone()).collect();
    tokio::runtime::Runtime::new().expect("runtime").block_on(store.ensure_views(&kinds)).expect("views");
    let conn = read(&path);
    for (collection, fields) in [
        ("meetings", "meeting_id"),
        ("races", "race_id, status, start_time, actual_start, meeting"),
        (
            "entrants",
            "entrant_id, name, runner_number, jockey, trainer_name, win_odds, place_odds, is_scratched, race",
        ),
        ("odds_history", "entrant, win_odds, place_odds, timestamp"),
        ("money_flow_history", "entrant, hold_percentage, timestamp"),
        ("race_pools", "race"),
        ("race_results", "race"),
        ("dividends", "race"),
    ] {
        for view in [collection.to_owned(), format!("racing_{collection}")] {
            assert_eq!(count(&conn, &format!("SELECT count(*) FROM (SELECT {fields} FROM {view})")), 0);
        }
    }
    for (view, fields) in [
        ("ingest_targets", "interval_ms, priority, next_due_at, enabled, last_status, last_fetched_at"),
        ("server_settings", "key, value"),
        ("client_kv", "namespace, key, value"),
    ] {
        assert_eq!(count(&conn, &format!("SELECT count(*) FROM (SELECT {fields} FROM {view})")), 0);
    }
}
