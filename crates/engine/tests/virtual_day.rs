//! Simulated days in virtual time: the same engine code, no sockets, the same event log byte for byte.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use stakeout_core::{Failure, FailureClass, Request, Response, Source, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, Fetch, virtual_runtime};
use stakeout_sim::{Script, mix};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store, Validators};
use support::json_source;

const START_MS: i64 = 1_768_000_000_000;

/// A scripted upstream that answers in process, with faults drawn from its seed.
struct InProcess {
    script: Script,
    seed: u64,
    /// One request in so many fails; 0 for none.
    faults_one_in: u64,
    log: Mutex<Vec<(Time, String)>>,
}

impl InProcess {
    fn new(seed: u64, items: u64, mean_hold: Span, faults_one_in: u64) -> Arc<InProcess> {
        let script = Script::new(seed, items, mean_hold.as_ms() as u64, START_MS as u64);
        Arc::new(InProcess { script, seed, faults_one_in, log: Mutex::default() })
    }
}

#[async_trait]
impl Fetch for InProcess {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let now = clock.now();
        self.log.lock().expect("lock").push((now, request.url.clone()));
        // Drawn from what is asked and when, never from the order in which answers happen to be computed.
        let url: u64 = request.url.bytes().fold(self.seed, |sum, byte| mix(sum ^ u64::from(byte)));
        let draw = mix(url ^ now.us() as u64);
        if self.faults_one_in > 0 && draw.is_multiple_of(self.faults_one_in) {
            let class = [
                FailureClass::Timeout,
                FailureClass::Reset,
                FailureClass::ServerError,
                FailureClass::RateLimited,
            ];
            let class = class[(draw >> 32) as usize % class.len()];
            return Err(Failure { retry_after: Some(Span::secs(3)), ..Failure::new(class, "simulated") });
        }
        let state = self.script.state_at((now.us() / 1_000) as u64);
        let response = Response {
            status: 200,
            body: Bytes::from(state.to_string()),
            content_type: Some("application/json".into()),
            age: Span::ZERO,
        };
        Ok(Answer::Full(response, Validators::default()))
    }
}

struct DayResult {
    events: String,
    log: Vec<(Time, String)>,
    store: Arc<SqliteStore>,
    /// How often targets were claimed.
    claims: usize,
}

/// Runs the engine over `span` of virtual time, from the beginning.
fn simulate(upstream: &Arc<InProcess>, sources: Vec<Arc<dyn Source>>, span: Span) -> DayResult {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    simulate_from(Time::from_ms(START_MS), store, upstream, sources, span)
}

fn simulate_from(
    start: Time,
    store: Arc<SqliteStore>,
    upstream: &Arc<InProcess>,
    sources: Vec<Arc<dyn Source>>,
    span: Span,
) -> DayResult {
    let (runtime, clock) = virtual_runtime(start).expect("runtime");
    let fetch: Arc<dyn Fetch> = upstream.clone();
    let mut config = EngineConfig::new(store.clone(), sources, fetch);
    config.clock = clock.clone();
    config.node = "sim".into();
    let (events, claims) = runtime.block_on(async {
        let engine = Engine::start(config).await.expect("start");
        clock.sleep_until(start + span).await;
        let claims = engine.control().looks().taken as usize;
        engine.shutdown().await.expect("stop");
        (store.events(0, &EventFilter::default(), 1_000_000).await.expect("events"), claims)
    });
    let events = events.iter().map(|e| serde_json::to_string(e).expect("json") + "\n").collect();
    let log = upstream.log.lock().expect("lock").clone();
    DayResult { events, log, store, claims }
}

fn polling(more: Value) -> Value {
    support::watching("http://sim/state", more)
}

fn thirty_targets() -> Vec<Arc<dyn Source>> {
    let ids: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    let fleet = json!({"url": "http://sim/{id}", "ids": ids, "every": "7s", "limits": {"concurrency": 3, "requests_per_second": 6, "jitter": "100ms"}});
    let single = json!({"every": "1s", "limits": {"jitter": "100ms"}});
    vec![json_source("fleet", polling(fleet)), json_source("single", polling(single))]
}

#[test]
fn the_same_seed_gives_the_same_event_log_byte_for_byte_under_any_load() {
    let run = || {
        let upstream = InProcess::new(7, 12, Span::secs(40), 9);
        simulate(&upstream, thirty_targets(), Span::mins(20)).events
    };
    let quiet = run();
    assert!(quiet.lines().count() > 500, "{} events", quiet.lines().count());
    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|n| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut x = n;
                while !stop.load(SeqCst) {
                    x = mix(x);
                }
                x
            })
        })
        .collect();
    let loaded = run();
    stop.store(true, SeqCst);
    for thread in load {
        thread.join().expect("load");
    }
    assert!(quiet == loaded, "the event logs differ");
    assert_ne!(quiet, {
        let upstream = InProcess::new(8, 12, Span::secs(40), 9);
        simulate(&upstream, thirty_targets(), Span::mins(20)).events
    });
}

#[test]
fn every_state_held_longer_than_the_interval_is_seen_and_none_is_invented() {
    let upstream = InProcess::new(3, 10, Span::secs(20), 0);
    let span = Span::hours(2);
    let source = json_source("single", polling(json!({"every": "2s"})));
    let result = simulate(&upstream, vec![source], span);
    let end = (START_MS + span.as_ms()) as u64;
    let truth = upstream.script.truth(START_MS as u64, end);

    let mut told: BTreeMap<i64, u64> = BTreeMap::new();
    for line in result.events.lines() {
        let event: Value = serde_json::from_str(line).expect("json");
        if event["type"] != "json.removed" {
            *told.entry(event["data"]["record"]["value"].as_i64().expect("value")).or_default() += 1;
        }
    }
    let first_poll = result.log[0].0.us() / 1_000;
    let mut expected = 0;
    for segment in &truth {
        let value = i64::try_from(segment.value).expect("small");
        let seen = told.remove(&value).unwrap_or(0);
        assert!(seen <= 1, "{value} was told {seen} times");
        let from = i64::try_from(segment.from_ms).expect("ms");
        let held = segment.until_ms.min(end).saturating_sub(segment.from_ms);
        if from > first_poll && held > 2_000 {
            assert_eq!(seen, 1, "{segment:?} was held for {held} ms and not told");
            expected += 1;
        }
    }
    assert!(expected > 1_000, "only {expected} states");
    assert_eq!(told, BTreeMap::new(), "invented");
}

#[test]
fn fixed_rate_means_no_drift_and_no_bursts() {
    let upstream = InProcess::new(1, 3, Span::hours(10), 0);
    let source = json_source("single", polling(json!({"every": "5s"})));
    let result = simulate(&upstream, vec![source], Span::hours(3));
    let times: Vec<i64> = result.log.iter().map(|(at, _)| at.us()).collect();
    let steady = &times[1..];
    assert!(steady.windows(2).all(|pair| pair[1] - pair[0] == 5_000_000), "every gap is exactly 5 s");
    assert!((2_155..=2_161).contains(&times.len()), "{} polls in 3 h", times.len());
}

#[test]
fn few_targets_stay_claimed_between_their_polls_and_what_is_beyond_is_given_back() {
    let polls_and_claims = |targets: u32, every: &str, span: Span| {
        let ids: Vec<String> = (0..targets).map(|n| n.to_string()).collect();
        let limits = json!({"concurrency": 50, "requests_per_second": 1_000, "jitter": "0ms"});
        let fleet = json!({"url": "http://sim/{id}", "ids": ids, "every": every, "limits": limits});
        let upstream = InProcess::new(1, 1, Span::hours(100_000), 0);
        let day = simulate(&upstream, vec![json_source("fleet", polling(fleet))], span);
        (day.log.len(), day.claims)
    };
    let (polls, claims) = polls_and_claims(3, "5m", Span::hours(2));
    assert!(polls >= 3 * 23 && claims == 3, "{polls} polls, {claims} claims");
    // Due in an hour is too far away.
    let (polls, claims) = polls_and_claims(3, "1h", Span::hours(8));
    assert!(polls >= 3 * 7 && claims == polls, "{polls} polls, {claims} claims");
    // Two thousand at most wait for so long; the others are claimed anew each time.
    let (polls, claims) = polls_and_claims(2_500, "5m", Span::mins(31));
    let rounds = polls / 2_500;
    assert!(rounds >= 6 && claims > 2_500 + 300 * (rounds - 1), "{polls} polls, {claims} claims");
    assert!(claims < 2_500 + 1_000 * (rounds - 1), "{polls} polls, {claims} claims");
}

#[test]
fn a_week_of_quiet_polling_writes_no_history_and_no_events() {
    let upstream = InProcess::new(1, 3, Span::hours(100_000), 0);
    let source = json_source("single", polling(json!({"every": "60s"})));
    let result = simulate(&upstream, vec![source], Span::hours(24 * 7));
    assert_eq!(result.events, "");
    let rows = result.store.counters().rows_written();
    let polls = result.log.len() as u64;
    assert!(polls > 10_000);
    // A claim and a commit each rewrite the target's row; there is nothing else.
    assert!(rows < 2 * polls + polls / 50, "{rows} rows for {polls} unchanged polls");
}

#[test]
fn when_the_rate_binds_the_most_urgent_goes_first_and_nothing_starves() {
    let upstream = InProcess::new(1, 3, Span::hours(10), 0);
    let ids: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let lazy = json!({"url": "http://sim/lazy/{id}", "ids": ids, "every": "10s", "priority": 10,
        "limits": {"concurrency": 1, "requests_per_second": 1000}});
    let urgent = json!({"url": "http://sim/urgent", "every": "1s", "priority": 100});
    let sources = vec![json_source("lazy", polling(lazy)), json_source("urgent", polling(urgent))];
    let result = simulate(&upstream, sources, Span::mins(10));
    let mut polls: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (at, url) in &result.log {
        polls.entry(url).or_default().push(at.us());
    }
    let urgent = polls.remove("http://sim/urgent").expect("polled");
    assert!(
        urgent.windows(2).all(|pair| pair[1] - pair[0] <= 1_000_000 + 1_000),
        "the urgent one keeps its second"
    );
    assert_eq!(polls.len(), 40);
    for (url, times) in polls {
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= 10_100_000), "{url} starved");
    }
}

#[test]
fn after_a_weeks_pause_every_target_is_polled_once_and_the_herd_spreads_out() {
    let upstream = InProcess::new(1, 3, Span::hours(100_000), 0);
    let ids: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let fleet =
        || vec![json_source("fleet", polling(json!({"url": "http://sim/{id}", "ids": ids, "every": "60s"})))];
    let before = simulate(&upstream, fleet(), Span::mins(3));
    upstream.log.lock().expect("lock").clear();
    let back = Time::from_ms(START_MS) + Span::hours(24 * 7);
    let after = simulate_from(back, before.store, &upstream, fleet(), Span::mins(3));

    let mut times: BTreeMap<&str, Vec<Time>> = BTreeMap::new();
    let mut per_second: BTreeMap<i64, u64> = BTreeMap::new();
    for (at, url) in &after.log {
        times.entry(url).or_default().push(*at);
        *per_second.entry((*at - back).as_us() / 1_000_000).or_default() += 1;
    }
    assert_eq!(times.len(), 300);
    for (url, times) in &times {
        assert!(times[0] - back <= Span::secs(10), "{url} waited until {}", times[0]);
        assert!(
            (3..=4).contains(&times.len()),
            "{url} was polled {} times in 3 min: no catching up",
            times.len()
        );
    }
    let most = per_second.values().max().expect("polls");
    assert!(*most <= 60, "{most} requests in one second of 300 due at once: {per_second:?}");
    let target = after.store.clone();
    let rows = tokio::runtime::Runtime::new().expect("runtime").block_on(async {
        let row = target.target("fleet", "17").await.expect("read").expect("exists");
        target.polls(row.id, 10).await.expect("polls")
    });
    let missed = rows.iter().find(|poll| poll.missed > 10_000).expect("the week is accounted for");
    assert_eq!(missed.missed_cause, Some(stakeout_core::adherence::Cause::Downtime));
}

#[test]
fn rate_and_minimum_gap_hold_exactly() {
    let upstream = InProcess::new(1, 3, Span::hours(10), 0);
    let ids: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let limits = json!({"concurrency": 8, "min_gap": "70ms", "requests_per_second": 10, "burst": 4});
    let fleet = json!({"url": "http://sim/{id}", "ids": ids, "every": "3s", "limits": limits});
    let result = simulate(&upstream, vec![json_source("fleet", polling(fleet))], Span::mins(2));
    let times: Vec<i64> = result.log.iter().map(|(at, _)| at.us()).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 70_000), "the minimum gap");
    assert!(times.windows(15).all(|some| some[14] - some[0] >= 1_000_000), "ten a second and four at once");
    assert!(times.len() > 1_150, "{} requests: the rate is used", times.len());
}

#[test]
fn an_overloaded_source_is_asked_at_its_rate_and_everyone_gets_a_turn() {
    // 400 targets every 30 s want 13 requests a second; two are allowed. Most wait far longer than a lease.
    let upstream = InProcess::new(1, 3, Span::hours(10_000), 0);
    let ids: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let limits = json!({"requests_per_second": 2, "burst": 1});
    let fleet = json!({"url": "http://sim/{id}", "ids": ids, "every": "30s", "limits": limits});
    let result = simulate(&upstream, vec![json_source("fleet", polling(fleet))], Span::mins(30));
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, url) in &result.log {
        *times.entry(url).or_default() += 1;
    }
    assert!((3_590..=3_601).contains(&result.log.len()), "{} requests of 3,600 allowed", result.log.len());
    let (least, most) = (times.values().min().expect("polls"), times.values().max().expect("polls"));
    assert!(
        times.len() == 400 && *least >= 8 && *most <= 10,
        "{} targets, {least} to {most} polls",
        times.len()
    );
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let row = runtime.block_on(result.store.target("fleet", "17")).expect("read").expect("exists");
    let polls = runtime.block_on(result.store.polls(row.id, 100)).expect("polls");
    let late = polls.iter().filter_map(|poll| poll.late);
    assert!(late.clone().count() > 3);
    assert!(
        late.clone().all(|cause| cause == stakeout_core::adherence::Cause::RateLimit),
        "{:?}",
        late.collect::<Vec<_>>()
    );
}
