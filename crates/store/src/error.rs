//! What can go wrong with a store as a whole. What is wrong with one poll is a [`crate::CommitOutcome`].

use std::path::PathBuf;

use crate::TargetId;

/// A store that cannot do what was asked. Nothing was written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process writes this file.
    #[error(
        "{path} is in use by process {pid}: only one process may write it. Stop that process, or send it the command through its control socket"
    )]
    Locked {
        /// The database.
        path: PathBuf,
        /// Who holds it, as far as the lock file says.
        pid: String,
    },
    /// Written by a newer version.
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}: use a newer stakeout, or restore a backup made before the upgrade"
    )]
    TooNew {
        /// What the file says.
        found: u32,
        /// What we know.
        known: u32,
    },
    /// The file or its directory cannot be written.
    #[error(
        "cannot write {path}: {message}. Check its owner and permissions, and that the file system is not mounted read-only"
    )]
    ReadOnly {
        /// The database.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// No space left.
    #[error("the disk is full: {message}. Nothing was lost; free some space and start again")]
    Full {
        /// What the system said.
        message: String,
    },
    /// The file is damaged or no database at all.
    #[error(
        "{path} is damaged or not a Stakeout database: {message}. Restore it from a backup, or move it away to start afresh"
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        message: String,
    },
    /// There is no database there.
    #[error(
        "there is no database at {path}: run `stakeout run` or `stakeout poll` first, or correct store.url"
    )]
    Missing {
        /// Where one was expected.
        path: PathBuf,
    },
    /// Asked for something that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Asked to poll what somebody switched off.
    #[error("target {0} is switched off: enable it first, which also makes it due")]
    SwitchedOff(TargetId),
    /// The database failed in another way.
    #[error("database error while trying to {doing}: {message}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What the database said.
        message: String,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether trying again cannot help: the process should stop with this error.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, StoreError::Database { .. } | StoreError::NotFound(_) | StoreError::SwitchedOff(_))
    }
}
