//! Forgetting, in small steps, so that the writer never stalls.
//!
//! A pass goes through the tables one after the other. Rows that must stay although they are old are passed by, and
//! the cursor remembers how far it got: each step looks at no more than a batch of rows, however many have to stay.

use rusqlite::{Connection, params};
use stakeout_core::Time;

use super::fault::Work;
use super::writer::Tx;
use crate::{Pruned, Retention};

/// Where a pass left off. Lost with the process, which only means that the next pass starts from the front.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    stage: usize,
    /// The last row looked at in this stage.
    after: After,
}

/// A place in the order of a stage: by a number, which is mostly a time, then by the row.
#[derive(Clone, Copy, Debug)]
struct After {
    number: i64,
    id: i64,
    stream_id: i64,
}

impl Default for After {
    fn default() -> After {
        After { number: i64::MIN, id: i64::MIN, stream_id: i64::MIN }
    }
}

/// What a step of a stage did.
struct Step {
    looked_at: u32,
    removed: u64,
}

type Stage = fn(&Connection, &mut After, &Retention, Time, u32) -> Work<Step>;

/// History goes before the records it belongs to, events before the notices about them.
const STAGES: [Stage; 6] = [events, polls, runs, notices, history, records];

/// Removes at most `batch` rows; answers how many, and whether the pass goes on.
pub(super) fn prune(
    tx: &mut Tx<'_>,
    cursor: &mut Cursor,
    retention: &Retention,
    now: Time,
    batch: u32,
) -> Work<Pruned> {
    let mut pruned = Pruned::default();
    let mut budget = batch.max(1);
    while let Some(stage) = STAGES.get(cursor.stage) {
        let step = stage(tx.conn, &mut cursor.after, retention, now, budget)?;
        pruned.rows += step.removed;
        if step.looked_at >= budget {
            pruned.more = true;
            return Ok(pruned);
        }
        budget -= step.looked_at;
        *cursor = Cursor { stage: cursor.stage + 1, ..Cursor::default() };
    }
    *cursor = Cursor::default();
    Ok(pruned)
}

/// Events in sequence order up to the first that is young enough; those still to be delivered are passed by.
fn events(conn: &Connection, after: &mut After, keep: &Retention, now: Time, budget: u32) -> Work<Step> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, at_us, EXISTS (SELECT 1 FROM deliveries WHERE deliveries.seq = events.seq) AS waiting
         FROM events WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut found = statement.query(params![after.number, budget])?;
    let mut step = Step { looked_at: 0, removed: 0 };
    let mut old = Vec::new();
    while let Some(row) = found.next()? {
        let (seq, at, waiting): (i64, i64, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if Time(at) > now - keep.events {
            break;
        }
        step.looked_at += 1;
        after.number = seq;
        if !waiting {
            old.push(seq);
        }
    }
    if let Some(newest) = old.last() {
        conn.prepare_cached("UPDATE meta SET value = max(value, ?1) WHERE key = 'pruned'")?
            .execute([newest])?;
    }
    for seq in old {
        step.removed += conn.prepare_cached("DELETE FROM events WHERE seq = ?1")?.execute([seq])? as u64;
    }
    Ok(step)
}

fn polls(conn: &Connection, _: &mut After, keep: &Retention, now: Time, budget: u32) -> Work<Step> {
    let select = "SELECT id, ended_us FROM polls ORDER BY id LIMIT ?1";
    oldest_first(conn, select, "DELETE FROM polls WHERE id <= ?1", now - keep.polls, budget)
}

fn runs(conn: &Connection, _: &mut After, keep: &Retention, now: Time, budget: u32) -> Work<Step> {
    let select = "SELECT id, to_us FROM runs ORDER BY id LIMIT ?1";
    oldest_first(conn, select, "DELETE FROM runs WHERE id <= ?1", now - keep.polls, budget)
}

/// Removes the front of a table that is in order of time.
fn oldest_first(conn: &Connection, select: &str, delete: &str, cutoff: Time, budget: u32) -> Work<Step> {
    let mut statement = conn.prepare_cached(select)?;
    let mut found = statement.query([budget])?;
    let mut last = None;
    while let Some(row) = found.next()? {
        if Time(row.get(1)?) > cutoff {
            break;
        }
        last = Some(row.get::<_, i64>(0)?);
    }
    drop(found);
    let removed = match last {
        Some(id) => conn.prepare_cached(delete)?.execute([id])?,
        None => 0,
    };
    Ok(Step { looked_at: removed as u32, removed: removed as u64 })
}

/// Notices whose quiet time is long over.
fn notices(conn: &Connection, _: &mut After, keep: &Retention, now: Time, budget: u32) -> Work<Step> {
    let removed = conn
        .prepare_cached(
            "DELETE FROM notices WHERE (source_id, rule, fingerprint) IN
                 (SELECT source_id, rule, fingerprint FROM notices WHERE until_us <= ?1 LIMIT ?2)",
        )?
        .execute(params![(now - keep.events).us(), budget])?;
    Ok(Step { looked_at: removed as u32, removed: removed as u64 })
}

/// History rows by time; the newest of each stream stays as long as somebody holds the record.
fn history(conn: &Connection, after: &mut After, keep: &Retention, now: Time, budget: u32) -> Work<Step> {
    let mut statement = conn.prepare_cached(
        "SELECT at_us, record_id, stream_id,
             EXISTS (SELECT 1 FROM records r WHERE r.id = h.record_id AND r.gone_us IS NULL)
             AND NOT EXISTS (SELECT 1 FROM history_rows n WHERE n.record_id = h.record_id
                 AND n.stream_id = h.stream_id AND n.at_us > h.at_us) AS stays
         FROM history_rows h
         WHERE at_us <= ?1 AND (at_us, record_id, stream_id) > (?2, ?3, ?4)
         ORDER BY at_us, record_id, stream_id LIMIT ?5",
    )?;
    let cutoff = (now - keep.history).us();
    let mut found = statement.query(params![cutoff, after.number, after.id, after.stream_id, budget])?;
    let mut step = Step { looked_at: 0, removed: 0 };
    let mut old = Vec::new();
    while let Some(row) = found.next()? {
        *after = After { number: row.get(0)?, id: row.get(1)?, stream_id: row.get(2)? };
        step.looked_at += 1;
        if !row.get::<_, bool>(3)? {
            old.push(*after);
        }
    }
    let mut delete = conn
        .prepare_cached("DELETE FROM history_rows WHERE record_id = ?1 AND stream_id = ?2 AND at_us = ?3")?;
    for row in old {
        step.removed += delete.execute(params![row.id, row.stream_id, row.number])? as u64;
    }
    Ok(step)
}

/// Records that nobody holds, once nothing refers to them: no history, no child, no event on its way.
fn records(conn: &Connection, after: &mut After, keep: &Retention, now: Time, budget: u32) -> Work<Step> {
    let mut statement = conn.prepare_cached(
        "SELECT id, gone_us,
             EXISTS (SELECT 1 FROM history_rows h WHERE h.record_id = r.id)
             OR EXISTS (SELECT 1 FROM records c WHERE c.source_id = r.source_id AND c.parent = r.fingerprint)
             OR EXISTS (SELECT 1 FROM events e JOIN deliveries d ON d.seq = e.seq
                 WHERE e.subject = r.fingerprint AND e.source_id = r.source_id) AS stays
         FROM records r
         WHERE gone_us <= ?1 AND (gone_us, id) > (?2, ?3) ORDER BY gone_us, id LIMIT ?4",
    )?;
    let mut found =
        statement.query(params![(now - keep.gone_records).us(), after.number, after.id, budget])?;
    let mut step = Step { looked_at: 0, removed: 0 };
    let mut old = Vec::new();
    while let Some(row) = found.next()? {
        step.looked_at += 1;
        (after.id, after.number) = (row.get(0)?, row.get(1)?);
        if !row.get::<_, bool>(2)? {
            old.push(after.id);
        }
    }
    for id in old {
        step.removed += conn.prepare_cached("DELETE FROM records WHERE id = ?1")?.execute([id])? as u64;
    }
    Ok(step)
}
