//! Looking around: pages of what is stored, windows of history, the ends of the event log. Nothing here writes, and
//! every read is bounded by its page.

use rusqlite::{Connection, Row};
use stakeout_core::{Fingerprint, Time};

use super::claim::source_id;
use super::fault::{Fault, Work};
use super::read::{self, Conditions, all, history_row};
use super::rows;
use crate::{
    FinishedRun, HistoryRow, HistoryWindow, KvRow, ListedPoll, ListedRecord, LogEnds, PollLog, RecordFilter,
    TargetId,
};

pub(super) fn records(conn: &Connection, filter: &RecordFilter) -> Work<Vec<ListedRecord>> {
    let Some(source_id) = source_id(conn, &filter.source)? else { return Ok(Vec::new()) };
    let mut conditions = Conditions::default();
    match (filter.parent, &filter.kind) {
        // Few hang on one record: its index first, whatever the kind.
        (Some(parent), kind) => {
            conditions.add("source_id = ?", source_id);
            conditions.add("parent = ?", parent.to_bytes());
            if let Some(kind) = kind {
                conditions.add("+kind = ?", kind.clone());
            }
        }
        // The rows of a kind are in order in its index; the plus keeps SQLite from choosing another one and sorting.
        (None, Some(kind)) => {
            conditions.add("kind = ?", kind.clone());
            conditions.add("+source_id = ?", source_id);
        }
        (None, None) => conditions.add("+source_id = ?", source_id),
    }
    if !filter.gone {
        conditions.add("(+gone_us IS NULL) = ?", true);
    }
    if let Some(after) = filter.after {
        conditions.add("id > ?", i64::try_from(after).unwrap_or(i64::MAX));
    }
    let sql = format!(
        "SELECT {}, id FROM records{} ORDER BY id LIMIT {}",
        read::RECORD,
        conditions.sql(),
        filter.limit
    );
    let read =
        |row: &Row<'_>| Ok(ListedRecord { row: rows::number(row, "id")?, record: read::stored_record(row)? });
    all(conn, &sql, &conditions.arguments(), read)
}

const HISTORY: &str = "SELECT at_us, stream, values_json, upstream, gap FROM history";

pub(super) fn history_between(
    conn: &Connection,
    window: &HistoryWindow,
    limit: u32,
) -> Work<Vec<HistoryRow>> {
    let Some(source_id) = source_id(conn, &window.source)? else { return Ok(Vec::new()) };
    let sql = format!(
        "{HISTORY} WHERE source_id = ?1 AND fingerprint = ?2 AND (?3 IS NULL OR stream = ?3)
             AND at_us >= ?4 AND at_us < ?5
         ORDER BY at_us, stream LIMIT ?6"
    );
    let print = window.record.to_bytes();
    all(
        conn,
        &sql,
        &[&source_id, &print, &window.stream, &window.from.us(), &window.to.us(), &limit],
        history_row,
    )
}

pub(super) fn history_points(
    conn: &Connection,
    window: &HistoryWindow,
    points: u32,
) -> Work<Vec<HistoryRow>> {
    let Some(source_id) = source_id(conn, &window.source)? else { return Ok(Vec::new()) };
    let width = ((window.to - window.from).as_us() / i64::from(points.max(1))).max(1);
    // With a lone max(), SQLite takes the other columns from the row that has it.
    let sql = "SELECT max(at_us) AS at_us, stream, values_json, upstream, gap FROM history
         WHERE source_id = ?1 AND fingerprint = ?2 AND (?3 IS NULL OR stream = ?3)
             AND at_us >= ?4 AND at_us < ?5
         GROUP BY stream, (at_us - ?4) / ?6 ORDER BY 1, stream";
    let print = window.record.to_bytes();
    all(
        conn,
        sql,
        &[&source_id, &print, &window.stream, &window.from.us(), &window.to.us(), &width],
        history_row,
    )
}

pub(super) fn history_at(
    conn: &Connection,
    source: &str,
    record: Fingerprint,
    at: Time,
) -> Work<Vec<HistoryRow>> {
    let Some(source_id) = source_id(conn, source)? else { return Ok(Vec::new()) };
    all(conn, HISTORY_AT, &[&source_id, &record.to_bytes(), &at.us()], history_row)
}

/// From stream to stream, which is why the joins are crossed: there are a few streams, and a record may have a million rows.
const HISTORY_AT: &str = "
    SELECT h.at_us, s.name AS stream, h.values_json, h.upstream, h.gap
    FROM records r CROSS JOIN history_streams s CROSS JOIN history_rows h ON h.record_id = r.id AND h.stream_id = s.id
        AND h.at_us =
            (SELECT max(at_us) FROM history_rows WHERE record_id = r.id AND stream_id = s.id AND at_us <= ?3)
    WHERE r.source_id = ?1 AND r.fingerprint = ?2 ORDER BY s.name";

pub(super) fn log_ends(conn: &Connection) -> Work<LogEnds> {
    let value = |key: &str| -> Work<u64> {
        let mut statement = conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        Ok(statement.query_row([key], |row| row.get::<_, i64>(0))? as u64)
    };
    Ok(LogEnds { newest: value("seq")?, pruned: value("pruned")? })
}

pub(super) fn kv(
    conn: &Connection,
    namespace: Option<String>,
    after: Option<(String, String)>,
    limit: u32,
) -> Work<Vec<KvRow>> {
    let sql = "SELECT namespace, key, value, updated_us FROM kv
               WHERE (?1 IS NULL OR namespace = ?1) AND (?2 IS NULL OR (namespace, key) > (?2, ?3))
               ORDER BY namespace, key LIMIT ?4";
    let (after, after_key) = after.unzip();
    let read = |row: &Row<'_>| {
        Ok(KvRow {
            namespace: row.get("namespace")?,
            key: row.get("key")?,
            value: rows::json(row, "value")?,
            updated: rows::time(row, "updated_us")?,
        })
    };
    all(conn, sql, &[&namespace, &after, &after_key, &limit], read)
}

pub(super) fn polls(conn: &Connection, before: Option<u64>, limit: u32) -> Work<Vec<ListedPoll>> {
    // Of a target that is gone its runs know whose it was.
    let sql = "SELECT polls.*, sources.name AS source, COALESCE(targets.key, runs.key) AS target,
                   targets.id IS NULL AS gone
               FROM polls LEFT JOIN targets ON targets.id = polls.target_id
               LEFT JOIN runs ON targets.id IS NULL AND runs.id = (
                   SELECT last.id FROM runs AS last WHERE last.target_id = polls.target_id
                   ORDER BY last.to_us DESC LIMIT 1)
               LEFT JOIN sources ON sources.id = COALESCE(targets.source_id, runs.source_id)
               WHERE polls.id < ?1 ORDER BY polls.id DESC LIMIT ?2";
    let read = |row: &Row<'_>| {
        Ok(ListedPoll {
            row: rows::number(row, "id")?,
            source: row.get("source")?,
            target: row.get("target")?,
            gone: row.get("gone")?,
            poll: read::poll_log(row)?,
        })
    };
    let before = before.and_then(|row| i64::try_from(row).ok()).unwrap_or(i64::MAX);
    all(conn, sql, &[&before, &limit], read)
}

pub(super) fn polls_between(
    conn: &Connection,
    target: TargetId,
    (from, to): (Time, Time),
    before: Option<u64>,
    limit: u32,
) -> Work<Vec<PollLog>> {
    let sql = "SELECT * FROM polls WHERE target_id = ?1 AND poll_no < ?2 AND sent_us BETWEEN ?3 AND ?4
               ORDER BY poll_no DESC LIMIT ?5";
    let before = before.and_then(|poll_no| i64::try_from(poll_no).ok()).unwrap_or(i64::MAX);
    all(conn, sql, &[&target.0, &before, &from.us(), &to.us(), &limit], read::poll_log)
}

pub(super) fn runs(
    conn: &Connection,
    source: &str,
    (from, to): (Time, Time),
    after: Option<u64>,
    limit: u32,
) -> Work<Vec<FinishedRun>> {
    let Some(source_id) = source_id(conn, source)? else { return Ok(Vec::new()) };
    // Runs are written about when they end, so the rows that end in the window lie close together.
    let sql = "SELECT id, key, body FROM runs
               WHERE source_id = ?1 AND to_us >= ?2 AND from_us <= ?3 AND id > ?4 ORDER BY id LIMIT ?5";
    let after = after.and_then(|row| i64::try_from(row).ok()).unwrap_or(0);
    let read = |row: &Row<'_>| {
        let body: String = row.get("body")?;
        let run = serde_json::from_str(&body).map_err(|e| Fault::Damaged(format!("a stored run: {e}")))?;
        Ok(FinishedRun { row: rows::number(row, "id")?, key: row.get("key")?, run })
    };
    all(conn, sql, &[&source_id, &from.us(), &to.us(), &after, &limit], read)
}

pub(super) fn polled_before(conn: &Connection, targets: &[TargetId], moment: Time) -> Work<Vec<TargetId>> {
    let mut statement = conn.prepare_cached(POLLED_BEFORE)?;
    let mut polled = Vec::new();
    for target in targets {
        if statement.query_row((target.0, moment.us()), |row| row.get(0))? {
            polled.push(*target);
        }
    }
    Ok(polled)
}

const POLLED_BEFORE: &str = "SELECT EXISTS (SELECT 1 FROM runs WHERE target_id = ?1 AND to_us < ?2)";

#[cfg(test)]
mod tests {
    use super::super::connect::plan;
    use super::*;

    #[test]
    fn what_was_known_at_a_moment_is_looked_up_stream_by_stream() {
        let plan = plan(HISTORY_AT);
        assert!(plan.contains("SCAN s") && !plan.contains("(record_id=?)"), "{plan}");
    }

    #[test]
    fn whether_a_target_was_polled_before_is_in_the_index() {
        let plan = plan(POLLED_BEFORE);
        assert!(plan.contains("COVERING INDEX runs_target (target_id=? AND to_us<?)"), "{plan}");
    }
}
