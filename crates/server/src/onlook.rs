//! Looking on: numbers as they change, for streams that ask for them with `polls=`.
//!
//! None of it is in the log, so none of it has an `id:`. Of each target only the newest poll is told, at most once per
//! [`FLUSH_EVERY`]; a flush is one place in a ring of its own, however many targets it tells of, so that those who only
//! want events are not even woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use stakeout_core::Time;
use stakeout_engine::{Control, EarlierPoll, LivePoll, PollWatch};
use tokio::sync::broadcast;

use crate::problem::Problem;
use crate::sources::Pulse;
use crate::stream::frame;
use crate::targets::{Stretch, ms};

/// How often polls are told.
pub(crate) const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// How often the pulse of the sources is told.
pub(crate) const PULSE_EVERY: Duration = Duration::from_secs(1);
/// Flushes and pulses that may wait for a slow client: ten seconds of them.
const RING: usize = 64;
/// Targets told of at once; the others wait for the next time.
const FLUSH_MAX: usize = 1_000;

/// Which polls a stream wants to hear of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum PollWants {
    #[default]
    None,
    All,
    Source(String),
    Target(String, String),
}

impl PollWants {
    pub(crate) fn parse(text: Option<&str>) -> Result<PollWants, Problem> {
        Ok(match text {
            None | Some("none") => PollWants::None,
            Some("all") => PollWants::All,
            Some("") => {
                return Err(Problem::bad_input(
                    "polls: expected all, none, a source or source/key, found nothing",
                ));
            }
            Some(text) => match text.split_once('/') {
                Some((source, key)) => PollWants::Target(source.to_owned(), key.to_owned()),
                None => PollWants::Source(text.to_owned()),
            },
        })
    }
}

/// A poll as it is told.
#[derive(Serialize)]
struct PollView<'a> {
    source: &'a str,
    target: &'a str,
    poll_no: u64,
    outcome: &'static str,
    error: Option<&'a str>,
    error_class: Option<&'a str>,
    due: Time,
    sent: Time,
    ended: Time,
    lateness_ms: f64,
    late: Option<&'static str>,
    missed: u64,
    missed_cause: Option<&'static str>,
    changes: u32,
    events: u32,
    next_due: Option<Time>,
    phase: &'a str,
    interval_ms: i64,
    reason: &'a str,
    run: Option<Stretch>,
    start: Option<Time>,
    earlier: Vec<EarlierView<'a>>,
}

/// A late or failed poll that the one above stands for.
#[derive(Serialize)]
struct EarlierView<'a> {
    poll_no: u64,
    outcome: &'static str,
    error_class: Option<&'a str>,
    due: Time,
    sent: Time,
    ended: Time,
    lateness_ms: f64,
    late: Option<&'static str>,
}

impl<'a> EarlierView<'a> {
    fn new(poll: &'a EarlierPoll) -> EarlierView<'a> {
        EarlierView {
            poll_no: poll.poll_no,
            outcome: poll.outcome.name(),
            error_class: poll.error_class.as_deref(),
            due: poll.due,
            sent: poll.due + poll.lateness,
            ended: poll.ended,
            lateness_ms: ms(poll.lateness),
            late: poll.late.map(|cause| cause.name()),
        }
    }
}

impl<'a> PollView<'a> {
    fn new(poll: &'a LivePoll) -> PollView<'a> {
        PollView {
            source: &poll.source,
            target: &poll.target,
            poll_no: poll.poll_no,
            outcome: poll.outcome.name(),
            error: poll.error.as_deref(),
            error_class: poll.error_class.as_deref(),
            due: poll.due,
            sent: poll.due + poll.lateness,
            ended: poll.ended,
            lateness_ms: ms(poll.lateness),
            late: poll.late.map(|cause| cause.name()),
            missed: poll.missed,
            missed_cause: poll.missed_cause.map(|cause| cause.name()),
            changes: poll.changes,
            events: poll.events,
            next_due: poll.next.due,
            phase: &poll.next.phase,
            interval_ms: poll.next.interval.as_ms(),
            reason: &poll.next.reason,
            run: poll.run.as_ref().map(Stretch::from),
            start: poll.start,
            earlier: poll.earlier.iter().map(EarlierView::new).collect(),
        }
    }
}

/// The polls of a moment, written out: for those who want all, and one by one.
#[derive(Debug)]
pub(crate) struct Flush {
    all: Bytes,
    each: Vec<(Arc<str>, String, Bytes)>,
    /// Plans changed by other means: whoever looks on had better read the targets again.
    replanned: Option<Bytes>,
}

impl Flush {
    /// What a stream wants of it.
    pub(crate) fn wanted(&self, wants: &PollWants) -> Vec<Bytes> {
        let matching = |is: &dyn Fn(&str, &str) -> bool| {
            let found = self.each.iter().filter(|(source, target, _)| is(source, target));
            found.map(|(_, _, bytes)| bytes.clone()).collect::<Vec<Bytes>>()
        };
        let mut bytes = match wants {
            PollWants::None => return Vec::new(),
            PollWants::All if self.all.is_empty() => Vec::new(),
            PollWants::All => vec![self.all.clone()],
            PollWants::Source(wanted) => matching(&|source, _| source == wanted),
            PollWants::Target(wanted, key) => matching(&|source, target| source == wanted && target == key),
        };
        bytes.extend(self.replanned.clone());
        bytes
    }
}

/// The engine and its sources in numbers.
#[derive(Serialize)]
struct PulseView {
    now: Time,
    speed: Option<f64>,
    held: u64,
    committing: u64,
    streams: u64,
    sources: Vec<SourcePulse>,
}

#[derive(Serialize)]
struct SourcePulse {
    name: String,
    vitals: Pulse,
}

/// The pulse of everything, written out.
pub(crate) fn pulse(control: &Control, streams: usize) -> Bytes {
    let vitals = control.vitals();
    let source = |vitals: &stakeout_engine::SourceVitals| SourcePulse {
        name: vitals.name.clone(),
        vitals: Pulse::new(Some(vitals)),
    };
    frame::untold(
        "pulse",
        &PulseView {
            now: control.clock().now(),
            speed: control.clock().speed(),
            held: vitals.held,
            committing: vitals.committing,
            streams: streams as u64,
            sources: vitals.sources.iter().map(source).collect(),
        },
    )
}

/// Something to see, already written out.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    Polls(Arc<Flush>),
    Pulse(Bytes),
}

/// Those who look on, and the engine's polls while there is one of them.
pub(crate) struct Onlookers {
    count: Arc<AtomicUsize>,
    watch: Mutex<Option<PollWatch>>,
    ring: broadcast::Sender<Look>,
}

/// A stream that looks on; no longer when dropped.
pub(crate) struct Onlooker {
    count: Arc<AtomicUsize>,
    pub(crate) looks: broadcast::Receiver<Look>,
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Default for Onlookers {
    fn default() -> Onlookers {
        Onlookers { count: Arc::default(), watch: Mutex::default(), ring: broadcast::channel(RING).0 }
    }
}

impl Onlookers {
    /// From now on nothing is missed.
    pub(crate) fn join(&self, control: &Control) -> Onlooker {
        let mut watch = self.locked();
        self.count.fetch_add(1, Ordering::AcqRel);
        watch.get_or_insert_with(|| control.watch_polls());
        Onlooker { count: Arc::clone(&self.count), looks: self.ring.subscribe() }
    }

    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Tells of the polls since the last time.
    pub(crate) fn flush(&self) {
        if let Some(flush) = self.taken() {
            // Nobody listening is no failure, here and below.
            let _ = self.ring.send(Look::Polls(Arc::new(flush)));
        }
    }

    /// Tells how everything is doing.
    pub(crate) fn pulse(&self, control: &Control, streams: usize) {
        let _ = self.ring.send(Look::Pulse(pulse(control, streams)));
    }

    /// What happened since the last time, if anything did; the engine is left alone when nobody looks on any more.
    fn taken(&self) -> Option<Flush> {
        let mut watch = self.locked();
        if !self.any() {
            *watch = None;
        }
        let news = watch.as_ref()?.take(FLUSH_MAX);
        drop(watch);
        if news.polls.is_empty() && !news.replanned {
            return None;
        }
        let mut all = BytesMut::new();
        let mut each = Vec::with_capacity(news.polls.len());
        for poll in news.polls {
            let bytes = frame::untold("poll", &PollView::new(&poll));
            all.extend_from_slice(&bytes);
            each.push((poll.source, poll.target, bytes));
        }
        let replanned = news.replanned.then(|| frame::untold("targets", &serde_json::json!({})));
        Some(Flush { all: all.freeze(), each, replanned })
    }

    fn locked(&self) -> MutexGuard<'_, Option<PollWatch>> {
        self.watch.lock().expect("never poisoned, because nothing panics while it is held")
    }
}
