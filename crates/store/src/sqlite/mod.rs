//! The embedded store: one file, one writing thread, a few readers beside it.
//!
//! ```text
//! commit ─► queue ─► writing thread ─► one transaction for all that is queued ─► replies
//! reads  ─► queue ─► reading threads, each with its own connection
//! ```
//! One process per file ([`lock_holder`] says which); others may read it with [`SqliteStore::open_read_only`].
//! The threads need no runtime: the store works under any.

mod browse;
mod claim;
mod commit;
mod connect;
mod control;
mod deferred;
mod deliveries;
mod derived;
mod events;
mod fault;
mod history;
mod lock;
mod notifications;
mod prune;
mod read;
mod readers;
mod reconcile;
mod records;
mod rows;
mod store;
mod tokens;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use self::fault::Work;
use self::lock::ProcessLock;
use self::readers::Readers;
use self::writer::{Durability, Job, Tx, Undo, Writer, WriterHandle};
use crate::{Result, StoreError};

pub use self::lock::{LockInfo, lock_holder};
pub use self::writer::Counters;

/// How to open a database.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// How many reading threads.
    pub readers: usize,
    /// Where this process takes commands, for those who find the file locked.
    pub socket: Option<PathBuf>,
    /// Pretends that the disk ends here; for tests.
    #[doc(hidden)]
    pub max_page_count: Option<u32>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { readers: 2, socket: None, max_page_count: None }
    }
}

/// A connection that reads the file at `path`, for whoever moves all of it.
pub(crate) fn reading(path: &Path) -> Result<Connection> {
    connect::reader(path)
}

/// What a failure means for the store.
pub(crate) fn failed(error: &rusqlite::Error, path: &Path, doing: &'static str) -> crate::StoreError {
    fault::from_sqlite(error, path, doing)
}

/// A SQLite database.
///
/// Dropping it waits for what is queued; the file is free afterwards.
#[derive(Debug)]
pub struct SqliteStore {
    // Dropped in this order: readers first, so that the writer's last checkpoint meets nobody; the lock last.
    readers: Option<Readers>,
    writer: Option<Arc<WriterHandle>>,
    path: PathBuf,
    counters: Arc<Counters>,
    lock: Option<Arc<Mutex<ProcessLock>>>,
}

/// What messages call a database without a file.
const IN_MEMORY: &str = ":memory:";

impl SqliteStore {
    /// Opens or creates a database for writing. Whatever an earlier process had claimed is free again.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<SqliteStore> {
        let path = path.as_ref();
        let mut lock = ProcessLock::take(path)?;
        if let Some(socket) = &options.socket {
            lock.write(Some(socket)).map_err(|e| fault::from_io(&e, path))?;
        }
        let conn = connect::writer(path, options.max_page_count)?;
        let store = SqliteStore::with_writer(conn, path, Undo::Possible)?;
        let readers = Readers::start(path, options.readers)?;
        Ok(SqliteStore { readers: Some(readers), lock: Some(Arc::new(Mutex::new(lock))), ..store })
    }

    /// A database in memory, for simulation and tests: nothing is written to any disk.
    pub fn in_memory() -> Result<SqliteStore> {
        SqliteStore::with_writer(connect::memory()?, Path::new(IN_MEMORY), Undo::Possible)
    }

    /// The same without a journal, and with commits put off until somebody reads or is in a hurry
    /// ([`crate::Store::hurry`]), which is quicker: for simulated days, in which nothing ever has to be undone. Should
    /// something have to be, all that follows answers [`StoreError::Corrupt`].
    pub fn in_memory_without_undo() -> Result<SqliteStore> {
        let path = Path::new(IN_MEMORY);
        let conn = connect::memory()?;
        let say = |e| fault::from_sqlite(&e, path, "do without a journal");
        conn.pragma_update(None, "journal_mode", "OFF").map_err(say)?;
        SqliteStore::with_writer(conn, path, Undo::Impossible)
    }

    /// Opens a database for reading, beside the process that writes it. Everything that writes answers
    /// [`StoreError::ReadOnly`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<SqliteStore> {
        let path = path.as_ref();
        let readers = Readers::start(path, 1)?;
        let counters = Arc::default();
        Ok(SqliteStore { readers: Some(readers), writer: None, path: path.to_owned(), counters, lock: None })
    }

    fn with_writer(conn: Connection, path: &Path, undo: Undo) -> Result<SqliteStore> {
        let say = |fault: fault::Fault| fault.into_store(path, "open the database");
        let counters = Arc::<Counters>::default();
        let mut writer = Writer::new(conn, path, undo, Arc::clone(&counters)).map_err(say)?;
        let freed = writer.transaction(Durability::Relaxed, claim::free_all).map_err(say)?;
        if freed > 0 {
            tracing::info!(freed, "claims of an earlier process are free again");
        }
        let writer = Some(match undo {
            Undo::Possible if path == Path::new(IN_MEMORY) => WriterHandle::here(writer),
            Undo::Possible => WriterHandle::start(writer)?,
            Undo::Impossible | Undo::Needed => WriterHandle::deferred(writer),
        });
        let writer = writer.map(Arc::new);
        Ok(SqliteStore { readers: None, writer, path: path.to_owned(), counters, lock: None })
    }

    /// The same database for whoever looks on, with reading threads of its own: the engine does not wait behind what people
    /// ask for. Both write through the one writer; the file is free when both are dropped.
    pub fn for_onlookers(&self) -> Result<SqliteStore> {
        let own = |readers: &Readers| Readers::start(&self.path, readers.count());
        Ok(SqliteStore {
            readers: self.readers.as_ref().map(own).transpose()?,
            writer: self.writer.clone(),
            path: self.path.clone(),
            counters: Arc::clone(&self.counters),
            lock: self.lock.clone(),
        })
    }

    /// Tells those who find the file locked where this process takes commands.
    pub fn set_socket(&self, socket: &Path) -> Result<()> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let mut lock = lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock.write(Some(socket)).map_err(|e| fault::from_io(&e, &self.path))
    }

    /// What the writing thread has done so far.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The database's file; `:memory:` when it has none.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in a transaction of its own on the writing thread.
    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&mut Tx<'_>) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        self.on_writer(doing, move |writer| writer.transaction(durability, work)).await
    }

    async fn on_writer<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Writer) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Work(Box::new(move |writer| {
            let result = work(writer).map_err(|fault| fault.into_store(writer.path(), doing));
            // A receiver that is gone no longer wants to know.
            let _ = reply.send(result);
        }));
        self.writer()?.send(job).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs `work` beside the writer, or on it when the database is in memory.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        let Some(readers) = &self.readers else {
            return self.on_writer(doing, move |writer| work(writer.conn())).await;
        };
        let (reply, answer) = oneshot::channel();
        let path = self.path.clone();
        let job = Box::new(move |conn: &Connection| {
            let _ = reply.send(work(conn).map_err(|fault| fault.into_store(&path, doing)));
        });
        readers.send(job).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn writer(&self) -> Result<&WriterHandle> {
        self.writer.as_deref().ok_or_else(|| StoreError::ReadOnly {
            path: self.path.clone(),
            message: "it was opened for reading".to_owned(),
        })
    }
}
