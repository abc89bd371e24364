//! What PostgreSQL says, in the store's words. A URL's password is in none of them.

use std::error::Error as _;
use std::time::Duration;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// Why a piece of work failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The database said no, or is not there.
    Sql(tokio_postgres::Error),
    /// No connection could be had.
    Pool(PoolError),
    /// A stored value is not what we wrote.
    Damaged(String),
    /// The work itself cannot be written down.
    Unwritable(String),
    /// No answer came in time; what was asked may or may not be done.
    Silent(Duration),
    /// Already in the store's words.
    Store(StoreError),
}

/// The result of a piece of work in the database.
pub(crate) type Work<T> = Result<T, Fault>;

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        Fault::Sql(error)
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Fault {
        match error {
            PoolError::Backend(error) => Fault::Sql(error),
            other => Fault::Pool(other),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Store(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Fault {
        Fault::Unwritable(format!("not storable as JSON: {error}"))
    }
}

/// What our functions raise when the work itself is wrong.
const POISON: &str = "SP001";

/// Classes of errors that would hit any work just as well: connection (08), no such statement, transaction or authority
/// here (25, 26, 28), no such database (3D), in each other's way (40), a schema that is not ours (42), no resources (53), a
/// lock that is not to be had (55), a server that stops or starts (57), a machine in trouble (58), a plan of before
/// somebody changed the schema (0A), a broken configuration (F0).
const OTHERS_FAULT: [&str; 13] =
    ["08", "0A", "25", "26", "28", "3D", "40", "42", "53", "55", "57", "58", "F0"];

impl Fault {
    fn code(&self) -> Option<&SqlState> {
        match self {
            Fault::Sql(error) => error.code(),
            _ => None,
        }
    }

    /// Whether values are at fault, not the database: one poll of the batch is to blame.
    pub(super) fn blames_values(&self) -> bool {
        // Class 22: data exceptions, 23: constraints, 54: too much for a row or an index.
        self.code().map(SqlState::code).is_some_and(|code| {
            code == POISON || ["22", "23", "54"].iter().any(|class| code.starts_with(class))
        })
    }

    /// Whether the work itself is at fault, as far as anybody can tell: the server is there, it is whole, and it said no.
    /// The same thing offered again would fail again, for ever.
    pub(super) fn blames_work(&self) -> bool {
        match self {
            Fault::Unwritable(_) => true,
            Fault::Sql(_) => self.code().map(SqlState::code).is_some_and(|code| {
                // Somebody limits how long a statement may take: there is less to do in a smaller one.
                code == SqlState::QUERY_CANCELED.code()
                    || !OTHERS_FAULT.iter().any(|class| code.starts_with(class))
            }),
            _ => false,
        }
    }

    /// Whether the same thing done again may succeed at once: two transactions were in each other's way.
    pub(super) fn was_in_the_way(&self) -> bool {
        self.code().is_some_and(|code| {
            *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE
        })
    }

    /// What is wrong with the work, for whoever reads the log of polls.
    pub(super) fn reason(&self) -> String {
        match self {
            Fault::Sql(error) => say(error),
            Fault::Damaged(message) | Fault::Unwritable(message) => message.clone(),
            other => format!("{other:?}"),
        }
    }

    /// In the store's words.
    pub(crate) fn into_store(self, doing: &'static str) -> StoreError {
        match self {
            Fault::Store(error) => error,
            Fault::Sql(error) if error.code() == Some(&SqlState::DISK_FULL) => {
                StoreError::Full { message: say(&error) }
            }
            Fault::Sql(error) => StoreError::Database { doing, message: say(&error) },
            Fault::Pool(error) => StoreError::Database { doing, message: format!("no connection: {error}") },
            Fault::Silent(limit) => {
                StoreError::Database { doing, message: format!("no answer within {limit:?}") }
            }
            Fault::Damaged(message) | Fault::Unwritable(message) => StoreError::Database { doing, message },
        }
    }
}

/// The whole of what went wrong: the driver keeps the interesting half in the cause.
pub(super) fn say(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}{detail} [{}]", said.message(), said.code().code());
    }
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
