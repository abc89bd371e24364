//! A writer in memory beside whoever simulates a day: the next polls are made while the last ones are written.
//!
//! Waking a thread costs more than writing a poll, so nobody sleeps who will be wanted in a moment, and what is asked for in
//! between is done by whoever asks.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::writer::{Group, Job, Writer};
use crate::{Result, StoreError};

/// How often a queue is looked at before its thread goes to sleep, with a pause before each: about as long as a few polls
/// take.
const LOOKS: u32 = 2_000;
const PAUSE: u32 = 16;

/// Polls are written in the order they are handed in; everything else waits for them.
pub(super) struct Beside {
    common: Arc<Common>,
    /// `None` once it is being closed.
    polls: Option<Sender<Group>>,
    /// `None` once it has ended.
    thread: Option<JoinHandle<()>>,
}

struct Common {
    writer: Mutex<Writer>,
    /// Groups handed in and not yet written.
    waiting: AtomicUsize,
}

impl Common {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, polls: &Receiver<Group>) {
        while let Ok(first) = next(polls) {
            let mut groups = vec![first];
            groups.extend(polls.try_iter());
            let written = groups.len();
            self.writer().commit_group(groups);
            self.waiting.fetch_sub(written, Ordering::Release);
        }
    }
}

/// The next group; whoever looks often enough in vain goes to sleep.
fn next(polls: &Receiver<Group>) -> std::result::Result<Group, RecvError> {
    for _ in 0..LOOKS {
        match polls.try_recv() {
            Ok(group) => return Ok(group),
            Err(TryRecvError::Empty) => pause(),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
        }
    }
    polls.recv()
}

fn pause() {
    for _ in 0..PAUSE {
        spin_loop();
    }
}

impl Beside {
    pub(super) fn start(writer: Writer) -> Result<Beside> {
        let common = Arc::new(Common { writer: Mutex::new(writer), waiting: AtomicUsize::new(0) });
        let (polls, queue) = channel();
        let its = Arc::clone(&common);
        let spawned = std::thread::Builder::new().name("store-write".into()).spawn(move || its.run(&queue));
        let thread = spawned.map_err(|e| StoreError::Database {
            doing: "start the writing thread",
            message: e.to_string(),
        })?;
        Ok(Beside { common, polls: Some(polls), thread: Some(thread) })
    }

    pub(super) fn send(&self, job: Job) -> Result<()> {
        match job {
            Job::Commit { polls, reply } => {
                self.common.waiting.fetch_add(1, Ordering::Relaxed);
                let queue = self.polls.as_ref().ok_or(StoreError::Closed)?;
                queue.send((polls, reply)).map_err(|_| StoreError::Closed)
            }
            Job::Work(work) => {
                while self.common.waiting.load(Ordering::Acquire) > 0 {
                    if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                        return Err(StoreError::Closed);
                    }
                    pause();
                }
                work(&mut self.common.writer());
                Ok(())
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.polls = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writing thread ended with a panic");
        }
    }
}
