//! History: one row per real change of a record's stream.

use std::collections::BTreeSet;

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
    let gaps = gaps(conn, source_id, history)?;
    let mut written = 0;
    for (n, point) in history.iter().enumerate() {
        let happened = effects.get(&point.fingerprint);
        if happened.is_none() && !is_stored(conn, source_id, point)? {
            let print = point.fingerprint;
            return Err(Fault::Poison(format!("history of a record that is not stored: {print}")));
        }
        let real = happened.is_some_and(|h| h.appeared || h.changed);
        if point.stamp == Stamp::Observed && !real {
            continue;
        }
        let inserted = conn
            .prepare_cached(
                "INSERT OR IGNORE INTO history (source_id, fingerprint, stream, at_us, upstream, gap, values_json)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                source_id,
                point.fingerprint.to_bytes(),
                point.stream,
                point.at.us(),
                point.stamp == Stamp::Upstream,
                gaps.contains(&n),
                point.values
            ])?;
        if inserted > 0 && point.stamp == Stamp::Upstream {
            replace_observed(conn, source_id, point)?;
        }
        written += inserted;
    }
    Ok(written as u32)
}

/// Which points are newer than everything the upstream told us before, though it says that it has forgotten older ones:
/// what lies between is lost. Asked before anything is written.
fn gaps(conn: &Connection, source_id: i64, history: &[HistoryWrite]) -> Work<BTreeSet<usize>> {
    let mut gaps = BTreeSet::new();
    for (n, point) in history.iter().enumerate().filter(|(_, point)| point.oldest_known) {
        let newest: Option<i64> = conn
            .prepare_cached(
                "SELECT max(at_us) FROM history
                 WHERE source_id = ?1 AND fingerprint = ?2 AND stream = ?3 AND upstream",
            )?
            .query_row(params![source_id, point.fingerprint.to_bytes(), point.stream], |row| row.get(0))?;
        if newest.is_none_or(|newest| newest < point.at.us()) {
            gaps.insert(n);
        }
    }
    Ok(gaps)
}

/// A row that a poll stamped gives way to the upstream's own row of the same move.
fn replace_observed(conn: &Connection, source_id: i64, point: &HistoryWrite) -> Work<()> {
    conn.prepare_cached(
        "DELETE FROM history
         WHERE source_id = ?1 AND fingerprint = ?2 AND stream = ?3 AND at_us > ?4 AND NOT upstream
             AND values_json = ?5",
    )?
    .execute(params![
        source_id,
        point.fingerprint.to_bytes(),
        point.stream,
        point.at.us(),
        point.values
    ])?;
    Ok(())
}

fn is_stored(conn: &Connection, source_id: i64, point: &HistoryWrite) -> Work<bool> {
    let mut statement =
        conn.prepare_cached("SELECT 1 FROM records WHERE source_id = ?1 AND fingerprint = ?2")?;
    Ok(statement.exists(params![source_id, point.fingerprint.to_bytes()])?)
}
