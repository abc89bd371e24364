//! Looking around: pages of what is stored, windows of history, the ends of the event log. Nothing here writes, and
//! every read is bounded by its page.

use deadpool_postgres::GenericClient;
use stakeout_core::{Fingerprint, Time};
use tokio_postgres::Row;

use super::fault::Work;
use super::read::{self, all, history_row};
use super::targets::Conditions;
use super::{Parameter, rows};
use crate::{
    FinishedRun, HistoryRow, HistoryWindow, KvRow, ListedPoll, ListedRecord, LogEnds, PollLog, RecordFilter,
    TargetId,
};

pub(super) async fn records(client: &impl GenericClient, filter: &RecordFilter) -> Work<Vec<ListedRecord>> {
    let mut conditions = Conditions::default();
    conditions.add("r.source_id = (SELECT id FROM sources WHERE name = ?)", filter.source.clone());
    if let Some(parent) = filter.parent {
        conditions.add("r.parent = ?", parent.to_bytes().to_vec());
    }
    if let Some(kind) = &filter.kind {
        conditions.add("r.kind = ?", kind.clone());
    }
    if !filter.gone {
        conditions.always("r.gone_us IS NULL");
    }
    if let Some(after) = filter.after {
        conditions.add("r.id > ?", number(after));
    }
    let (columns, clauses) = (read::RECORD, conditions.sql());
    let sql = format!("SELECT r.id, {columns} FROM records r{clauses} ORDER BY r.id LIMIT {}", filter.limit);
    let read =
        |row: &Row| Ok(ListedRecord { row: rows::number(row, "id")?, record: read::stored_record(row)? });
    all(client, &sql, &conditions.parameters(), read).await
}

/// A row's number as the database counts; what is beyond that is beyond every row.
fn number(row: u64) -> i64 {
    i64::try_from(row).unwrap_or(i64::MAX)
}

/// The rows of a window: source, record, stream, from, to.
const WINDOW: &str = "
    FROM history h WHERE h.source_id = (SELECT id FROM sources WHERE name = $1) AND h.fingerprint = $2
        AND ($3::text IS NULL OR h.stream = $3) AND h.at_us >= $4 AND h.at_us < $5";

async fn in_window(
    client: &impl GenericClient,
    sql: &str,
    window: &HistoryWindow,
    last: Parameter<'_>,
) -> Work<Vec<HistoryRow>> {
    let print = window.record.to_bytes();
    let (from, to) = (window.from.us(), window.to.us());
    let parameters: [Parameter<'_>; 6] =
        [&window.source, &print.as_slice(), &window.stream, &from, &to, last];
    all(client, sql, &parameters, history_row).await
}

pub(super) async fn history_between(
    client: &impl GenericClient,
    window: &HistoryWindow,
    limit: u32,
) -> Work<Vec<HistoryRow>> {
    let sql = format!("SELECT {} {WINDOW} ORDER BY h.at_us, h.stream LIMIT $6", read::HISTORY);
    in_window(client, &sql, window, &i64::from(limit)).await
}

pub(super) async fn history_points(
    client: &impl GenericClient,
    window: &HistoryWindow,
    points: u32,
) -> Work<Vec<HistoryRow>> {
    let width = ((window.to - window.from).as_us() / i64::from(points.max(1))).max(1);
    let sql = format!(
        "SELECT * FROM (
             SELECT DISTINCT ON (h.stream, (h.at_us - $4) / $6) {} {WINDOW}
             ORDER BY h.stream, (h.at_us - $4) / $6, h.at_us DESC
         ) AS h ORDER BY h.at_us, h.stream",
        read::HISTORY
    );
    in_window(client, &sql, window, &width).await
}

pub(super) async fn history_at(
    client: &impl GenericClient,
    source: &str,
    record: Fingerprint,
    at: Time,
) -> Work<Vec<HistoryRow>> {
    // From stream to stream by index: a record has a few streams and may have a million rows.
    let sql = format!(
        "WITH RECURSIVE one AS (SELECT id FROM sources WHERE name = $1), streams AS (
             SELECT (SELECT min(h.stream) FROM history h
                 WHERE h.source_id = one.id AND h.fingerprint = $2) AS stream
             FROM one
             UNION ALL
             SELECT (SELECT min(h.stream) FROM history h
                 WHERE h.source_id = one.id AND h.fingerprint = $2 AND h.stream > s.stream)
             FROM streams s, one WHERE s.stream IS NOT NULL
         )
         SELECT newest.* FROM one, streams s, LATERAL (
             SELECT {} FROM history h
             WHERE h.source_id = one.id AND h.fingerprint = $2 AND h.stream = s.stream AND h.at_us <= $3
             ORDER BY h.at_us DESC LIMIT 1
         ) AS newest ORDER BY s.stream",
        read::HISTORY
    );
    let print = record.to_bytes();
    all(client, &sql, &[&source, &print.as_slice(), &at.us()], history_row).await
}

/// For each stream, until when the upstream has told it.
pub(super) async fn told_until(
    client: &impl GenericClient,
    source: &str,
    streams: &[(Fingerprint, String)],
) -> Work<Vec<Option<Time>>> {
    let prints: Vec<[u8; 16]> = streams.iter().map(|(print, _)| print.to_bytes()).collect();
    let prints: Vec<&[u8]> = prints.iter().map(|print| print.as_slice()).collect();
    let names: Vec<&str> = streams.iter().map(|(_, stream)| stream.as_str()).collect();
    let sql = "SELECT (SELECT h.at_us FROM history h
                   WHERE h.source_id = (SELECT id FROM sources WHERE name = $1) AND h.fingerprint = w.print
                       AND h.stream = w.stream AND h.upstream
                   ORDER BY h.at_us DESC LIMIT 1) AS at_us
               FROM unnest($2::bytea[], $3::text[]) WITH ORDINALITY AS w (print, stream, n) ORDER BY w.n";
    all(client, sql, &[&source, &prints, &names], |row| rows::opt_time(row, "at_us")).await
}

pub(super) async fn log_ends(client: &impl GenericClient) -> Work<LogEnds> {
    let sql = "SELECT (SELECT value FROM meta WHERE key = 'seq') AS newest,
                   (SELECT value FROM meta WHERE key = 'pruned') AS pruned";
    let read = |row: &Row| {
        Ok(LogEnds { newest: rows::number(row, "newest")?, pruned: rows::number(row, "pruned")? })
    };
    Ok(all(client, sql, &[], read).await?.pop().unwrap_or_default())
}

pub(super) async fn kv(
    client: &impl GenericClient,
    namespace: Option<&str>,
    after: Option<(&str, &str)>,
    limit: u32,
) -> Work<Vec<KvRow>> {
    let sql = "SELECT namespace, key, value, updated_us FROM kv
               WHERE ($1::text IS NULL OR namespace = $1)
                   AND ($2::text IS NULL OR (namespace, key) > ($2, $3::text))
               ORDER BY namespace, key LIMIT $4";
    let (after, after_key) = after.unzip();
    all(client, sql, &[&namespace, &after, &after_key, &i64::from(limit)], read::kv_row).await
}

pub(super) async fn polls(
    client: &impl GenericClient,
    before: Option<u64>,
    limit: u32,
) -> Work<Vec<ListedPoll>> {
    // Of a target that is gone its runs know whose it was.
    let sql = "SELECT p.*, s.name AS source, COALESCE(t.key, r.key) AS target, t.id IS NULL AS gone
               FROM polls p LEFT JOIN targets t ON t.id = p.target_id
               LEFT JOIN LATERAL (
                   SELECT source_id, key FROM runs WHERE t.id IS NULL AND target_id = p.target_id
                   ORDER BY to_us DESC LIMIT 1) r ON true
               LEFT JOIN sources s ON s.id = COALESCE(t.source_id, r.source_id)
               WHERE p.id < $1 ORDER BY p.id DESC LIMIT $2";
    let read = |row: &Row| {
        Ok(ListedPoll {
            row: rows::number(row, "id")?,
            source: row.try_get("source")?,
            target: row.try_get("target")?,
            gone: row.try_get("gone")?,
            poll: read::poll_log(row)?,
        })
    };
    all(client, sql, &[&before.map_or(i64::MAX, number), &i64::from(limit)], read).await
}

pub(super) async fn polls_between(
    client: &impl GenericClient,
    target: TargetId,
    (from, to): (Time, Time),
    before: Option<u64>,
    limit: u32,
) -> Work<Vec<PollLog>> {
    let sql = "SELECT * FROM polls WHERE target_id = $1 AND poll_no < $2 AND sent_us BETWEEN $3 AND $4
               ORDER BY poll_no DESC LIMIT $5";
    let before = before.map_or(i64::MAX, number);
    all(client, sql, &[&target.0, &before, &from.us(), &to.us(), &i64::from(limit)], read::poll_log).await
}

pub(super) async fn runs(
    client: &impl GenericClient,
    source: &str,
    (from, to): (Time, Time),
    after: Option<u64>,
    limit: u32,
) -> Work<Vec<FinishedRun>> {
    let sql = "SELECT id, key, body FROM runs WHERE source_id = (SELECT id FROM sources WHERE name = $1)
                   AND to_us >= $2 AND from_us <= $3 AND id > $4 ORDER BY id LIMIT $5";
    let read = |row: &Row| {
        Ok(FinishedRun { row: rows::number(row, "id")?, key: row.try_get("key")?, run: read::run(row)? })
    };
    let after = after.map_or(0, number);
    all(client, sql, &[&source, &from.us(), &to.us(), &after, &i64::from(limit)], read).await
}

pub(super) async fn polled_before(
    client: &impl GenericClient,
    targets: &[TargetId],
    moment: Time,
) -> Work<Vec<TargetId>> {
    // Target by target: its newest stretch before that is one step in its index.
    let sql = "SELECT t.id FROM unnest($1::bigint[]) AS t (id) CROSS JOIN LATERAL
                   (SELECT 1 FROM runs WHERE target_id = t.id AND to_us < $2 ORDER BY to_us DESC LIMIT 1) AS r";
    let targets: Vec<i64> = targets.iter().map(|target| target.0).collect();
    all(client, sql, &[&targets, &moment.us()], |row| Ok(TargetId(row.try_get("id")?))).await
}
