//! Reading: targets, records, history, events, polls. Nothing here writes.

use std::sync::LazyLock;

use rusqlite::{Connection, Row, ToSql, params};
use stakeout_core::adherence::{Cause, Run};
use stakeout_core::{Event, Fingerprint, Time};

use super::claim::source_id;
use super::fault::{Fault, Work};
use super::{events, rows};
use crate::{
    Delivery, EventFilter, HistoryRow, KvRow, PollLog, PollOutcome, Sibling, StoreStats, StoredRecord,
    TargetFilter, TargetId, TargetOrder, TargetRow,
};

static TARGETS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, {}, targets.{}, sources.name AS source, incarnation, listed_by, enabled, owner, lease_until_us,
             poll_no, plan_version, last_outcome, last_polled_us, last_changed_us, last_error,
             coalesce(snapshots.records, 0) AS records, coalesce(snapshots.version, 0) AS version
         FROM targets JOIN sources ON sources.id = targets.source_id
         LEFT JOIN snapshots ON snapshots.target_id = targets.id",
        rows::SCHEDULE,
        rows::SPEC,
        rows::STATE,
    )
});

fn target_row(row: &Row<'_>) -> Work<TargetRow> {
    let outcome: Option<String> = row.get("last_outcome")?;
    Ok(TargetRow {
        id: TargetId(row.get("id")?),
        source: row.get("source")?,
        spec: rows::spec(row, rows::SCHEDULE_COLUMNS)?,
        incarnation: rows::number(row, "incarnation")?,
        listed_by: row.get::<_, Option<i64>>("listed_by")?.map(TargetId),
        enabled: row.get("enabled")?,
        schedule: rows::schedule(row, 0)?,
        owner: row.get("owner")?,
        lease_until: rows::opt_time(row, "lease_until_us")?,
        poll_no: rows::number(row, "poll_no")?,
        plan_version: rows::number(row, "plan_version")?,
        last_outcome: outcome.as_deref().and_then(PollOutcome::parse),
        last_polled: rows::opt_time(row, "last_polled_us")?,
        last_changed: rows::opt_time(row, "last_changed_us")?,
        last_error: row.get("last_error")?,
        records: rows::number(row, "records")?,
        state: rows::state(row, rows::SCHEDULE_COLUMNS + rows::SPEC_COLUMNS, rows::number(row, "version")?)?,
    })
}

/// Runs a query and reads every row.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    arguments: &[&dyn ToSql],
    read: impl Fn(&Row<'_>) -> Work<T>,
) -> Work<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut found = statement.query(arguments)?;
    let mut result = Vec::new();
    while let Some(row) = found.next()? {
        result.push(read(row)?);
    }
    Ok(result)
}

/// Conditions of a query and their arguments; `?` stands for the argument.
#[derive(Default)]
pub(super) struct Conditions {
    sql: Vec<&'static str>,
    arguments: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    pub(super) fn add(&mut self, sql: &'static str, argument: impl ToSql + 'static) {
        self.sql.push(sql);
        self.arguments.push(Box::new(argument));
    }

    pub(super) fn sql(&self) -> String {
        if self.sql.is_empty() { String::new() } else { format!(" WHERE {}", self.sql.join(" AND ")) }
    }

    pub(super) fn arguments(&self) -> Vec<&dyn ToSql> {
        self.arguments.iter().map(Box::as_ref).collect()
    }
}

pub(super) fn targets(conn: &Connection, filter: &TargetFilter) -> Work<Vec<TargetRow>> {
    match filter.order {
        TargetOrder::Created => {
            let after = filter.after.map(|after| ("targets.id > ?", after.0));
            targets_by(conn, filter, None, "targets.id", after, filter.limit)
        }
        TargetOrder::Key => {
            let after =
                filter.after.map(|after| ("targets.key > (SELECT key FROM targets WHERE id = ?)", after.0));
            targets_by(conn, filter, None, "targets.key, targets.id", after, filter.limit)
        }
        TargetOrder::Due => targets_by_due(conn, filter),
    }
}

/// Those that will be claimed, by index, then those that never are.
fn targets_by_due(conn: &Connection, filter: &TargetFilter) -> Work<Vec<TargetRow>> {
    let wakes = match filter.after {
        None => true,
        Some(after) => conn
            .prepare_cached("SELECT 1 FROM targets WHERE id = ?1 AND wake_us IS NOT NULL")?
            .exists([after.0])?,
    };
    let mut found = Vec::new();
    if wakes {
        let place = "(targets.wake_us, targets.id) > (SELECT wake_us, id FROM targets WHERE id = ?)";
        let after = filter.after.map(|after| (place, after.0));
        let some = Some("targets.wake_us IS NOT NULL");
        found = targets_by(conn, filter, some, "targets.wake_us, targets.id", after, filter.limit)?;
    }
    let left = filter.limit.saturating_sub(found.len() as u32);
    if left > 0 {
        let after = filter.after.filter(|_| !wakes).map(|after| ("targets.id > ?", after.0));
        found.extend(targets_by(conn, filter, Some("targets.wake_us IS NULL"), "targets.id", after, left)?);
    }
    Ok(found)
}

/// Targets in an order, after a place in it.
fn targets_by(
    conn: &Connection,
    filter: &TargetFilter,
    only: Option<&'static str>,
    order: &str,
    after: Option<(&'static str, i64)>,
    limit: u32,
) -> Work<Vec<TargetRow>> {
    let mut conditions = Conditions::default();
    if let Some(source) = &filter.source {
        let Some(source_id) = source_id(conn, source)? else { return Ok(Vec::new()) };
        match filter.order {
            // The plus keeps SQLite from reading all of the source by another index and sorting it for every page.
            TargetOrder::Created => conditions.add("+targets.source_id = ?", source_id),
            TargetOrder::Due | TargetOrder::Key => conditions.add("targets.source_id = ?", source_id),
        }
    }
    if let Some(lister) = filter.listed_by {
        conditions.add("listed_by = ?", lister.0);
    }
    if let Some(part) = &filter.key_contains {
        conditions.add("instr(targets.key, ?) > 0", part.clone());
    }
    if let Some(enabled) = filter.enabled {
        conditions.add("targets.enabled = ?", enabled);
    }
    if let Some(failing) = filter.failing {
        conditions.add("(targets.last_error IS NOT NULL) = ?", failing);
    }
    if let Some(role) = &filter.role {
        conditions.add("targets.role = ?", role.clone());
    }
    if let Some(phase) = &filter.phase {
        conditions.add("targets.phase = ?", phase.clone());
    }
    if let Some((place, id)) = after {
        conditions.add(place, id);
    }
    let mut clauses = conditions.sql();
    if let Some(only) = only {
        clauses.push_str(if clauses.is_empty() { " WHERE " } else { " AND " });
        clauses.push_str(only);
    }
    let sql = format!("{}{clauses} ORDER BY {order} LIMIT {limit}", *TARGETS);
    all(conn, &sql, &conditions.arguments(), target_row)
}

pub(super) fn target(conn: &Connection, source: &str, key: &str) -> Work<Option<TargetRow>> {
    let sql = format!("{} WHERE sources.name = ?1 AND targets.key = ?2", *TARGETS);
    Ok(all(conn, &sql, &[&source, &key], target_row)?.pop())
}

/// The targets of a source that have the focus.
pub(super) fn focused(conn: &Connection, source_id: i64) -> Work<Vec<TargetRow>> {
    let sql = format!("{} WHERE targets.source_id = ?1 AND targets.focused ORDER BY targets.id", *TARGETS);
    all(conn, &sql, &[&source_id], target_row)
}

pub(super) fn records(conn: &Connection, source: &str, prints: &[Fingerprint]) -> Work<Vec<StoredRecord>> {
    let Some(source_id) = source_id(conn, source)? else { return Ok(Vec::new()) };
    let sql = format!("SELECT {RECORD} FROM records WHERE source_id = ?1 AND fingerprint = ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut result = Vec::with_capacity(prints.len());
    for print in prints {
        let mut found = statement.query(params![source_id, print.to_bytes()])?;
        if let Some(row) = found.next()? {
            result.push(stored_record(row)?);
        }
    }
    Ok(result)
}

/// The records with these parents and groups.
pub(super) fn siblings(
    conn: &Connection,
    source: &str,
    families: &[(Fingerprint, Fingerprint)],
) -> Work<Vec<Sibling>> {
    let Some(source_id) = source_id(conn, source)? else { return Ok(Vec::new()) };
    let sql = "SELECT fingerprint, group_print, holders, gone_us, ends_us FROM records
               WHERE source_id = ?1 AND parent = ?2 AND group_print = ?3";
    let read = |row: &Row<'_>| {
        Ok(Sibling {
            fingerprint: rows::print(row, 0)?,
            group: rows::print(row, 1)?,
            holders: row.get(2)?,
            gone: rows::opt_time(row, 3)?,
            ends: rows::opt_time(row, 4)?,
        })
    };
    let mut found = Vec::new();
    for (parent, group) in families {
        found.extend(all(conn, sql, &[&source_id, &parent.to_bytes(), &group.to_bytes()], read)?);
    }
    // Not by the query: SQLite would rather read all records in that order.
    found.sort_by_key(|sibling: &Sibling| sibling.fingerprint);
    Ok(found)
}

/// The records of a kind that somebody holds, by key.
pub(super) fn held(conn: &Connection, source_id: i64, kind: &str) -> Work<Vec<StoredRecord>> {
    let sql = format!(
        "SELECT {RECORD} FROM records WHERE kind = ?1 AND source_id = ?2 AND holders > 0 ORDER BY key"
    );
    all(conn, &sql, &[&kind, &source_id], stored_record)
}

/// The columns that [`stored_record`] reads, by position.
pub(super) const RECORD: &str = "kind, fingerprint, key, parent, group_print, content, body, holders, first_seen_us, \
    changed_us, gone_us, gone_natural";

pub(super) fn stored_record(row: &Row<'_>) -> Work<StoredRecord> {
    Ok(StoredRecord {
        kind: row.get(0)?,
        fingerprint: rows::print(row, 1)?,
        key: row.get(2)?,
        parent: rows::opt_print(row, 3)?,
        group: rows::print(row, 4)?,
        content: rows::content(row, 5)?,
        body: rows::body(row, 6)?,
        holders: row.get(7)?,
        first_seen: rows::time(row, 8)?,
        last_changed: rows::time(row, 9)?,
        gone: rows::opt_time(row, 10)?,
        gone_natural: row.get(11)?,
    })
}

pub(super) fn history(
    conn: &Connection,
    source: &str,
    record: Fingerprint,
    stream: Option<&str>,
    limit: u32,
) -> Work<Vec<HistoryRow>> {
    let Some(source_id) = source_id(conn, source)? else { return Ok(Vec::new()) };
    let sql = "SELECT at_us, stream, values_json, upstream, gap FROM history
               WHERE source_id = ?1 AND fingerprint = ?2 AND (?3 IS NULL OR stream = ?3)
               ORDER BY at_us DESC, stream DESC LIMIT ?4";
    let mut newest = all(conn, sql, &[&source_id, &record.to_bytes(), &stream, &limit], history_row)?;
    newest.reverse();
    Ok(newest)
}

pub(super) fn history_row(row: &Row<'_>) -> Work<HistoryRow> {
    Ok(HistoryRow {
        at: rows::time(row, "at_us")?,
        stream: row.get("stream")?,
        values: rows::json(row, "values_json")?,
        upstream: row.get("upstream")?,
        gap: row.get("gap")?,
    })
}

pub(super) fn events(conn: &Connection, after: u64, filter: &EventFilter, limit: u32) -> Work<Vec<Event>> {
    let mut conditions = event_conditions(filter);
    conditions.add("events.seq > ?", i64::try_from(after).unwrap_or(i64::MAX));
    let sql = format!("{} ORDER BY events.seq LIMIT {limit}", event_query(&conditions));
    all(conn, &sql, &conditions.arguments(), events::read)
}

pub(super) fn newest_events(
    conn: &Connection,
    before: u64,
    filter: &EventFilter,
    limit: u32,
) -> Work<Vec<Event>> {
    let mut conditions = event_conditions(filter);
    conditions.add("events.seq < ?", i64::try_from(before).unwrap_or(i64::MAX));
    let sql = format!("{} ORDER BY events.seq DESC LIMIT {limit}", event_query(&conditions));
    all(conn, &sql, &conditions.arguments(), events::read)
}

fn event_query(conditions: &Conditions) -> String {
    let (columns, conditions) = (events::COLUMNS, conditions.sql());
    format!("SELECT {columns} FROM events JOIN sources ON sources.id = events.source_id{conditions}")
}

fn event_conditions(filter: &EventFilter) -> Conditions {
    let mut conditions = Conditions::default();
    if let Some(source) = &filter.source {
        conditions.add("sources.name = ?", source.clone());
    }
    if let Some(event_type) = &filter.event_type {
        if event_type.ends_with('.') {
            // Not `GLOB` or `LIKE`: they would give some of its characters a meaning.
            conditions.add("instr(events.type, ?) = 1", event_type.clone());
        } else {
            conditions.add("events.type = ?", event_type.clone());
        }
    }
    if let Some(subject) = filter.subject {
        conditions.add("events.subject = ?", subject.to_bytes());
    }
    if let Some(target) = &filter.target {
        conditions.add("events.target = ?", target.clone());
    }
    conditions
}

pub(super) fn polls(conn: &Connection, target: TargetId, limit: u32) -> Work<Vec<PollLog>> {
    let sql = "SELECT * FROM polls WHERE target_id = ?1 ORDER BY poll_no DESC LIMIT ?2";
    all(conn, sql, &[&target.0, &limit], poll_log)
}

pub(super) fn poll_log(row: &Row<'_>) -> Work<PollLog> {
    let cause = |column: &str| -> Work<Option<Cause>> {
        let word: Option<String> = row.get(column)?;
        let parse = |word: String| {
            Cause::parse(&word)
                .ok_or_else(|| Fault::Damaged(format!("column {column}: no such cause: {word}")))
        };
        word.map(parse).transpose()
    };
    let outcome: String = row.get("outcome")?;
    Ok(PollLog {
        poll_no: rows::number(row, "poll_no")?,
        due: rows::time(row, "due_us")?,
        sent: rows::time(row, "sent_us")?,
        ended: rows::time(row, "ended_us")?,
        phase: row.get("phase")?,
        outcome: PollOutcome::parse(&outcome)
            .ok_or_else(|| Fault::Damaged(format!("no such outcome of a poll: {outcome}")))?,
        late: cause("late")?,
        missed: rows::number(row, "missed")?,
        missed_cause: cause("missed_cause")?,
        requests: row.get("requests")?,
        bytes: rows::number(row, "bytes")?,
        changes: row.get("changes")?,
        events: row.get("events")?,
        error_class: row.get("error_class")?,
        detail: row.get("detail")?,
    })
}

pub(super) fn runs(conn: &Connection, target: TargetId, from: Time, to: Time) -> Work<Vec<Run>> {
    let sql =
        "SELECT body FROM runs WHERE target_id = ?1 AND to_us >= ?2 AND from_us <= ?3 ORDER BY from_us, id";
    let read = |row: &Row<'_>| {
        let body: String = row.get("body")?;
        serde_json::from_str(&body).map_err(|e| Fault::Damaged(format!("a stored run: {e}")))
    };
    all(conn, sql, &[&target.0, &from.us(), &to.us()], read)
}

pub(super) fn settings(conn: &Connection) -> Work<Vec<(String, serde_json::Value)>> {
    let read = |row: &Row<'_>| Ok((row.get("key")?, rows::json(row, "value")?));
    all(conn, "SELECT key, value FROM settings ORDER BY key", &[], read)
}

pub(super) fn kv(conn: &Connection, namespace: &str, key: &str) -> Work<Option<KvRow>> {
    let sql = "SELECT namespace, key, value, updated_us FROM kv WHERE namespace = ?1 AND key = ?2";
    let read = |row: &Row<'_>| {
        Ok(KvRow {
            namespace: row.get("namespace")?,
            key: row.get("key")?,
            value: rows::json(row, "value")?,
            updated: rows::time(row, "updated_us")?,
        })
    };
    Ok(all(conn, sql, &[&namespace, &key], read)?.pop())
}

pub(super) fn deliveries(conn: &Connection, sink: &str, now: Time, limit: u32) -> Work<Vec<Delivery>> {
    let sql = format!(
        "SELECT {}, deliveries.attempts FROM deliveries JOIN events ON events.seq = deliveries.seq
         JOIN sources ON sources.id = events.source_id
         WHERE deliveries.sink = ?1 AND NOT deliveries.dead AND deliveries.retry_us <= ?2
         ORDER BY deliveries.seq LIMIT ?3",
        events::COLUMNS
    );
    let read = |row: &Row<'_>| Ok(Delivery { event: events::read(row)?, attempts: row.get("attempts")? });
    all(conn, &sql, &[&sink, &now.us(), &limit], read)
}

/// Everything but the bytes on disk, which the file system knows better.
pub(super) fn stats(conn: &Connection) -> Work<StoreStats> {
    let count = |sql: &str| -> Work<u64> {
        Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))? as u64)
    };
    let seq = count("SELECT value FROM meta WHERE key = 'seq'")?;
    let oldest: Option<i64> = conn.query_row("SELECT min(seq) FROM events", [], |row| row.get(0))?;
    Ok(StoreStats {
        targets: count("SELECT count(*) FROM targets")?,
        records: count("SELECT count(*) FROM records WHERE gone_us IS NULL")?,
        events: count("SELECT count(*) FROM events")?,
        history: count("SELECT count(*) FROM history_rows")?,
        bytes: count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
        seq,
        oldest_seq: oldest.map_or(seq + 1, |seq| seq as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::super::connect::plan;
    use super::*;

    #[test]
    fn what_was_told_of_a_target_is_found_by_the_target_in_the_order_of_the_log() {
        let of = |source: Option<&str>| {
            let (source, target) = (source.map(str::to_owned), Some("race/1".to_owned()));
            let conditions = event_conditions(&EventFilter { source, target, ..EventFilter::default() });
            plan(&format!("{} ORDER BY events.seq DESC LIMIT 20", event_query(&conditions)))
        };
        let known = of(Some("nz"));
        assert!(known.contains("events_target (target=? AND source_id=?)"), "{known}");
        assert!(!known.contains("TEMP B-TREE"), "{known}");
        assert!(of(None).contains("events_target (target=?)"), "{}", of(None));
    }
}
