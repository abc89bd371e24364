//! One poll becomes durable: everything it brings, or nothing.
//!
//! Order per target is (fencing token, poll number), never a clock. A poll that saw nothing new is one `UPDATE` of
//! one row, and touches no index as long as its lease stays.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, named_params, params};
use stakeout_core::Time;
use stakeout_core::adherence::{Cause, Run};

use super::fault::{Fault, Work};
use super::records::Effects;
use super::writer::Tx;
use super::{derived, events, history, reconcile, records, rows};
use crate::{CommitOutcome, Done, PollCommit, PollOutcome, Schedule};

/// Whether polls that share a transaction are guarded against each other. Savepoints cost more than most polls, and
/// polls that have to be undone alone are very rare: so the first try goes without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// A poll that is to blame ends the whole transaction with [`Fault::Unguarded`]; nothing is in.
    None,
    /// A poll that is to blame is undone alone, and that is its outcome.
    Savepoints,
}

/// Commits one poll. Any fault that is not its own ends the transaction.
pub(super) fn commit_poll(tx: &mut Tx<'_>, poll: &PollCommit, guard: Guard) -> Work<CommitOutcome> {
    if let Some(reason) = poll.nul() {
        return Ok(CommitOutcome::Poisoned(reason));
    }
    let result = if poll.is_schedule_only() {
        // A single statement is all or nothing by itself.
        reschedule(tx.conn, poll)
    } else if guard == Guard::None {
        return write_poll(tx, poll).map_err(|fault| match fault.into_poison() {
            Ok(_) => Fault::Unguarded,
            Err(fault) => fault,
        });
    } else {
        tx.savepoint(|tx| write_poll(tx, poll))
    };
    result.or_else(|fault| fault.into_outcome())
}

/// What a commit must know of its target's row.
pub(super) struct TargetNow {
    pub(super) id: i64,
    pub(super) source_id: i64,
    pub(super) key: String,
    fence: u64,
    poll_no: u64,
    plan_version: u64,
    enabled: bool,
    held: bool,
    wake: Option<i64>,
    schedule: Schedule,
    rebaseline: bool,
}

static TARGET_NOW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT id, source_id, key, fence, poll_no, plan_version, enabled, owner IS NOT NULL, rebaseline, wake_us, {}
         FROM targets WHERE id = ?1",
        rows::SCHEDULE,
    )
});

fn target_now(conn: &Connection, poll: &PollCommit) -> Work<Option<TargetNow>> {
    let mut statement = conn.prepare_cached(&TARGET_NOW)?;
    let found = statement.query_row([poll.target.0], |row| {
        Ok(TargetNow {
            id: row.get(0)?,
            source_id: row.get(1)?,
            key: row.get(2)?,
            fence: rows::number(row, 3)?,
            poll_no: rows::number(row, 4)?,
            plan_version: rows::number(row, 5)?,
            enabled: row.get(6)?,
            held: row.get(7)?,
            rebaseline: row.get(8)?,
            wake: row.get(9)?,
            schedule: rows::schedule(row, 10)?,
        })
    });
    Ok(found.optional()?)
}

/// Whether this poll may be written at all; if not, its outcome.
fn admit(conn: &Connection, poll: &PollCommit) -> Work<Result<TargetNow, CommitOutcome>> {
    Ok(match target_now(conn, poll)? {
        None => Err(CommitOutcome::Stale),
        Some(row) if row.fence != poll.fence => Err(CommitOutcome::Stale),
        Some(row) if row.poll_no == poll.poll_no => Err(CommitOutcome::AlreadyDone),
        Some(row) if row.poll_no > poll.poll_no => Err(CommitOutcome::Older),
        // The claim was given back: its token is still the newest, but nobody may use it.
        Some(row) if !row.held => Err(CommitOutcome::Stale),
        Some(row) => Ok(row),
    })
}

fn reschedule(conn: &Connection, poll: &PollCommit) -> Work<CommitOutcome> {
    let mut done = Done::default();
    let state = serde_json::to_string(&poll.state)?;
    if keep_place(conn, poll, &state, &mut done)? {
        return Ok(CommitOutcome::Done(done));
    }
    let row = match admit(conn, poll)? {
        Ok(row) => row,
        Err(outcome) => return Ok(outcome),
    };
    write_target(conn, poll, &state, row, &mut done)?;
    Ok(CommitOutcome::Done(done))
}

const KEEP_PLACE: &str = "
    UPDATE targets SET due_us = :due, interval_us = :interval, phase = :phase, reason = :reason,
        slack_us = :slack, lease_until_us = :lease, poll_no = :poll_no, last_polled_us = :now,
        last_changed_us = CASE WHEN :changed THEN :now ELSE last_changed_us END,
        last_outcome = :outcome, last_error = :error, state = :state, rebaseline = 0
    WHERE id = :id AND fence = :fence AND poll_no < :poll_no AND plan_version = :plan_version
        AND enabled AND owner IS NOT NULL AND wake_us = :wake";

/// The commonest commit: the lease stays as it was and nobody interfered, so neither the wake time nor the owner
/// changes and no index is touched. Answers whether it applied.
fn keep_place(conn: &Connection, poll: &PollCommit, state: &str, done: &mut Done) -> Work<bool> {
    if poll.hold_until.is_none() {
        return Ok(false);
    }
    let mut statement = conn.prepare_cached(KEEP_PLACE)?;
    let changed = statement.execute(named_params! {
        ":due": rows::us(poll.schedule.due),
        ":interval": poll.schedule.interval.as_us(),
        ":phase": poll.schedule.phase,
        ":reason": poll.schedule.reason,
        ":slack": poll.schedule.slack.as_us(),
        ":lease": rows::us(poll.hold_until),
        ":poll_no": poll.poll_no as i64,
        ":now": poll.now.us(),
        ":changed": poll.snapshot.is_some(),
        ":outcome": poll.outcome.name(),
        ":error": poll.error,
        ":state": state,
        ":id": poll.target.0,
        ":fence": poll.fence as i64,
        ":plan_version": poll.plan_version as i64,
        ":wake": wake(poll.hold_until, &poll.schedule),
    })?;
    if changed == 1 {
        done.schedule = poll.schedule.clone();
        done.plan_version = poll.plan_version;
        (done.enabled, done.held) = (true, true);
    }
    Ok(changed == 1)
}

/// When an enabled row can next be claimed.
fn wake(hold: Option<Time>, schedule: &Schedule) -> Option<i64> {
    let due = schedule.due?;
    Some(hold.map_or(due, |until| until.max(due)).us())
}

fn write_poll(tx: &mut Tx<'_>, poll: &PollCommit) -> Work<CommitOutcome> {
    let row = match admit(tx.conn, poll)? {
        Ok(row) => row,
        Err(outcome) => return Ok(outcome),
    };
    let mut done = Done::default();
    let mut effects = Effects::default();
    if !records::write(tx, row.source_id, poll, &mut effects)? {
        return Ok(CommitOutcome::Conflict);
    }
    done.history_rows = history::write(tx.conn, row.source_id, &poll.history, &effects)?;
    let proposed = events::Proposed {
        source: &poll.source,
        source_id: row.source_id,
        target: &row.key,
        events: &poll.events,
        sinks: &poll.sinks,
    };
    done.events = events::write(tx, &proposed, &effects)?;
    if let Some(changes) = &poll.reconcile {
        reconcile::from_listing(tx, &row, changes, poll.now, &mut done.touched)?;
    }
    for kv in &poll.kv {
        if derived::publish(tx.conn, &kv.namespace, &kv.key, &kv.value, poll.now)? {
            done.kv_changed.push((kv.namespace.clone(), kv.key.clone()));
        }
    }
    write_snapshot(tx.conn, poll)?;
    write_diagnostics(tx.conn, poll)?;
    // A listing may have re-planned its own target.
    let row = if done.touched.contains(&poll.target) {
        target_now(tx.conn, poll)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?
    } else {
        row
    };
    let state = serde_json::to_string(&poll.state)?;
    // Where the row wakes at another time, its place is another.
    let stays = row.wake == wake(poll.hold_until, &poll.schedule);
    if !stays || !keep_place(tx.conn, poll, &state, &mut done)? {
        write_target(tx.conn, poll, &state, row, &mut done)?;
    }
    Ok(CommitOutcome::Done(done))
}

fn write_target(
    conn: &Connection,
    poll: &PollCommit,
    state: &str,
    row: TargetNow,
    done: &mut Done,
) -> Work<()> {
    let own = row.plan_version == poll.plan_version;
    done.schedule = if own { poll.schedule.clone() } else { row.schedule };
    done.plan_version = row.plan_version;
    done.enabled = row.enabled;
    // Nobody polls a disabled target, and a holder whose plan was changed from outside has to read the row anew.
    let hold = poll.hold_until.filter(|_| row.enabled && own);
    done.held = hold.is_some();
    let schedule = &done.schedule;
    let mut statement = conn.prepare_cached(
        "UPDATE targets SET due_us = :due, interval_us = :interval, phase = :phase, reason = :reason,
             slack_us = :slack, lease_until_us = :lease, owner = CASE WHEN :lease IS NOT NULL THEN owner END,
             wake_us = :wake, poll_no = :poll_no, last_polled_us = :now,
             last_changed_us = CASE WHEN :changed THEN :now ELSE last_changed_us END,
             last_outcome = :outcome, last_error = :error, state = :state, rebaseline = :rebaseline
         WHERE id = :id",
    )?;
    statement.execute(named_params! {
        ":due": rows::us(schedule.due),
        ":interval": schedule.interval.as_us(),
        ":phase": schedule.phase,
        ":reason": schedule.reason,
        ":slack": schedule.slack.as_us(),
        ":lease": rows::us(hold),
        ":wake": if row.enabled { wake(hold, schedule) } else { None },
        ":poll_no": poll.poll_no as i64,
        ":now": poll.now.us(),
        ":changed": poll.snapshot.is_some(),
        ":outcome": poll.outcome.name(),
        ":error": poll.error,
        ":state": state,
        ":rebaseline": !own && row.rebaseline,
        ":id": row.id,
    })?;
    Ok(())
}

fn write_snapshot(conn: &Connection, poll: &PollCommit) -> Work<()> {
    let baseline = poll.outcome == PollOutcome::Baseline;
    let Some(snapshot) = &poll.snapshot else {
        if baseline {
            conn.prepare_cached("UPDATE snapshots SET baseline = body WHERE target_id = ?1")?
                .execute([poll.target.0])?;
        }
        return Ok(());
    };
    conn.prepare_cached(
        "INSERT INTO snapshots (target_id, version, records, body, baseline)
         VALUES (?1, ?2, ?3, ?4, CASE WHEN ?5 THEN ?4 END)
         ON CONFLICT DO UPDATE SET version = excluded.version, records = excluded.records, body = excluded.body,
             baseline = coalesce(excluded.baseline, baseline)",
    )?
    .execute(params![
        poll.target.0,
        poll.state.memory.version as i64,
        snapshot.len() as i64,
        snapshot.to_bytes(),
        baseline
    ])?;
    Ok(())
}

/// The log's line, a finished run, a sample of what was not understood.
fn write_diagnostics(conn: &Connection, poll: &PollCommit) -> Work<()> {
    if let Some(log) = &poll.log {
        conn.prepare_cached(
            "INSERT INTO polls (target_id, poll_no, due_us, sent_us, ended_us, phase, outcome, late, missed,
                 missed_cause, requests, bytes, changes, events, error_class, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            poll.target.0,
            log.poll_no as i64,
            log.due.us(),
            log.sent.us(),
            log.ended.us(),
            log.phase,
            log.outcome.name(),
            log.late.map(Cause::name),
            log.missed as i64,
            log.missed_cause.map(Cause::name),
            log.requests,
            log.bytes as i64,
            log.changes,
            log.events,
            log.error_class,
            log.detail,
        ])?;
    }
    if let Some(run) = &poll.finished_run {
        write_run(conn, poll.target.0, run)?;
    }
    if let Some(sample) = &poll.sample {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO samples (target_id, at_us, reason, content_type, body)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            poll.target.0,
            sample.at.us(),
            sample.reason,
            sample.content_type,
            sample.body
        ])?;
    }
    Ok(())
}

/// A finished run of a target that still exists.
pub(super) fn write_run(conn: &Connection, target: i64, run: &Run) -> Work<()> {
    conn.prepare_cached(
        "INSERT INTO runs (target_id, source_id, key, from_us, to_us, body)
         SELECT id, source_id, key, ?2, ?3, ?4 FROM targets WHERE id = ?1",
    )?
    .execute(params![target, run.from.us(), run.to.us(), serde_json::to_string(run)?])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::connect;
    use super::*;

    #[test]
    fn a_poll_that_keeps_its_place_writes_no_index() {
        let conn = connect::memory().expect("opens");
        let written = connect::writes_of(&conn, KEEP_PLACE);
        assert_eq!(written, ["Insert"], "one row of the table, nothing else");
    }
}
