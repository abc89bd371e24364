//! History: one row per real change of a record's stream.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Connection, OptionalExtension, Statement, params};
use stakeout_core::{Fingerprint, Time};

use super::claim::source_id;
use super::fault::{Fault, Work};
use super::records::Effects;
use crate::{HistoryWrite, Stamp};

/// Writes history rows, answers how many. What the poll itself stamped counts only if the record really changed by
/// this commit: of two targets that see one change, the first writes it. What the upstream stamped counts only if it is
/// newer than all it told us before: every answer repeats the latest ones.
pub(super) fn write(
    conn: &Connection,
    source_id: i64,
    history: &[HistoryWrite],
    effects: &Effects,
) -> Work<u32> {
    if history.is_empty() {
        return Ok(0);
    }
    let mut told: BTreeMap<(Fingerprint, &str), Told> = BTreeMap::new();
    let mut insert = conn.prepare_cached(
        "INSERT OR IGNORE INTO history (source_id, fingerprint, stream, at_us, upstream, gap, values_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut newest = conn.prepare_cached(NEWEST)?;
    let mut newest_told = conn.prepare_cached(NEWEST_TOLD)?;
    let mut written = 0;
    for point in history {
        let happened = effects.get(&point.fingerprint);
        if happened.is_none() && !is_stored(conn, source_id, point)? {
            let print = point.fingerprint;
            return Err(Fault::Poison(format!("history of a record that is not stored: {print}")));
        }
        let mut observed_since = false;
        let gap = match point.stamp {
            Stamp::Observed if happened.is_none_or(|h| !h.appeared && !h.changed) => continue,
            Stamp::Observed => {
                // What is written here counts for the points that follow.
                if let Some(known) = told.get_mut(&(point.fingerprint, &point.stream)) {
                    known.observed_since = true;
                }
                false
            }
            Stamp::Upstream => {
                let known = match told.entry((point.fingerprint, &point.stream)) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(unknown) => {
                        *unknown.insert(Told::of(&mut newest, &mut newest_told, source_id, point)?)
                    }
                };
                if known.until.is_some_and(|until| point.at.us() <= until) {
                    continue;
                }
                observed_since = known.observed_since;
                // The upstream has forgotten older ones, and all it told us before is older still.
                point.oldest_known
            }
        };
        let inserted = insert.execute(params![
            source_id,
            point.fingerprint.to_bytes(),
            point.stream,
            point.at.us(),
            point.stamp == Stamp::Upstream,
            gap,
            point.values
        ])?;
        if inserted > 0 && observed_since {
            replace_observed(conn, source_id, point)?;
        }
        written += inserted;
    }
    Ok(written as u32)
}

/// For each stream, until when the upstream has told it.
pub(super) fn told_until(
    conn: &Connection,
    source: &str,
    streams: &[(Fingerprint, String)],
) -> Work<Vec<Option<Time>>> {
    let Some(source_id) = source_id(conn, source)? else { return Ok(vec![None; streams.len()]) };
    let mut newest = conn.prepare_cached(NEWEST_TOLD)?;
    let told = |(print, stream): &(Fingerprint, String)| {
        Ok(newest_told(&mut newest, source_id, *print, stream)?.map(Time))
    };
    streams.iter().map(told).collect()
}

/// What is known of a stream before an upstream's points are added to it.
#[derive(Clone, Copy)]
struct Told {
    /// The newest row that the upstream stamped.
    until: Option<i64>,
    /// Whether a poll stamped a row after that one. Usually none did, and there is nothing that could be replaced.
    observed_since: bool,
}

impl Told {
    fn of(
        newest: &mut Statement<'_>,
        newest_told: &mut Statement<'_>,
        source_id: i64,
        point: &HistoryWrite,
    ) -> Work<Told> {
        let key = params![source_id, point.fingerprint.to_bytes(), point.stream];
        let last: Option<(i64, bool)> =
            newest.query_row(key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        Ok(match last {
            None => Told { until: None, observed_since: false },
            Some((at, true)) => Told { until: Some(at), observed_since: false },
            Some((_, false)) => {
                let until = self::newest_told(newest_told, source_id, point.fingerprint, &point.stream)?;
                Told { until, observed_since: true }
            }
        })
    }
}

const NEWEST: &str = "
    SELECT at_us, upstream FROM history WHERE source_id = ?1 AND fingerprint = ?2 AND stream = ?3
    ORDER BY at_us DESC LIMIT 1";

const NEWEST_TOLD: &str = "
    SELECT at_us FROM history WHERE source_id = ?1 AND fingerprint = ?2 AND stream = ?3 AND upstream
    ORDER BY at_us DESC LIMIT 1";

/// The newest row of a stream that the upstream stamped.
fn newest_told(
    newest: &mut Statement<'_>,
    source_id: i64,
    print: Fingerprint,
    stream: &str,
) -> Work<Option<i64>> {
    Ok(newest.query_row(params![source_id, print.to_bytes(), stream], |row| row.get(0)).optional()?)
}

/// A row that a poll stamped gives way to the upstream's own row of the same move: the very next one, if it says the
/// same. Later ones are other moves.
fn replace_observed(conn: &Connection, source_id: i64, point: &HistoryWrite) -> Work<()> {
    conn.prepare_cached(
        "DELETE FROM history
         WHERE source_id = ?1 AND fingerprint = ?2 AND stream = ?3 AND NOT upstream AND values_json = ?5
             AND at_us = (SELECT min(at_us) FROM history
                          WHERE source_id = ?1 AND fingerprint = ?2 AND stream = ?3 AND at_us > ?4)",
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
