//! Deliveries that are looked for one by one: those that belong together, and those that were given up and that people
//! look after.

use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::fault::Work;
use super::{events, read, rows};
use crate::{Chosen, DeadDelivery, Delivery};

pub(super) fn of(conn: &Connection, sink: &str, seqs: &[u64]) -> Work<Vec<Delivery>> {
    let sql = format!(
        "SELECT {}, deliveries.attempts FROM deliveries JOIN events ON events.seq = deliveries.seq
         JOIN sources ON sources.id = events.source_id
         WHERE deliveries.sink = ?1 AND NOT deliveries.dead
             AND deliveries.seq IN (SELECT value FROM json_each(?2))
         ORDER BY deliveries.seq",
        events::COLUMNS
    );
    let read = |row: &Row<'_>| Ok(Delivery { event: events::read(row)?, attempts: row.get("attempts")? });
    read::all(conn, &sql, &[&sink, &json!(seqs).to_string()], read)
}

pub(super) fn undelivered(conn: &Connection, sink: &str, seqs: &[u64]) -> Work<Vec<u64>> {
    let sql = "SELECT seq FROM deliveries WHERE sink = ?1 AND seq IN (SELECT value FROM json_each(?2)) ORDER BY seq";
    read::all(conn, sql, &[&sink, &json!(seqs).to_string()], |row| Ok(rows::number(row, 0)?))
}

pub(super) fn dead(conn: &Connection, sink: Option<&str>, limit: u32) -> Work<Vec<DeadDelivery>> {
    let sql = format!(
        "SELECT {}, deliveries.sink AS sink, deliveries.attempts AS attempts, deliveries.error AS error
         FROM deliveries JOIN events ON events.seq = deliveries.seq
         JOIN sources ON sources.id = events.source_id
         WHERE deliveries.dead AND (?1 IS NULL OR deliveries.sink = ?1)
         ORDER BY deliveries.sink, deliveries.seq LIMIT ?2",
        events::COLUMNS
    );
    let read = |row: &Row<'_>| {
        Ok(DeadDelivery {
            sink: row.get("sink")?,
            event: events::read(row)?,
            attempts: row.get("attempts")?,
            error: row.get("error")?,
        })
    };
    read::all(conn, &sql, &[&sink, &limit], read)
}

pub(super) fn retry(conn: &Connection, sink: &str, chosen: Chosen) -> Work<u64> {
    let (seq, every) = chosen.parts();
    let sql = "UPDATE deliveries SET attempts = 0, retry_us = 0, dead = 0
         WHERE sink = ?1 AND (?2 IS NULL OR seq = ?2) AND (?3 OR dead)";
    Ok(conn.execute(sql, params![sink, seq, every])? as u64)
}

pub(super) fn drop(conn: &Connection, sink: &str, chosen: Chosen) -> Work<u64> {
    let (seq, every) = chosen.parts();
    let sql = "DELETE FROM deliveries WHERE sink = ?1 AND (?2 IS NULL OR seq = ?2) AND (?3 OR dead)";
    Ok(conn.execute(sql, params![sink, seq, every])? as u64)
}
