//! `/v1/sources`: the upstreams, what is kept of them and how they are doing.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use stakeout_core::{FieldType, Span, Time};
use stakeout_engine::{SourceVitals, Vitals};

use crate::app::App;
use crate::ask::Path;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::schema::Instant;
use crate::targets::{ms, quantile_ms};

/// An upstream.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Source {
    /// As the configuration names it.
    name: String,
    /// What sort of source it is: `racing`, `json`.
    family: String,
    /// The kinds of records it keeps.
    kinds: Vec<Kind>,
    /// The types of events it tells.
    event_types: Vec<String>,
    /// How hard it may be asked.
    limits: Limits,
    /// Requests per second that its adaptive targets share.
    budget_per_second: Option<f64>,
    /// How it is doing since this process started.
    vitals: Pulse,
}

/// A kind of record.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Kind {
    /// Its full name, also that of its SQL view: `racing_entrants`.
    name: String,
    /// Its fields.
    fields: Vec<Field>,
    /// What history is kept of it.
    streams: Vec<Stream>,
}

/// A field of a kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Field {
    name: String,
    /// `bool`, `int`, `float`, `text`, `time` or `json`
    #[serde(rename = "type")]
    ty: String,
    /// Whether a difference in it is a change.
    tracked: bool,
}

/// A history of some fields.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stream {
    name: String,
    fields: Vec<String>,
}

/// How hard an upstream may be asked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Limits {
    requests_per_second: f64,
    burst: u32,
    concurrency: u32,
    min_gap_ms: f64,
    timeout_ms: f64,
    /// The most that is added to a due time.
    jitter_ms: f64,
    /// How long the upstream takes to show its own changes.
    refresh_ms: f64,
}

/// How a source is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pulse {
    /// Committed polls.
    polls: u64,
    /// Of them: failed.
    failed: u64,
    /// Sent later than tolerated.
    late: u64,
    /// The same by cause.
    late_causes: BTreeMap<String, u64>,
    /// Due polls that were missed.
    missed: u64,
    /// The same by cause.
    missed_causes: BTreeMap<String, u64>,
    /// Events told.
    events: u64,
    /// Requests made.
    requests: u64,
    /// Polls that are due and wait for their turn.
    ready: u64,
    /// Polls that are being answered.
    in_flight: u32,
    /// How many times slower than configured it is asked, because it complained; 1 when it is well.
    slowdown: f64,
    /// Until when it is not asked at all, because it said so.
    #[schemars(with = "Option<Instant>")]
    slow_until: Option<Time>,
    /// 99 of 100 polls were sent no later than this; null when beyond a minute or before the first.
    lateness_ms_p99: Option<f64>,
    /// Polls by how late they were sent.
    lateness: Vec<LatenessBucket>,
    /// Failed polls by the failure's class.
    failures: BTreeMap<String, u64>,
}

/// Polls that were sent so late.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LatenessBucket {
    /// No later than this, and later than the bucket before; null beyond the last.
    le_ms: Option<f64>,
    polls: u64,
}

fn type_name(ty: FieldType) -> &'static str {
    match ty {
        FieldType::Bool => "bool",
        FieldType::Int => "int",
        FieldType::Float => "float",
        FieldType::Text => "text",
        FieldType::Time => "time",
        FieldType::Json => "json",
    }
}

impl Kind {
    fn new(kind: &stakeout_core::Kind) -> Kind {
        let field = |field: &stakeout_core::Field| Field {
            name: field.name.clone(),
            ty: type_name(field.ty).to_owned(),
            tracked: field.tracked,
        };
        let stream = |stream: &stakeout_core::Stream| Stream {
            name: stream.name.clone(),
            fields: stream.fields.clone(),
        };
        Kind {
            name: kind.full_name(),
            fields: kind.fields.iter().map(field).collect(),
            streams: kind.streams.iter().map(stream).collect(),
        }
    }
}

impl Pulse {
    pub(crate) fn new(vitals: Option<&SourceVitals>) -> Pulse {
        let totals = vitals.map(|vitals| vitals.totals.clone()).unwrap_or_default();
        let lane = vitals.map(|vitals| vitals.lane);
        let named = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, polls)| ((*name).to_owned(), *polls)).collect()
        };
        let bucket = |(bound, polls): (Option<Span>, u64)| LatenessBucket { le_ms: bound.map(ms), polls };
        Pulse {
            polls: totals.polls.values().sum(),
            failed: totals.polls.get("failed").copied().unwrap_or_default(),
            late: totals.late,
            late_causes: named(&totals.late_causes),
            missed: totals.missed,
            missed_causes: named(&totals.missed_causes),
            events: totals.events,
            requests: totals.requests,
            ready: lane.map_or(0, |lane| lane.ready),
            in_flight: lane.map_or(0, |lane| lane.in_flight),
            slowdown: lane.map_or(1.0, |lane| lane.slowdown),
            slow_until: lane.and_then(|lane| lane.slow_until),
            lateness_ms_p99: quantile_ms(&totals.lateness, 0.99),
            lateness: totals.lateness.buckets().map(bucket).collect(),
            failures: named(&totals.failures),
        }
    }
}

impl Source {
    fn new(source: &Arc<dyn stakeout_core::Source>, vitals: &Vitals) -> Source {
        let limits = source.limits();
        Source {
            name: source.name().to_owned(),
            family: source.family().to_owned(),
            kinds: source.kinds().iter().map(|kind| Kind::new(kind)).collect(),
            event_types: source.event_types().into_iter().collect(),
            limits: Limits {
                requests_per_second: limits.requests_per_second,
                burst: limits.burst,
                concurrency: limits.concurrency,
                min_gap_ms: ms(limits.min_gap),
                timeout_ms: ms(limits.timeout),
                jitter_ms: ms(limits.max_jitter),
                refresh_ms: ms(limits.refresh),
            },
            budget_per_second: source.budget(),
            vitals: Pulse::new(vitals.sources.iter().find(|vitals| vitals.name == source.name())),
        }
    }
}

/// Lists the sources.
pub(crate) async fn list(State(app): State<App>) -> Reply<Vec<Source>> {
    let vitals = app.control.vitals();
    Reply(app.control.sources().iter().map(|source| Source::new(source, &vitals)).collect())
}

/// One source.
pub(crate) async fn one(State(app): State<App>, Path(name): Path<String>) -> Result<Reply<Source>, Problem> {
    let source = find(&app, &name)?;
    Ok(Reply(Source::new(&source, &app.control.vitals())))
}

/// A source by name.
pub(crate) fn find(app: &App, name: &str) -> Result<Arc<dyn stakeout_core::Source>, Problem> {
    app.control
        .source(name)
        .ok_or_else(|| Problem::not_found(format!("there is no source {name:?}: /v1/sources lists them")))
}

/// Says no unless the source is of that family.
pub(crate) fn of_family(app: &App, name: &str, family: &str) -> Result<(), Problem> {
    match find(app, name)?.family() {
        found if found == family => Ok(()),
        other => Err(Problem::not_found(format!("source {name:?} is about {other}, not {family}"))),
    }
}
