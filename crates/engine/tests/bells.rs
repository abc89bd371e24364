//! Bells in virtual time: there is a look at the moment somebody asked for, whatever else moves the due time. And what is
//! told when an upstream has nothing new to say.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use stakeout_core::cadence::Countdown;
use stakeout_core::{
    Facts, Failure, FailureClass, FieldType, Kind, Observation, Plan, Record, Request, Response, Source,
    Span, Stream, TargetSpec, Time,
};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, EngineHandle, Fetch, virtual_runtime};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store, Validators};

use support::source::{MadeUp, kind};

const T: Time = Time::from_secs(1_800_000_000);

/// One race that starts at [`T`] and is polled as the countdown says, with one runner.
fn one_race() -> Arc<dyn Source> {
    let (name, price) = (("name", FieldType::Text), ("win_odds", FieldType::Float));
    let odds = Stream { name: "odds_history".to_owned(), fields: vec!["win_odds".to_owned()] };
    let kinds = vec![
        kind("racing", "races", &[name], vec![]),
        kind("racing", "entrants", &[name, price], vec![odds]),
    ];
    let race = TargetSpec { start: Some(T), ..TargetSpec::new("race/r", "race") };
    Arc::new(MadeUp::new("nz", kinds, race, shown, |_| Plan::Countdown(Countdown::seed())))
}

fn shown(kinds: &[Arc<Kind>], _: &TargetSpec, body: &[u8]) -> Result<Observation, Failure> {
    let price: f64 = std::str::from_utf8(body).expect("text").parse().expect("a price");
    let race = Record::new(&kinds[0], &["r"], vec!["The Cup".into()]);
    let runner = Record::new(&kinds[1], &["e"], vec!["Fast".into(), price.into()]);
    let facts = Facts { start: Some(T), ..Facts::default() };
    Ok(Observation { facts, ..Observation::complete(vec![race, runner]) })
}

/// Answers with the runner's price, and with 304 while that is as it was; but for one stretch in which it asks to be left
/// alone until its end.
#[derive(Default)]
struct Upstream {
    away: Option<(Time, Time)>,
    /// From when on the price is 9; it was 12.
    shortens: Option<Time>,
    asked: Mutex<Vec<Time>>,
}

#[async_trait]
impl Fetch for Upstream {
    async fn fetch(
        &self,
        _: &Request,
        known: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let now = clock.now();
        self.asked.lock().expect("lock").push(now);
        if let Some((_, until)) = self.away.filter(|(from, until)| (*from..*until).contains(&now)) {
            let failure = Failure::new(FailureClass::ServerError, "not now");
            return Err(Failure { retry_after: Some(until - now), ..failure });
        }
        let price = if self.shortens.is_some_and(|at| now >= at) { "9" } else { "12" };
        if known.etag.as_deref() == Some(price) {
            return Ok(Answer::NotModified);
        }
        let response = Response { status: 200, body: price.into(), content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators { etag: Some(price.to_owned()), last_modified: None }))
    }
}

async fn start(store: &Arc<SqliteStore>, clock: &Clock, fetch: &Arc<Upstream>, rules: Value) -> EngineHandle {
    let mut config = EngineConfig::new(store.clone(), vec![one_race()], fetch.clone());
    config.clock = clock.clone();
    let rules: BTreeMap<String, AlertConfig> = serde_json::from_value(rules).expect("rules");
    config.alerts = Arc::new(RuleBook::new(rules).expect("a book"));
    Engine::start(config).await.expect("start")
}

fn bell(before: &str) -> Value {
    json!({ "when": { "on": "start", "before": before } })
}

async fn titles(store: &SqliteStore) -> Vec<Value> {
    let events = store.events(0, &EventFilter::default(), 100).await.expect("events");
    events.into_iter().map(|event| event.data["title"].clone()).collect()
}

/// When it rang, before T.
async fn rung(store: &SqliteStore) -> Vec<Span> {
    let events = store.events(0, &EventFilter::default(), 100).await.expect("events");
    events.iter().map(|event| T - event.at).collect()
}

#[test]
fn a_bell_long_before_the_countdown_rings_on_time_after_a_restart_too() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(Upstream::default());
    let rules = json!({ "early": bell("90m"), "earlier": bell("2h") });
    let (runtime, clock) = virtual_runtime(T - Span::hours(3)).expect("runtime");
    runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, rules.clone()).await;
        clock.sleep_until(T - Span::mins(100)).await;
        engine.shutdown().await.expect("stop");
    });
    let (runtime, clock) = virtual_runtime(T - Span::mins(100)).expect("runtime");
    runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, rules).await;
        clock.sleep_until(T - Span::mins(49)).await;
        engine.shutdown().await.expect("stop");
    });
    let rung = runtime.block_on(rung(&store));
    assert_eq!(rung, [Span::hours(2), Span::mins(90)]);
    let asked = fetch.asked.lock().expect("lock").clone();
    let before: Vec<i64> = asked.iter().map(|at| (T - *at).as_ms() / 60_000).collect();
    assert_eq!(before, [120, 90, 60, 55, 50], "and nothing else is looked at any more often");
}

#[test]
fn a_rule_that_is_made_live_has_its_look_off_the_grid_and_loses_it_when_it_is_removed() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(Upstream::default());
    let (runtime, clock) = virtual_runtime(T - Span::mins(70)).expect("runtime");
    runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, json!({})).await;
        clock.sleep_until(T - Span::mins(59)).await;
        let control = engine.control();
        control.set_setting("alert.off-grid", Some(bell("57m30s"))).await.expect("accepted");
        control.set_setting("alert.removed", Some(bell("53m"))).await.expect("accepted");
        clock.sleep_until(T - Span::mins(56)).await;
        control.set_setting("alert.removed", None).await.expect("accepted");
        control.set_setting("alert.late", Some(bell("7m30s"))).await.expect("accepted");
        clock.sleep_until(T - Span::mins(7)).await;
        engine.shutdown().await.expect("stop");
    });
    let rung = runtime.block_on(rung(&store));
    assert_eq!(rung, [Span::secs(57 * 60 + 30), Span::secs(7 * 60 + 30)]);
    let asked = fetch.asked.lock().expect("lock");
    assert!(!asked.contains(&(T - Span::mins(53))), "nobody wants that look any more");
}

#[test]
fn a_rule_whose_hours_are_widened_has_its_look_at_once() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(Upstream::default());
    let (runtime, clock) = virtual_runtime(T - Span::mins(70)).expect("runtime");
    runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, json!({})).await;
        let control = engine.control();
        let within = |to: &str| {
            let mut rule = bell("57m30s");
            rule["hours"] = json!({ "from": "06:00", "to": to, "zone": "UTC" });
            Some(rule)
        };
        control.set_setting("alert.mine", within("07:00")).await.expect("accepted");
        clock.sleep_until(T - Span::mins(59)).await;
        control.set_setting("alert.mine", within("08:00")).await.expect("accepted");
        clock.sleep_until(T - Span::mins(50)).await;
        engine.shutdown().await.expect("stop");
    });
    assert_eq!(runtime.block_on(rung(&store)), [Span::secs(57 * 60 + 30)], "07:02:30, between two polls");
}

#[test]
fn what_the_upstream_asks_for_goes_before_a_bell() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let (from, until) = (T - Span::mins(9), T - Span::mins(4));
    let fetch = Arc::new(Upstream { away: Some((from, until)), ..Upstream::default() });
    let (runtime, clock) = virtual_runtime(T - Span::mins(70)).expect("runtime");
    runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, json!({ "bell": bell("7m30s") })).await;
        clock.sleep_until(T - Span::mins(3)).await;
        engine.shutdown().await.expect("stop");
    });
    let asked = fetch.asked.lock().expect("lock").clone();
    assert!(asked.contains(&from), "it was asked once, and told to wait");
    assert!(!asked.iter().any(|at| *at > from && *at < until), "{asked:?}");
    let rung = runtime.block_on(rung(&store));
    assert_eq!(rung.len(), 1, "late, but before the start: {rung:?}");
    assert!(rung[0] <= Span::mins(4), "{rung:?}");
}

#[test]
fn a_bell_that_repeats_has_its_looks_until_the_start() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(Upstream::default());
    let mut often = bell("90m");
    often["repeat"] = json!("25m");
    let mut short = bell("50s");
    (short["repeat"], short["quiet"]) = (json!("10s"), json!("20s"));
    let rules = json!({ "often": often, "short": short });
    let mut rung_before_t = Vec::new();
    // The second engine finds what the first has told.
    for (from, until) in [(-180, -50), (-50, 10)] {
        let (runtime, clock) = virtual_runtime(T + Span::mins(from)).expect("runtime");
        rung_before_t = runtime.block_on(async {
            let engine = start(&store, &clock, &fetch, rules.clone()).await;
            clock.sleep_until(T + Span::mins(until)).await;
            drop(engine);
            rung(&store).await
        });
    }
    let secs: Vec<i64> = rung_before_t.iter().map(|before| before.as_ms() / 1_000).collect();
    assert_eq!(secs, [90 * 60, 65 * 60, 40 * 60, 15 * 60, 50, 30, 10], "never within the quiet time");
}

#[test]
fn a_race_is_called_by_its_name_where_the_upstream_has_nothing_new_to_say() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let fetch = Arc::new(Upstream::default());
    let (runtime, clock) = virtual_runtime(T - Span::mins(70)).expect("runtime");
    let titles = runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, json!({ "bell": bell("1m") })).await;
        clock.sleep_until(T - Span::secs(30)).await;
        engine.shutdown().await.expect("stop");
        titles(&store).await
    });
    assert_eq!(titles, [json!("The Cup starts in 1 min")]);
}

#[test]
fn what_lasts_is_told_again_after_its_time_without_anything_moving() {
    let store = Arc::new(SqliteStore::in_memory().expect("store"));
    let shortens = T - Span::mins(30);
    let fetch = Arc::new(Upstream { shortens: Some(shortens), ..Upstream::default() });
    let when = json!({ "on": "odds", "direction": "shortened", "percent": 20, "within": "25m" });
    let rules = json!({
        "once": { "when": when, "quiet": "1m" },
        "again": { "when": when, "quiet": "1m", "repeat": "10m" },
    });
    let (runtime, clock) = virtual_runtime(T - Span::mins(70)).expect("runtime");
    let events = runtime.block_on(async {
        let engine = start(&store, &clock, &fetch, rules).await;
        clock.sleep_until(T - Span::mins(1)).await;
        engine.shutdown().await.expect("stop");
        store.events(0, &EventFilter::default(), 100).await.expect("events")
    });
    let rung = |name: &str| -> Vec<i64> {
        let rule = format!("alert:{name}");
        events
            .iter()
            .filter(|event| event.rule == rule)
            .map(|event| (event.at - shortens).as_ms() / 60_000)
            .collect()
    };
    assert_eq!(rung("once"), [0]);
    assert_eq!(rung("again"), [0, 10, 20], "until 12 is out of the window");
}
