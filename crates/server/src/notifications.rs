//! `/v1/notifications`: what alerts told, and who has read it.

use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::alert::EVENT_TYPE;
use stakeout_core::{EventId, Time};
use stakeout_store::{EventFilter, NotificationFilter, ReadMark};

use crate::app::App;
use crate::ask::{Asked, Path, page_size};
use crate::problem::Problem;
use crate::reply::{Reply, linked, with_parameter};
use crate::schema::{Instant, Print};

/// What an alert told.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Notification {
    /// The sequence number of its event.
    seq: u64,
    /// The event's id: the same on every way it is delivered.
    #[schemars(with = "Print")]
    id: EventId,
    /// The alert's name.
    alert: Json,
    /// Whose it is; null is everybody.
    user: Json,
    /// `info`, `warning` or `critical`
    severity: Json,
    /// In a few words.
    title: Json,
    /// In more words.
    text: Json,
    /// The numbers.
    about: Json,
    /// The source.
    source: String,
    /// The target's key.
    target: String,
    /// What it is about.
    subject: String,
    /// When it rang.
    #[schemars(with = "Instant")]
    at: Time,
    /// When somebody read it; null as long as nobody has.
    #[schemars(with = "Option<Instant>")]
    read_at: Option<Time>,
}

impl From<stakeout_store::Notification> for Notification {
    fn from(found: stakeout_store::Notification) -> Notification {
        let mut event = found.event;
        let mut field = |name: &str| event.data.get_mut(name).map(Json::take).unwrap_or_default();
        Notification {
            alert: field("alert"),
            user: field("user"),
            severity: field("severity"),
            title: field("title"),
            text: field("text"),
            about: field("about"),
            seq: event.seq,
            id: event.id,
            source: event.source,
            target: event.target,
            subject: event.subject_key,
            at: event.at,
            read_at: found.read,
        }
    }
}

/// A page of notifications.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Notifications {
    /// What is on it, the newest first.
    items: Vec<Notification>,
    /// Where the next page is, relative to this server; null on the last one.
    next: Option<String>,
    /// How many nobody has read, of this user and of everybody, on whatever page.
    unread: u64,
}

/// Which notifications.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NotificationQuery {
    /// Only those that nobody has read.
    unread: bool,
    /// Only those of this user and of everybody.
    user: Option<String>,
    /// Those before this sequence number.
    before: Option<u64>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists notifications, the newest first.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Asked(query): Asked<NotificationQuery>,
) -> Result<Response, Problem> {
    let limit = page_size(query.limit)?;
    let filter = NotificationFilter { unread: query.unread, user: query.user };
    let found = app.store.notifications(query.before.unwrap_or(u64::MAX), &filter, limit).await?;
    let unread = app.store.unread_notifications(filter.user.as_deref()).await?;
    let last = found.last().filter(|_| found.len() == limit as usize).map(|last| last.event.seq);
    let next = last.map(|seq| with_parameter(&uri, "before", &seq.to_string()));
    let items = found.into_iter().map(Notification::from).collect();
    let page = Notifications { items, next, unread };
    Ok(linked(Reply(&page).into_response(), page.next.as_deref()))
}

/// Marks one as read.
pub(crate) async fn read_one(State(app): State<App>, Path(seq): Path<u64>) -> Result<StatusCode, Problem> {
    let nearest = app.store.events(seq.saturating_sub(1), &EventFilter::default(), 1).await?;
    if !nearest.first().is_some_and(|event| event.seq == seq && event.event_type == EVENT_TYPE) {
        return Err(Problem::not_found(format!(
            "there is no notification {seq}: GET /v1/notifications lists them"
        )));
    }
    app.store.mark_read(&ReadMark::One(seq), app.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which were read.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReadQuery {
    /// Up to this sequence number, that one included; all without it.
    upto: Option<u64>,
    /// Only those of this user and of everybody.
    user: Option<String>,
}

/// How many.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Counted {
    /// How many it was.
    pub(crate) count: u64,
}

/// Marks all as read, up to one of them.
pub(crate) async fn read_all(
    State(app): State<App>,
    Asked(query): Asked<ReadQuery>,
) -> Result<Reply<Counted>, Problem> {
    let mark = ReadMark::UpTo(query.upto.unwrap_or(u64::MAX), query.user);
    Ok(Reply(Counted { count: app.store.mark_read(&mark, app.now()).await? }))
}
