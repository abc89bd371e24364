//! A word from another process that something changed.

use crate::TargetId;

/// What somebody may want to look at sooner than he would have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Events came about, up to this number.
    Events(u64),
    /// Targets were created, re-planned, switched or removed; of those that existed, these.
    Plans(Vec<TargetId>),
    /// A live setting changed.
    Settings,
    /// Published values changed.
    Values,
    /// Nobody listened for a while: anything may have changed.
    Missed,
}
