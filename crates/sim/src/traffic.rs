//! What a simulated upstream has seen, counted and kept, and waiting for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::watch;

use crate::wire::{self, Request};

/// Older requests leave the log first.
const SEEN_MAX: usize = 10_000;
/// Requests to further paths are counted, but their gaps are not.
const PATHS_MAX: usize = 10_000;
/// A test that waits longer than this has failed; it should say so rather than hang.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// One request, as the upstream saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its number at this server, from 1.
    pub n: u64,
    /// Method, as sent.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Headers in the order sent.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
    /// When its last byte was read, by the wall clock.
    pub at: SystemTime,
    /// The same moment on the monotonic clock.
    pub at_instant: Instant,
    /// Requests without a finished answer at that moment, this one included.
    pub in_flight: usize,
}

impl Seen {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        wire::header(&self.headers, name)
    }

    /// When it was seen, in microseconds since the Unix epoch.
    pub fn at_us(&self) -> i64 {
        self.at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
    }
}

/// Totals of a server since it started.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Requests read.
    pub requests: u64,
    /// Acts carried through to their end, faults included; not those whose client left first.
    pub answered: u64,
    /// Connections accepted.
    pub connections: u64,
    /// The most requests ever in flight at once.
    pub max_concurrent: usize,
    /// Times between successive requests, by path with query.
    pub gaps: BTreeMap<String, Gaps>,
}

/// The times between successive requests to one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// How many gaps: one less than requests.
    pub count: u64,
    /// The shortest; zero when there is none.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// Their sum.
    pub total: Duration,
}

impl Gaps {
    /// The mean gap; zero when there is none.
    pub fn mean(&self) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos((self.total.as_nanos() / u128::from(self.count)) as u64)
    }

    fn add(&mut self, gap: Duration) {
        self.min = if self.count == 0 { gap } else { self.min.min(gap) };
        self.max = self.max.max(gap);
        self.total += gap;
        self.count += 1;
    }
}

/// The log of one server, shared between its thread and the test.
pub(crate) struct Traffic {
    log: Mutex<Log>,
    moved: Condvar,
    counts: watch::Sender<Counts>,
}

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) answered: u64,
}

#[derive(Default)]
struct Log {
    counts: Counts,
    connections: u64,
    in_flight: usize,
    max_concurrent: usize,
    seen: VecDeque<Seen>,
    paths: BTreeMap<String, (Instant, Gaps)>,
}

/// A request without a finished answer; dropping it ends that, however the act ended.
pub(crate) struct InFlight(Arc<Traffic>);

impl Traffic {
    pub(crate) fn new() -> Arc<Traffic> {
        let counts = watch::Sender::new(Counts::default());
        Arc::new(Traffic { log: Mutex::default(), moved: Condvar::new(), counts })
    }

    pub(crate) fn connected(&self) {
        self.lock().connections += 1;
    }

    pub(crate) fn begin(self: &Arc<Self>, request: Request) -> (Seen, InFlight) {
        let (at, at_instant) = (SystemTime::now(), Instant::now());
        let mut log = self.lock();
        log.in_flight += 1;
        log.max_concurrent = log.max_concurrent.max(log.in_flight);
        log.counts.requests += 1;
        let Request { method, path, headers, body, .. } = request;
        let (n, in_flight) = (log.counts.requests, log.in_flight);
        let seen = Seen { n, method, path, headers, body, at, at_instant, in_flight };
        log.arrived(&seen);
        self.announce(log);
        (seen, InFlight(Arc::clone(self)))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.lock().seen.iter().cloned().collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        let log = self.lock();
        Stats {
            requests: log.counts.requests,
            answered: log.counts.answered,
            connections: log.connections,
            max_concurrent: log.max_concurrent,
            gaps: log.paths.iter().map(|(path, (_, gaps))| (path.clone(), *gaps)).collect(),
        }
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, reached: impl Fn(Counts) -> bool) {
        let waiting = self.moved.wait_timeout_while(self.lock(), WAIT_MAX, |log| !reached(log.counts));
        let (log, waited) = waiting.unwrap_or_else(PoisonError::into_inner);
        let counts = log.counts;
        drop(log);
        assert!(!waited.timed_out(), "waited {WAIT_MAX:?} for {what}, but saw only {counts:?}");
    }

    pub(crate) async fn until(&self, reached: impl Fn(Counts) -> bool) {
        let mut counts = self.counts.subscribe();
        counts.wait_for(|counts| reached(*counts)).await.expect("the sender lives because self holds it");
    }

    fn announce(&self, log: MutexGuard<'_, Log>) {
        self.counts.send_replace(log.counts);
        drop(log);
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn arrived(&mut self, seen: &Seen) {
        if self.seen.len() == SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(seen.clone());
        if let Some((last, gaps)) = self.paths.get_mut(&seen.path) {
            gaps.add(seen.at_instant - *last);
            *last = seen.at_instant;
        } else if self.paths.len() < PATHS_MAX {
            self.paths.insert(seen.path.clone(), (seen.at_instant, Gaps::default()));
        }
    }
}

impl InFlight {
    pub(crate) fn answered(self) {
        self.0.lock().counts.answered += 1;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut log = self.0.lock();
        log.in_flight -= 1;
        self.0.announce(log);
    }
}
