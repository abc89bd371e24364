//! Opening a database: its settings, its schema version, and what can be wrong with it.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::fault::from_sqlite;
use crate::{Result, StoreError};

/// Append-only: the schema version is the length of this list, so a step that was ever released never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_begin.sql"),
    include_str!("../../migrations/sqlite/0002_interface.sql"),
    include_str!("../../migrations/sqlite/0003_alerts.sql"),
    include_str!("../../migrations/sqlite/0004_dedupe.sql"),
    include_str!("../../migrations/sqlite/0005_numbers.sql"),
    include_str!("../../migrations/sqlite/0006_events.sql"),
];

/// `stak`, so that `file` and we know whose database it is.
const APPLICATION_ID: i32 = 0x7374_616b;

/// The write-ahead log is copied into the database every so many pages. Polls rewrite the same rows again and again, so
/// the longer it waits, the less there is to copy; 32 MB is still copied in a moment.
const CHECKPOINT_PAGES: u32 = 8_000;
/// Checkpoints keep the log near 1,000 pages; after a burst it is cut back to this.
const WAL_BYTES_MAX: i64 = 64 << 20;

/// The pages of a database in memory are larger: nobody copies them to a disk, and SQLite goes through all of them after
/// every transaction in which one was divided.
const MEMORY_PAGE_BYTES: u32 = 8_192;

const STATEMENTS_CACHED: usize = 128;

/// The connection that writes, with the schema brought up to date.
pub(super) fn writer(path: &Path, max_page_count: Option<u32>) -> Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let say = |e: rusqlite::Error| from_sqlite(&e, path, "open the database");
    let mut conn = Connection::open_with_flags(path, flags).map_err(say)?;
    let found = check_identity(&conn, path)?;
    conn.pragma_update(None, "journal_mode", "WAL").map_err(say)?;
    conn.pragma_update(None, "journal_size_limit", WAL_BYTES_MAX).map_err(say)?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(say)?;
    conn.pragma_update(None, "cache_size", -32_000).map_err(say)?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(say)?;
    if let Some(pages) = max_page_count {
        conn.pragma_update(None, "max_page_count", pages).map_err(say)?;
    }
    prepare(&mut conn, found).map_err(say)?;
    Ok(conn)
}

/// A database that lives and dies with its only connection.
pub(super) fn memory() -> Result<Connection> {
    let say = |e: rusqlite::Error| from_sqlite(&e, Path::new(":memory:"), "open a database in memory");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_in_memory_with_flags(flags).map_err(say)?;
    conn.pragma_update(None, "page_size", MEMORY_PAGE_BYTES).map_err(say)?;
    prepare(&mut conn, 0).map_err(say)?;
    Ok(conn)
}

/// What SQLite writes for a statement, opcode by opcode: an index that is written shows as an insertion into it.
#[cfg(test)]
pub(super) fn writes_of(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN {sql}")).expect("a statement");
    for n in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(n, 1).expect("binds");
    }
    let mut rows = statement.raw_query();
    let mut written = Vec::new();
    while let Some(row) = rows.next().expect("row") {
        let opcode: String = row.get("opcode").expect("text");
        if opcode == "Insert" || opcode.starts_with("Idx") {
            written.push(opcode);
        }
    }
    written
}

/// How SQLite goes about a query, line by line.
#[cfg(test)]
pub(super) fn plan(sql: &str) -> String {
    let conn = memory().expect("opens");
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a query");
    for n in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(n, 1).expect("binds");
    }
    let mut rows = statement.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().expect("row") {
        plan += &row.get::<_, String>("detail").expect("text");
        plan.push('\n');
    }
    plan
}

/// Statements stay prepared: without this, SQLite plans many of them anew whenever a bound value changes, which costs
/// more than running them.
fn keep_plans(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    let say = |e: rusqlite::Error| from_sqlite(&e, path, "open the database for reading");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(say)?;
    conn.busy_timeout(std::time::Duration::from_secs(5)).map_err(say)?;
    if check_identity(&conn, path)? == 0 {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    keep_plans(&conn).map_err(say)?;
    Ok(conn)
}

/// The schema version, if this is a database of ours that we understand. An empty file is version 0.
fn check_identity(conn: &Connection, path: &Path) -> Result<u32> {
    let say = |e: rusqlite::Error| from_sqlite(&e, path, "read the database's header");
    let number = |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(say);
    let (application, found) = (number("application_id")?, number("user_version")? as u32);
    // Reads the schema, so a damaged first page is noticed now and not in the middle of the night.
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(say)?;
    if application != i64::from(APPLICATION_ID) && (application != 0 || tables > 0) {
        let message = "another program's database".to_owned();
        return Err(StoreError::Corrupt { path: path.to_owned(), message });
    }
    let known = MIGRATIONS.len() as u32;
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    Ok(found)
}

fn prepare(conn: &mut Connection, found: u32) -> rusqlite::Result<()> {
    keep_plans(conn)?;
    let steps = &MIGRATIONS[(found as usize).min(MIGRATIONS.len())..];
    if steps.is_empty() {
        return Ok(());
    }
    if found > 0 {
        tracing::info!(
            from = found,
            to = MIGRATIONS.len(),
            "bringing the database up to date, which takes a while if it is large"
        );
    }
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as u32)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_what_refers_to_them_survive_the_step_that_makes_their_table_anew() {
        const DEDUPE: usize = 3;
        let mut conn = Connection::open_in_memory().expect("opens");
        MIGRATIONS[..DEDUPE].iter().for_each(|step| conn.execute_batch(step).expect("a step"));
        let event = "INSERT INTO events (id, type, source_id, target, rule, subject, subject_key, at_us, dedupe_key, data)
            VALUES (randomblob(16), 'tables.drop', ?1, 'a', 'drop', x'01', 'x', 1, 'key', '{}')";
        conn.execute_batch(
            "INSERT INTO sources (id, name) VALUES (1, 'nyc'), (2, 'boston');
             CREATE VIEW told AS SELECT dedupe_key FROM events;",
        )
        .expect("two sources");
        conn.execute(event, [1]).expect("an event");
        conn.execute("INSERT INTO notifications_read SELECT seq, 2 FROM events", []).expect("a mark");

        prepare(&mut conn, DEDUPE as u32).expect("the step");
        let count = |what: &str| {
            conn.query_row(&format!("SELECT count(*) FROM {what}"), [], |row| row.get::<_, i64>(0))
        };
        assert_eq!((count("told"), count("notifications_read")), (Ok(1), Ok(1)));
        conn.execute(event, [1]).expect_err("the same key of the same source");
        conn.execute(event, [2]).expect("the same key of another source");
        conn.execute("DELETE FROM events", []).expect("deletes");
        assert_eq!(count("notifications_read"), Ok(0), "a mark still goes with its event");
    }

    #[test]
    fn history_survives_the_step_that_knows_its_records_by_number() {
        const NUMBERS: usize = 4;
        let mut conn = Connection::open_in_memory().expect("opens");
        MIGRATIONS[..NUMBERS].iter().for_each(|step| conn.execute_batch(step).expect("a step"));
        let record = "INSERT INTO records (source_id, fingerprint, kind, key, group_print, content, holders,
                first_seen_us, changed_us, seen_us, body)
            VALUES (?1, ?2, 'k', 'a', x'00', x'01', 1, 1, 1, 1, '{}')";
        let row = "INSERT INTO history (source_id, fingerprint, stream, at_us, upstream, gap, values_json)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        conn.execute_batch(
            "INSERT INTO sources (id, name) VALUES (1, 'nz'), (2, 'au');
             CREATE VIEW odds AS SELECT values_json FROM history WHERE stream = 'odds' ORDER BY at_us;",
        )
        .expect("two sources");
        // The same hash under two sources, two streams, several moments, in no order.
        for (source, print) in [(2, [7_u8; 16]), (1, [9; 16]), (1, [7; 16])] {
            conn.execute(record, rusqlite::params![source, print]).expect("a record");
            for (stream, at) in [("money", 2), ("odds", 3), ("odds", 1)] {
                let values = format!("{source} {} {stream} {at}", print[0]);
                let arguments = rusqlite::params![source, print, stream, at, at == 3, at == 1, values];
                conn.execute(row, arguments).expect("a row");
            }
        }
        let rows = |conn: &Connection| -> Vec<String> {
            let sql = "SELECT source_id || ' ' || hex(fingerprint) || ' ' || stream || ' ' || at_us || ' ' || upstream
                    || ' ' || gap || ' ' || values_json
                FROM history ORDER BY source_id, fingerprint, stream, at_us";
            let mut statement = conn.prepare(sql).expect("a query");
            let rows = statement.query_map([], |row| row.get(0)).expect("rows");
            rows.map(|row| row.expect("text")).collect()
        };
        let before = rows(&conn);
        assert_eq!(before.len(), 9);

        prepare(&mut conn, NUMBERS as u32).expect("the step");
        assert_eq!(rows(&conn), before);
        let odds: i64 = conn.query_row("SELECT count(*) FROM odds", [], |row| row.get(0)).expect("a view");
        assert_eq!(odds, 6, "what others made of it still reads");
    }
}
