//! What follows from all of a source's records: read in one transaction, written in one, only where it differs.

use rusqlite::{Connection, OptionalExtension, params};
use stakeout_core::Time;

use super::claim::source_id;
use super::fault::Work;
use super::records::Effects;
use super::writer::Tx;
use super::{events, read, reconcile, rows};
use crate::{DeriveCommit, DeriveDone, DeriveOutcome, DerivedRecord, TargetId, Whole};

/// Everything a source holds of these kinds, at one moment.
pub(super) fn whole(
    conn: &Connection,
    source: &str,
    kinds: &[String],
    published: &[(String, String)],
) -> Work<Whole> {
    let moment = conn.unchecked_transaction()?;
    let mut whole = Whole::default();
    for (namespace, key) in published {
        whole.kv.extend(read::kv(&moment, namespace, key)?);
    }
    if let Some(source_id) = source_id(&moment, source)? {
        for kind in kinds {
            whole.records.extend(read::held(&moment, source_id, kind)?);
        }
        let mut keys = moment.prepare_cached("SELECT key FROM targets WHERE source_id = ?1 ORDER BY key")?;
        for key in keys.query_map([source_id], |row| row.get(0))? {
            whole.targets.push(key?);
        }
        whole.focused = read::focused(&moment, source_id)?;
    }
    Ok(whole)
}

/// Writes a derivation, unless something is another than it was read.
pub(super) fn write(tx: &mut Tx<'_>, derived: &DeriveCommit) -> Work<DeriveOutcome> {
    let Some(source_id) = source_id(tx.conn, &derived.source)? else { return Ok(DeriveOutcome::Conflict) };
    if !is_as_read(tx.conn, source_id, derived)? {
        return Ok(DeriveOutcome::Conflict);
    }
    let mut done = DeriveDone::default();
    if let Some(wanted) = &derived.create {
        done.touched.push(TargetId(reconcile::create(tx, source_id, None, wanted)?));
    }
    for refocus in &derived.refocus {
        done.touched.extend(reconcile::refocus(tx.conn, source_id, refocus)?);
    }
    for kv in &derived.kv {
        publish(tx.conn, &kv.namespace, &kv.key, &kv.value, derived.now)?;
    }
    for record in &derived.records {
        tx.conn
            .prepare_cached(
                "UPDATE records SET content = ?3, body = ?4, changed_us = ?5 WHERE source_id = ?1 AND fingerprint = ?2",
            )?
            .execute(params![
                source_id,
                record.fingerprint.to_bytes(),
                record.content.to_bytes(),
                record.body,
                derived.now.us()
            ])?;
    }
    let proposed = events::Proposed {
        source: &derived.source,
        source_id,
        target: DeriveCommit::TARGET,
        events: &derived.events,
        sinks: &derived.sinks,
    };
    done.events = events::write(tx, &proposed, &Effects::default())?;
    done.touched.sort_unstable();
    done.touched.dedup();
    Ok(DeriveOutcome::Done(done))
}

fn is_as_read(conn: &Connection, source_id: i64, derived: &DeriveCommit) -> Work<bool> {
    let focused: Vec<TargetId> = conn
        .prepare_cached("SELECT id FROM targets WHERE source_id = ?1 AND focused ORDER BY id")?
        .query_map([source_id], |row| row.get(0).map(TargetId))?
        .collect::<rusqlite::Result<_>>()?;
    if focused != derived.focused_before {
        return Ok(false);
    }
    if let Some(wanted) = &derived.create
        && conn
            .prepare_cached("SELECT 1 FROM targets WHERE source_id = ?1 AND key = ?2")?
            .exists(params![source_id, wanted.spec.key])?
    {
        return Ok(false);
    }
    for kv in &derived.kv {
        let now = read::kv(conn, &kv.namespace, &kv.key)?.map(|row| row.value);
        if now != kv.before {
            return Ok(false);
        }
    }
    for record in &derived.records {
        if !record_is_as_read(conn, source_id, record)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn record_is_as_read(conn: &Connection, source_id: i64, record: &DerivedRecord) -> Work<bool> {
    let mut statement = conn.prepare_cached(
        "SELECT content FROM records WHERE source_id = ?1 AND fingerprint = ?2 AND holders > 0",
    )?;
    let found = statement
        .query_row(params![source_id, record.fingerprint.to_bytes()], |row| rows::content(row, "content"))
        .optional()?;
    Ok(found == Some(record.base))
}

/// Publishes a value if it differs from what is there; answers whether it did.
pub(super) fn publish(
    conn: &Connection,
    namespace: &str,
    key: &str,
    value: &serde_json::Value,
    now: Time,
) -> Work<bool> {
    let changed = conn
        .prepare_cached(
            "INSERT INTO kv (namespace, key, value, updated_us) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET value = excluded.value, updated_us = excluded.updated_us
         WHERE value <> excluded.value",
        )?
        .execute(params![namespace, key, value.to_string(), now.us()])?;
    Ok(changed > 0)
}
