//! What people and sinks change from outside: switches, settings, deliveries, views.

use deadpool_postgres::Client;
use stakeout_core::{Kind, Time};

use super::fault::{Fault, Work};
use super::{all, one};
use crate::views::{self, Dialect};
use crate::{StoreError, TargetId};

fn unknown(target: TargetId) -> Fault {
    Fault::Store(StoreError::NotFound(format!("there is no target {target}")))
}

pub(super) async fn set_enabled(client: &Client, target: TargetId, enabled: bool, now: Time) -> Work<()> {
    let row = one(client, "SELECT stakeout_switch($1, $2, $3)", &[&target.0, &enabled, &now.us()]).await?;
    if row.try_get(0)? { Ok(()) } else { Err(unknown(target)) }
}

pub(super) async fn poll_now(client: &Client, target: TargetId, now: Time) -> Work<()> {
    let row = one(client, "SELECT stakeout_poll_now($1, $2)", &[&target.0, &now.us()]).await?;
    match row.try_get(0)? {
        Some(true) => Ok(()),
        Some(false) => Err(Fault::Store(StoreError::SwitchedOff(target))),
        None => Err(unknown(target)),
    }
}

/// The next complete answer is a new baseline, also if a poll is under way right now.
pub(super) async fn rebaseline(client: &Client, target: TargetId) -> Work<()> {
    let sql = "UPDATE targets SET rebaseline = true, plan_version = plan_version + 1 WHERE id = $1
               RETURNING stakeout_hint('plans', ARRAY[id])";
    if all(client, sql, &[&target.0]).await?.is_empty() { Err(unknown(target)) } else { Ok(()) }
}

pub(super) async fn set_setting(
    client: &Client,
    key: &str,
    value: Option<&serde_json::Value>,
    now: Time,
) -> Work<()> {
    match value {
        None => {
            let sql = "DELETE FROM settings WHERE key = $1 RETURNING stakeout_hint('settings', '{}')";
            all(client, sql, &[&key]).await?;
        }
        Some(value) => {
            let sql = "INSERT INTO settings AS s (key, value, updated_us) VALUES ($1, $2, $3)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_us = excluded.updated_us
                     WHERE s.value <> excluded.value
                 RETURNING stakeout_hint('settings', '{}')";
            all(client, sql, &[&key, &value.to_string(), &now.us()]).await?;
        }
    }
    Ok(())
}

/// One row that no commit writes: it needs none of the locks that commits take.
pub(super) async fn set_kv(
    client: &Client,
    namespace: &str,
    key: &str,
    value: Option<&serde_json::Value>,
    now: Time,
) -> Work<()> {
    match value {
        None => {
            all(client, "DELETE FROM kv WHERE namespace = $1 AND key = $2", &[&namespace, &key]).await?;
        }
        Some(value) => {
            let sql = "INSERT INTO kv (namespace, key, value, updated_us) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (namespace, key) DO UPDATE
                     SET value = excluded.value, updated_us = excluded.updated_us";
            all(client, sql, &[&namespace, &key, &value.to_string(), &now.us()]).await?;
        }
    }
    Ok(())
}

/// Losing the mark with the power means delivering again: at least once, with the same event id.
pub(super) async fn delivered(client: &Client, sink: &str, seqs: &[u64]) -> Work<()> {
    let seqs: Vec<i64> = seqs.iter().map(|seq| *seq as i64).collect();
    let sql = "WITH relaxed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS off)
               DELETE FROM deliveries d USING relaxed WHERE d.sink = $1 AND d.seq = ANY ($2) AND off IS NOT NULL";
    all(client, sql, &[&sink, &seqs]).await?;
    Ok(())
}

pub(super) async fn delivery_failed(
    client: &Client,
    sink: &str,
    seq: u64,
    retry: Option<Time>,
    error: &str,
) -> Work<()> {
    let sql =
        "UPDATE deliveries SET attempts = attempts + 1, retry_us = coalesce($3, retry_us), dead = $3 IS NULL,
                   error = $4
               WHERE sink = $1 AND seq = $2 RETURNING set_config('synchronous_commit', 'off', true)";
    let error = error.replace('\0', "\u{fffd}");
    let found = all(client, sql, &[&sink, &(seq as i64), &retry.map(Time::us), &error]).await?;
    if found.is_empty() {
        return Err(Fault::Store(StoreError::NotFound(format!("sink {sink} has no delivery {seq}"))));
    }
    Ok(())
}

/// Makes the views of these kinds and removes those made for others; does nothing when all is as it should be.
pub(super) async fn ensure_views(client: &Client, kinds: &[Kind]) -> Work<()> {
    let sql = "SELECT c.relname::text FROM pg_class c
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')";
    let tables = all(client, sql, &[]).await?;
    let tables = tables.iter().map(|row| Ok(row.try_get(0)?)).collect::<Work<Vec<String>>>()?;
    let wanted =
        views::views(Dialect::Postgres, kinds, &tables).map_err(|e| Fault::Unwritable(e.to_string()))?;
    let (names, sqls): (Vec<String>, Vec<String>) =
        wanted.into_iter().map(|view| (view.name, view.sql)).unzip();
    one(client, "SELECT stakeout_views($1, $2)", &[&names, &sqls]).await?;
    Ok(())
}
