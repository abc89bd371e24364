//! Notifications, who has read them, and the rules of the file that they come from.

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_core::alert::EVENT_TYPE;
use tokio_postgres::Row;

use super::fault::Work;
use super::{all, one, read, rows};
use crate::{Notification, NotificationFilter, Outbox, ReadMark};

/// The events of alerts that are this user's, or everybody's; all without a user. The type stands here as a text,
/// because a parameter would hide from the planner that the small index will do.
fn of_user(user: &str) -> String {
    format!(
        "e.type = '{EVENT_TYPE}' AND ({user}::text IS NULL OR coalesce(e.data::jsonb ->> 'user', {user}) = {user})"
    )
}

pub(super) async fn list(
    client: &Client,
    before: u64,
    filter: &NotificationFilter,
    limit: u32,
) -> Work<Vec<Notification>> {
    let sql = format!(
        "{}, m.read_us FROM events e JOIN sources s ON s.id = e.source_id
         LEFT JOIN notifications_read m ON m.seq = e.seq
         WHERE e.seq < $1 AND {} AND NOT ($3 AND m.seq IS NOT NULL) ORDER BY e.seq DESC LIMIT $4",
        read::EVENTS,
        of_user("$2")
    );
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    let read =
        |row: &Row| Ok(Notification { event: read::event(row)?, read: rows::opt_time(row, "read_us")? });
    read::all(client, &sql, &[&before, &filter.user, &filter.unread, &i64::from(limit)], read).await
}

pub(super) async fn unread(client: &Client, user: Option<&str>) -> Work<u64> {
    let sql = format!(
        "SELECT count(*) AS unread FROM events e
         WHERE {} AND NOT EXISTS (SELECT 1 FROM notifications_read m WHERE m.seq = e.seq)",
        of_user("$1")
    );
    rows::number(&one(client, &sql, &[&user]).await?, "unread")
}

pub(super) async fn mark(client: &Client, mark: &ReadMark, now: Time) -> Work<u64> {
    let (place, seq, user) = match mark {
        ReadMark::One(seq) => ("e.seq = $1", *seq, None),
        ReadMark::UpTo(seq, user) => ("e.seq <= $1", *seq, user.as_deref()),
    };
    // An event that is being pruned is passed over: its mark would have nothing to stand for.
    let sql = format!(
        "INSERT INTO notifications_read (seq, read_us)
         SELECT e.seq, $3 FROM events e WHERE {place} AND {} ORDER BY e.seq FOR KEY SHARE SKIP LOCKED
         ON CONFLICT DO NOTHING RETURNING 1",
        of_user("$2")
    );
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    Ok(all(client, &sql, &[&seq, &user, &now.us()]).await?.len() as u64)
}

pub(super) async fn outboxes(client: &Client) -> Work<Vec<Outbox>> {
    let sql = "SELECT sink, count(*) FILTER (WHERE NOT dead) AS waiting, count(*) FILTER (WHERE dead) AS dead
               FROM deliveries GROUP BY sink ORDER BY sink";
    let read = |row: &Row| {
        Ok(Outbox {
            sink: row.try_get("sink")?,
            waiting: rows::number(row, "waiting")?,
            dead: rows::number(row, "dead")?,
        })
    };
    read::all(client, sql, &[], read).await
}

/// Writes only differences: an engine that starts as it did before writes nothing.
pub(super) async fn set_filed(client: &Client, rules: &BTreeMap<String, Json>, now: Time) -> Work<()> {
    let names: Vec<&str> = rules.keys().map(String::as_str).collect();
    let texts: Vec<String> = rules.values().map(Json::to_string).collect();
    let sql = "WITH gone AS (DELETE FROM filed_alerts WHERE name <> ALL ($1::text[]))
               INSERT INTO filed_alerts AS f (name, rule, updated_us)
               SELECT w.name, w.rule, $3 FROM unnest($1::text[], $2::text[]) AS w (name, rule) ORDER BY w.name
               ON CONFLICT (name) DO UPDATE SET rule = excluded.rule, updated_us = excluded.updated_us
                   WHERE f.rule <> excluded.rule";
    all(client, sql, &[&names, &texts, &now.us()]).await?;
    Ok(())
}
