//! What people and sinks change from outside: switches, settings, deliveries, views.

use rusqlite::{Connection, OptionalExtension, params};
use stakeout_core::{Kind, Time};

use super::fault::{Fault, Work};
use super::writer::Tx;
use crate::views::{self, Dialect};
use crate::{StoreError, TargetId};

/// Switches a target on or off; writes nothing when it is so already.
pub(super) fn set_enabled(tx: &mut Tx<'_>, target: TargetId, enabled: bool, now: Time) -> Work<()> {
    if is_enabled(tx.conn, target)? == enabled {
        return Ok(());
    }
    if enabled {
        let by_name = "DELETE FROM switched_off
             WHERE (source_id, key) = (SELECT source_id, key FROM targets WHERE id = ?1)";
        tx.conn.execute(by_name, [target.0])?;
        tx.conn.execute("UPDATE targets SET enabled = 1 WHERE id = ?1", [target.0])?;
        return due_now(tx.conn, target, now, "switched on");
    }
    tx.conn.execute(
        "INSERT OR IGNORE INTO switched_off SELECT source_id, key FROM targets WHERE id = ?1",
        [target.0],
    )?;
    tx.conn.execute(
        "UPDATE targets SET enabled = 0, wake_us = NULL, plan_version = plan_version + 1 WHERE id = ?1",
        [target.0],
    )?;
    Ok(())
}

/// Makes an enabled target due now.
pub(super) fn poll_now(tx: &mut Tx<'_>, target: TargetId, now: Time) -> Work<()> {
    if !is_enabled(tx.conn, target)? {
        return Err(Fault::Store(StoreError::SwitchedOff(target)));
    }
    due_now(tx.conn, target, now, "asked for")
}

/// The next complete answer is a new baseline, also if a poll is under way right now.
pub(super) fn rebaseline(tx: &mut Tx<'_>, target: TargetId) -> Work<()> {
    let sql = "UPDATE targets SET rebaseline = 1, plan_version = plan_version + 1 WHERE id = ?1";
    match tx.conn.execute(sql, [target.0])? {
        0 => Err(unknown(target)),
        _ => Ok(()),
    }
}

fn is_enabled(conn: &Connection, target: TargetId) -> Work<bool> {
    let sql = "SELECT enabled FROM targets WHERE id = ?1";
    conn.query_row(sql, [target.0], |row| row.get(0)).optional()?.ok_or_else(|| unknown(target))
}

fn unknown(target: TargetId) -> Fault {
    Fault::Store(StoreError::NotFound(format!("there is no target {target}")))
}

fn due_now(conn: &Connection, target: TargetId, now: Time, reason: &str) -> Work<()> {
    conn.execute(
        "UPDATE targets SET due_us = ?2, reason = ?3, plan_version = plan_version + 1,
             wake_us = CASE WHEN owner IS NULL THEN ?2 ELSE max(lease_until_us, ?2) END
         WHERE id = ?1",
        params![target.0, now.us(), reason],
    )?;
    Ok(())
}

pub(super) fn set_setting(
    tx: &mut Tx<'_>,
    key: &str,
    value: Option<&serde_json::Value>,
    now: Time,
) -> Work<()> {
    match value {
        None => tx.conn.execute("DELETE FROM settings WHERE key = ?1", [key])?,
        Some(value) => tx.conn.execute(
            "INSERT INTO settings (key, value, updated_us) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET value = excluded.value, updated_us = excluded.updated_us
             WHERE value <> excluded.value",
            params![key, value.to_string(), now.us()],
        )?,
    };
    Ok(())
}

pub(super) fn set_kv(
    tx: &mut Tx<'_>,
    namespace: &str,
    key: &str,
    value: Option<&serde_json::Value>,
    now: Time,
) -> Work<()> {
    match value {
        None => tx.conn.execute("DELETE FROM kv WHERE namespace = ?1 AND key = ?2", [namespace, key])?,
        Some(value) => tx.conn.execute(
            "INSERT INTO kv (namespace, key, value, updated_us) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET value = excluded.value, updated_us = excluded.updated_us",
            params![namespace, key, value.to_string(), now.us()],
        )?,
    };
    Ok(())
}

pub(super) fn delivered(tx: &mut Tx<'_>, sink: &str, seqs: &[u64]) -> Work<()> {
    let mut statement = tx.conn.prepare_cached("DELETE FROM deliveries WHERE sink = ?1 AND seq = ?2")?;
    for seq in seqs {
        statement.execute(params![sink, *seq as i64])?;
    }
    Ok(())
}

pub(super) fn delivery_failed(
    tx: &mut Tx<'_>,
    sink: &str,
    seq: u64,
    retry: Option<Time>,
    error: &str,
) -> Work<()> {
    let changed = tx.conn.execute(
        "UPDATE deliveries SET attempts = attempts + 1, retry_us = coalesce(?3, retry_us), dead = ?3 IS NULL,
             error = ?4
         WHERE sink = ?1 AND seq = ?2",
        params![sink, seq as i64, retry.map(Time::us), error],
    )?;
    match changed {
        0 => Err(Fault::Store(StoreError::NotFound(format!("sink {sink} has no delivery {seq}")))),
        _ => Ok(()),
    }
}

/// Makes the views of these kinds and removes those made for others; writes only differences.
pub(super) fn ensure_views(tx: &mut Tx<'_>, kinds: &[Kind]) -> Work<()> {
    // History is a view, and not one that is made anew.
    let mut statement = tx.conn.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' UNION VALUES ('sqlite_schema'), ('history')",
    )?;
    let tables: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let wanted = views::views(Dialect::Sqlite, kinds, &tables).map_err(|e| Fault::Poison(e.to_string()))?;
    let mut statement = tx.conn.prepare("SELECT name, sql FROM made_views")?;
    let made: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (name, sql) in &made {
        if !wanted.iter().any(|view| view.name == *name && view.sql == *sql) {
            tx.conn.execute_batch(&format!("DROP VIEW IF EXISTS {}", views::quote(name)))?;
            tx.conn.execute("DELETE FROM made_views WHERE name = ?1", [name])?;
        }
    }
    for view in &wanted {
        if !made.iter().any(|(name, sql)| view.name == *name && view.sql == *sql) {
            tx.conn.execute_batch(&format!("DROP VIEW IF EXISTS {}", views::quote(&view.name)))?;
            tx.conn.execute_batch(&view.sql)?;
            tx.conn.execute(
                "INSERT INTO made_views (name, sql) VALUES (?1, ?2)",
                params![view.name, view.sql],
            )?;
        }
    }
    Ok(())
}
