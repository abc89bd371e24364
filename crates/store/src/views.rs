//! SQL views generated from the sources' kinds, so that anyone can open the database and read it.
//!
//! Pure text for both dialects. A view of a kind shows the records that somebody holds, unless the kind asks for those of
//! the past, too; a view of a stream shows its whole history. A field always keeps its name: a fixed column of the same name is left out.

mod alerts;
mod more;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use stakeout_core::cadence::FOCUS_PRIORITY;
use stakeout_core::{Field, FieldType, Kind, Stream};

/// Whose SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// One view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name, unquoted.
    pub name: String,
    /// The whole `CREATE VIEW` statement.
    pub sql: String,
}

/// A name that cannot be a table or a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be a name in SQL: expected lower-case letters, digits and underscores, not beginning with a digit"
)]
pub struct BadName(pub String);

/// An identifier in SQL.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// All views: one per kind and stream under the family's name, the bare name too where only one of them uses it and
/// no table has it, and the generic ones.
pub fn views(dialect: Dialect, kinds: &[Kind], tables: &[String]) -> Result<Vec<View>, BadName> {
    let mut full: BTreeMap<String, String> = BTreeMap::new();
    let mut bare: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in kinds {
        let names = [&kind.family, &kind.collection].into_iter().chain(kind.fields.iter().map(|f| &f.name));
        names.chain(kind.streams.iter().map(|s| &s.name)).try_for_each(|name| check(name))?;
        if !kind.views.iter().any(|view| view.name == kind.collection) {
            full.insert(kind.full_name(), kind_select(dialect, kind, Since::Held));
            bare.entry(kind.collection.clone()).or_default().push(kind.full_name());
        }
        for stream in &kind.streams {
            let name = format!("{}_{}", kind.family, stream.name);
            full.insert(name.clone(), stream_select(dialect, kind, stream));
            bare.entry(stream.name.clone()).or_default().push(name);
        }
        for view in &kind.views {
            let name = format!("{}_{}", kind.family, view.name);
            full.insert(name.clone(), more::select(dialect, kind, view)?);
            bare.entry(view.name.clone()).or_default().push(name);
        }
    }
    for (name, select) in generic(dialect) {
        full.insert(name.to_owned(), select);
    }
    let mut made: Vec<View> = Vec::new();
    for (name, select) in &full {
        made.push(create(name, select));
    }
    for (name, users) in bare {
        if let [only] = users.as_slice()
            && !full.contains_key(&name)
            && !tables.contains(&name)
        {
            made.push(create(&name, &format!("SELECT * FROM {}", quote(only))));
        }
    }
    Ok(made)
}

fn create(name: &str, select: &str) -> View {
    View { name: name.to_owned(), sql: format!("CREATE VIEW {} AS\n{select}", quote(name)) }
}

fn check(name: &str) -> Result<(), BadName> {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    let goes_on = chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if starts && goes_on { Ok(()) } else { Err(BadName(name.to_owned())) }
}

/// A field of a JSON column, in the type that its kind says.
fn field(dialect: Dialect, column: &str, name: &str, ty: FieldType) -> String {
    match dialect {
        Dialect::Sqlite => {
            let value = format!("json_extract({column}, '$.{name}')");
            match ty {
                FieldType::Int => format!("CAST({value} AS INTEGER)"),
                FieldType::Float => format!("CAST({value} AS REAL)"),
                FieldType::Bool | FieldType::Text | FieldType::Time | FieldType::Json => value,
            }
        }
        Dialect::Postgres => {
            let value = format!("({column}::jsonb ->> '{name}')");
            match ty {
                FieldType::Bool => format!("{value}::boolean"),
                FieldType::Int => format!("{value}::numeric::bigint"),
                FieldType::Float => format!("{value}::double precision"),
                FieldType::Text | FieldType::Time => value,
                FieldType::Json => format!("({column}::jsonb -> '{name}')"),
            }
        }
    }
}

/// Microseconds as RFC 3339 text, milliseconds precise.
fn iso(dialect: Dialect, column: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!(
            "strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000000, 'unixepoch') || printf('.%03dZ', {column} / 1000 % 1000)"
        ),
        Dialect::Postgres => format!(
            "to_char(to_timestamp({column} / 1000 / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
        ),
    }
}

fn hex(dialect: Dialect, column: &str) -> String {
    match dialect {
        Dialect::Sqlite => format!("lower(hex({column}))"),
        Dialect::Postgres => format!("encode({column}, 'hex')"),
    }
}

/// `SELECT` of columns, one per line.
#[derive(Default)]
struct Select(Vec<(String, String)>);

impl Select {
    /// Adds a column unless the name is taken.
    fn column(&mut self, expression: String, name: &str) {
        if !self.0.iter().any(|(_, taken)| taken == name) {
            self.0.push((expression, name.to_owned()));
        }
    }

    fn sql(&self, rest: &str) -> String {
        let mut sql = String::from("SELECT");
        for (n, (expression, name)) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let _ = write!(sql, "{comma}\n    {expression} AS {}", quote(name));
        }
        sql.push('\n');
        sql.push_str(rest);
        sql
    }
}

/// Which records of a kind are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Those that somebody holds.
    Held,
    /// Those that somebody ever held, until they are pruned; `withdrawn` ones only if asked for.
    Ever { withdrawn: bool },
}

fn kind_select(dialect: Dialect, kind: &Kind, since: Since) -> String {
    let mut select = Select::default();
    for Field { name, ty, .. } in &kind.fields {
        select.column(field(dialect, "r.body", name, *ty), name);
    }
    select.column("s.name".into(), "source");
    select.column("r.key".into(), "key");
    select.column(hex(dialect, "r.fingerprint"), "fingerprint");
    select.column("p.key".into(), "parent");
    select.column(iso(dialect, "r.first_seen_us"), "first_seen");
    select.column(iso(dialect, "r.changed_us"), "last_changed");
    let held = match since {
        Since::Held => " AND r.gone_us IS NULL",
        Since::Ever { withdrawn } => {
            select.column(iso(dialect, "r.gone_us"), "gone_at");
            // What went with what it hangs on went in the same commit.
            if withdrawn { "" } else { " AND (r.gone_us IS NULL OR r.gone_us >= p.gone_us)" }
        }
    };
    select.sql(&format!(
        "FROM records r\nJOIN sources s ON s.id = r.source_id\n\
         LEFT JOIN records p ON p.source_id = r.source_id AND p.fingerprint = r.parent\n\
         WHERE r.kind = '{}'{held}",
        kind.full_name()
    ))
}

fn stream_select(dialect: Dialect, kind: &Kind, stream: &Stream) -> String {
    let mut select = Select::default();
    let singular = kind.collection.strip_suffix('s').unwrap_or(&kind.collection);
    for name in &stream.fields {
        let ty = kind.position(name).map_or(FieldType::Json, |i| kind.fields[i].ty);
        select.column(field(dialect, "h.values_json", name, ty), name);
    }
    // The record comes first, as people read it, unless a field has its name.
    if !stream.fields.iter().any(|name| name == singular) {
        select.0.insert(0, ("r.key".into(), singular.to_owned()));
    }
    select.column(iso(dialect, "h.at_us"), "timestamp");
    // Moves between this row and the one before are lost.
    select.column("h.gap".into(), "gap");
    select.column("s.name".into(), "source");
    select.sql(&format!(
        "FROM history h\nJOIN records r ON r.source_id = h.source_id AND r.fingerprint = h.fingerprint\n\
         JOIN sources s ON s.id = h.source_id\n\
         WHERE h.stream = '{}' AND r.kind = '{}'",
        stream.name,
        kind.full_name()
    ))
}

/// The views that every database has.
fn generic(dialect: Dialect) -> [(&'static str, String); 5] {
    let mut targets = Select::default();
    targets.column("s.name".into(), "source");
    targets.column("t.key".into(), "target");
    targets.column("t.interval_us / 1000".into(), "interval_ms");
    // Whoever has the focus goes before everybody else.
    targets.column(format!("CASE WHEN t.focused THEN {FOCUS_PRIORITY} ELSE t.priority END"), "priority");
    targets.column(iso(dialect, "t.due_us"), "next_due_at");
    targets.column("t.enabled".into(), "enabled");
    targets.column(
        "CASE WHEN t.last_outcome = 'failed' THEN 'error' WHEN t.last_outcome IS NOT NULL THEN 'ok' END"
            .into(),
        "last_status",
    );
    targets.column(iso(dialect, "t.last_polled_us"), "last_fetched_at");
    let mut settings = Select::default();
    settings.column("key".into(), "key");
    settings.column("value".into(), "value");
    let mut kv = Select::default();
    kv.column("namespace".into(), "namespace");
    kv.column("key".into(), "key");
    kv.column("value".into(), "value");
    kv.column(iso(dialect, "updated_us"), "updated");
    let [rules, rung] = alerts::both(dialect);
    [
        ("client_kv", kv.sql("FROM kv")),
        ("ingest_targets", targets.sql("FROM targets t\nJOIN sources s ON s.id = t.source_id")),
        ("notifications", rung),
        ("server_settings", settings.sql("FROM settings")),
        ("user_alert_configs", rules),
    ]
}
