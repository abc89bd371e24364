//! Bells in virtual time: there is a look at the moment somebody asked for, whatever else moves the due time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use stakeout_core::cadence::Countdown;
use stakeout_core::{
    Exchange, Facts, Failure, FailureClass, Kind, Limits, Observation, Plan, PollContext, Request, Response,
    Rule, SettingRefused, Source, Span, TargetSpec, Time,
};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, EngineHandle, Fetch, virtual_runtime};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store, Validators};

const T: Time = Time::from_secs(1_800_000_000);

/// One race that starts at [`T`] and is polled as the countdown says.
struct OneRace {
    limits: Limits,
}

impl OneRace {
    fn new() -> OneRace {
        OneRace { limits: Limits { max_jitter: Span::ZERO, ..Limits::default() } }
    }
}

impl Source for OneRace {
    fn name(&self) -> &str {
        "nz"
    }
    fn family(&self) -> &str {
        "racing"
    }
    fn kinds(&self) -> &[Arc<Kind>] {
        &[]
    }
    fn rules(&self) -> &[Rule] {
        &[]
    }
    fn limits(&self) -> &Limits {
        &self.limits
    }
    fn roots(&self, _: Time) -> Vec<TargetSpec> {
        vec![TargetSpec { start: Some(T), ..TargetSpec::new("race/r", "race") }]
    }
    fn requests(&self, _: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        if so_far.is_empty() { vec![Request::get("http://sim/r")] } else { vec![] }
    }
    fn normalize(
        &self,
        _: &TargetSpec,
        exchanges: &[Exchange],
        _: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        let answered = exchanges.iter().map(|exchange| exchange.result.as_ref());
        for result in answered {
            result.map_err(Clone::clone)?;
        }
        let facts = Facts { start: Some(T), ..Facts::default() };
        Ok(Observation { facts, ..Observation::complete(vec![]) })
    }
    fn plan(&self, _: &TargetSpec, _: &Facts) -> Plan {
        Plan::Countdown(Countdown::seed())
    }
    fn configured(&self, _: &BTreeMap<String, Value>) -> Result<Arc<dyn Source>, SettingRefused> {
        Ok(Arc::new(OneRace::new()))
    }
}

/// Answers, but for one stretch in which it asks to be left alone until its end.
#[derive(Default)]
struct Upstream {
    away: Option<(Time, Time)>,
    asked: Mutex<Vec<Time>>,
}

#[async_trait]
impl Fetch for Upstream {
    async fn fetch(
        &self,
        _: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let now = clock.now();
        self.asked.lock().expect("lock").push(now);
        if let Some((_, until)) = self.away.filter(|(from, until)| (*from..*until).contains(&now)) {
            let failure = Failure::new(FailureClass::ServerError, "not now");
            return Err(Failure { retry_after: Some(until - now), ..failure });
        }
        let body = now.to_string().into();
        let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

async fn start(store: &Arc<SqliteStore>, clock: &Clock, fetch: &Arc<Upstream>, rules: Value) -> EngineHandle {
    let mut config = EngineConfig::new(store.clone(), vec![Arc::new(OneRace::new())], fetch.clone());
    config.clock = clock.clone();
    let rules: BTreeMap<String, AlertConfig> = serde_json::from_value(rules).expect("rules");
    config.alerts = Arc::new(RuleBook::new(rules).expect("a book"));
    Engine::start(config).await.expect("start")
}

fn bell(before: &str) -> Value {
    json!({ "when": { "on": "start", "before": before } })
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
