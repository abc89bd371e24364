//! The views that a kind has besides the one of what is held, or in its place: the past, lives, events, targets.

use stakeout_core::snapshot::ENTRY_BYTES;
use stakeout_core::{FieldType, Kind, KindView, Shows};

use super::{BadName, Dialect, Select, Since, check, field, hex, iso, kind_select};

pub(super) fn select(dialect: Dialect, kind: &Kind, view: &KindView) -> Result<String, BadName> {
    check(&view.name)?;
    match &view.shows {
        Shows::Past { withdrawn } => Ok(kind_select(dialect, kind, Since::Ever { withdrawn: *withdrawn })),
        Shows::Life => Ok(life(dialect, kind)),
        Shows::Events { event_type, target, subject, fields } => {
            [target, subject].into_iter().chain(fields.iter().map(|f| &f.name)).try_for_each(|n| check(n))?;
            let mut select = Select::default();
            select.column("e.target".into(), target);
            select.column(hex(dialect, "e.subject"), subject);
            for wanted in fields {
                select.column(field(dialect, "e.data", &wanted.name, wanted.ty), &wanted.name);
            }
            select.column("e.dedupe_key".into(), "dedupe_key");
            select.column("e.seq".into(), "seq");
            select.column(hex(dialect, "e.id"), "event_id");
            select.column(iso(dialect, "e.at_us"), "told_at");
            select.column("s.name".into(), "source");
            let event_type = event_type.replace('\'', "''");
            Ok(select.sql(&format!(
                "FROM events e\nJOIN sources s ON s.id = e.source_id\nWHERE e.type = '{event_type}'"
            )))
        }
        Shows::Targets { role, target, member } => {
            [target, member, role].into_iter().try_for_each(|name| check(name))?;
            Ok(targets(dialect, kind, role, target, member))
        }
    }
}

fn life(dialect: Dialect, kind: &Kind) -> String {
    let mut select = Select::default();
    for wanted in &kind.fields {
        select.column(field(dialect, "r.body", &wanted.name, wanted.ty), &wanted.name);
    }
    let natural = match dialect {
        Dialect::Sqlite => "r.gone_natural = 1",
        Dialect::Postgres => "r.gone_natural",
    };
    let state =
        format!("CASE WHEN r.gone_us IS NULL THEN 'open' WHEN {natural} THEN 'passed' ELSE 'closed' END");
    select.column(state, "state");
    select.column(iso(dialect, "r.first_seen_us"), "first_seen");
    select.column(iso(dialect, "r.changed_us"), "last_changed");
    select.column(iso(dialect, "r.gone_us"), "closed_at");
    select.column("s.name".into(), "source");
    select.sql(&format!(
        "FROM records r\nJOIN sources s ON s.id = r.source_id\nWHERE r.kind = '{}'",
        kind.full_name()
    ))
}

fn targets(dialect: Dialect, kind: &Kind, role: &str, target: &str, member: &str) -> String {
    let mut select = Select::default();
    select.column("t.key".into(), target);
    select.column(members(dialect, kind, "p.baseline"), &format!("baseline_{member}_ids_json"));
    select.column(members(dialect, kind, "p.body"), &format!("prev_{member}_ids_json"));
    // A failed poll is no scan: it is the last complete look that counts.
    select.column(field(dialect, "t.state", "looked", FieldType::Time), "last_scan_at");
    select.column("t.last_outcome".into(), "last_outcome");
    select.column("t.last_error".into(), "last_error");
    select.column("t.poll_no".into(), "polls");
    select.column("t.interval_us / 1000".into(), "interval_ms");
    select.column(iso(dialect, "t.due_us"), "next_due_at");
    select.column("t.enabled".into(), "enabled");
    select.column("s.name".into(), "source");
    select.sql(&format!(
        "FROM targets t\nJOIN sources s ON s.id = t.source_id\nLEFT JOIN snapshots p ON p.target_id = t.id\n\
         WHERE t.role = '{role}'"
    ))
}

/// The fingerprints of this kind in a stored snapshot, as a JSON list: the entries are of one size, sorted, each with
/// its fingerprint in front.
fn members(dialect: Dialect, kind: &Kind, blob: &str) -> String {
    let kind = kind.full_name();
    let of_kind = |print: &str| {
        format!(
            "EXISTS (SELECT 1 FROM records r WHERE r.source_id = t.source_id AND r.fingerprint = {print} AND r.kind = '{kind}')"
        )
    };
    match dialect {
        Dialect::Sqlite => {
            let print = format!("substr({blob}, n.i * {ENTRY_BYTES} + 1, 16)");
            format!(
                "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n \
                 WHERE (i + 1) * {ENTRY_BYTES} < length({blob}))\n     \
                 SELECT json_group_array(lower(hex({print}))) FROM n WHERE n.i * {ENTRY_BYTES} < length({blob}) \
                 AND {})",
                of_kind(&print)
            )
        }
        Dialect::Postgres => {
            let print = format!("substring({blob} FROM n.i * {ENTRY_BYTES} + 1 FOR 16)");
            format!(
                "(SELECT coalesce(json_agg(encode({print}, 'hex') ORDER BY n.i), '[]'::json)::text \
                 FROM generate_series(0, length({blob}) / {ENTRY_BYTES} - 1) AS n(i) WHERE {})",
                of_kind(&print)
            )
        }
    }
}
