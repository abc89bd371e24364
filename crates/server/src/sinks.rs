//! `/v1/sinks` and `/v1/deliveries`: where events go, and what did not get there.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::{EventId, Time};
use stakeout_store::Chosen;

use crate::app::App;
use crate::ask::{Asked, Told, page_size};
use crate::notifications::Counted;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::schema::{Instant, Print};

/// A sink.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Sink {
    /// Its name in the configuration.
    name: String,
    /// `webhook`, `http`, `mail` or `nats`; null when it is no longer configured, and something is left in its outbox.
    kind: Option<&'static str>,
    /// Whether it is switched on: `sink.NAME.enabled` switches it.
    on: bool,
    /// Deliveries that are still to be made.
    waiting: u64,
    /// Deliveries that were given up.
    dead: u64,
}

/// All sinks, and what is in their outboxes.
pub(crate) async fn list(State(app): State<App>) -> Result<Reply<Vec<Sink>>, Problem> {
    let mut sinks: Vec<Sink> = app
        .control
        .sinks()
        .into_iter()
        .map(|sink| Sink { name: sink.name, kind: Some(sink.kind), on: sink.on, waiting: 0, dead: 0 })
        .collect();
    for outbox in app.store.outboxes().await? {
        let (waiting, dead) = (outbox.waiting, outbox.dead);
        match sinks.iter_mut().find(|sink| sink.name == outbox.sink) {
            Some(sink) => (sink.waiting, sink.dead) = (waiting, dead),
            None => sinks.push(Sink { name: outbox.sink, kind: None, on: false, waiting, dead }),
        }
    }
    sinks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Reply(sinks))
}

/// A delivery that was given up.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Dead {
    /// The sink that did not take it.
    sink: String,
    /// The event's sequence number.
    event: u64,
    /// The event's id.
    #[schemars(with = "Print")]
    id: EventId,
    /// The event's type.
    #[serde(rename = "type")]
    event_type: String,
    /// What it is about.
    subject: String,
    /// When it happened.
    #[schemars(with = "Instant")]
    at: Time,
    /// How often it was tried.
    tries: u32,
    /// What was said last.
    error: Option<String>,
}

/// Which deliveries.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeadQuery {
    /// Only of this sink.
    sink: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Deliveries that were given up, by sink and event.
pub(crate) async fn dead(
    State(app): State<App>,
    Asked(query): Asked<DeadQuery>,
) -> Result<Reply<Vec<Dead>>, Problem> {
    let found = app.store.dead_deliveries(query.sink.as_deref(), page_size(query.limit)?).await?;
    let dead = |dead: stakeout_store::DeadDelivery| Dead {
        sink: dead.sink,
        event: dead.event.seq,
        id: dead.event.id,
        event_type: dead.event.event_type,
        subject: dead.event.subject_key,
        at: dead.event.at,
        tries: dead.attempts,
        error: dead.error,
    };
    Ok(Reply(found.into_iter().map(dead).collect()))
}

/// Whose deliveries are meant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    /// The sink.
    sink: String,
    /// That of the event with this number, given up or not; all that were given up without it.
    #[serde(default)]
    event: Option<u64>,
}

impl Choice {
    fn chosen(&self) -> Chosen {
        self.event.map_or(Chosen::Dead, Chosen::One)
    }

    /// A number that is nobody's is a mistake, nothing to do is not.
    fn counted(self, count: u64) -> Result<Reply<Counted>, Problem> {
        match (self.event, count) {
            (Some(event), 0) => {
                Err(Problem::not_found(format!("sink {:?} has no delivery of event {event}", self.sink)))
            }
            _ => Ok(Reply(Counted { count })),
        }
    }
}

/// Has deliveries made again, as if they had never been tried.
pub(crate) async fn retry(
    State(app): State<App>,
    Told(choice): Told<Choice>,
) -> Result<Reply<Counted>, Problem> {
    let count = app.store.retry_deliveries(&choice.sink, choice.chosen()).await?;
    choice.counted(count)
}

/// Drops deliveries for good; the events stay.
pub(crate) async fn drop(
    State(app): State<App>,
    Told(choice): Told<Choice>,
) -> Result<Reply<Counted>, Problem> {
    let count = app.store.drop_deliveries(&choice.sink, choice.chosen()).await?;
    choice.counted(count)
}
