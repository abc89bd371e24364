//! The generated views: their text in both dialects, and what SQLite answers through them.

use std::path::PathBuf;
use std::sync::Arc;

use stakeout_core::{ContentHash, Field, FieldType, Fingerprint, Kind, KindView, Shows, Stream};
use stakeout_store::conformance::story::{Poll, World, at};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::views::{BadName, Dialect, views};
use stakeout_store::{DeriveCommit, Effect, EventWrite, HistoryWrite, KvWrite, ReadMark, RecordWrite, Stamp};
use tempfile::TempDir;

fn entrants() -> Kind {
    Kind {
        family: "racing".into(),
        collection: "entrants".into(),
        version: 1,
        fields: vec![
            Field::new("name", FieldType::Text),
            Field::new("win", FieldType::Float),
            Field::new("scratched", FieldType::Bool),
        ],
        streams: vec![Stream { name: "odds_history".into(), fields: vec!["win".into()] }],
        merges: false,
        views: vec![],
        layout: Default::default(),
    }
}

fn plain(family: &str, collection: &str) -> Kind {
    let fields = vec![Field::new("order", FieldType::Int), Field::new("source", FieldType::Text)];
    Kind {
        family: family.into(),
        collection: collection.into(),
        version: 1,
        fields,
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    }
}

fn sql(dialect: Dialect, name: &str) -> String {
    let made = views(dialect, &[entrants()], &[]).expect("names are fine");
    made.into_iter().find(|view| view.name == name).expect("it is made").sql
}

#[test]
fn a_kind_in_sqlite() {
    let expected = r#"CREATE VIEW "racing_entrants" AS
SELECT
    json_extract(r.body, '$.name') AS "name",
    CAST(json_extract(r.body, '$.win') AS REAL) AS "win",
    json_extract(r.body, '$.scratched') AS "scratched",
    s.name AS "source",
    r.key AS "key",
    lower(hex(r.fingerprint)) AS "fingerprint",
    p.key AS "parent",
    strftime('%Y-%m-%dT%H:%M:%S', r.first_seen_us / 1000000, 'unixepoch') || printf('.%03dZ', r.first_seen_us / 1000 % 1000) AS "first_seen",
    strftime('%Y-%m-%dT%H:%M:%S', r.changed_us / 1000000, 'unixepoch') || printf('.%03dZ', r.changed_us / 1000 % 1000) AS "last_changed"
FROM records r
JOIN sources s ON s.id = r.source_id
LEFT JOIN records p ON p.source_id = r.source_id AND p.fingerprint = r.parent
WHERE r.kind = 'racing_entrants' AND r.gone_us IS NULL"#;
    assert_eq!(sql(Dialect::Sqlite, "racing_entrants"), expected);
}

#[test]
fn a_kind_in_postgresql() {
    let expected = r#"CREATE VIEW "racing_entrants" AS
SELECT
    (r.body::jsonb ->> 'name') AS "name",
    (r.body::jsonb ->> 'win')::double precision AS "win",
    (r.body::jsonb ->> 'scratched')::boolean AS "scratched",
    s.name AS "source",
    r.key AS "key",
    encode(r.fingerprint, 'hex') AS "fingerprint",
    p.key AS "parent",
    to_char(to_timestamp(r.first_seen_us / 1000 / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "first_seen",
    to_char(to_timestamp(r.changed_us / 1000 / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "last_changed"
FROM records r
JOIN sources s ON s.id = r.source_id
LEFT JOIN records p ON p.source_id = r.source_id AND p.fingerprint = r.parent
WHERE r.kind = 'racing_entrants' AND r.gone_us IS NULL"#;
    assert_eq!(sql(Dialect::Postgres, "racing_entrants"), expected);
}

#[test]
fn a_stream_in_both() {
    let rest = r#"
FROM history h
JOIN records r ON r.source_id = h.source_id AND r.fingerprint = h.fingerprint
JOIN sources s ON s.id = h.source_id
WHERE h.stream = 'odds_history' AND r.kind = 'racing_entrants'"#;
    let sqlite = r#"CREATE VIEW "racing_odds_history" AS
SELECT
    r.key AS "entrant",
    CAST(json_extract(h.values_json, '$.win') AS REAL) AS "win",
    strftime('%Y-%m-%dT%H:%M:%S', h.at_us / 1000000, 'unixepoch') || printf('.%03dZ', h.at_us / 1000 % 1000) AS "timestamp",
    h.gap AS "gap",
    s.name AS "source""#;
    assert_eq!(sql(Dialect::Sqlite, "racing_odds_history"), format!("{sqlite}{rest}"));
    let postgres = r#"CREATE VIEW "racing_odds_history" AS
SELECT
    r.key AS "entrant",
    (h.values_json::jsonb ->> 'win')::double precision AS "win",
    to_char(to_timestamp(h.at_us / 1000 / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS "timestamp",
    h.gap AS "gap",
    s.name AS "source""#;
    assert_eq!(sql(Dialect::Postgres, "racing_odds_history"), format!("{postgres}{rest}"));
}

fn names(kinds: &[Kind], tables: &[&str]) -> Vec<String> {
    let tables: Vec<String> = tables.iter().map(|table| (*table).to_owned()).collect();
    let made = views(Dialect::Sqlite, kinds, &tables).expect("names are fine");
    made.into_iter().map(|view| view.name).collect()
}

#[test]
fn bare_names_belong_to_whoever_is_alone_with_them() {
    let generic = ["client_kv", "ingest_targets", "notifications", "server_settings", "user_alert_configs"];
    assert_eq!(names(&[], &[]), generic);
    let kinds = [entrants(), plain("racing", "races"), plain("fpv", "races"), plain("fpv", "events")];
    let mut made = names(&kinds, &["events", "records"]);
    made.retain(|name| !generic.contains(&name.as_str()));
    let expected = [
        "fpv_events",
        "fpv_races",
        "racing_entrants",
        "racing_odds_history",
        "racing_races",
        // Two kinds have races, and a table is called events.
        "entrants",
        "odds_history",
    ];
    assert_eq!(made, expected);
}

#[test]
fn names_that_need_care_are_refused() {
    for bad in ["", "1st", "Races", "ra ces", "x\"; DROP TABLE records", "naïve", "a-b"] {
        assert_eq!(views(Dialect::Sqlite, &[plain("racing", bad)], &[]), Err(BadName(bad.into())), "{bad:?}");
    }
}

async fn filled() -> (TempDir, PathBuf, World) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("test.db");
    let world =
        World::with(Arc::new(SqliteStore::open(&path, OpenOptions::default()).expect("opens")), &["a"]).await;
    let claim = world.claim_one(0).await;
    let record = |key: &str, parent: Option<Fingerprint>, body: &str| RecordWrite {
        kind: "racing_entrants".into(),
        fingerprint: Fingerprint::of("racing_entrants", &[key]),
        key: key.into(),
        parent,
        group: Fingerprint::default(),
        content: ContentHash(1),
        ends: None,
        body: body.into(),
        seen: at(1),
        added: true,
        base: stakeout_store::Base::Anything,
    };
    let stable = record("stable", None, r#"{"name":null,"win":null,"scratched":false}"#);
    let horse = record("r1|7", Some(stable.fingerprint), r#"{"name":"Winx","win":3,"scratched":true}"#);
    let history = HistoryWrite {
        fingerprint: horse.fingerprint,
        stream: "odds_history".into(),
        at: at(1),
        values: r#"{"win":3}"#.into(),
        said: String::new(),
        stamp: Stamp::Observed,
        oldest_known: false,
    };
    let value = serde_json::json!({ "order": 3 });
    let poll = Poll::of(&claim, 1).with(|p| {
        p.records = vec![horse, stable];
        p.history = vec![history];
    });
    world.done(poll).await;
    let kv = KvWrite { namespace: "race".into(), key: "currentOrder".into(), value, before: None };
    let derived = DeriveCommit {
        source: stakeout_store::conformance::story::SOURCE.into(),
        now: at(1),
        focused_before: vec![],
        create: None,
        refocus: vec![],
        kv: vec![kv],
        records: vec![],
        events: vec![],
        sinks: vec![],
    };
    world.store.derive(derived).await.expect("published");
    (dir, path, world)
}

fn query(path: &PathBuf, sql: &str) -> Vec<String> {
    let conn = rusqlite::Connection::open(path).expect("raw");
    let mut statement = conn.prepare(sql).expect("a query");
    let columns = statement.column_count();
    let mut rows = statement.query([]).expect("runs");
    let mut found = Vec::new();
    while let Some(row) = rows.next().expect("row") {
        let cells: Vec<String> = (0..columns)
            .map(|n| match row.get_ref(n).expect("cell") {
                rusqlite::types::ValueRef::Null => "NULL".to_owned(),
                rusqlite::types::ValueRef::Integer(i) => i.to_string(),
                rusqlite::types::ValueRef::Real(x) => format!("{x:?}"),
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                rusqlite::types::ValueRef::Blob(_) => "blob".to_owned(),
            })
            .collect();
        found.push(cells.join(" · "));
    }
    found
}

#[tokio::test]
async fn anyone_can_open_the_database_and_read_it() {
    let (_dir, path, world) = filled().await;
    world.store.ensure_views(&[entrants()]).await.expect("views");
    let seen = query(
        &path,
        "SELECT name, win, scratched, parent, key, source, first_seen FROM entrants ORDER BY key",
    );
    assert_eq!(
        seen,
        [
            "Winx · 3.0 · 1 · stable · r1|7 · nyc · 2027-01-15T08:00:01.000Z",
            "NULL · NULL · 0 · NULL · stable · nyc · 2027-01-15T08:00:01.000Z",
        ]
    );
    assert_eq!(
        query(&path, "SELECT * FROM odds_history"),
        ["r1|7 · 3.0 · 2027-01-15T08:00:01.000Z · 0 · nyc"]
    );
    assert_eq!(
        query(&path, "SELECT * FROM ingest_targets"),
        ["nyc · a · 10000 · 50 · 2027-01-15T08:00:11.000Z · 1 · ok · 2027-01-15T08:00:01.000Z"]
    );
    assert_eq!(
        query(&path, "SELECT * FROM client_kv"),
        [r#"race · currentOrder · {"order":3} · 2027-01-15T08:00:01.000Z"#]
    );
    assert_eq!(query(&path, "SELECT * FROM server_settings"), [] as [&str; 0]);
    let rule = serde_json::json!({ "when": { "on": "start", "before": "1m" }, "user": "anna" });
    world.store.set_setting("alert.bell", Some(rule), at(0)).await.expect("set");
    let filed = serde_json::json!({ "when": { "on": "missed" }, "quiet": "5min", "severity": "critical" });
    let filed = [("bell".to_owned(), filed.clone()), ("missed".to_owned(), filed)].into_iter().collect();
    world.store.set_filed_alerts(&filed, at(0)).await.expect("kept");
    assert_eq!(
        query(
            &path,
            "SELECT name, user, \"when\", severity, quiet, enabled, origin FROM user_alert_configs ORDER BY name"
        ),
        [
            r#"bell · anna · {"before":"1m","on":"start"} · info · NULL · 1 · live"#,
            r#"missed · NULL · {"on":"missed"} · critical · 5min · 1 · file"#
        ],
        "a live rule goes before one of the same name in the file"
    );
    assert_eq!(query(&path, "SELECT * FROM notifications"), [] as [&str; 0]);
}

#[tokio::test]
async fn what_rang_is_shown_with_when_it_was_read() {
    let (_dir, path, world) = filled().await;
    world.store.ensure_views(&[entrants()]).await.expect("views");
    let claim = world.claim_one(60).await;
    let alert = |event: &mut EventWrite| {
        event.event_type = "alert.raised".into();
        event.data = serde_json::json!({
            "alert": "bell", "user": "anna", "severity": "warning", "title": "Off", "text": "in 1 min",
            "about": { "start": 7 },
        });
    };
    let poll = Poll::of(&claim, 60).holding(&claim);
    let poll = poll.tells_with(&claim, "alert:bell", "r1", Effect::Any, alert);
    let told = world.done(poll.tells(&claim, "drop", "r1", Effect::Any)).await.events;
    let columns = "alert, user, severity, title, text, about, subject, target, source, at, read_at";
    let shown = |read: &str| {
        let at = "2027-01-15T08:01:00.000Z";
        [format!(r#"bell · anna · warning · Off · in 1 min · {{"start":7}} · r1 · a · nyc · {at} · {read}"#)]
    };
    let listed = || query(&path, &format!("SELECT {columns} FROM notifications"));
    assert_eq!(listed(), shown("NULL"), "and no other event");
    let alert = told.iter().find(|event| event.event_type == "alert.raised").expect("it rang");
    world.store.mark_read(&ReadMark::One(alert.seq), at(90)).await.expect("marked");
    assert_eq!(listed(), shown("2027-01-15T08:01:30.000Z"));
}

#[tokio::test]
async fn views_of_kinds_no_longer_there_are_removed() {
    let (_dir, path, world) = filled().await;
    let made = |path| query(path, "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name");
    rusqlite::Connection::open(&path)
        .expect("raw")
        .execute_batch("CREATE VIEW my_own AS SELECT 1")
        .expect("creates");
    world.store.ensure_views(&[entrants(), plain("fpv", "races")]).await.expect("views");
    assert!(made(&path).contains(&"fpv_races".to_owned()));
    // A kind of that name has to do with its full one.
    world.store.ensure_views(&[plain("json", "history")]).await.expect("views");
    let history = query(&path, "SELECT sql FROM sqlite_schema WHERE name = 'history'");
    assert!(history[0].contains("history_rows") && made(&path).contains(&"json_history".to_owned()));
    world.store.ensure_views(&[entrants()]).await.expect("views");
    let expected = [
        "client_kv",
        "entrants",
        "history",
        "ingest_targets",
        "my_own",
        "notifications",
        "odds_history",
        "racing_entrants",
        "racing_odds_history",
        "server_settings",
        "user_alert_configs",
    ];
    assert_eq!(made(&path), expected, "a person's own view stays");
    let before = std::fs::metadata(&path).expect("exists").modified().expect("time");
    world.store.ensure_views(&[entrants()]).await.expect("views");
    assert_eq!(std::fs::metadata(&path).expect("exists").modified().expect("time"), before);
    assert!(world.store.ensure_views(&[plain("Bad Name", "x")]).await.is_err());
    assert_eq!(made(&path), expected);
}

fn slots() -> Kind {
    let view = |name: &str, shows| KindView { name: name.into(), shows };
    let told = vec![Field::new("opened_at", FieldType::Time)];
    let views = vec![
        view("slot_availability", Shows::Life),
        view(
            "drop_events",
            Shows::Events {
                event_type: "tables.drop".into(),
                target: "bucket_id".into(),
                subject: "slot_id".into(),
                fields: told,
            },
        ),
        view(
            "discovery_buckets",
            Shows::Targets { role: "bucket".into(), target: "bucket_id".into(), member: "slot".into() },
        ),
    ];
    Kind { views, ..plain("tables", "slots") }
}

#[test]
fn a_kind_may_show_lives_events_and_targets_in_both_dialects() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let made = views(dialect, &[slots()], &[]).expect("names are fine");
        let text = |name: &str| {
            let full = made.iter().find(|view| view.name == format!("tables_{name}"));
            assert!(made.iter().any(|view| view.name == name), "the bare name, too: {name}");
            full.expect("it is made").sql.clone()
        };
        assert!(text("slot_availability").contains("'passed'"));
        assert!(!text("slot_availability").contains("AND r.gone_us IS NULL"), "also what is gone");
        let events = text("drop_events");
        assert!(
            events.contains("WHERE e.type = 'tables.drop'") && events.contains("AS \"opened_at\""),
            "{events}"
        );
        let targets = text("discovery_buckets");
        for column in ["bucket_id", "baseline_slot_ids_json", "prev_slot_ids_json", "last_scan_at"] {
            assert!(targets.contains(&format!("AS \"{column}\"")), "{targets}");
        }
        assert!(targets.contains("WHERE t.role = 'bucket'"));
    }
    let mut bad = slots();
    bad.views[0].name = "slots; DROP".into();
    assert!(views(Dialect::Sqlite, &[bad], &[]).is_err());
}
