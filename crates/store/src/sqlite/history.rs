//! History: one row per real change of a record's stream.

use rusqlite::{Connection, params};

use super::fault::{Fault, Work};
use super::records::Effects;
use crate::{HistoryWrite, Stamp};

/// Writes history rows, answers how many. What the poll itself stamped counts only if the record really changed by
/// this commit: of two targets that see one change, the first writes it.
pub(super) fn write(
    conn: &Connection,
    source_id: i64,
    history: &[HistoryWrite],
    effects: &Effects,
) -> Work<u32> {
    let mut written = 0;
    for point in history {
        let happened = effects.get(&point.fingerprint);
        if happened.is_none() && !is_stored(conn, source_id, point)? {
            let print = point.fingerprint;
            return Err(Fault::Poison(format!("history of a record that is not stored: {print}")));
        }
        let real = happened.is_some_and(|h| h.appeared || h.changed);
        if point.stamp == Stamp::Observed && !real {
            continue;
        }
        written += conn
            .prepare_cached(
                "INSERT OR IGNORE INTO history (source_id, fingerprint, stream, at_us, upstream, values_json)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                source_id,
                point.fingerprint.to_bytes(),
                point.stream,
                point.at.us(),
                point.stamp == Stamp::Upstream,
                point.values
            ])?;
    }
    Ok(written as u32)
}

fn is_stored(conn: &Connection, source_id: i64, point: &HistoryWrite) -> Work<bool> {
    let mut statement =
        conn.prepare_cached("SELECT 1 FROM records WHERE source_id = ?1 AND fingerprint = ?2")?;
    Ok(statement.exists(params![source_id, point.fingerprint.to_bytes()])?)
}
