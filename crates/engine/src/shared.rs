//! What all loops of the engine share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use stakeout_core::{Event, Span, Time};
use stakeout_store::{Done, KvRow, Store, StoreError};
use tokio::sync::{Mutex, Notify, broadcast, watch};

use crate::alerts::Book;
use crate::claimer::LooksMade;
use crate::clock::Clock;
use crate::committer::{CommitTimes, Committer};
use crate::deliver::Settled;
use crate::fatal::Fatal;
use crate::fetch::Fetch;
use crate::hints::Told;
use crate::lane::Lane;
use crate::live::LivePolls;
use crate::outlets::Outlets;
use crate::stats::Stats;

/// The engine's common ground. Immutable but for what has its own lock.
pub(crate) struct Shared {
    pub(crate) node: String,
    pub(crate) clock: Clock,
    /// Whether the clock goes by the store's, as those of other nodes do.
    pub(crate) follows_store: bool,
    /// Somebody set this machine's clock: the store's should be asked.
    pub(crate) clock_in_doubt: AtomicBool,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) lanes: BTreeMap<String, Lane>,
    pub(crate) committer: Committer,
    pub(crate) outlets: Outlets,
    /// The rules of alerts that are in force.
    pub(crate) alerts: Book,
    /// When this engine started: what was due before was missed by downtime.
    pub(crate) started: Time,
    /// How long a claim holds.
    pub(crate) lease: Span,
    /// A target due again within this stays claimed, unless many are; below zero, every claim is given back.
    pub(crate) keep: Span,
    /// How far ahead of their due time targets are claimed.
    pub(crate) ahead: Span,
    pub(crate) fatal: Fatal,
    pub(crate) stats: Stats,
    /// Somebody should look for claimable targets now.
    pub(crate) look: Notify,
    /// When the claimer means to look again, in microseconds.
    pub(crate) next_look_us: AtomicI64,
    /// A source has a free place again.
    pub(crate) freed: Arc<Notify>,
    /// How often all plans of a source were made anew. A poll that planned before and is committed after the rows were read
    /// for it would be passed over: it sees by this that it has to plan once more.
    pub(crate) replans: AtomicU64,
    /// One setting is changed at a time.
    pub(crate) settings: Mutex<()>,
    /// One pass counts at a time.
    pub(crate) passes: Mutex<()>,
    /// The newest event's sequence number; sinks and streams watch it.
    pub(crate) newest: watch::Sender<u64>,
    /// How far each sink has come.
    pub(crate) settled: Settled,
    /// How due targets were looked for.
    pub(crate) looks: LooksMade,
    /// Polls committed since the start, failed ones included.
    pub(crate) polled: watch::Sender<u64>,
    /// Published values, as they change. Whoever is too slow for it is told so and reads them all.
    pub(crate) published: broadcast::Sender<KvRow>,
    /// Polls, for whoever looks on.
    pub(crate) live: LivePolls,
    /// The values told of, where other nodes publish, too.
    pub(crate) told_values: Told,
    /// Targets held in the timer.
    pub(crate) held: AtomicUsize,
    /// How long commits took.
    pub(crate) commits: Arc<CommitTimes>,
}

/// Changed values that may wait for a slow reader.
pub(crate) const MAX_PUBLISHED: usize = 256;

/// A target due again within this stays claimed however many there are: they are polled sooner than they could be given
/// back and claimed anew.
const KEEP_ALWAYS: Span = Span::secs(20);
/// So many targets may be held for longer, and remember what they wrote.
const MAX_HELD_LONG: usize = 2_000;

impl Shared {
    /// Whether a target that is due then stays claimed until then.
    pub(crate) fn keeps(&self, due: Time, now: Time) -> bool {
        let wait = due - now;
        wait <= self.keep && (wait <= KEEP_ALWAYS || self.holds_few())
    }

    /// Whether so few targets are held that each may take some room.
    pub(crate) fn holds_few(&self) -> bool {
        self.held.load(Ordering::Relaxed) < MAX_HELD_LONG
    }

    /// Tells whoever waits for events or new targets.
    pub(crate) fn committed(&self, done: &Done) {
        self.polled.send_modify(|polled| *polled += 1);
        self.told(&done.events);
        if !done.touched.is_empty() {
            self.live.replanned();
            self.look.notify_one();
        }
    }

    /// Tells whoever waits for published values.
    pub(crate) fn published(&self, rows: impl IntoIterator<Item = KvRow>) {
        for row in rows {
            if self.store.is_shared() && !self.told_values.is_news(&row) {
                continue;
            }
            // Nobody listening is no failure.
            let _ = self.published.send(row);
        }
    }

    /// Tells whoever waits for events.
    pub(crate) fn told(&self, events: &[Event]) {
        let Some(last) = events.last() else { return };
        self.heard(last.seq);
    }

    /// Tells whoever waits for events that they go up to this number.
    pub(crate) fn heard(&self, seq: u64) {
        self.newest.send_if_modified(|newest| {
            let newer = seq > *newest;
            *newest = (*newest).max(seq);
            newer
        });
    }

    /// Returns when every sink has done what it can for now about everything that was told so far.
    pub(crate) async fn outbox_settled(&self) {
        let newest = *self.newest.borrow();
        let names = self.outlets.names();
        let all = |settled: &BTreeMap<String, u64>| {
            names.iter().all(|name| settled.get(name).is_some_and(|seen| *seen >= newest))
        };
        // The sender lives as long as this: waiting cannot fail.
        let _ = self.settled.subscribe().wait_for(all).await;
    }

    /// A target was given back: if it is due before the claimer means to look, it should look sooner.
    pub(crate) fn given_back(&self, due: Option<Time>) {
        if due.is_some_and(|due| (due - self.ahead).us() < self.next_look_us.load(Ordering::Relaxed)) {
            self.look.notify_one();
        }
    }

    /// A read failed: fatal ones end the engine, passing ones are somebody's warning.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        if error.is_fatal() {
            self.fatal.raise(error.clone());
        }
    }

    /// The names of all sources.
    pub(crate) fn source_names(&self) -> Vec<String> {
        self.lanes.keys().cloned().collect()
    }
}
