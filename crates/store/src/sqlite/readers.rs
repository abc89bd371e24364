//! Readers in parallel with the one writer: a few threads, each with its own read-only connection.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::connect;
use crate::{Result, StoreError};

/// A piece of reading.
pub(super) type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

/// How many reads may wait; beyond that, whoever asks waits.
const QUEUE: usize = 1_024;

/// The reading threads. They have no runtime of their own and need none.
#[derive(Debug)]
pub(super) struct Readers {
    jobs: Option<mpsc::Sender<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(path: &Path, count: usize) -> Result<Readers> {
        let (jobs, queue) = mpsc::channel::<ReadJob>(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(count);
        for n in 0..count.max(1) {
            let conn = connect::reader(path)?;
            let queue = Arc::clone(&queue);
            let body = move || {
                // The lock is held while waiting for a job, never while doing it.
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                while let Some(job) = next() {
                    job(&conn);
                }
            };
            let thread = std::thread::Builder::new().name(format!("store-read-{n}")).spawn(body);
            threads.push(thread.map_err(|e| StoreError::Database {
                doing: "start a reading thread",
                message: e.to_string(),
            })?);
        }
        Ok(Readers { jobs: Some(jobs), threads })
    }

    /// How many threads there are.
    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }

    pub(super) async fn send(&self, job: ReadJob) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has already failed its caller.
            let _ = thread.join();
        }
    }
}
