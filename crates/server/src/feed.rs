//! The feed: reads the event log once and hands it to every stream.
//!
//! ```text
//! engine ─ newest ─► feed ─ reads the log ─► ring ─► stream ─► client
//!        ├ kv ────►                             └──► stream ─► client
//!        └ polls ─► (only while somebody looks on, in a ring of their own)
//! ```
//! The engine never waits: it only raises a number. Nor does the feed: it writes to a ring, and a client that does not
//! read for so long that the ring comes round is dropped; it comes back with its cursor. Heartbeats go through the
//! ring as well, so the number they carry never overtakes an event.
//!
//! There are several rings, and the feed steps back between two of them: a thousand clients that are woken at once would
//! stand in the engine's way for as long as it takes to write to all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use stakeout_core::Event;
use stakeout_engine::Control;
use stakeout_store::{EventFilter, KvRow, Store, StoreError};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::onlook::{FLUSH_EVERY, Onlookers, PULSE_EVERY};
use crate::stream::frame;

/// Events read from the log at once.
const PAGE: u32 = 500;
/// The log is looked at this often even if nobody says there is news.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Published values read at once.
const VALUES: u32 = 1_000;

/// Something for the streams, already written out: a thousand clients share the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// An event.
    Event(Arc<Event>, Bytes),
    /// A published value changed.
    Kv(Arc<KvRow>, Bytes),
    /// Everything up to this number has gone by.
    Heartbeat(u64, Bytes),
}

/// How many rings the streams are dealt out to.
const RINGS: usize = 32;

/// The feed and its streams.
pub(crate) struct Feed {
    rings: Vec<broadcast::Sender<Item>>,
    /// Whose turn it is to take a stream.
    turn: AtomicUsize,
    streams: Arc<AtomicUsize>,
    streams_max: usize,
    dropped: Arc<AtomicU64>,
    onlookers: Onlookers,
}

/// A place among the streams; free again when dropped.
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Feed {
    pub(crate) fn new(ring: usize, streams_max: usize) -> Feed {
        Feed {
            rings: (0..RINGS).map(|_| broadcast::channel(ring).0).collect(),
            turn: AtomicUsize::new(0),
            streams: Arc::default(),
            streams_max,
            dropped: Arc::default(),
            onlookers: Onlookers::default(),
        }
    }

    /// A place for one more stream, if there is one.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let taken = self.streams.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(&self.streams));
        (taken < self.streams_max).then_some(seat)
    }

    /// Everything from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Item> {
        self.rings[self.turn.fetch_add(1, Ordering::Relaxed) % RINGS].subscribe()
    }

    /// Those who look on.
    pub(crate) fn onlookers(&self) -> &Onlookers {
        &self.onlookers
    }

    /// Streams at the moment.
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Clients that were dropped because they did not keep up.
    pub(crate) fn dropped(&self) -> &Arc<AtomicU64> {
        &self.dropped
    }

    /// Hands something to all streams, some at a time: whoever has a poll to make goes first.
    async fn hand(&self, item: Item) {
        for ring in &self.rings {
            // Nobody listening is no failure.
            if ring.send(item.clone()).is_ok() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads along until told to stop.
    pub(crate) async fn run(
        &self,
        store: Arc<dyn Store>,
        control: Control,
        heartbeat: Duration,
        stop: CancellationToken,
    ) {
        let mut newest = control.newest();
        let mut published = control.published();
        let [mut beats, mut looks, mut flushes, mut pulses] =
            [heartbeat, LOOK_EVERY, FLUSH_EVERY, PULSE_EVERY].map(every);
        let mut head = loop {
            match store.log_ends().await {
                Ok(ends) => break ends.newest,
                Err(error) => tracing::warn!(%error, "the event log cannot be read"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                _ = looks.tick() => {}
            }
        };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = newest.changed() => {
                    if changed.is_err() { return }
                    head = self.read_along(&*store, head).await;
                }
                _ = looks.tick() => head = self.read_along(&*store, head).await,
                row = published.recv() => match row {
                    Ok(row) => self.publish(row).await,
                    Err(RecvError::Lagged(_)) => self.publish_all(&*store).await,
                    Err(RecvError::Closed) => return,
                },
                _ = flushes.tick() => self.onlookers.flush(),
                _ = pulses.tick(), if self.onlookers.any() => self.onlookers.pulse(&control, self.streams()),
                _ = beats.tick() => self.hand(Item::Heartbeat(head, frame::heartbeat(head))).await,
            }
        }
    }

    /// Hands on what is new in the log; answers how far it got. Nothing is lost when a read fails: the next one begins
    /// at the same place.
    async fn read_along(&self, store: &dyn Store, mut head: u64) -> u64 {
        loop {
            // Taken before the events are read, so that everything up to it is among them.
            let Ok(ends) = store.log_ends().await else { return head };
            if ends.newest <= head {
                return head;
            }
            let page = match store.events(head, &EventFilter::default(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "the event log cannot be read");
                    return head;
                }
            };
            let whole = page.len() < PAGE as usize;
            for event in page {
                head = event.seq;
                let bytes = frame::event(&event);
                self.hand(Item::Event(Arc::new(event), bytes)).await;
            }
            if whole {
                // Not every number is an event's.
                head = head.max(ends.newest);
            }
            if whole {
                return head;
            }
        }
    }

    async fn publish(&self, row: KvRow) {
        let bytes = frame::kv(&row);
        self.hand(Item::Kv(Arc::new(row), bytes)).await;
    }

    /// Some changes went by too fast: everything is said again.
    async fn publish_all(&self, store: &dyn Store) {
        match published(store, None).await {
            Ok(rows) => {
                for row in rows {
                    self.publish(row).await;
                }
            }
            Err(error) => tracing::warn!(%error, "published values cannot be read"),
        }
    }
}

/// All published values, or those of one namespace, as they are now.
pub(crate) async fn published(store: &dyn Store, namespace: Option<&str>) -> Result<Vec<KvRow>, StoreError> {
    let mut found: Vec<KvRow> = Vec::new();
    loop {
        let after = found.last().map(|row| (row.namespace.as_str(), row.key.as_str()));
        let page = store.list_kv(namespace, after, VALUES).await?;
        let last = page.len() < VALUES as usize;
        found.extend(page);
        if last {
            return Ok(found);
        }
    }
}

/// What was not done in time is done once.
fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    interval
}
