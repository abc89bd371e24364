//! Notifications, who has read them, and the rules of the file that they come from.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_core::alert::EVENT_TYPE;

use super::fault::Work;
use super::{events, read, rows};
use crate::{Notification, NotificationFilter, Outbox, ReadMark};

/// The events of alerts that are this user's, or everybody's; all without a user. The type stands here as a text,
/// because a parameter would hide from the planner that the small index will do.
fn of_user(user: &str) -> String {
    format!(
        "events.type = '{EVENT_TYPE}' AND ({user} IS NULL OR coalesce(json_extract(events.data, '$.user'), {user}) = {user})"
    )
}

pub(super) fn list(
    conn: &Connection,
    before: u64,
    filter: &NotificationFilter,
    limit: u32,
) -> Work<Vec<Notification>> {
    let sql = format!(
        "SELECT {}, marks.read_us AS read_us FROM events JOIN sources ON sources.id = events.source_id
         LEFT JOIN notifications_read marks ON marks.seq = events.seq
         WHERE events.seq < ?1 AND {} AND NOT (?3 AND marks.seq IS NOT NULL) ORDER BY events.seq DESC LIMIT ?4",
        events::COLUMNS,
        of_user("?2")
    );
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    let read =
        |row: &Row<'_>| Ok(Notification { event: events::read(row)?, read: rows::opt_time(row, "read_us")? });
    read::all(conn, &sql, &[&before, &filter.user, &filter.unread, &limit], read)
}

pub(super) fn unread(conn: &Connection, user: Option<&str>) -> Work<u64> {
    let sql = format!(
        "SELECT count(*) FROM events WHERE {} AND seq NOT IN (SELECT seq FROM notifications_read)",
        of_user("?1")
    );
    Ok(conn.prepare_cached(&sql)?.query_row([user], |row| row.get::<_, i64>(0))? as u64)
}

pub(super) fn mark(conn: &Connection, mark: &ReadMark, now: Time) -> Work<u64> {
    let (place, seq, user) = match mark {
        ReadMark::One(seq) => ("seq = ?1", *seq, None),
        ReadMark::UpTo(seq, user) => ("seq <= ?1", *seq, user.as_deref()),
    };
    let sql = format!(
        "INSERT OR IGNORE INTO notifications_read (seq, read_us) SELECT seq, ?3 FROM events WHERE {place} AND {}",
        of_user("?2")
    );
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    Ok(conn.prepare_cached(&sql)?.execute(params![seq, user, now.us()])? as u64)
}

pub(super) fn outboxes(conn: &Connection) -> Work<Vec<Outbox>> {
    let sql = "SELECT sink, sum(NOT dead) AS waiting, sum(dead) AS dead FROM deliveries GROUP BY sink ORDER BY sink";
    let read = |row: &Row<'_>| {
        Ok(Outbox { sink: row.get(0)?, waiting: rows::number(row, 1)?, dead: rows::number(row, 2)? })
    };
    read::all(conn, sql, &[], read)
}

/// Writes only differences: an engine that starts as it did before writes nothing.
pub(super) fn set_filed(conn: &Connection, rules: &BTreeMap<String, Json>, now: Time) -> Work<()> {
    let mut statement = conn.prepare("SELECT name FROM filed_alerts")?;
    let known: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for name in known.iter().filter(|name| !rules.contains_key(*name)) {
        conn.execute("DELETE FROM filed_alerts WHERE name = ?1", [name])?;
    }
    for (name, rule) in rules {
        conn.execute(
            "INSERT INTO filed_alerts (name, rule, updated_us) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET rule = excluded.rule, updated_us = excluded.updated_us
                 WHERE rule <> excluded.rule",
            params![name, rule.to_string(), now.us()],
        )?;
    }
    Ok(())
}
