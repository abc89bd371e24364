//! Deliveries that people look after: those that were given up.

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::fault::Work;
use super::{all, read, rows};
use crate::{Chosen, DeadDelivery};

pub(super) async fn dead(client: &Client, sink: Option<&str>, limit: u32) -> Work<Vec<DeadDelivery>> {
    let sql = format!(
        "{}, d.sink, d.attempts, d.error
         FROM deliveries d JOIN events e ON e.seq = d.seq JOIN sources s ON s.id = e.source_id
         WHERE d.dead AND ($1::text IS NULL OR d.sink = $1) ORDER BY d.sink, d.seq LIMIT $2",
        read::EVENTS
    );
    let read = |row: &Row| {
        Ok(DeadDelivery {
            sink: row.try_get("sink")?,
            event: read::event(row)?,
            attempts: rows::small(row, "attempts")?,
            error: row.try_get("error")?,
        })
    };
    read::all(client, &sql, &[&sink, &i64::from(limit)], read).await
}

pub(super) async fn retry(client: &Client, sink: &str, chosen: Chosen) -> Work<u64> {
    let (seq, every) = chosen.parts();
    let sql = "UPDATE deliveries SET attempts = 0, retry_us = 0, dead = false
               WHERE sink = $1 AND ($2::bigint IS NULL OR seq = $2) AND ($3 OR dead) RETURNING 1";
    Ok(all(client, sql, &[&sink, &seq, &every]).await?.len() as u64)
}

pub(super) async fn drop(client: &Client, sink: &str, chosen: Chosen) -> Work<u64> {
    let (seq, every) = chosen.parts();
    let sql = "DELETE FROM deliveries
               WHERE sink = $1 AND ($2::bigint IS NULL OR seq = $2) AND ($3 OR dead) RETURNING 1";
    Ok(all(client, sql, &[&sink, &seq, &every]).await?.len() as u64)
}
