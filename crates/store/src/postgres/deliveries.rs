//! Deliveries that are looked for one by one: those that belong together, and those that were given up and that people
//! look after.

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::fault::Work;
use super::{all, read, rows};
use crate::{Chosen, DeadDelivery, Delivery};

pub(super) async fn of(client: &Client, sink: &str, seqs: &[u64]) -> Work<Vec<Delivery>> {
    let sql = format!(
        "{}, d.attempts FROM deliveries d JOIN events e ON e.seq = d.seq JOIN sources s ON s.id = e.source_id
         WHERE d.sink = $1 AND NOT d.dead AND d.seq = ANY ($2) ORDER BY d.seq",
        read::EVENTS
    );
    let read = |row: &Row| Ok(Delivery { event: read::event(row)?, attempts: rows::small(row, "attempts")? });
    read::all(client, &sql, &[&sink, &numbers(seqs)], read).await
}

pub(super) async fn undelivered(client: &Client, sink: &str, seqs: &[u64]) -> Work<Vec<u64>> {
    let sql = "SELECT seq FROM deliveries WHERE sink = $1 AND seq = ANY ($2) ORDER BY seq";
    let read = |row: &Row| Ok(row.try_get::<_, i64>("seq")? as u64);
    read::all(client, sql, &[&sink, &numbers(seqs)], read).await
}

fn numbers(seqs: &[u64]) -> Vec<i64> {
    seqs.iter().map(|seq| *seq as i64).collect()
}

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
