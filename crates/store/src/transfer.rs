//! Moves everything from a file to a database server, whole or not at all.
//!
//! ```text
//! one reading of the file ─► one transaction on the server: schema, rows, read back and compared ─► commit
//! ```
//! The file is locked meanwhile and stays as it was. The server's database must be empty: two histories cannot become
//! one. What was written is read back before it is committed, and count and hash of every table must be those of the
//! file.

use std::path::Path;

use futures_util::{TryStreamExt as _, pin_mut};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use stakeout_core::ContentHash;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::postgres::{self, Fault, Work};
use crate::sqlite::{OpenOptions, SqliteStore};
use crate::{Result, StoreError};

/// In an order in which whatever is referred to is there.
const TABLES: [&str; 18] = [
    "meta",
    "sources",
    "targets",
    "snapshots",
    "records",
    "history",
    "events",
    "notices",
    "deliveries",
    "notifications_read",
    "polls",
    "runs",
    "samples",
    "switched_off",
    "settings",
    "filed_alerts",
    "kv",
    "tokens",
];

/// Rows between two words about the progress.
const STRIDE: u64 = 1_000;

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being moved or compared.
    pub table: &'static str,
    /// Whether it is read back by now.
    pub comparing: bool,
    /// Rows done, of all tables; each counts twice, for it is written and read back.
    pub done: u64,
    /// Rows in all, counted the same way.
    pub total: u64,
}

/// A table as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The table.
    pub table: &'static str,
    /// Its rows.
    pub rows: u64,
    /// A hash of all of them, in whatever order; the same on both sides.
    pub hash: u128,
}

/// Moves everything in the file at `from` to the empty database at `to`.
pub async fn transfer(from: &Path, to: &str, mut tell: impl FnMut(Progress)) -> Result<Vec<Moved>> {
    if !from.exists() {
        return Err(StoreError::Missing { path: from.to_owned() });
    }
    // Keeps the file ours, brings it up to date and frees what an earlier process had claimed.
    let owned = SqliteStore::open(from, OpenOptions::default())?;
    let file = crate::sqlite::reading(from)?;
    let moved = match postgres::session(to).await {
        Ok(mut server) => {
            let done = move_all(&file, from, &mut server, &mut tell).await;
            done.map_err(|fault| fault.into_store("move everything"))
        }
        Err(error) => Err(error),
    };
    drop(owned);
    moved
}

async fn move_all(
    file: &Connection,
    path: &Path,
    server: &mut Client,
    tell: &mut impl FnMut(Progress),
) -> Work<Vec<Moved>> {
    let read = |error: rusqlite::Error| Fault::Store(crate::sqlite::failed(&error, path, "read the file"));
    file.execute_batch("BEGIN").map_err(read)?;
    let mut total = 0;
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {table}");
        total += file.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(read)? as u64 * 2;
    }
    let transaction = server.transaction().await?;
    refuse_unless_empty(&transaction).await?;
    transaction.batch_execute(&postgres::whole_schema()).await?;
    transaction.batch_execute("DELETE FROM meta").await?;
    make_weeks(file, &transaction).await?;

    let mut done = 0;
    let mut moved = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let columns = columns(&transaction, table).await?;
        let mut progress =
            |comparing, rows: u64| tell(Progress { table, comparing, done: done + rows, total });
        let sent = write(file, &transaction, table, &columns, |rows| progress(false, rows)).await?;
        let found = read_back(&transaction, table, &columns, |rows| progress(true, sent.rows + rows)).await?;
        if sent != found {
            return Err(Fault::Damaged(format!(
                "{table} is not the same on both sides: {} rows were sent, {} arrived; nothing was kept",
                sent.rows, found.rows
            )));
        }
        done += sent.rows * 2;
        moved.push(Moved { table, rows: sent.rows, hash: sent.hash });
    }
    for table in ["sources", "targets", "records", "polls", "runs"] {
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM {table}"
        );
        transaction.query(&sql, &[]).await?;
    }
    transaction.commit().await?;
    // Nobody has looked at these tables yet: good plans need numbers.
    server.batch_execute("ANALYZE").await?;
    Ok(moved)
}

async fn refuse_unless_empty(transaction: &tokio_postgres::Transaction<'_>) -> Work<()> {
    let sql = "SELECT count(*), coalesce(min(relname::text), '') FROM pg_class
               WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')";
    let row = transaction.query_one(sql, &[]).await?;
    if row.try_get::<_, i64>(0)? == 0 {
        return Ok(());
    }
    let message = format!(
        "the database is not empty (it has {:?}): make a new one with CREATE DATABASE and name that",
        row.try_get::<_, &str>(1)?
    );
    Err(Fault::Store(StoreError::Database { doing: "move everything", message }))
}

/// Makes the weeks that the file's history lies in, so that it can be forgotten week by week.
async fn make_weeks(file: &Connection, transaction: &tokio_postgres::Transaction<'_>) -> Work<()> {
    // Five years: what lies outside has a time that is hardly true, and goes to the default.
    let sql = "SELECT DISTINCT at_us / 604800000000 FROM history
               WHERE abs(at_us - unixepoch() * 1000000) < 157680000000000 ORDER BY 1";
    let weeks =
        || -> rusqlite::Result<Vec<i64>> { file.prepare(sql)?.query_map([], |row| row.get(0))?.collect() };
    for week in weeks().map_err(|e| Fault::Damaged(e.to_string()))? {
        transaction.execute("SELECT stakeout_make_weeks($1)", &[&(week * 604_800_000_000)]).await?;
    }
    Ok(())
}

struct Column {
    name: String,
    kind: Type,
}

/// A table's columns as the server has them; the file's are called the same.
async fn columns(transaction: &tokio_postgres::Transaction<'_>, table: &str) -> Work<Vec<Column>> {
    let statement = transaction.prepare(&format!("SELECT * FROM {table}")).await?;
    let column = |c: &tokio_postgres::Column| Column { name: c.name().to_owned(), kind: c.type_().clone() };
    Ok(statement.columns().iter().map(column).collect())
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ")
}

/// What a table holds, in whatever order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    hash: u128,
}

impl Sum {
    fn add(&mut self, row: &[Cell]) {
        let mut bytes = Vec::new();
        row.iter().for_each(|cell| cell.write(&mut bytes));
        self.rows += 1;
        self.hash = self.hash.wrapping_add(ContentHash::of_bytes(&bytes).0);
    }
}

/// A value as both sides mean it.
enum Cell {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Unambiguous: every value says what it is and how long.
    fn write(&self, out: &mut Vec<u8>) {
        let (tag, bytes): (u8, &[u8]) = match self {
            Cell::Null => (0, &[]),
            Cell::Number(number) => {
                out.push(1);
                return out.extend(number.to_be_bytes());
            }
            Cell::Text(text) => (2, text.as_bytes()),
            Cell::Bytes(bytes) => (3, bytes),
        };
        out.push(tag);
        out.extend((bytes.len() as u64).to_be_bytes());
        out.extend(bytes);
    }

    fn of_file(value: ValueRef<'_>) -> std::result::Result<Cell, String> {
        Ok(match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Number(number),
            ValueRef::Text(text) => Cell::Text(String::from_utf8(text.to_vec()).map_err(|e| e.to_string())?),
            ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
            ValueRef::Real(number) => return Err(format!("{number} is no value of ours")),
        })
    }

    fn of_server(row: &Row, n: usize, kind: &Type) -> Work<Cell> {
        let number = |value: Option<i64>| value.map_or(Cell::Null, Cell::Number);
        Ok(match *kind {
            Type::INT8 => number(row.try_get(n)?),
            Type::INT4 => number(row.try_get::<_, Option<i32>>(n)?.map(i64::from)),
            Type::INT2 => number(row.try_get::<_, Option<i16>>(n)?.map(i64::from)),
            Type::BOOL => number(row.try_get::<_, Option<bool>>(n)?.map(i64::from)),
            Type::TEXT => row.try_get::<_, Option<String>>(n)?.map_or(Cell::Null, Cell::Text),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(n)?.map_or(Cell::Null, Cell::Bytes),
            _ => return Err(Fault::Damaged(format!("a column of type {kind}"))),
        })
    }

    /// The value as a column of that type takes it.
    fn to_server(&self, kind: &Type) -> std::result::Result<Box<dyn ToSql + Sync + Send + '_>, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("{what} does not go into a column of type {kind}");
        Ok(match (self, kind) {
            (Cell::Null, &Type::INT8) => Box::new(None::<i64>),
            (Cell::Null, &Type::INT4) => Box::new(None::<i32>),
            (Cell::Null, &Type::INT2) => Box::new(None::<i16>),
            (Cell::Null, &Type::BOOL) => Box::new(None::<bool>),
            (Cell::Null, &Type::BYTEA) => Box::new(None::<&[u8]>),
            (Cell::Null, _) => Box::new(None::<&str>),
            (Cell::Number(number), &Type::INT8) => Box::new(*number),
            (Cell::Number(number), &Type::INT4) => {
                Box::new(i32::try_from(*number).map_err(|_| wrong(number))?)
            }
            (Cell::Number(number), &Type::INT2) => {
                Box::new(i16::try_from(*number).map_err(|_| wrong(number))?)
            }
            (Cell::Number(number @ 0..=1), &Type::BOOL) => Box::new(*number == 1),
            (Cell::Text(text), &Type::TEXT) if !text.contains('\0') => Box::new(text.as_str()),
            (Cell::Bytes(bytes), &Type::BYTEA) => Box::new(bytes.as_slice()),
            (Cell::Number(number), _) => return Err(wrong(number)),
            (Cell::Text(_), &Type::TEXT) => {
                return Err(
                    "a NUL character, which the server cannot hold: replace it in the file".to_owned()
                );
            }
            (Cell::Text(_), _) => return Err(wrong(&"a text")),
            (Cell::Bytes(_), _) => return Err(wrong(&"a blob")),
        })
    }
}

/// So many of a row's columns say which one it is: those that tell rows apart come first.
const TELLING: usize = 4;

/// Which row it is, for whoever has to look it up in the file.
fn which(columns: &[Column], cells: &[Cell]) -> String {
    let told = columns.iter().zip(cells).take(TELLING).map(|(column, cell)| match cell {
        Cell::Null => format!("{} is null", column.name),
        Cell::Number(number) => format!("{} = {number}", column.name),
        Cell::Text(text) => format!("{} = {text:?}", column.name),
        Cell::Bytes(bytes) => {
            let digits: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            format!("{} = x'{digits}'", column.name)
        }
    });
    format!("the row where {}", told.collect::<Vec<_>>().join(" and "))
}

async fn write(
    file: &Connection,
    transaction: &tokio_postgres::Transaction<'_>,
    table: &str,
    columns: &[Column],
    mut tell: impl FnMut(u64),
) -> Work<Sum> {
    let names = names(columns);
    let damaged = |message: String| Fault::Damaged(format!("{table}: {message}"));
    let sink = transaction.copy_in(&format!("COPY {table} ({names}) FROM STDIN BINARY")).await?;
    let kinds: Vec<Type> = columns.iter().map(|column| column.kind.clone()).collect();
    let writer = BinaryCopyInWriter::new(sink, &kinds);
    pin_mut!(writer);
    let mut statement =
        file.prepare(&format!("SELECT {names} FROM {table}")).map_err(|e| damaged(e.to_string()))?;
    let mut rows = statement.query([]).map_err(|e| damaged(e.to_string()))?;
    let mut sum = Sum::default();
    while let Some(row) = rows.next().map_err(|e| damaged(e.to_string()))? {
        let cell = |n: usize| {
            let value = row.get_ref(n).map_err(|e| damaged(e.to_string()))?;
            Cell::of_file(value).map_err(damaged)
        };
        let cells = (0..columns.len()).map(cell).collect::<Work<Vec<Cell>>>()?;
        sum.add(&cells);
        let mut values = Vec::with_capacity(cells.len());
        for (cell, column) in cells.iter().zip(columns) {
            let wrong =
                |message| damaged(format!("{}, column {}: {message}", which(columns, &cells), column.name));
            values.push(cell.to_server(&column.kind).map_err(wrong)?);
        }
        writer.as_mut().write_raw(values.iter().map(|value| &**value as &(dyn ToSql + Sync))).await?;
        if sum.rows % STRIDE == 0 {
            tell(sum.rows);
        }
    }
    writer.finish().await?;
    tell(sum.rows);
    Ok(sum)
}

async fn read_back(
    transaction: &tokio_postgres::Transaction<'_>,
    table: &str,
    columns: &[Column],
    mut tell: impl FnMut(u64),
) -> Work<Sum> {
    let nothing: [&(dyn ToSql + Sync); 0] = [];
    let rows = transaction.query_raw(&format!("SELECT {} FROM {table}", names(columns)), nothing).await?;
    pin_mut!(rows);
    let mut sum = Sum::default();
    while let Some(row) = rows.try_next().await? {
        let cells = columns.iter().enumerate().map(|(n, column)| Cell::of_server(&row, n, &column.kind));
        sum.add(&cells.collect::<Work<Vec<Cell>>>()?);
        if sum.rows % STRIDE == 0 {
            tell(sum.rows);
        }
    }
    tell(sum.rows);
    Ok(sum)
}
