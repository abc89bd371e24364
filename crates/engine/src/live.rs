//! Live polls: what each poll came to, for whoever looks on at this moment.
//!
//! Of every target only the newest is kept until it is taken, with the sum of what changed and was missed and with those
//! before it that were late or failed: whoever is slow misses steps in between, never the last one and nothing that went
//! wrong, and nobody ever waits. While nobody looks on nothing is kept, and a poll pays for one comparison.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use stakeout_core::adherence::{Cause, Run};
use stakeout_core::{Span, Time};
use stakeout_store::{Done, PollCommit, PollOutcome, Schedule, TargetId};

use crate::poll::Report;

/// Targets whose news may wait to be taken. Those beyond are heard of with their next poll.
const WAITING_MAX: usize = 50_000;
/// Late or failed polls that a newer one brings along, the newest of them; the log has them all.
const EARLIER_MAX: usize = 32;

/// A committed poll, and what is planned after it.
#[derive(Clone, Debug)]
pub struct LivePoll {
    /// The source.
    pub source: Arc<str>,
    /// The target's key.
    pub target: String,
    /// The poll's number, per target.
    pub poll_no: u64,
    /// How it ended.
    pub outcome: PollOutcome,
    /// The failure in words.
    pub error: Option<String>,
    /// The failure's class.
    pub error_class: Option<String>,
    /// When it was due.
    pub due: Time,
    /// When the last answer was whole.
    pub ended: Time,
    /// How long after it was due the first request was sent.
    pub lateness: Span,
    /// Why it was late.
    pub late: Option<Cause>,
    /// Due polls that were missed before it, and before those it stands for.
    pub missed: u64,
    /// Why they were missed.
    pub missed_cause: Option<Cause>,
    /// The phase it belonged to.
    pub phase: String,
    /// Records added, changed or removed, by it and by those it stands for.
    pub changes: u32,
    /// Events that came about, in the same way.
    pub events: u32,
    /// When and why it is polled next.
    pub next: Schedule,
    /// The stretch of regular polling it belongs to.
    pub run: Option<Run>,
    /// When what it watches starts, as far as is known now.
    pub start: Option<Time>,
    /// Polls that it stands for and that were late or failed, the oldest first.
    pub earlier: Vec<EarlierPoll>,
}

/// A late or failed poll that a newer one stands for. What it changed and what was missed before it counts there.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierPoll {
    /// Its number, per target.
    pub poll_no: u64,
    /// How it ended.
    pub outcome: PollOutcome,
    /// The failure's class.
    pub error_class: Option<String>,
    /// When it was due.
    pub due: Time,
    /// When the last answer was whole.
    pub ended: Time,
    /// How long after it was due the first request was sent.
    pub lateness: Span,
    /// Why it was late.
    pub late: Option<Cause>,
}

impl LivePoll {
    pub(crate) fn new(
        due: Time,
        listed: Option<Time>,
        report: &Report,
        commit: &PollCommit,
        done: &Done,
    ) -> LivePoll {
        let log = commit.log.as_ref();
        LivePoll {
            source: Arc::clone(&report.source),
            target: report.target.clone(),
            poll_no: commit.poll_no,
            outcome: commit.outcome,
            error: commit.error.clone(),
            error_class: log.and_then(|log| log.error_class.clone()),
            due,
            ended: commit.now,
            lateness: Span(report.lateness_us),
            late: log.and_then(|log| log.late),
            missed: report.missed,
            missed_cause: log.and_then(|log| log.missed_cause),
            phase: report.phase.clone(),
            changes: report.changes,
            events: report.events,
            next: done.schedule.clone(),
            run: commit.state.run.clone(),
            start: commit.state.facts.start.or(listed),
            earlier: Vec::new(),
        }
    }

    /// What is told of it when it is no longer the newest, if it has to be.
    fn as_earlier(&self) -> Option<EarlierPoll> {
        let notable = self.late.is_some() || self.outcome == PollOutcome::Failed;
        notable.then(|| EarlierPoll {
            poll_no: self.poll_no,
            outcome: self.outcome,
            error_class: self.error_class.clone(),
            due: self.due,
            ended: self.ended,
            lateness: self.lateness,
            late: self.late,
        })
    }

    /// Stands also for one before it, which nobody has taken.
    fn add(&mut self, before: &LivePoll) {
        self.earlier = before.earlier.iter().cloned().chain(before.as_earlier()).collect();
        let surplus = self.earlier.len().saturating_sub(EARLIER_MAX);
        self.earlier.drain(..surplus);
        self.changes += before.changes;
        self.events += before.events;
        self.missed = self.missed.saturating_add(before.missed);
        self.missed_cause = self.missed_cause.or(before.missed_cause);
    }
}

/// What happened since it was last asked.
#[derive(Clone, Debug, Default)]
pub struct PollNews {
    /// The newest poll of each target, in the order in which the targets came.
    pub polls: Vec<LivePoll>,
    /// Whether targets appeared, went or were planned anew by something else than their own poll.
    pub replanned: bool,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<TargetId>,
    polls: HashMap<TargetId, LivePoll>,
    replanned: bool,
}

/// Looks on until it is dropped.
pub struct PollWatch(Arc<Mutex<Waiting>>);

impl PollWatch {
    /// Takes the news of at most `most` targets, those that wait longest; the others go on waiting.
    pub fn take(&self, most: usize) -> PollNews {
        let mut waiting = locked(&self.0);
        let count = waiting.order.len().min(most);
        let first: Vec<TargetId> = waiting.order.drain(..count).collect();
        let polls = first.iter().filter_map(|target| waiting.polls.remove(target)).collect();
        PollNews { polls, replanned: std::mem::take(&mut waiting.replanned) }
    }
}

/// Those who look on.
#[derive(Default)]
pub(crate) struct LivePolls {
    watches: Mutex<Vec<Weak<Mutex<Waiting>>>>,
    watched: AtomicBool,
}

impl LivePolls {
    pub(crate) fn watch(&self) -> PollWatch {
        let mut watches = locked(&self.watches);
        let waiting = Arc::default();
        watches.push(Arc::downgrade(&waiting));
        self.watched.store(true, Ordering::Release);
        PollWatch(waiting)
    }

    /// Keeps a poll for whoever looks on; it is made only if there is somebody.
    pub(crate) fn note(&self, target: TargetId, poll: impl FnOnce() -> LivePoll) {
        if !self.watched.load(Ordering::Acquire) {
            return;
        }
        let poll = poll();
        self.for_each(|waiting| {
            let mut poll = poll.clone();
            match waiting.polls.get(&target) {
                Some(before) => poll.add(before),
                None if waiting.polls.len() >= WAITING_MAX => return,
                None => waiting.order.push_back(target),
            }
            waiting.polls.insert(target, poll);
        });
    }

    /// Plans are others than their own polls made them.
    pub(crate) fn replanned(&self) {
        if self.watched.load(Ordering::Acquire) {
            self.for_each(|waiting| waiting.replanned = true);
        }
    }

    fn for_each(&self, mut tell: impl FnMut(&mut Waiting)) {
        let mut watches = locked(&self.watches);
        watches.retain(|watch| {
            let Some(waiting) = watch.upgrade() else { return false };
            tell(&mut locked(&waiting));
            true
        });
        self.watched.store(!watches.is_empty(), Ordering::Release);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("never poisoned, because nothing panics while it is held")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(target: &str, poll_no: u64) -> LivePoll {
        LivePoll {
            source: Arc::from("s"),
            target: target.to_owned(),
            poll_no,
            outcome: PollOutcome::Unchanged,
            error: None,
            error_class: None,
            due: Time(0),
            ended: Time(0),
            lateness: Span::ZERO,
            late: None,
            missed: 0,
            missed_cause: None,
            phase: String::new(),
            changes: 0,
            events: 0,
            next: Schedule::default(),
            run: None,
            start: None,
            earlier: vec![],
        }
    }

    fn taken(news: PollNews) -> Vec<(String, u64)> {
        news.polls.into_iter().map(|poll| (poll.target, poll.poll_no)).collect()
    }

    #[test]
    fn the_newest_poll_of_each_target_waits_and_whoever_came_first_is_taken_first() {
        let live = LivePolls::default();
        live.note(TargetId(1), || panic!("nobody looks on, so nothing is made"));
        let watch = live.watch();
        for (target, name, poll_no) in [(2, "b", 1), (1, "a", 1), (3, "c", 1), (2, "b", 2)] {
            live.note(TargetId(target), || LivePoll { changes: 2, ..poll(name, poll_no) });
        }
        live.replanned();
        let news = watch.take(2);
        assert!(news.replanned);
        assert_eq!(news.polls[0].changes, 4, "what the one before found is not lost");
        assert_eq!(taken(news), [("b".to_owned(), 2), ("a".to_owned(), 1)]);
        live.note(TargetId(2), || poll("b", 3));
        let news = watch.take(9);
        assert!(!news.replanned, "it is said once");
        assert_eq!(taken(news), [("c".to_owned(), 1), ("b".to_owned(), 3)]);
        drop(watch);
        live.replanned();
        live.note(TargetId(1), || panic!("nobody looks on any more"));
    }

    #[test]
    fn what_was_late_or_failed_is_told_of_though_a_newer_poll_came_first() {
        let live = LivePolls::default();
        let watch = live.watch();
        let target = TargetId(1);
        live.note(target, || LivePoll { late: Some(Cause::Queue), ..poll("a", 1) });
        live.note(target, || poll("a", 2));
        live.note(target, || LivePoll { outcome: PollOutcome::Failed, ..poll("a", 3) });
        live.note(target, || poll("a", 4));
        let news = watch.take(9).polls.remove(0);
        assert_eq!((news.poll_no, news.outcome, news.late), (4, PollOutcome::Unchanged, None));
        let earlier: Vec<_> = news.earlier.iter().map(|one| (one.poll_no, one.outcome, one.late)).collect();
        assert_eq!(
            earlier,
            [(1, PollOutcome::Unchanged, Some(Cause::Queue)), (3, PollOutcome::Failed, None)]
        );
        for poll_no in 5..=200 {
            live.note(target, || LivePoll { outcome: PollOutcome::Failed, ..poll("a", poll_no) });
        }
        let news = watch.take(9).polls.remove(0);
        assert_eq!(
            (news.earlier.len(), news.earlier.last().map(|one| one.poll_no)),
            (EARLIER_MAX, Some(199))
        );
    }
}
