//! The rules of alerts, and what has rung.

use stakeout_core::FieldType::{Bool, Json, Text};

use super::{Dialect, Select, field, hex, iso};

/// The rules in force, those of the file and live ones, and what they told.
pub(super) fn both(dialect: Dialect) -> [String; 2] {
    [rules(dialect), rung(dialect)]
}

fn rules(dialect: Dialect) -> String {
    let mut select = Select::default();
    select.column("a.name".into(), "name");
    let field = |name: &str, ty| field(dialect, "a.rule", name, ty);
    for (name, ty) in [("user", Text), ("source", Text)] {
        select.column(field(name, ty), name);
    }
    select.column(format!("coalesce({}, 'info')", field("severity", Text)), "severity");
    for (name, ty) in [("when", Json), ("sinks", Json), ("quiet", Text), ("repeat", Text), ("hours", Json)] {
        select.column(field(name, ty), name);
    }
    select.column(format!("coalesce({}, true)", field("enabled", Bool)), "enabled");
    select.column("a.origin".into(), "origin");
    select.column(iso(dialect, "a.updated_us"), "updated");
    let skip = "alert.".len() + 1;
    // A live rule goes before one of the same name in the file.
    select.sql(&format!(
        "FROM (SELECT substr(key, {skip}) AS name, value AS rule, updated_us, 'live' AS origin FROM settings\n\
         WHERE key LIKE 'alert.%'\n\
         UNION ALL SELECT f.name, f.rule, f.updated_us, 'file' FROM filed_alerts f\n\
         WHERE NOT EXISTS (SELECT 1 FROM settings s WHERE s.key = 'alert.' || f.name)) AS a"
    ))
}

fn rung(dialect: Dialect) -> String {
    let mut select = Select::default();
    select.column("e.seq".into(), "seq");
    for (name, ty) in [
        ("alert", Text),
        ("user", Text),
        ("severity", Text),
        ("title", Text),
        ("text", Text),
        ("about", Json),
    ] {
        select.column(field(dialect, "e.data", name, ty), name);
    }
    select.column("e.subject_key".into(), "subject");
    select.column("e.target".into(), "target");
    select.column("s.name".into(), "source");
    select.column(hex(dialect, "e.id"), "event_id");
    select.column(iso(dialect, "e.at_us"), "at");
    select.column(iso(dialect, "m.read_us"), "read_at");
    select.sql(&format!(
        "FROM events e\nJOIN sources s ON s.id = e.source_id\n\
         LEFT JOIN notifications_read m ON m.seq = e.seq\nWHERE e.type = '{}'",
        stakeout_core::alert::EVENT_TYPE
    ))
}
