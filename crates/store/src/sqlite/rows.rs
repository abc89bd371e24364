//! Between columns and the words of the model.

use std::fmt::{self, Display};

use rusqlite::types::ValueRef;
use rusqlite::{Row, RowIndex, named_params};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use stakeout_core::{ContentHash, EventId, Fingerprint, Snapshot, Span, TargetSpec, Time};

use super::fault::{Fault, Work};
use crate::{Schedule, TargetState};

/// Room for the fields that most records have.
const FIELDS_USUALLY: usize = 32;

pub(super) fn time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Time> {
    row.get(column).map(Time)
}

pub(super) fn opt_time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Time))
}

pub(super) fn number(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

pub(super) fn us(time: Option<Time>) -> Option<i64> {
    time.map(Time::us)
}

pub(super) fn print(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Fingerprint> {
    row.get(column).map(Fingerprint::from_bytes)
}

pub(super) fn opt_print(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Fingerprint>> {
    Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(Fingerprint::from_bytes))
}

pub(super) fn content(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<ContentHash> {
    row.get(column).map(ContentHash::from_bytes)
}

pub(super) fn event_id(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<EventId> {
    row.get(column).map(EventId::from_bytes)
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: impl RowIndex + Display) -> Work<T> {
    let text = row.get_ref(column)?;
    let text = text.as_str().map_err(|e| Fault::Damaged(format!("column {column}: {e}")))?;
    serde_json::from_str(text).map_err(|e| Fault::Damaged(format!("column {column}: {e}")))
}

/// A record's body. Its names are stored in order, so the object is made at once and not name by name.
pub(super) fn body(row: &Row<'_>, column: impl RowIndex + Display) -> Work<Json> {
    let Named(named) = json(row, column)?;
    Ok(Json::Object(named.into_iter().collect()))
}

struct Named(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Named;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut named = Vec::with_capacity(FIELDS_USUALLY);
                while let Some(entry) = map.next_entry()? {
                    named.push(entry);
                }
                Ok(Named(named))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// The columns that [`schedule`] reads.
pub(super) const SCHEDULE: &str = "due_us, interval_us, phase, reason, slack_us";
/// How many they are.
pub(super) const SCHEDULE_COLUMNS: usize = 5;

/// Reads [`SCHEDULE`] from the column `at` on. Columns of hot queries are read by number: to find one by its name, all
/// names before it are compared.
pub(super) fn schedule(row: &Row<'_>, at: usize) -> rusqlite::Result<Schedule> {
    Ok(Schedule {
        due: opt_time(row, at)?,
        interval: Span(row.get(at + 1)?),
        phase: row.get(at + 2)?,
        reason: row.get(at + 3)?,
        slack: Span(row.get(at + 4)?),
    })
}

/// The columns that [`spec`] reads.
pub(super) const SPEC: &str = "key, role, params, priority, meaning, start_us";
/// How many they are.
pub(super) const SPEC_COLUMNS: usize = 6;

/// Reads [`SPEC`] from the column `at` on.
pub(super) fn spec(row: &Row<'_>, at: usize) -> Work<TargetSpec> {
    Ok(TargetSpec {
        key: row.get(at)?,
        role: row.get(at + 1)?,
        params: json(row, at + 2)?,
        priority: row.get(at + 3)?,
        meaning: row.get::<_, i64>(at + 4)? as u64,
        start: opt_time(row, at + 5)?,
        // Only the listing that names a target needs it, and has it in its snapshot.
        ends: None,
    })
}

/// The columns that [`state`] reads.
pub(super) const STATE: &str = "id, state, focused, rebaseline";

/// Reads [`STATE`] from the column `at` on: what a target remembers. Text that no longer parses costs the memory, never the target: it starts again with a
/// new baseline, at the version that its snapshot had.
pub(super) fn state(row: &Row<'_>, at: usize, snapshot_version: u64) -> Work<TargetState> {
    let text = row.get_ref(at + 1)?;
    let parsed = match text {
        ValueRef::Text(text) => serde_json::from_slice(text).map_err(|e| e.to_string()),
        _ => Err("not text".to_owned()),
    };
    let mut state: TargetState = parsed.or_else(|error| {
        tracing::warn!(target_id = row.get::<_, i64>(at)?, %error, "a stored state is unreadable: new baseline");
        let mut fresh = TargetState::default();
        fresh.memory.version = snapshot_version;
        fresh.memory.rebaseline = true;
        Ok::<_, Fault>(fresh)
    })?;
    state.facts.focused = row.get(at + 2)?;
    state.memory.rebaseline |= row.get::<_, bool>(at + 3)?;
    Ok(state)
}

/// A target's snapshot and its version; empty when there is none.
pub(super) fn snapshot(conn: &rusqlite::Connection, target: i64) -> Work<(Snapshot, u64)> {
    let mut statement =
        conn.prepare_cached("SELECT version, body FROM snapshots WHERE target_id = :target")?;
    let mut rows = statement.query(named_params! { ":target": target })?;
    let Some(row) = rows.next()? else { return Ok((Snapshot::default(), 0)) };
    let body = row.get_ref(1)?;
    let bytes = body.as_blob().map_err(|e| Fault::Damaged(e.to_string()))?;
    let snapshot = Snapshot::from_bytes(bytes).map_err(|e| Fault::Damaged(e.to_string()))?;
    Ok((snapshot, number(row, 0)?))
}
