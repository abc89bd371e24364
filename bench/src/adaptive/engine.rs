//! The same division through the real engine: its dispatcher, its pricing, its estimates and its store, in virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value as Json;
use stakeout_core::budget::Item;
use stakeout_core::cadence::{Adaptive, Fixed};
use stakeout_core::judge::Trigger;
use stakeout_core::{
    Exchange, Facts, Failure, Field, FieldType, Kind, Limits, Observation, Plan, PollContext, Record,
    Request, Response, Rule, SettingRefused, Source, Span, TargetSpec, Time,
};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Engine, EngineConfig, Fetch, virtual_runtime};
use stakeout_store::Validators;
use stakeout_store::sqlite::SqliteStore;

use super::{BOUNDS, BUDGET, DAY, Fared};

const START: Time = Time::from_secs(1_768_000_000);
const LISTING: &str = "listing";
const METER: &str = "meter";

/// Meters that count events; a poll of one takes as many requests as it costs.
#[derive(Clone)]
struct Meters {
    kinds: Vec<Arc<Kind>>,
    rules: Vec<Rule>,
    limits: Limits,
    costs: Arc<[u32]>,
    bounds: (Span, Span),
}

impl Meters {
    fn new(items: &[Item], bounds: (Span, Span)) -> Meters {
        let kind = Kind {
            family: "bench".into(),
            collection: "counted".into(),
            version: 1,
            fields: vec![Field::new("number", FieldType::Int)],
            streams: vec![],
            merges: false,
            views: vec![],
            layout: Default::default(),
        };
        let rules = vec![Rule::new("counted", "bench.counted", &kind.full_name(), Trigger::Added)];
        // Nothing holds a poll back but when it is due: what is compared is the division of the budget.
        let limits = Limits {
            requests_per_second: 1e6,
            burst: 1_000_000,
            concurrency: 1_000,
            max_jitter: Span::ZERO,
            ..Limits::default()
        };
        let costs = items.iter().map(|item| item.cost as u32).collect();
        Meters { kinds: vec![Arc::new(kind)], rules, limits, costs, bounds }
    }
}

impl Source for Meters {
    fn name(&self) -> &str {
        "meters"
    }

    fn family(&self) -> &str {
        "bench"
    }

    fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn budget(&self) -> Option<f64> {
        Some(BUDGET)
    }

    fn roots(&self, _: Time) -> Vec<TargetSpec> {
        vec![TargetSpec::new(LISTING, LISTING)]
    }

    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        let cost = target.key.parse().ok().and_then(|n: usize| self.costs.get(n).copied()).unwrap_or(0);
        if so_far.is_empty() {
            (0..cost).map(|page| Request::get(format!("{}/{page}", target.key))).collect()
        } else {
            Vec::new()
        }
    }

    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        _: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        if target.role == LISTING {
            let targets = (0..self.costs.len()).map(|n| TargetSpec::new(n.to_string(), METER)).collect();
            return Ok(Observation { targets: Some(targets), ..Observation::complete(Vec::new()) });
        }
        let first = exchanges.first().ok_or_else(|| Failure::malformed("nothing was asked".to_owned()))?;
        let body = &first.result.as_ref().map_err(Clone::clone)?.body;
        let count: i64 =
            serde_json::from_slice(body).map_err(|error| Failure::malformed(error.to_string()))?;
        let record = |n: i64| Record::new(&self.kinds[0], &[&target.key, &n.to_string()], vec![n.into()]);
        Ok(Observation::complete((0..count).map(record).collect()))
    }

    fn plan(&self, target: &TargetSpec, _: &Facts) -> Plan {
        if target.role == LISTING {
            return Plan::Fixed(Fixed { every: Span::hours(24), eager: true, place: None });
        }
        Plan::Adaptive(Adaptive { min: self.bounds.0, max: self.bounds.1, weight: 1.0 })
    }

    fn configured(&self, _: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        Ok(Arc::new(self.clone()))
    }
}

/// Counts what has happened when it is asked, and how long that had waited.
struct Counter {
    events: Vec<Vec<f64>>,
    /// How many events of each meter have been shown, and what came of it.
    shown: Mutex<(Vec<usize>, Fared)>,
}

#[async_trait]
impl Fetch for Counter {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let at = (clock.now() - START).as_secs_f64();
        let (meter, page) = request.url.split_once('/').expect("made by the source");
        let meter: usize = meter.parse().expect("made by the source");
        let count = self.events[meter].partition_point(|event| *event <= at);
        let mut shown = self.shown.lock().expect("never poisoned, because nothing panics while it is held");
        let (seen, fared) = &mut *shown;
        fared.requests += 1.0;
        if page == "0" {
            fared.delay += self.events[meter][seen[meter]..count].iter().map(|event| at - event).sum::<f64>();
            fared.seen += (count - seen[meter]) as u32;
            seen[meter] = count;
        }
        let body = Bytes::from(count.to_string());
        Ok(Answer::Full(
            Response { status: 200, body, content_type: None, age: Span::ZERO },
            Validators::default(),
        ))
    }
}

/// Polls every target for `days`; all at the same interval, or as the engine divides the budget.
pub(super) fn poll(items: &[Item], events: &[Vec<f64>], days: f64, uniform: bool) -> anyhow::Result<Fared> {
    let every = Span::from_secs_f64(items.iter().map(|item| item.cost).sum::<f64>() / BUDGET);
    let bounds = if uniform { (every, every) } else { BOUNDS };
    let counter = Arc::new(Counter {
        events: events.to_vec(),
        shown: Mutex::new((vec![0; items.len()], Fared::default())),
    });
    let (runtime, clock) = virtual_runtime(START).context("virtual time")?;
    let store = Arc::new(SqliteStore::in_memory()?);
    let mut config = EngineConfig::new(store, vec![Arc::new(Meters::new(items, bounds))], counter.clone());
    config.clock = clock.clone();
    runtime.block_on(async {
        let engine = Engine::start(config).await?;
        clock.sleep_until(START + Span::from_secs_f64(days * DAY)).await;
        engine.shutdown().await?;
        anyhow::Ok(())
    })?;
    let fared = counter.shown.lock().expect("never poisoned, because nothing panics while it is held").1;
    Ok(fared)
}
