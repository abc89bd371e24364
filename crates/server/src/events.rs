//! `/v1/events`: the log of what was told.

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::{EventId, Fingerprint, Time};
use stakeout_store::EventFilter;

use crate::app::App;
use crate::ask::{Asked, PAGE_MAX, Path, page_size, print};
use crate::problem::Problem;
use crate::reply::{Page, Reply};
use crate::schema::{Instant, Print};

/// Something that was told, once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Event {
    /// The sequence number: a reader that has seen n never later finds a new one ≤ n.
    seq: u64,
    /// The same after every crash: what a reader recognises it by.
    #[schemars(with = "Print")]
    id: EventId,
    /// What happened: `racing.race.final`.
    #[serde(rename = "type")]
    event_type: String,
    /// The source.
    source: String,
    /// The target's key.
    target: String,
    /// The rule that chose it.
    rule: String,
    /// The record it is about.
    #[schemars(with = "Print")]
    subject: Fingerprint,
    /// That record's readable key.
    subject_key: String,
    /// When it was seen.
    #[schemars(with = "Instant")]
    at: Time,
    /// A readable key that no other event has.
    dedupe_key: Option<String>,
    /// `record`, `changes`, and whatever the source adds.
    data: Json,
}

impl From<&stakeout_core::Event> for Event {
    fn from(event: &stakeout_core::Event) -> Event {
        let event = event.clone();
        Event {
            seq: event.seq,
            id: event.id,
            event_type: event.event_type,
            source: event.source,
            target: event.target,
            rule: event.rule,
            subject: event.subject,
            subject_key: event.subject_key,
            at: event.at,
            dedupe_key: event.dedupe_key,
            data: event.data,
        }
    }
}

/// Which events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EventQuery {
    /// Those after this sequence number, the oldest first.
    after: Option<u64>,
    /// Those before this sequence number, the newest first; what happens without either, from the newest on.
    before: Option<u64>,
    /// Only of this source, also one that is no longer configured; a name that nobody had finds nothing.
    source: Option<String>,
    /// Only of this type, or of types beginning with it when it ends in a dot.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Only about this record: a fingerprint.
    record: Option<String>,
    /// Only of this target: its key.
    target: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists events.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Asked(query): Asked<EventQuery>,
) -> Result<Page<Event>, Problem> {
    let limit = page_size(query.limit)?;
    let filter = EventFilter {
        source: query.source,
        event_type: query.event_type,
        subject: query.record.as_deref().map(print).transpose()?,
        target: query.target,
    };
    let (parameter, found) = match (query.after, query.before) {
        (Some(_), Some(_)) => {
            return Err(Problem::bad_input("after and before are two directions: give one of them"));
        }
        (Some(after), None) => ("after", app.store.events(after, &filter, limit).await?),
        (None, before) => {
            ("before", app.store.newest_events(before.unwrap_or(u64::MAX), &filter, limit).await?)
        }
    };
    let whole = found.len() == limit as usize;
    let cursor = found.last().filter(|_| whole).map(|event| event.seq.to_string());
    Ok(Page::new(found.iter().map(Event::from).collect(), &uri, parameter, cursor))
}

/// One event.
pub(crate) async fn one(State(app): State<App>, Path(seq): Path<u64>) -> Result<Reply<Event>, Problem> {
    let nearest = app.store.events(seq.saturating_sub(1), &EventFilter::default(), 1).await?;
    let found = nearest.first().filter(|event| event.seq == seq);
    let event = found.ok_or_else(|| {
        Problem::not_found(format!(
            "there is no event {seq}: not every number is an event's, and old ones are pruned"
        ))
    })?;
    Ok(Reply(Event::from(event)))
}

const _: () = assert!(PAGE_MAX == 1_000, "the description says so");
