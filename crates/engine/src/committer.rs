//! The committer: gathers finished polls and commits them together.
//!
//! There is one flush at a time. What arrives meanwhile makes up the next batch, so a poll waits for company only
//! while somebody else's transaction is under way. In virtual time a batch is flushed when everything is at rest,
//! in (due, target) order, so that the event log does not depend on who was faster.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use stakeout_core::adherence::LatenessHistogram;
use stakeout_core::{Span, Time};
use stakeout_store::{CommitOutcome, PollCommit, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tracing::warn;

use crate::clock::Clock;
use crate::fatal::Fatal;

/// The most polls in one transaction.
const MAX_BATCH: usize = 512;
/// The most polls waiting; more make their pollers wait, which slows polling down instead of filling memory.
const MAX_WAITING: usize = 4_096;
/// How long polls that brought nothing wait for company.
const COMPANY: Duration = Duration::from_millis(2);
/// How often a batch is tried when the database has a passing fault. A server that others use, too, comes back, and
/// whether the polls still count is decided then: there the tries do not end.
const MAX_TRIES: u32 = 8;
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

struct Waiting {
    due: Time,
    poll: Arc<PollCommit>,
    answer: oneshot::Sender<CommitOutcome>,
}

/// How long commits took, in real time.
#[derive(Debug, Default)]
pub(crate) struct CommitTimes(Mutex<(LatenessHistogram, Duration)>);

impl CommitTimes {
    fn record(&self, took: Duration) {
        let mut times = self.0.lock().expect("never poisoned, because nothing panics while it is held");
        times.0.record(Span::from_std(took));
        times.1 += took;
    }

    /// The histogram and the sum.
    pub(crate) fn read(&self) -> (LatenessHistogram, Duration) {
        self.0.lock().expect("never poisoned, because nothing panics while it is held").clone()
    }
}

/// Where finished polls are handed in.
#[derive(Clone)]
pub(crate) struct Committer {
    waiting: mpsc::Sender<Waiting>,
    clock: Clock,
}

impl Committer {
    /// Starts the committing task; it ends when every handle is gone and everything handed in is committed.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Clock,
        fatal: Fatal,
        times: Arc<CommitTimes>,
    ) -> (Committer, tokio::task::JoinHandle<()>) {
        let (handle, waiting) = mpsc::channel(MAX_WAITING);
        let its = Arc::downgrade(&store);
        clock.when_held_up(move || its.upgrade().iter().for_each(|store| store.hurry()));
        let flush = Flush { store, fatal, times };
        let task = match clock.is_virtual() {
            true => tokio::spawn(run_at_rest(flush, clock.clone(), waiting)),
            false => tokio::spawn(run(flush, waiting)),
        };
        (Committer { waiting: handle, clock }, task)
    }

    /// Polls that wait to be committed.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.max_capacity() - self.waiting.capacity()
    }

    /// Commits a poll. `None` when the store is not available. Virtual time does not reach `stop` before that is done.
    pub(crate) async fn commit(&self, due: Time, poll: Arc<PollCommit>, stop: Time) -> Option<CommitOutcome> {
        let _not_beyond = self.clock.not_beyond(stop);
        let (answer, outcome) = oneshot::channel();
        self.waiting.send(Waiting { due, poll, answer }).await.ok()?;
        outcome.await.ok()
    }
}

async fn run(flush: Flush, mut waiting: mpsc::Receiver<Waiting>) {
    while let Some(first) = waiting.recv().await {
        let mut batch = vec![first];
        gather(&mut batch, &mut waiting, MAX_BATCH);
        if batch.iter().all(|w| w.poll.is_quiet()) {
            // Nobody waits for a schedule: a moment later there is company, and one transaction for all of it.
            tokio::time::sleep(COMPANY).await;
            gather(&mut batch, &mut waiting, MAX_BATCH);
        }
        flush.now(batch).await;
    }
}

/// In virtual time all that happened at one instant goes in together, so that its order is fixed. Nobody waits for the store
/// here: whoever asks it for something later is answered later, and time waits for whatever may follow.
async fn run_at_rest(flush: Flush, clock: Clock, mut waiting: mpsc::Receiver<Waiting>) {
    let flush = Arc::new(flush);
    let mut under_way = JoinSet::new();
    while let Some(first) = waiting.recv().await {
        let mut batch = vec![first];
        clock.quiescence().await;
        gather(&mut batch, &mut waiting, usize::MAX);
        batch.sort_by_key(|w| (w.due, w.poll.target));
        let flush = Arc::clone(&flush);
        let mut flushing = Box::pin(async move { flush.now(batch).await });
        // The store has it when this returns; only its answer may be still to come.
        if poll_fn(|context| Poll::Ready(flushing.as_mut().poll(context).is_pending())).await {
            under_way.spawn(flushing);
        }
        while under_way.try_join_next().is_some() {}
    }
    while under_way.join_next().await.is_some() {}
}

fn gather(batch: &mut Vec<Waiting>, waiting: &mut mpsc::Receiver<Waiting>, most: usize) {
    while batch.len() < most
        && let Ok(next) = waiting.try_recv()
    {
        batch.push(next);
    }
}

/// How a batch gets into the store.
struct Flush {
    store: Arc<dyn Store>,
    fatal: Fatal,
    times: Arc<CommitTimes>,
}

impl Flush {
    async fn now(&self, batch: Vec<Waiting>) {
        let began = Instant::now();
        self.until_it_is_in(batch).await;
        self.times.record(began.elapsed());
    }

    async fn until_it_is_in(&self, batch: Vec<Waiting>) {
        let Flush { store, fatal, .. } = self;
        let (polls, answers): (Vec<_>, Vec<_>) = batch.into_iter().map(|w| (w.poll, w.answer)).unzip();
        let mut pause = Duration::from_millis(50);
        let tries = if store.is_shared() { u32::MAX } else { MAX_TRIES };
        for _ in 0..tries {
            match store.commit(polls.clone()).await {
                Ok(outcomes) => {
                    // Let go of first, so that the pollers have their polls to themselves again.
                    drop(polls);
                    for (answer, outcome) in answers.into_iter().zip(outcomes) {
                        // Whoever asked may have been stopped meanwhile; the commit stands.
                        let _ = answer.send(outcome);
                    }
                    return;
                }
                Err(error) if error.is_fatal() => return fatal.raise(error),
                Err(error) => {
                    // Committing again is safe: what is in already is recognised.
                    warn!(%error, polls = polls.len(), "commit failed, trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    if store.is_shared() {
                        pause = pause.min(LONGEST_PAUSE);
                    }
                }
            }
        }
        fatal.raise(StoreError::Database {
            doing: "commit polls",
            message: format!("no success in {MAX_TRIES} tries"),
        });
    }
}
