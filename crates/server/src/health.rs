//! `/livez`, `/readyz` and `/v1/health`: is it there, is it ready, how is it doing.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use stakeout_core::Time;
use stakeout_store::StoreStats;

use crate::app::App;
use crate::problem::{Problem, Sort};
use crate::reply::Reply;
use crate::schema::Instant;

/// The process answers.
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// The store answers, and every source has tried to find its targets.
pub(crate) async fn ready(State(app): State<App>) -> Response {
    match waiting_for(&app).await {
        Ok(None) => "ok\n".into_response(),
        Ok(Some(what)) => Problem::new(Sort::Unavailable, what).retry_after(1).into_response(),
        Err(problem) => Problem::new(Sort::Unavailable, problem.detail()).retry_after(1).into_response(),
    }
}

/// What it is not ready for, if anything.
async fn waiting_for(app: &App) -> Result<Option<String>, Problem> {
    app.store.log_ends().await?;
    let vitals = app.control.vitals();
    for source in app.control.sources() {
        let polled = vitals
            .sources
            .iter()
            .any(|vitals| vitals.name == source.name() && !vitals.totals.polls.is_empty());
        if polled {
            continue;
        }
        // Not in this process's life; an earlier one may have. A root that is switched off is not waited for.
        let Some(root) = source.roots(app.now()).into_iter().next() else { continue };
        let row = app.store.target(source.name(), &root.key).await?;
        if row.is_none_or(|row| row.enabled && row.poll_no == 0) {
            return Ok(Some(format!("source {} has not looked for its targets yet", source.name())));
        }
    }
    Ok(None)
}

/// How it is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// The version of this program.
    version: String,
    /// What time it is for the engine; it runs faster than life in a demonstration.
    #[schemars(with = "Instant")]
    now: Time,
    /// How many times as fast as life its time runs; null where it stands still and jumps.
    speed: Option<f64>,
    /// When the engine started.
    #[schemars(with = "Instant")]
    started: Time,
    /// Whether it is ready.
    ready: bool,
    /// What it waits for, when it is not.
    waiting_for: Option<String>,
    /// What is stored, counted at most half a minute ago.
    store: Stored,
    /// Targets held until they are due.
    held: u64,
    /// Polls that wait to be committed.
    committing: u64,
    /// Streams that are open.
    streams: u64,
}

/// What is stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stored {
    targets: u64,
    /// Records somebody holds.
    records: u64,
    events: u64,
    /// Rows of history.
    history: u64,
    /// Bytes on disk.
    bytes: u64,
    /// The newest sequence number.
    seq: u64,
}

impl From<StoreStats> for Stored {
    fn from(stats: StoreStats) -> Stored {
        let StoreStats { targets, records, events, history, bytes, seq, .. } = stats;
        Stored { targets, records, events, history, bytes, seq }
    }
}

/// How it is doing, in numbers.
pub(crate) async fn health(State(app): State<App>) -> Result<Reply<Health>, Problem> {
    let waiting_for = waiting_for(&app).await?;
    let vitals = app.control.vitals();
    Ok(Reply(Health {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: app.now(),
        speed: app.control.clock().speed(),
        started: app.control.started(),
        ready: waiting_for.is_none(),
        waiting_for,
        store: app.counts.read(&*app.store).await?.into(),
        held: vitals.held,
        committing: vitals.committing,
        streams: app.feed.streams() as u64,
    }))
}
