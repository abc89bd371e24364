//! `GET /v1/events/stream`: events as they happen, as Server-Sent Events.
//!
//! A stream begins with what the client has not seen yet, read from the log, and goes on with the feed. Its `id:` is
//! the sequence number, which browsers send back as `Last-Event-ID`, so nothing is lost or told twice.

pub(crate) mod frame;

use std::collections::{HashSet, VecDeque};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use schemars::JsonSchema;
use serde::Deserialize;
use stakeout_core::{Event, Time};
use stakeout_store::{EventFilter, KvRow};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::access::Caller;
use crate::app::App;
use crate::ask::{Asked, print};
use crate::feed::{self, Item, Seat};
use crate::onlook::{self, Look, Onlooker, PollWants};
use crate::patience::Slow;
use crate::problem::{Problem, Sort};

/// Events read from the log at once.
const PAGE: u32 = 200;

/// Which events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StreamQuery {
    /// Begin after this sequence number; `Last-Event-ID` counts instead when it is sent. Without either, with what
    /// happens from now on.
    after: Option<u64>,
    /// Only of this source.
    source: Option<String>,
    /// Only of this type, or of types beginning with it when it ends in a dot.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Only about this record: a fingerprint.
    record: Option<String>,
    /// Which published values: a namespace, `all` or `none`. All, unless there is another filter.
    kv: Option<String>,
    /// Polls as they are committed, and the pulse of the sources: `all`, a source, `source/key`, or `none`, which is
    /// what holds unless given. They are in no log and have no `id`.
    polls: Option<String>,
}

/// What a client wants to hear.
#[derive(Clone, Debug, Default)]
struct Wants {
    events: EventFilter,
    kv: KvWants,
    polls: PollWants,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum KvWants {
    #[default]
    All,
    None,
    Namespace(String),
}

impl Wants {
    fn new(query: &StreamQuery) -> Result<Wants, Problem> {
        let subject = query.record.as_deref().map(print).transpose()?;
        let filtered = subject.is_some() || query.source.is_some() || query.event_type.is_some();
        let kv = match query.kv.as_deref() {
            None if filtered => KvWants::None,
            None | Some("all") => KvWants::All,
            Some("none") => KvWants::None,
            Some(namespace) => KvWants::Namespace(namespace.to_owned()),
        };
        let events = EventFilter {
            source: query.source.clone(),
            event_type: query.event_type.clone(),
            subject,
            target: None,
        };
        Ok(Wants { events, kv, polls: PollWants::parse(query.polls.as_deref())? })
    }

    fn event(&self, event: &Event) -> bool {
        let filter = &self.events;
        let is_type = |wanted: &String| match wanted.strip_suffix('.') {
            Some(_) => event.event_type.starts_with(wanted.as_str()),
            None => event.event_type == *wanted,
        };
        filter.source.as_ref().is_none_or(|source| *source == event.source)
            && filter.event_type.as_ref().is_none_or(is_type)
            && filter.subject.is_none_or(|subject| subject == event.subject)
    }

    fn kv(&self, row: &KvRow) -> bool {
        match &self.kv {
            KvWants::All => true,
            KvWants::None => false,
            KvWants::Namespace(namespace) => *namespace == row.namespace,
        }
    }
}

/// Begins a stream.
pub(crate) async fn stream(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(slow): Extension<Slow>,
    headers: HeaderMap,
    Asked(query): Asked<StreamQuery>,
) -> Result<Response, Problem> {
    let wants = Wants::new(&query)?;
    let after = last_event_id(&headers)?.or(query.after);
    let seat = app.feed.seat().ok_or_else(|| {
        Problem::new(Sort::Unavailable, "as many streams as allowed are open").retry_after(10)
    })?;
    let client = Client::begin(app, caller, slow, wants, after, seat).await?;
    let body = Body::from_stream(stream::unfold(client, async |mut client| {
        let bytes = client.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(bytes), client))
    }));
    let mut response = Response::new(body);
    let set = |headers: &mut HeaderMap, name, value| headers.insert(name, HeaderValue::from_static(value));
    set(response.headers_mut(), header::CONTENT_TYPE, "text/event-stream");
    set(response.headers_mut(), header::CACHE_CONTROL, "no-store");
    // Proxies that gather answers before they hand them on are told not to.
    set(response.headers_mut(), header::HeaderName::from_static("x-accel-buffering"), "no");
    Ok(response)
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let number = text.parse().map_err(|_| {
        Problem::bad_input(format!("Last-Event-ID: expected a sequence number, found {text:?}"))
    })?;
    Ok(Some(number))
}

/// One client's stream.
struct Client {
    app: App,
    caller: Caller,
    slow: Slow,
    wants: Wants,
    /// The number of the last event that was sent, or passed by.
    cursor: u64,
    /// Written, not yet sent.
    waiting: VecDeque<Bytes>,
    /// The published values it was told at the beginning, until it hears the feed.
    greeted: Vec<KvRow>,
    stage: Stage,
    _seat: Seat,
    onlooker: Option<Onlooker>,
}

enum Stage {
    /// Reading what came before from the log.
    Behind,
    /// The same once more, beside the feed: what happened since the log was read.
    CatchingUp(broadcast::Receiver<Item>),
    /// With the feed.
    Live(broadcast::Receiver<Item>),
}

impl Client {
    async fn begin(
        app: App,
        caller: Caller,
        slow: Slow,
        wants: Wants,
        after: Option<u64>,
        seat: Seat,
    ) -> Result<Client, Problem> {
        // Before anything is read: what happens from here on is heard of.
        let looks_on = wants.polls != PollWants::None;
        let onlooker = looks_on.then(|| app.feed.onlookers().join(&app.control));
        let ends = app.store.log_ends().await?;
        let mut waiting = VecDeque::from([frame::hello()]);
        let cursor = match after {
            None => ends.newest,
            // Something that was not read yet is gone, or the log is another one: the client has to look anew.
            Some(after) if after < ends.pruned || after > ends.newest => {
                let from = if after < ends.pruned { ends.pruned } else { ends.newest };
                waiting.push_back(frame::resync(after, from));
                from
            }
            Some(after) => after,
        };
        if looks_on {
            waiting.push_back(onlook::pulse(&app.control, app.feed.streams()));
        }
        let (stage, _seat, greeted) = (Stage::Behind, seat, Vec::new());
        let mut client =
            Client { app, caller, slow, wants, cursor, waiting, greeted, stage, _seat, onlooker };
        client.tell_values().await?;
        if after.is_none() {
            client.waiting.push_back(frame::heartbeat(cursor));
        }
        Ok(client)
    }

    /// Published values are a state, not a log: whoever comes (back) is told what they are now, and of what has become
    /// of them while the log was read.
    async fn tell_values(&mut self) -> Result<(), Problem> {
        let namespace = match &self.wants.kv {
            KvWants::None => return Ok(()),
            KvWants::All => None,
            KvWants::Namespace(namespace) => Some(namespace.as_str()),
        };
        let rows = feed::published(&*self.app.store, namespace).await?;
        let told: HashSet<(&str, &str, Time)> = self.greeted.iter().map(place).collect();
        self.waiting.extend(rows.iter().filter(|row| !told.contains(&place(row))).map(frame::kv));
        drop(told);
        self.greeted = rows;
        Ok(())
    }

    /// Hears the feed from now on. Values that changed before it did are in no log, so they are read once more.
    async fn join_the_feed(&mut self) -> Option<Stage> {
        let feed = self.app.feed.subscribe();
        let told = self.tell_values().await;
        told.inspect_err(|problem| {
            tracing::warn!(problem = problem.detail(), "a stream cannot read published values");
        })
        .ok()?;
        self.greeted = Vec::new();
        Some(Stage::CatchingUp(feed))
    }

    /// The next bytes; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.waiting.pop_front() {
                return Some(bytes);
            }
            match std::mem::replace(&mut self.stage, Stage::Behind) {
                Stage::Behind => {
                    if self.read_page().await? {
                        self.stage = self.join_the_feed().await?;
                    }
                }
                Stage::CatchingUp(feed) => {
                    let done = self.read_page().await?;
                    self.stage = if done { Stage::Live(feed) } else { Stage::CatchingUp(feed) };
                }
                Stage::Live(mut feed) => {
                    let taken = tokio::select! {
                        item = feed.recv() => match item {
                            Ok(item) => self.take(item).await,
                            Err(error) => self.cut(&error),
                        },
                        look = next_look(self.onlooker.as_mut()) => match look {
                            Ok(look) => self.see(look),
                            Err(error) => self.cut(&error),
                        },
                    };
                    self.stage = Stage::Live(feed);
                    taken?;
                }
            }
        }
    }

    /// Takes what there is to see.
    fn see(&mut self, look: Look) -> Option<()> {
        match look {
            Look::Polls(flush) => self.waiting.extend(flush.wanted(&self.wants.polls)),
            Look::Pulse(bytes) => self.waiting.push_back(bytes),
        }
        Some(())
    }

    /// A ring came round, or the server ends: the stream is over, the client comes back with its cursor.
    fn cut(&self, error: &RecvError) -> Option<()> {
        if let RecvError::Lagged(_) = error {
            self.slow.count();
        }
        None
    }

    /// Reads on in the log; answers whether its end was reached.
    async fn read_page(&mut self) -> Option<bool> {
        let page = self.app.store.events(self.cursor, &self.wants.events, PAGE).await;
        let page =
            page.inspect_err(|error| tracing::warn!(%error, "a stream cannot read the event log")).ok()?;
        let done = page.len() < PAGE as usize;
        for event in page {
            self.cursor = event.seq;
            self.waiting.push_back(frame::event(&event));
        }
        Some(done)
    }

    /// Takes what the feed has; `None` when the client is no longer welcome.
    async fn take(&mut self, item: Item) -> Option<()> {
        match item {
            // What catching up has sent already comes by once more.
            Item::Event(event, bytes) if event.seq > self.cursor => {
                self.cursor = event.seq;
                if self.wants.event(&event) {
                    self.waiting.push_back(bytes);
                }
            }
            Item::Kv(row, bytes) if self.wants.kv(&row) => self.waiting.push_back(bytes),
            Item::Heartbeat(seq, bytes) => {
                // Whoever signed out, or whose token was revoked, hears no more.
                self.app.access.is_welcome(&self.caller).await.ok().filter(|welcome| *welcome)?;
                if seq >= self.cursor {
                    self.cursor = seq;
                    self.waiting.push_back(bytes);
                } else {
                    self.waiting.push_back(frame::heartbeat(self.cursor));
                }
            }
            Item::Event(..) | Item::Kv(..) => {}
        }
        Some(())
    }
}

/// A value as it was at a moment.
fn place(row: &KvRow) -> (&str, &str, Time) {
    (&row.namespace, &row.key, row.updated)
}

/// The next thing to see; never, for those who do not look on.
async fn next_look(onlooker: Option<&mut Onlooker>) -> Result<Look, RecvError> {
    match onlooker {
        Some(onlooker) => onlooker.looks.recv().await,
        None => std::future::pending().await,
    }
}
