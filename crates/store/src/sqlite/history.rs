//! History: one row per real change of a record's stream. Rows know their record and their stream by number.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Connection, OptionalExtension, params};
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
    let mut streams: BTreeMap<&str, i64> = BTreeMap::new();
    let mut told: BTreeMap<Series, Told> = BTreeMap::new();
    // What this poll itself stamps.
    let mut here: BTreeMap<Series, i64> = BTreeMap::new();
    let mut insert = conn.prepare_cached(
        "INSERT OR IGNORE INTO history_rows (record_id, stream_id, at_us, upstream, gap, values_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut written = 0;
    for point in history {
        let happened = effects.get(&point.fingerprint);
        let record = match happened.and_then(|happened| happened.row) {
            Some(row) => row,
            None => record_id(conn, source_id, point.fingerprint)?.ok_or_else(|| {
                Fault::Poison(format!("history of a record that is not stored: {}", point.fingerprint))
            })?,
        };
        let stream = match streams.entry(&point.stream) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(stream_made(conn, &point.stream)?),
        };
        let series = Series { record, stream };
        let upstream = point.stamp == Stamp::Upstream;
        let (mut carried, mut replaces) = (None, false);
        if upstream {
            let known = match told.entry(series) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => {
                    *unknown.insert(Told::of(conn, series, here.get(&series).copied())?)
                }
            };
            if known.until.is_some_and(|until| point.at.us() <= until) {
                continue;
            }
            let observed_since = known.observed.is_some_and(|observed| observed > point.at.us());
            if observed_since {
                carried = carried_forward(conn, series, point)?;
            }
            replaces = observed_since || here.contains_key(&series);
        } else if happened.is_none_or(|h| !h.appeared && !h.changed) {
            continue;
        } else {
            here.insert(series, point.at.us());
        }
        // Where the upstream has forgotten older ones, all it told us before is older still.
        let gap = upstream && point.oldest_known;
        let values = carried.as_deref().unwrap_or(&point.values);
        let inserted = insert.execute(params![record, stream, point.at.us(), upstream, gap, values])?;
        if inserted > 0 && replaces {
            replace_observed(conn, series, point.at, values)?;
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
    let mut ids: BTreeMap<&str, Option<i64>> = BTreeMap::new();
    let mut told = Vec::with_capacity(streams.len());
    for (print, name) in streams {
        let stream = match ids.entry(name) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(stream_id(conn, name)?),
        };
        let series = match (stream, record_id(conn, source_id, *print)?) {
            (Some(stream), Some(record)) => Some(Series { record, stream }),
            _ => None,
        };
        let until = series.map(|series| newest_told(conn, series)).transpose()?;
        told.push(until.flatten().map(Time));
    }
    Ok(told)
}

/// A stream of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    record: i64,
    stream: i64,
}

fn record_id(conn: &Connection, source_id: i64, print: Fingerprint) -> Work<Option<i64>> {
    let sql = "SELECT id FROM records WHERE source_id = ?1 AND fingerprint = ?2";
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_row(params![source_id, print.to_bytes()], |row| row.get(0)).optional()?)
}

fn stream_id(conn: &Connection, name: &str) -> Work<Option<i64>> {
    let mut statement = conn.prepare_cached("SELECT id FROM history_streams WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// The number of a stream, which gets one when it has none.
fn stream_made(conn: &Connection, name: &str) -> Work<i64> {
    match stream_id(conn, name)? {
        Some(id) => Ok(id),
        None => Ok(conn.prepare_cached("INSERT INTO history_streams (name) VALUES (?1)")?.insert([name])?),
    }
}

/// What is known of a stream before an upstream's points are added to it.
#[derive(Clone, Copy)]
struct Told {
    /// The newest row that the upstream stamped.
    until: Option<i64>,
    /// The newest row, where an earlier poll stamped it. Usually it is older than what the upstream tells now.
    observed: Option<i64>,
}

impl Told {
    /// But for the row that was stamped `here`, by the poll that brings the points.
    fn of(conn: &Connection, series: Series, here: Option<i64>) -> Work<Told> {
        let mut statement = conn.prepare_cached(
            "SELECT at_us, upstream FROM history_rows WHERE record_id = ?1 AND stream_id = ?2
             ORDER BY at_us DESC LIMIT 2",
        )?;
        let mut rows = statement.query([series.record, series.stream])?;
        while let Some(row) = rows.next()? {
            let (at, upstream): (i64, bool) = (row.get(0)?, row.get(1)?);
            if upstream {
                return Ok(Told { until: Some(at), observed: None });
            }
            if here != Some(at) {
                return Ok(Told { until: newest_told(conn, series)?, observed: Some(at) });
            }
        }
        Ok(Told { until: None, observed: None })
    }
}

/// The newest row of a stream that the upstream stamped.
fn newest_told(conn: &Connection, series: Series) -> Work<Option<i64>> {
    let mut statement = conn.prepare_cached(
        "SELECT at_us FROM history_rows WHERE record_id = ?1 AND stream_id = ?2 AND upstream
         ORDER BY at_us DESC LIMIT 1",
    )?;
    Ok(statement.query_row([series.record, series.stream], |row| row.get(0)).optional()?)
}

/// What the upstream's row says where polls have stamped rows since: what it does not say itself is as in the row before
/// it, or in the first one after it.
fn carried_forward(conn: &Connection, series: Series, point: &HistoryWrite) -> Work<Option<String>> {
    for neighbour in [
        "SELECT json_patch(values_json, ?4) FROM history_rows
         WHERE record_id = ?1 AND stream_id = ?2 AND at_us < ?3 ORDER BY at_us DESC LIMIT 1",
        "SELECT json_patch(values_json, ?4) FROM history_rows
         WHERE record_id = ?1 AND stream_id = ?2 AND at_us > ?3 ORDER BY at_us LIMIT 1",
    ] {
        let parameters = params![series.record, series.stream, point.at.us(), point.said];
        let values = conn.prepare_cached(neighbour)?.query_row(parameters, |row| row.get(0)).optional()?;
        if values.is_some() {
            return Ok(values);
        }
    }
    Ok(None)
}

/// A row that a poll stamped gives way to the upstream's own row of the same move: the very next one, if it says the
/// same. Later ones are other moves.
fn replace_observed(conn: &Connection, series: Series, at: Time, values: &str) -> Work<()> {
    conn.prepare_cached(
        "DELETE FROM history_rows
         WHERE record_id = ?1 AND stream_id = ?2 AND NOT upstream AND values_json = ?4
             AND at_us = (SELECT min(at_us) FROM history_rows
                          WHERE record_id = ?1 AND stream_id = ?2 AND at_us > ?3)",
    )?
    .execute(params![series.record, series.stream, at.us(), values])?;
    Ok(())
}
