//! Events: proposed by polls, brought about here, each once.

use rusqlite::{Connection, OptionalExtension, Row, params};
use stakeout_core::Event;

use super::fault::{Fault, Work};
use super::records::{Effects, Happened};
use super::rows;
use super::writer::Tx;
use crate::{Effect, EventWrite};

/// Events as somebody proposes them, and where they come from.
pub(super) struct Proposed<'a> {
    pub(super) source: &'a str,
    pub(super) source_id: i64,
    pub(super) target: &'a str,
    pub(super) events: &'a [EventWrite],
    /// The sinks that each of them is to be delivered to.
    pub(super) sinks: &'a [String],
}

/// Writes the events whose conditions hold and their deliveries; answers them in sequence order.
pub(super) fn write(tx: &mut Tx<'_>, proposed: &Proposed<'_>, effects: &Effects) -> Work<Vec<Event>> {
    let mut told = Vec::new();
    for event in proposed.events {
        let happened = effects.get(&event.subject).copied().unwrap_or_default();
        if !holds(event, happened) {
            continue;
        }
        let data = serde_json::to_string(&event.data)?;
        let is_first =
            event.requires != Effect::AppearedFirst || is_first(tx.conn, proposed.source_id, event, effects)?;
        let comes_about = is_first
            && has_cause(tx.conn, event)?
            && !is_known(tx.conn, proposed, event, &data)?
            && !is_duplicate(tx.conn, proposed.source_id, event)?
            && claim_notice(tx.conn, proposed.source_id, event)?;
        if comes_about {
            told.push(insert(tx, proposed, event, data)?);
        }
    }
    Ok(told)
}

/// Whether what the event requires has happened to its subject.
fn holds(event: &EventWrite, happened: Happened) -> bool {
    let required = match event.requires {
        Effect::Any => true,
        Effect::Appeared | Effect::AppearedFirst => happened.appeared,
        Effect::Changed => happened.changed,
        Effect::Vanished => happened.vanished,
    };
    let unseen_long_enough = match (event.unseen_for, happened.gone_before) {
        (Some(span), Some(gone)) => event.at - gone >= span,
        _ => true,
    };
    required && unseen_long_enough
}

/// Whether nobody held another record of the subject's group and parent before this commit.
fn is_first(conn: &Connection, source_id: i64, event: &EventWrite, effects: &Effects) -> Work<bool> {
    let mut statement = conn.prepare_cached(
        "SELECT o.fingerprint FROM records r JOIN records o ON o.source_id = r.source_id AND o.parent = r.parent
             AND o.group_print = r.group_print AND o.gone_us IS NULL
         WHERE r.source_id = ?1 AND r.fingerprint = ?2",
    )?;
    let mut held = statement.query(params![source_id, event.subject.to_bytes()])?;
    while let Some(row) = held.next()? {
        // What came with it in the same commit was not there before either.
        let other = rows::print(row, "fingerprint")?;
        if !effects.get(&other).is_some_and(|happened| happened.appeared) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the event that this one follows from has come about.
fn has_cause(conn: &Connection, event: &EventWrite) -> Work<bool> {
    let Some(cause) = event.follows else { return Ok(true) };
    Ok(conn.prepare_cached("SELECT 1 FROM events WHERE id = ?1")?.exists([cause.to_bytes()])?)
}

/// Whether this very event is in the log; the same identity with other content is a mistake.
fn is_known(conn: &Connection, from: &Proposed<'_>, event: &EventWrite, data: &str) -> Work<bool> {
    let mut statement = conn.prepare_cached(
        "SELECT source_id, target, type, rule, subject, subject_key, data, dedupe_key FROM events WHERE id = ?1",
    )?;
    let same = |row: &Row<'_>| {
        let text = |column: usize| row.get::<_, String>(column);
        Ok(row.get::<_, i64>(0)? == from.source_id
            && rows::print(row, 4)? == event.subject
            && [text(1)?, text(2)?, text(3)?, text(5)?, text(6)?]
                == [from.target, &event.event_type, &event.rule, &event.subject_key, data]
            && row.get::<_, Option<String>>(7)? == event.dedupe_key)
    };
    match statement.query_row([event.id.to_bytes()], same).optional()? {
        None => Ok(false),
        Some(true) => Ok(true),
        Some(false) => Err(Fault::Poison(format!(
            "event {} of {}/{} exists with other content",
            event.id, from.source, from.target
        ))),
    }
}

/// Whether its source has told this under the same readable key.
fn is_duplicate(conn: &Connection, source_id: i64, event: &EventWrite) -> Work<bool> {
    let Some(key) = &event.dedupe_key else { return Ok(false) };
    let sql = "SELECT 1 FROM events WHERE source_id = ?1 AND dedupe_key = ?2";
    Ok(conn.prepare_cached(sql)?.exists(params![source_id, key])?)
}

/// Takes the right to tell this rule's event about this record; refused within the quiet time of the last one.
/// What is refused leaves no trace, so it does not extend the quiet time. An event in the future is from before the
/// clock was set back and keeps nobody quiet.
fn claim_notice(conn: &Connection, source_id: i64, event: &EventWrite) -> Work<bool> {
    let Some(quiet) = event.quiet else { return Ok(true) };
    let mut statement = conn.prepare_cached(
        "INSERT INTO notices (source_id, rule, fingerprint, at_us, until_us) VALUES (?1, ?2, ?3, ?4, ?4 + ?5)
         ON CONFLICT DO UPDATE SET at_us = excluded.at_us, until_us = excluded.until_us
             WHERE notices.at_us <= excluded.at_us - ?5 OR notices.at_us > excluded.at_us",
    )?;
    let changed = statement.execute(params![
        source_id,
        event.rule,
        event.subject.to_bytes(),
        event.at.us(),
        quiet.as_us()
    ])?;
    Ok(changed > 0)
}

fn insert(tx: &mut Tx<'_>, from: &Proposed<'_>, event: &EventWrite, data: String) -> Work<Event> {
    let seq = tx.next_seq();
    tx.conn
        .prepare_cached(
            "INSERT INTO events (seq, id, type, source_id, target, rule, subject, subject_key, at_us, dedupe_key,
                 data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            seq as i64,
            event.id.to_bytes(),
            event.event_type,
            from.source_id,
            from.target,
            event.rule,
            event.subject.to_bytes(),
            event.subject_key,
            event.at.us(),
            event.dedupe_key,
            data,
        ])?;
    for sink in from.sinks.iter().chain(&event.sinks) {
        tx.conn
            .prepare_cached("INSERT OR IGNORE INTO deliveries (sink, seq) VALUES (?1, ?2)")?
            .execute(params![sink, seq as i64])?;
    }
    Ok(Event {
        seq,
        id: event.id,
        event_type: event.event_type.clone(),
        source: from.source.to_owned(),
        target: from.target.to_owned(),
        rule: event.rule.clone(),
        subject: event.subject,
        subject_key: event.subject_key.clone(),
        at: event.at,
        dedupe_key: event.dedupe_key.clone(),
        data: event.data.clone(),
    })
}

/// The columns that [`read`] needs and nothing before them, from `events JOIN sources`.
pub(super) const COLUMNS: &str = "events.seq, events.id, events.type, sources.name AS source, events.target,
    events.rule, events.subject, events.subject_key, events.at_us, events.dedupe_key, events.data";

pub(super) fn read(row: &Row<'_>) -> Work<Event> {
    Ok(Event {
        seq: rows::number(row, 0)?,
        id: rows::event_id(row, 1)?,
        event_type: row.get(2)?,
        source: row.get(3)?,
        target: row.get(4)?,
        rule: row.get(5)?,
        subject: rows::print(row, 6)?,
        subject_key: row.get(7)?,
        at: rows::time(row, 8)?,
        dedupe_key: row.get(9)?,
        data: rows::json(row, 10)?,
    })
}
