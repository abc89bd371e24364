//! One process per database: an advisory lock on `<database>.lock`, whose content says who holds it.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fault;
use crate::{Result, StoreError};

/// Who holds a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The process.
    pub pid: String,
    /// Where it takes commands, when it said so.
    pub socket: Option<PathBuf>,
}

/// Who writes the database at `path` right now; `None` when nobody does. Content left behind by a process that
/// died counts for nothing: the lock itself is asked.
pub fn lock_holder(path: &Path) -> Option<LockInfo> {
    let mut file = File::open(lock_path(path)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(read_info(&mut file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// The lock, held as long as this lives.
#[derive(Debug)]
pub(super) struct ProcessLock {
    file: File,
}

/// `lock_holder` takes the lock for a moment; whoever meets it there tries again.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

impl ProcessLock {
    pub(super) fn take(database: &Path) -> Result<ProcessLock> {
        let path = lock_path(database);
        let options = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(|e| fault::from_io(&e, database))?;
        for attempt in 1..=TRIES {
            match file.try_lock() {
                Ok(()) => {
                    let mut lock = ProcessLock { file };
                    lock.write(None).map_err(|e| fault::from_io(&e, database))?;
                    return Ok(lock);
                }
                Err(TryLockError::WouldBlock) if attempt < TRIES => std::thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(e)) => return Err(fault::from_io(&e, database)),
            }
        }
        let pid = read_info(&mut file).pid;
        Err(StoreError::Locked { path: database.to_owned(), pid })
    }

    /// Says who holds the lock and where it listens.
    pub(super) fn write(&mut self, socket: Option<&Path>) -> std::io::Result<()> {
        let socket = socket.map(|s| s.display().to_string()).unwrap_or_default();
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(format!("{}\n{socket}\n", std::process::id()).as_bytes())
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

fn read_info(file: &mut File) -> LockInfo {
    let mut text = String::new();
    // A holder that has not written yet, or an unreadable file, only costs us the name.
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
    let mut lines = text.lines();
    let pid = lines.next().filter(|pid| !pid.is_empty()).unwrap_or("unknown").to_owned();
    let socket = lines.next().filter(|socket| !socket.is_empty()).map(PathBuf::from);
    LockInfo { pid, socket }
}
