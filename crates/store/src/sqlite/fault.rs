//! What SQLite says, in the store's words.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::StoreError;

/// Why a piece of work failed, before it is known whether one poll or the whole store is to blame.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database said no.
    Sql(rusqlite::Error),
    /// The work itself is wrong: this poll alone is refused.
    Poison(String),
    /// One poll of an unguarded group is to blame: the group has to be tried again, guarded.
    Unguarded,
    /// A stored value is not what we wrote.
    Damaged(String),
    /// Already in the store's words.
    Store(StoreError),
}

/// The result of a piece of work inside the database.
pub(super) type Work<T> = Result<T, Fault>;

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Sql(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Fault {
        Fault::Poison(format!("not storable as JSON: {error}"))
    }
}

impl Fault {
    /// The reason, if only the poll at hand is to blame; otherwise the fault, which concerns the whole store.
    pub(super) fn into_poison(self) -> Result<String, Fault> {
        match self {
            // What is damaged is something that this poll has to read; the others do not.
            Fault::Poison(reason) | Fault::Damaged(reason) => Ok(reason),
            Fault::Sql(error) if blames_values(&error) => Ok(error.to_string()),
            fault => Err(fault),
        }
    }

    /// In the store's words.
    pub(super) fn into_store(self, path: &Path, doing: &'static str) -> StoreError {
        match self {
            Fault::Store(error) => error,
            Fault::Damaged(message) => StoreError::Corrupt { path: path.to_owned(), message },
            Fault::Poison(message) => StoreError::Database { doing, message },
            Fault::Unguarded => StoreError::Database { doing, message: "one poll was refused".to_owned() },
            Fault::Sql(error) => from_sqlite(&error, path, doing),
        }
    }
}

/// Whether the values are at fault, not the file or the disk.
fn blames_values(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(e, _) => {
            matches!(e.code, ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
        }
        rusqlite::Error::ToSqlConversionFailure(_)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..) => true,
        _ => false,
    }
}

/// What a SQLite error means for the store as a whole.
pub(super) fn from_sqlite(error: &rusqlite::Error, path: &Path, doing: &'static str) -> StoreError {
    let message = error.to_string();
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { message },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly { path, message }
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { path, message },
        _ => StoreError::Database { doing, message },
    }
}

/// What an error of the file system means for the store as a whole.
pub(super) fn from_io(error: &std::io::Error, path: &Path) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            StoreError::Full { message: error.to_string() }
        }
        _ => StoreError::ReadOnly { path: path.to_owned(), message: error.to_string() },
    }
}
