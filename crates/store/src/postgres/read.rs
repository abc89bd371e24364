//! Reading: records, history, events, polls. Nothing here writes.

use deadpool_postgres::GenericClient;
use stakeout_core::adherence::{Cause, Run};
use stakeout_core::{Event, Fingerprint, Snapshot, Time};
use tokio_postgres::Row;

use super::fault::{Fault, Work};
use super::{Parameter, rows};
use crate::{
    Delivery, EventFilter, HistoryRow, KvRow, PollLog, PollOutcome, Sibling, StoreStats, StoredRecord,
    TargetId,
};

/// Runs a query that stays prepared and reads every row.
pub(super) async fn all<T>(
    client: &impl GenericClient,
    sql: &str,
    parameters: &[Parameter<'_>],
    read: impl Fn(&Row) -> Work<T>,
) -> Work<Vec<T>> {
    let statement = client.prepare_cached(sql).await?;
    client.query(&statement, parameters).await?.iter().map(read).collect()
}

/// The columns that [`stored_record`] reads.
pub(super) const RECORD: &str =
    "r.kind, r.fingerprint, r.key, r.parent, r.group_print, r.content, r.body, r.holders,
    r.first_seen_us, r.changed_us, r.gone_us, r.gone_natural";

const OF_SOURCE: &str = "FROM records r JOIN sources s ON s.id = r.source_id";

/// In the order in which they were asked for.
pub(super) async fn records(
    client: &impl GenericClient,
    source: &str,
    prints: &[Fingerprint],
) -> Work<Vec<StoredRecord>> {
    let prints: Vec<[u8; 16]> = prints.iter().map(|print| print.to_bytes()).collect();
    let prints: Vec<&[u8]> = prints.iter().map(|print| print.as_slice()).collect();
    // Each by its key (`OFFSET` keeps it a query of its own): as a join this would be planned while there are few, and all
    // of them would be read for every poll until somebody analyses the table.
    let sql = format!(
        "SELECT {RECORD} FROM unnest($2::bytea[]) WITH ORDINALITY AS w (print, n) CROSS JOIN LATERAL (
             SELECT * FROM records WHERE source_id = (SELECT id FROM sources WHERE name = $1) AND fingerprint = w.print
             OFFSET 0
         ) AS r ORDER BY w.n"
    );
    all(client, &sql, &[&source, &prints], stored_record).await
}

/// The records with these parents and groups.
pub(super) async fn siblings(
    client: &impl GenericClient,
    source: &str,
    families: &[(Fingerprint, Fingerprint)],
) -> Work<Vec<Sibling>> {
    let bytes = |print: Fingerprint| print.to_bytes().to_vec();
    let (parents, groups): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
        families.iter().map(|(parent, group)| (bytes(*parent), bytes(*group))).unzip();
    let sql = "SELECT r.fingerprint, r.group_print, r.holders, r.gone_us, r.ends_us
        FROM unnest($2::bytea[], $3::bytea[]) AS w (parent, grp) CROSS JOIN LATERAL (
            SELECT fingerprint, group_print, holders, gone_us, ends_us FROM records
            WHERE source_id = (SELECT id FROM sources WHERE name = $1) AND parent = w.parent AND group_print = w.grp
            OFFSET 0
        ) AS r ORDER BY r.fingerprint";
    let read = |row: &Row| {
        Ok(Sibling {
            fingerprint: rows::print(row, "fingerprint")?,
            group: rows::print(row, "group_print")?,
            holders: rows::small(row, "holders")?,
            gone: rows::opt_time(row, "gone_us")?,
            ends: rows::opt_time(row, "ends_us")?,
        })
    };
    all(client, sql, &[&source, &parents, &groups], read).await
}

/// What a target holds.
pub(super) async fn snapshot(client: &impl GenericClient, target: TargetId) -> Work<Snapshot> {
    let sql = "SELECT body FROM snapshots WHERE target_id = $1";
    let read = |row: &Row| rows::snapshot(row, "body");
    Ok(all(client, sql, &[&target.0], read).await?.pop().unwrap_or_default())
}

/// The records of a kind that somebody holds, by key.
pub(super) async fn held(client: &impl GenericClient, source: &str, kind: &str) -> Work<Vec<StoredRecord>> {
    let sql = format!(
        "SELECT {RECORD} {OF_SOURCE} WHERE r.kind = $1 AND s.name = $2 AND r.holders > 0 ORDER BY r.key"
    );
    all(client, &sql, &[&kind, &source], stored_record).await
}

pub(super) fn stored_record(row: &Row) -> Work<StoredRecord> {
    Ok(StoredRecord {
        kind: row.try_get("kind")?,
        fingerprint: rows::print(row, "fingerprint")?,
        key: row.try_get("key")?,
        parent: rows::opt_print(row, "parent")?,
        group: rows::print(row, "group_print")?,
        content: rows::content(row, "content")?,
        body: rows::json(row, "body")?,
        holders: rows::small(row, "holders")?,
        first_seen: rows::time(row, "first_seen_us")?,
        last_changed: rows::time(row, "changed_us")?,
        gone: rows::opt_time(row, "gone_us")?,
        gone_natural: row.try_get("gone_natural")?,
    })
}

pub(super) async fn history(
    client: &impl GenericClient,
    source: &str,
    record: Fingerprint,
    stream: Option<&str>,
    limit: u32,
) -> Work<Vec<HistoryRow>> {
    let sql = format!(
        "SELECT {HISTORY} FROM history h JOIN sources s ON s.id = h.source_id
         WHERE s.name = $1 AND h.fingerprint = $2 AND ($3::text IS NULL OR h.stream = $3)
         ORDER BY h.at_us DESC, h.stream DESC LIMIT $4"
    );
    let print = record.to_bytes();
    let parameters: [Parameter<'_>; 4] = [&source, &print.as_slice(), &stream, &i64::from(limit)];
    let mut newest = all(client, &sql, &parameters, history_row).await?;
    newest.reverse();
    Ok(newest)
}

/// The columns that [`history_row`] reads.
pub(super) const HISTORY: &str = "h.at_us, h.stream, h.values_json, h.upstream, h.gap";

pub(super) fn history_row(row: &Row) -> Work<HistoryRow> {
    Ok(HistoryRow {
        at: rows::time(row, "at_us")?,
        stream: row.try_get("stream")?,
        values: rows::json(row, "values_json")?,
        upstream: row.try_get("upstream")?,
        gap: row.try_get("gap")?,
    })
}

pub(super) const EVENTS: &str = "
    SELECT e.seq, e.id, e.type, s.name AS source, e.target, e.rule, e.subject, e.subject_key, e.at_us, e.dedupe_key,
        e.data";

pub(super) fn event(row: &Row) -> Work<Event> {
    Ok(Event {
        seq: rows::number(row, "seq")?,
        id: rows::event_id(row, "id")?,
        event_type: row.try_get("type")?,
        source: row.try_get("source")?,
        target: row.try_get("target")?,
        rule: row.try_get("rule")?,
        subject: rows::print(row, "subject")?,
        subject_key: row.try_get("subject_key")?,
        at: rows::time(row, "at_us")?,
        dedupe_key: row.try_get("dedupe_key")?,
        data: rows::json(row, "data")?,
    })
}

/// Events above a number, in order.
pub(super) async fn events(
    client: &impl GenericClient,
    after: u64,
    filter: &EventFilter,
    limit: u32,
) -> Work<Vec<Event>> {
    events_beside(client, ("e.seq > $1", "e.seq"), after, filter, limit).await
}

/// Events below a number, the newest first.
pub(super) async fn newest_events(
    client: &impl GenericClient,
    before: u64,
    filter: &EventFilter,
    limit: u32,
) -> Work<Vec<Event>> {
    events_beside(client, ("e.seq < $1", "e.seq DESC"), before, filter, limit).await
}

/// Only what is asked for stands in the statement: a plan that has to do for anything reads the whole log.
async fn events_beside(
    client: &impl GenericClient,
    (place, order): (&str, &str),
    seq: u64,
    filter: &EventFilter,
    limit: u32,
) -> Work<Vec<Event>> {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let limit = i64::from(limit);
    let subject = filter.subject.map(|subject| subject.to_bytes().to_vec());
    let of_type = match filter.event_type.as_deref() {
        Some(prefix) if prefix.ends_with('.') => "starts_with(e.type, ?)",
        _ => "e.type = ?",
    };
    let mut parameters: Vec<Parameter<'_>> = vec![&seq, &limit];
    let mut conditions = vec![place.to_owned()];
    let mut add = |condition: &str, parameter| {
        parameters.push(parameter);
        conditions.push(condition.replace('?', &format!("${}", parameters.len())));
    };
    if let Some(source) = &filter.source {
        add("e.source_id = (SELECT id FROM sources WHERE name = ?)", source);
    }
    if let Some(target) = &filter.target {
        add("e.target = ?", target);
    }
    if let Some(event_type) = &filter.event_type {
        add(of_type, event_type);
    }
    if let Some(subject) = &subject {
        add("e.subject = ?", subject);
    }
    let sql = format!(
        "{EVENTS} FROM events e JOIN sources s ON s.id = e.source_id WHERE {} ORDER BY {order} LIMIT $2",
        conditions.join(" AND ")
    );
    all(client, &sql, &parameters, event).await
}

pub(super) async fn polls(client: &impl GenericClient, target: TargetId, limit: u32) -> Work<Vec<PollLog>> {
    let sql = "SELECT * FROM polls WHERE target_id = $1 ORDER BY poll_no DESC LIMIT $2";
    all(client, sql, &[&target.0, &i64::from(limit)], poll_log).await
}

pub(super) fn poll_log(row: &Row) -> Work<PollLog> {
    let cause = |column: &str| -> Work<Option<Cause>> {
        let word: Option<&str> = row.try_get(column)?;
        let parse = |word: &str| {
            Cause::parse(word)
                .ok_or_else(|| Fault::Damaged(format!("column {column}: no such cause: {word}")))
        };
        word.map(parse).transpose()
    };
    let outcome: &str = row.try_get("outcome")?;
    Ok(PollLog {
        poll_no: rows::number(row, "poll_no")?,
        due: rows::time(row, "due_us")?,
        sent: rows::time(row, "sent_us")?,
        ended: rows::time(row, "ended_us")?,
        phase: row.try_get("phase")?,
        outcome: PollOutcome::parse(outcome)
            .ok_or_else(|| Fault::Damaged(format!("no such outcome of a poll: {outcome}")))?,
        late: cause("late")?,
        missed: rows::number(row, "missed")?,
        missed_cause: cause("missed_cause")?,
        requests: rows::small(row, "requests")?,
        bytes: rows::number(row, "bytes")?,
        changes: rows::small(row, "changes")?,
        events: rows::small(row, "events")?,
        error_class: row.try_get("error_class")?,
        detail: row.try_get("detail")?,
    })
}

pub(super) async fn runs(
    client: &impl GenericClient,
    target: TargetId,
    from: Time,
    to: Time,
) -> Work<Vec<Run>> {
    let sql =
        "SELECT body FROM runs WHERE target_id = $1 AND to_us >= $2 AND from_us <= $3 ORDER BY from_us, id";
    all(client, sql, &[&target.0, &from.us(), &to.us()], run).await
}

pub(super) fn run(row: &Row) -> Work<Run> {
    serde_json::from_str(row.try_get("body")?).map_err(|e| Fault::Damaged(format!("a stored run: {e}")))
}

pub(super) async fn settings(client: &impl GenericClient) -> Work<Vec<(String, serde_json::Value)>> {
    let read = |row: &Row| Ok((row.try_get("key")?, rows::json(row, "value")?));
    all(client, "SELECT key, value FROM settings ORDER BY key", &[], read).await
}

pub(super) async fn kv(client: &impl GenericClient, namespace: &str, key: &str) -> Work<Option<KvRow>> {
    let sql = "SELECT namespace, key, value, updated_us FROM kv WHERE namespace = $1 AND key = $2";
    Ok(all(client, sql, &[&namespace, &key], kv_row).await?.pop())
}

pub(super) fn kv_row(row: &Row) -> Work<KvRow> {
    Ok(KvRow {
        namespace: row.try_get("namespace")?,
        key: row.try_get("key")?,
        value: rows::json(row, "value")?,
        updated: rows::time(row, "updated_us")?,
    })
}

pub(super) async fn deliveries(
    client: &impl GenericClient,
    sink: &str,
    now: Time,
    limit: u32,
) -> Work<Vec<Delivery>> {
    let sql = format!(
        "{EVENTS}, d.attempts FROM deliveries d JOIN events e ON e.seq = d.seq JOIN sources s ON s.id = e.source_id
         WHERE d.sink = $1 AND NOT d.dead AND d.retry_us <= $2 ORDER BY d.seq LIMIT $3"
    );
    let read = |row: &Row| Ok(Delivery { event: event(row)?, attempts: rows::small(row, "attempts")? });
    all(client, &sql, &[&sink, &now.us(), &i64::from(limit)], read).await
}

/// Tables with more than about a million rows are estimated.
pub(super) async fn stats(client: &impl GenericClient) -> Work<StoreStats> {
    let sql = "SELECT (SELECT count(*) FROM targets) AS targets,
            coalesce(stakeout_estimate('records'), (SELECT count(*) FROM records WHERE gone_us IS NULL)) AS records,
            coalesce(stakeout_estimate('events'), (SELECT count(*) FROM events)) AS events,
            coalesce(stakeout_estimate('history'), (SELECT count(*) FROM history)) AS history,
            pg_database_size(current_database()) AS bytes,
            (SELECT value FROM meta WHERE key = 'seq') AS seq,
            coalesce((SELECT min(seq) FROM events), (SELECT value FROM meta WHERE key = 'seq') + 1) AS oldest_seq";
    let read = |row: &Row| {
        Ok(StoreStats {
            targets: rows::number(row, "targets")?,
            records: rows::number(row, "records")?,
            events: rows::number(row, "events")?,
            history: rows::number(row, "history")?,
            bytes: rows::number(row, "bytes")?,
            seq: rows::number(row, "seq")?,
            oldest_seq: rows::number(row, "oldest_seq")?,
        })
    };
    Ok(all(client, sql, &[], read).await?.pop().unwrap_or_default())
}
