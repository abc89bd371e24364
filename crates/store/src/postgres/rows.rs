//! Between columns and the words of the model.

use stakeout_core::{ContentHash, EventId, Fingerprint, Snapshot, Span, TargetSpec, Time};
use tokio_postgres::Row;

use super::fault::{Fault, Work};
use crate::{Schedule, TargetState};

pub(super) fn time(row: &Row, column: &str) -> Work<Time> {
    Ok(Time(row.try_get(column)?))
}

pub(super) fn opt_time(row: &Row, column: &str) -> Work<Option<Time>> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Time))
}

pub(super) fn number(row: &Row, column: &str) -> Work<u64> {
    Ok(row.try_get::<_, i64>(column)? as u64)
}

/// A small number; what does not fit was not written by us.
pub(super) fn small(row: &Row, column: &str) -> Work<u32> {
    let number: i64 = row.try_get(column)?;
    u32::try_from(number).map_err(|_| Fault::Damaged(format!("column {column}: {number}")))
}

fn sixteen(bytes: &[u8], column: &str) -> Work<[u8; 16]> {
    bytes.try_into().map_err(|_| Fault::Damaged(format!("column {column}: a hash of {} bytes", bytes.len())))
}

pub(super) fn print(row: &Row, column: &str) -> Work<Fingerprint> {
    sixteen(row.try_get(column)?, column).map(Fingerprint::from_bytes)
}

pub(super) fn opt_print(row: &Row, column: &str) -> Work<Option<Fingerprint>> {
    let bytes: Option<&[u8]> = row.try_get(column)?;
    bytes.map(|bytes| sixteen(bytes, column).map(Fingerprint::from_bytes)).transpose()
}

pub(super) fn content(row: &Row, column: &str) -> Work<ContentHash> {
    sixteen(row.try_get(column)?, column).map(ContentHash::from_bytes)
}

pub(super) fn event_id(row: &Row, column: &str) -> Work<EventId> {
    sixteen(row.try_get(column)?, column).map(EventId::from_bytes)
}

pub(super) fn json(row: &Row, column: &str) -> Work<serde_json::Value> {
    let text: &str = row.try_get(column)?;
    serde_json::from_str(text).map_err(|e| Fault::Damaged(format!("column {column}: {e}")))
}

/// The columns that [`schedule`] reads.
pub(super) const SCHEDULE: &str = "t.due_us, t.interval_us, t.phase, t.reason, t.slack_us";

pub(super) fn schedule(row: &Row) -> Work<Schedule> {
    Ok(Schedule {
        due: opt_time(row, "due_us")?,
        interval: Span(row.try_get("interval_us")?),
        phase: row.try_get("phase")?,
        reason: row.try_get("reason")?,
        slack: Span(row.try_get("slack_us")?),
    })
}

/// The columns that [`spec`] reads.
pub(super) const SPEC: &str = "t.key, t.role, t.params, t.priority, t.meaning, t.start_us";

pub(super) fn spec(row: &Row) -> Work<TargetSpec> {
    Ok(TargetSpec {
        key: row.try_get("key")?,
        role: row.try_get("role")?,
        params: json(row, "params")?,
        priority: row.try_get::<_, i16>("priority")? as u8,
        meaning: row.try_get::<_, i64>("meaning")? as u64,
        start: opt_time(row, "start_us")?,
        // Only the listing that names a target needs it, and has it in its snapshot.
        ends: None,
    })
}

/// The columns that [`state`] reads.
pub(super) const STATE: &str = "t.id, t.state, t.focused, t.rebaseline";

/// What a target remembers. Text that no longer parses costs the memory, never the target: it starts again with a
/// new baseline, at the version that its snapshot had.
pub(super) fn state(row: &Row, snapshot_version: u64) -> Work<TargetState> {
    let parsed = serde_json::from_str(row.try_get("state")?);
    let mut state: TargetState = match parsed {
        Ok(state) => state,
        Err(error) => {
            let target_id: i64 = row.try_get("id")?;
            tracing::warn!(target_id, %error, "a stored state is unreadable: new baseline");
            let mut fresh = TargetState::default();
            fresh.memory.version = snapshot_version;
            fresh.memory.rebaseline = true;
            fresh
        }
    };
    state.facts.focused = row.try_get("focused")?;
    state.memory.rebaseline |= row.try_get::<_, bool>("rebaseline")?;
    Ok(state)
}

/// A target's snapshot; empty when there is none.
pub(super) fn snapshot(row: &Row, column: &str) -> Work<Snapshot> {
    let bytes: Option<&[u8]> = row.try_get(column)?;
    Snapshot::from_bytes(bytes.unwrap_or_default()).map_err(|e| Fault::Damaged(e.to_string()))
}
