//! The one thread that writes, and how it makes many polls share one transaction.
//!
//! **Group commit:** while a transaction is being written, further commits queue up; the next transaction takes all
//! of them. Nobody ever waits for company. A poll that is to blame for a fault harms no other: then the group is written
//! again with a savepoint for each.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::commit::{self, Guard};
use super::deferred::Deferred;
use super::fault::{Fault, Work};
use super::prune::Cursor;
use super::records::Numbers;
use crate::{CommitOutcome, PollCommit, Result, StoreError};

/// How many jobs may wait; beyond that, whoever asks waits.
const QUEUE: usize = 1_024;

/// At most about so many polls share a transaction, so that none waits long for the others.
pub(super) const GROUP_POLLS_MAX: usize = 1_000;

type Reply = oneshot::Sender<Result<Vec<CommitOutcome>>>;

/// Polls handed in together, and where the answer goes.
pub(super) type Group = (Vec<Arc<PollCommit>>, Reply);

/// What the writing thread is asked to do.
pub(super) enum Job {
    /// Commit polls; may share a transaction with others.
    Commit { polls: Vec<Arc<PollCommit>>, reply: Reply },
    /// Anything else, alone.
    Work(Box<dyn FnOnce(&mut Writer) + Send>),
}

/// What the writing thread has done, for tests and metrics.
#[derive(Debug, Default)]
pub struct Counters {
    transactions: AtomicU64,
    durable: AtomicU64,
    polls: AtomicU64,
    rows: AtomicU64,
}

impl Counters {
    /// Transactions committed.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }
    /// Of these, the ones that waited for the disk.
    pub fn durable_transactions(&self) -> u64 {
        self.durable.load(Ordering::Relaxed)
    }
    /// Polls offered for commit.
    pub fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }
    /// Rows inserted, updated or deleted.
    pub fn rows_written(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// Whether a transaction must be on the disk before anybody hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Losing it with the power costs nothing but a poll: due times, leases, deliveries made.
    Relaxed,
    /// It carries something that was told or cannot be seen again.
    Synced,
}

/// Whether a transaction that fails can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// As if it had never been.
    Possible,
    /// There is no journal: then it is the end.
    Impossible,
    /// It was the end.
    Needed,
}

/// The writing thread's own state.
pub(super) struct Writer {
    conn: Connection,
    path: PathBuf,
    /// The commit sequence: the newest number handed out.
    seq: u64,
    synced: Option<Durability>,
    undo: Undo,
    numbers: Numbers,
    counters: Arc<Counters>,
    /// Where pruning left off.
    pub(super) cursor: Cursor,
}

/// An open transaction.
pub(super) struct Tx<'a> {
    /// For statements.
    pub(super) conn: &'a Connection,
    /// Where records were found before.
    pub(super) numbers: &'a mut Numbers,
    seq: &'a mut u64,
}

impl Tx<'_> {
    /// The next number of the commit sequence; given back if the work is rolled back.
    pub(super) fn next_seq(&mut self) -> u64 {
        *self.seq += 1;
        *self.seq
    }

    /// Runs `work` so that a fault undoes all of it and nothing else.
    pub(super) fn savepoint<T>(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Work<T>) -> Work<T> {
        let before = *self.seq;
        self.conn.prepare_cached("SAVEPOINT one")?.execute([])?;
        let result = work(self);
        if result.is_err() {
            *self.seq = before;
            // After some errors SQLite has rolled back everything by itself: then there is nothing left to undo.
            if !self.conn.is_autocommit() {
                self.conn.prepare_cached("ROLLBACK TO one")?.execute([])?;
            }
        }
        if !self.conn.is_autocommit() {
            self.conn.prepare_cached("RELEASE one")?.execute([])?;
        }
        result
    }
}

impl Writer {
    pub(super) fn new(conn: Connection, path: &Path, undo: Undo, counters: Arc<Counters>) -> Work<Writer> {
        let seq: i64 = conn.query_row("SELECT value FROM meta WHERE key = 'seq'", [], |row| row.get(0))?;
        // A database in memory has no disk to wait for.
        let in_memory = conn.path().is_none_or(str::is_empty);
        let synced = (!in_memory).then_some(Durability::Synced);
        let path = path.to_owned();
        let (numbers, cursor) = (Numbers::default(), Cursor::default());
        Ok(Writer { conn, path, seq: seq as u64, synced, undo, numbers, counters, cursor })
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.conn
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in a transaction: all of it is in, or nothing.
    pub(super) fn transaction<T>(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&mut Tx<'_>) -> Work<T>,
    ) -> Work<T> {
        if self.undo == Undo::Needed {
            let message =
                "a transaction failed before, and nothing can be undone in a database without a journal";
            return Err(Fault::Damaged(message.to_owned()));
        }
        self.set_durability(durability)?;
        let before = self.seq;
        let changes = self.conn.total_changes();
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut tx = Tx { conn: &self.conn, numbers: &mut self.numbers, seq: &mut self.seq };
        let result = work(&mut tx).and_then(|value| {
            if self.seq != before {
                self.conn
                    .prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'seq'")?
                    .execute([self.seq as i64])?;
            }
            self.conn.prepare_cached("COMMIT")?.execute([])?;
            Ok(value)
        });
        match &result {
            Ok(_) => {
                self.counters.transactions.fetch_add(1, Ordering::Relaxed);
                self.counters
                    .durable
                    .fetch_add(u64::from(durability == Durability::Synced), Ordering::Relaxed);
                self.counters.rows.fetch_add(self.conn.total_changes() - changes, Ordering::Relaxed);
            }
            Err(_) => {
                self.seq = before;
                match self.undo {
                    Undo::Possible if self.conn.is_autocommit() => {}
                    Undo::Possible => self.conn.execute_batch("ROLLBACK")?,
                    Undo::Impossible | Undo::Needed => self.undo = Undo::Needed,
                }
            }
        }
        result
    }

    fn set_durability(&mut self, durability: Durability) -> Work<()> {
        if self.synced.is_none_or(|now| now == durability) {
            return Ok(());
        }
        let mode = match durability {
            Durability::Relaxed => "NORMAL",
            Durability::Synced => "FULL",
        };
        self.conn.pragma_update(None, "synchronous", mode)?;
        self.synced = Some(durability);
        Ok(())
    }

    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut next = jobs.blocking_recv();
        while let Some(job) = next.take() {
            match job {
                Job::Work(work) => work(&mut self),
                Job::Commit { polls, reply } => {
                    let mut size = polls.len();
                    let mut group = vec![(polls, reply)];
                    while size < GROUP_POLLS_MAX && next.is_none() {
                        match jobs.try_recv() {
                            Ok(Job::Commit { polls, reply }) => {
                                size += polls.len();
                                group.push((polls, reply));
                            }
                            Ok(other) => next = Some(other),
                            Err(_) => break,
                        }
                    }
                    self.commit_group(group);
                }
            }
            if next.is_none() {
                next = jobs.blocking_recv();
            }
        }
    }

    fn try_group(
        &mut self,
        durability: Durability,
        group: &[Group],
        guard: Guard,
    ) -> Work<Vec<Vec<CommitOutcome>>> {
        self.transaction(durability, |tx| {
            let one_job = |(polls, _): &Group| {
                polls
                    .iter()
                    .map(|poll| commit::commit_poll(tx, poll, guard))
                    .collect::<Work<Vec<CommitOutcome>>>()
            };
            group.iter().map(one_job).collect()
        })
    }

    pub(super) fn commit_group(&mut self, group: Vec<Group>) {
        let all = || group.iter().flat_map(|(polls, _)| polls);
        let durability =
            if all().any(|poll| poll.brings_news()) { Durability::Synced } else { Durability::Relaxed };
        self.counters.polls.fetch_add(all().count() as u64, Ordering::Relaxed);
        let result = match self.try_group(durability, &group, Guard::None) {
            Err(Fault::Unguarded) => self.try_group(durability, &group, Guard::Savepoints),
            result => result,
        };
        // A receiver that is gone no longer wants to know.
        match result {
            Ok(outcomes) => {
                for ((polls, reply), outcomes) in group.into_iter().zip(outcomes) {
                    // Let go of first, so that whoever asked has them to itself again.
                    drop(polls);
                    let _ = reply.send(Ok(outcomes));
                }
            }
            Err(fault) => {
                let error = fault.into_store(&self.path, "commit polls");
                for (_, reply) in group {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

/// The way to the writer.
pub(super) enum WriterHandle {
    /// On a thread of its own.
    Thread {
        /// `None` once it is being closed.
        jobs: Option<mpsc::Sender<Job>>,
        /// `None` once it has ended.
        thread: Option<JoinHandle<()>>,
    },
    /// On whichever thread asks: a database in memory never waits for a disk, and a simulated day asks ten thousand
    /// times.
    Here(Box<Mutex<Writer>>),
    /// The same, and polls only when somebody needs them written.
    Deferred(Box<Deferred>),
}

impl std::fmt::Debug for WriterHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            WriterHandle::Thread { .. } => "WriterHandle::Thread",
            WriterHandle::Here(_) => "WriterHandle::Here",
            WriterHandle::Deferred(_) => "WriterHandle::Deferred",
        })
    }
}

impl WriterHandle {
    pub(super) fn here(writer: Writer) -> WriterHandle {
        WriterHandle::Here(Box::new(Mutex::new(writer)))
    }

    pub(super) fn deferred(writer: Writer) -> WriterHandle {
        WriterHandle::Deferred(Box::new(Deferred::new(writer)))
    }

    pub(super) fn start(writer: Writer) -> Result<WriterHandle> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let spawned = std::thread::Builder::new().name("store-write".into()).spawn(move || writer.run(queue));
        let thread = spawned.map_err(|e| StoreError::Database {
            doing: "start the writing thread",
            message: e.to_string(),
        })?;
        Ok(WriterHandle::Thread { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Whoever waits for polls that were handed in has nothing else to do.
    pub(super) fn hurry(&self) {
        if let WriterHandle::Deferred(deferred) = self {
            deferred.write();
        }
    }

    pub(super) async fn send(&self, job: Job) -> Result<()> {
        match self {
            WriterHandle::Thread { jobs, .. } => {
                let jobs = jobs.as_ref().ok_or(StoreError::Closed)?;
                jobs.send(job).await.map_err(|_| StoreError::Closed)
            }
            WriterHandle::Here(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                match job {
                    Job::Work(work) => work(&mut writer),
                    Job::Commit { polls, reply } => writer.commit_group(vec![(polls, reply)]),
                }
                Ok(())
            }
            WriterHandle::Deferred(deferred) => {
                deferred.send(job);
                Ok(())
            }
        }
    }
}

/// Waits for everything that was queued, so that whoever opens the file next finds it.
impl Drop for WriterHandle {
    fn drop(&mut self) {
        let WriterHandle::Thread { jobs, thread } = self else { return };
        *jobs = None;
        if let Some(thread) = thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the writing thread ended with a panic");
        }
    }
}

impl Fault {
    /// Whether the poll at hand is to blame: then its outcome, otherwise the fault.
    pub(super) fn into_outcome(self) -> Work<CommitOutcome> {
        self.into_poison().map(CommitOutcome::Poisoned)
    }
}
