//! The set of targets: what configuration and listings want, written only where it differs.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, named_params, params};
use stakeout_core::{TargetSpec, Time};

use super::claim::source_id;
use super::commit::{TargetNow, write_run};
use super::fault::{Fault, Work};
use super::writer::Tx;
use super::{records, rows};
use crate::{NewPlan, Reconcile, Reconciled, Refocus, Schedule, TargetId, TargetState, Wanted};

/// Replaces a schedule from outside: whoever holds the claim learns of it by the plan version, and the row cannot be
/// claimed before the lease ends.
const REPLAN: &str = "
    UPDATE targets SET due_us = :due, interval_us = :interval, phase = :phase, reason = :reason, slack_us = :slack,
        plan_version = plan_version + 1,
        wake_us = CASE WHEN NOT enabled THEN NULL WHEN owner IS NULL THEN :due ELSE max(lease_until_us, :due) END
    WHERE id = :id";

/// What became of a wanted target.
enum Upsert {
    Same,
    Created(i64),
    Updated,
    Replanned(i64),
}

/// Applies what a listing found. Roots are never retired by a listing, whatever it says.
pub(super) fn from_listing(
    tx: &mut Tx<'_>,
    lister: &TargetNow,
    changes: &Reconcile,
    now: Time,
    touched: &mut Vec<TargetId>,
) -> Work<()> {
    for wanted in &changes.upserts {
        match upsert(tx, lister.source_id, Some(lister.id), wanted)? {
            Upsert::Created(id) | Upsert::Replanned(id) => touched.push(TargetId(id)),
            Upsert::Same | Upsert::Updated => {}
        }
    }
    for key in &changes.retire {
        let mut statement =
            tx.conn.prepare_cached("SELECT id, listed_by FROM targets WHERE source_id = ?1 AND key = ?2")?;
        let found = statement
            .query_row(params![lister.source_id, key], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?)))
            .optional()?;
        match found {
            Some((id, _)) if id == lister.id => {
                return Err(Fault::Poison(format!("{key} lists its own removal")));
            }
            Some((id, Some(by))) if by == lister.id => {
                retire(tx.conn, lister.source_id, id, now)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Makes `desired` the whole set of root targets.
pub(super) fn roots(tx: &mut Tx<'_>, source: &str, desired: &[Wanted], now: Time) -> Work<Reconciled> {
    let source_id = intern_source(tx.conn, source)?;
    let mut result = Reconciled::default();
    for wanted in desired {
        match upsert(tx, source_id, None, wanted)? {
            Upsert::Created(_) => result.created += 1,
            Upsert::Updated | Upsert::Replanned(_) => result.updated += 1,
            Upsert::Same => {}
        }
    }
    let keep: HashSet<&str> = desired.iter().map(|wanted| wanted.spec.key.as_str()).collect();
    let mut statement =
        tx.conn.prepare_cached("SELECT id, key FROM targets WHERE source_id = ?1 AND listed_by IS NULL")?;
    let existing = statement.query_map([source_id], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let mut surplus = Vec::new();
    for root in existing {
        let (id, key): (i64, String) = root?;
        if !keep.contains(key.as_str()) {
            surplus.push(id);
        }
    }
    for id in surplus {
        result.retired += retire(tx.conn, source_id, id, now)?;
    }
    Ok(result)
}

fn intern_source(conn: &Connection, name: &str) -> Work<i64> {
    if let Some(id) = source_id(conn, name)? {
        return Ok(id);
    }
    conn.execute("INSERT INTO sources (name) VALUES (?1)", [name])?;
    Ok(conn.last_insert_rowid())
}

struct Existing {
    id: i64,
    hash: [u8; 16],
    start: Option<Time>,
    listed_by: Option<i64>,
}

fn upsert(tx: &mut Tx<'_>, source_id: i64, lister: Option<i64>, wanted: &Wanted) -> Work<Upsert> {
    let mut statement = tx.conn.prepare_cached(
        "SELECT id, spec_hash, start_us, listed_by FROM targets WHERE source_id = ?1 AND key = ?2",
    )?;
    let existing = statement
        .query_row(params![source_id, wanted.spec.key], |row| {
            Ok(Existing {
                id: row.get("id")?,
                hash: row.get("spec_hash")?,
                start: rows::opt_time(row, "start_us")?,
                listed_by: row.get("listed_by")?,
            })
        })
        .optional()?;
    drop(statement);
    let hash = wanted.spec.content().to_bytes();
    let Some(existing) = existing else {
        return create(tx, source_id, lister, wanted).map(Upsert::Created);
    };
    // A root stays a root; otherwise the last one to list a target is responsible for it.
    let adopted = existing.listed_by != lister && existing.listed_by.is_some();
    if adopted {
        tx.conn
            .prepare_cached("UPDATE targets SET listed_by = ?2 WHERE id = ?1")?
            .execute(params![existing.id, lister])?;
    }
    if existing.hash == hash {
        return Ok(if adopted { Upsert::Updated } else { Upsert::Same });
    }
    let spec = &wanted.spec;
    tx.conn
        .prepare_cached(
            "UPDATE targets SET role = ?2, params = ?3, priority = ?4, meaning = ?5, start_us = ?6, spec_hash = ?7,
                 plan_version = plan_version + 1
             WHERE id = ?1",
        )?
        .execute(params![
            existing.id,
            spec.role,
            spec.params.to_string(),
            spec.priority,
            spec.meaning as i64,
            rows::us(spec.start),
            hash
        ])?;
    if existing.start == spec.start {
        return Ok(Upsert::Updated);
    }
    // The listing knows better than the last poll until there is another one.
    tx.conn
        .prepare_cached("UPDATE targets SET state = json_set(state, '$.facts.start', ?2) WHERE id = ?1 AND json_valid(state)")?
        .execute(params![existing.id, spec.start.map(|start| start.to_string())])?;
    reschedule(tx.conn, existing.id, &wanted.schedule)?;
    Ok(Upsert::Replanned(existing.id))
}

/// What is known of a target before its first poll: what its listing says.
fn first_state(spec: &TargetSpec) -> TargetState {
    let mut state = TargetState::default();
    state.facts.start = spec.start;
    state
}

pub(super) fn create(tx: &mut Tx<'_>, source_id: i64, lister: Option<i64>, wanted: &Wanted) -> Work<i64> {
    let incarnation = tx.next_seq();
    let Wanted { spec, schedule } = wanted;
    let hash = spec.content().to_bytes();
    let enabled = !tx
        .conn
        .prepare_cached("SELECT 1 FROM switched_off WHERE source_id = ?1 AND key = ?2")?
        .exists(params![source_id, spec.key])?;
    tx.conn
        .prepare_cached(
            "INSERT INTO targets (source_id, key, role, params, priority, meaning, start_us, spec_hash, incarnation,
                 listed_by, due_us, interval_us, phase, reason, slack_us, wake_us, state, enabled)
             VALUES (:source, :key, :role, :params, :priority, :meaning, :start, :hash, :incarnation,
                 :lister, :due, :interval, :phase, :reason, :slack, CASE WHEN :enabled THEN :due END, :state,
                 :enabled)",
        )?
        .execute(named_params! {
            ":source": source_id,
            ":key": spec.key,
            ":role": spec.role,
            ":params": spec.params.to_string(),
            ":priority": spec.priority,
            ":meaning": spec.meaning as i64,
            ":start": rows::us(spec.start),
            ":hash": hash,
            ":incarnation": incarnation as i64,
            ":lister": lister,
            ":due": rows::us(schedule.due),
            ":interval": schedule.interval.as_us(),
            ":phase": schedule.phase,
            ":reason": schedule.reason,
            ":slack": schedule.slack.as_us(),
            ":state": serde_json::to_string(&first_state(spec))?,
            ":enabled": enabled,
        })?;
    Ok(tx.conn.last_insert_rowid())
}

/// Gives a target a new due time from outside; a row that is gone is passed over.
pub(super) fn reschedule(conn: &Connection, id: i64, schedule: &Schedule) -> Work<()> {
    conn.prepare_cached(REPLAN)?.execute(named_params! {
        ":due": rows::us(schedule.due),
        ":interval": schedule.interval.as_us(),
        ":phase": schedule.phase,
        ":reason": schedule.reason,
        ":slack": schedule.slack.as_us(),
        ":id": id,
    })?;
    Ok(())
}

/// Gives a target a new due time, unless something happened to it since it was read.
pub(super) fn replan_if_unchanged(conn: &Connection, plan: &NewPlan) -> Work<()> {
    let mut statement =
        conn.prepare_cached("SELECT 1 FROM targets WHERE id = ?1 AND plan_version = ?2 AND poll_no = ?3")?;
    let as_read = params![plan.target.0, plan.plan_version as i64, plan.poll_no as i64];
    if statement.exists(as_read)? { reschedule(conn, plan.target.0, &plan.schedule) } else { Ok(()) }
}

/// Gives or takes the focus; answers the target, if it exists.
pub(super) fn refocus(conn: &Connection, source_id: i64, refocus: &Refocus) -> Work<Option<TargetId>> {
    let schedule = &refocus.schedule;
    let mut statement = conn.prepare_cached(
        "UPDATE targets SET due_us = :due, interval_us = :interval, phase = :phase, reason = :reason,
             slack_us = :slack, focused = :focused, plan_version = plan_version + 1,
             wake_us = CASE WHEN NOT enabled THEN NULL WHEN owner IS NULL THEN :due ELSE max(lease_until_us, :due) END
         WHERE source_id = :source AND key = :key RETURNING id",
    )?;
    let arguments = named_params! {
        ":source": source_id,
        ":key": refocus.key,
        ":due": rows::us(schedule.due),
        ":interval": schedule.interval.as_us(),
        ":phase": schedule.phase,
        ":reason": schedule.reason,
        ":slack": schedule.slack.as_us(),
        ":focused": refocus.focused,
    };
    let found = statement.query_row(arguments, |row| row.get(0)).optional()?;
    Ok(found.map(TargetId))
}

/// Removes a target and everything it listed, letting go of their records; answers how many. Poll log and runs stay
/// until their retention ends: they are the proof of what was watched.
fn retire(conn: &Connection, source_id: i64, id: i64, now: Time) -> Work<u32> {
    let mut waiting = vec![id];
    let mut retired = 0;
    while let Some(id) = waiting.pop() {
        let mut listed =
            conn.prepare_cached("SELECT id FROM targets WHERE source_id = ?1 AND listed_by = ?2")?;
        for child in listed.query_map([source_id, id], |row| row.get(0))? {
            waiting.push(child?);
        }
        let (snapshot, _) = rows::snapshot(conn, id)?;
        for entry in snapshot.entries() {
            let natural = entry.ends.is_some_and(|ends| ends <= now);
            records::let_go(conn, source_id, entry.fingerprint, natural, now)?;
        }
        finish_run(conn, id)?;
        conn.prepare_cached("DELETE FROM snapshots WHERE target_id = ?1")?.execute([id])?;
        conn.prepare_cached("DELETE FROM samples WHERE target_id = ?1")?.execute([id])?;
        retired += conn.prepare_cached("DELETE FROM targets WHERE id = ?1")?.execute([id])? as u32;
    }
    Ok(retired)
}

/// The stretch of regular polling that was going on ends with its target.
fn finish_run(conn: &Connection, id: i64) -> Work<()> {
    let text: Option<String> = conn
        .prepare_cached("SELECT state FROM targets WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    // A state that no longer parses has lost its run, too; that must not keep the target.
    let state = text.and_then(|text| serde_json::from_str::<TargetState>(&text).ok());
    match state.and_then(|state| state.run) {
        Some(run) => write_run(conn, id, &run),
        None => Ok(()),
    }
}
