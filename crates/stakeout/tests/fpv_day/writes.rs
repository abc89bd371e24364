//! What is written, and above all what is not.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use stakeout::simulate::fpv::{FpvEvent, SOURCE, Watching};
use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{EventConfig, Guid, What};
use stakeout_store::Store;

/// Everything that is kept but for schedules, table by table.
fn kept(path: &Path) -> BTreeMap<&'static str, Vec<String>> {
    let tables = [
        "records",
        "snapshots",
        "history",
        "events",
        "kv",
        "notices",
        "deliveries",
        "settings",
        "polls",
        "samples",
        "meta",
    ];
    tables.map(|table| (table, rows(path, &format!("SELECT * FROM {table}")))).into()
}

/// What of the targets no poll may change.
fn targets(path: &Path) -> BTreeMap<String, String> {
    let sql = "SELECT key, plan_version, focused, priority, enabled, incarnation, listed_by, spec_hash, interval_us FROM targets";
    let key = |row: String| (row.split('|').next().unwrap_or_default().to_owned(), row);
    rows(path, sql).into_iter().map(key).collect()
}

fn rows(path: &Path, sql: &str) -> Vec<String> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("open");
    let mut statement = conn.prepare(sql).expect("a query");
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cell = |n: usize| {
            row.get_ref(n).map(|value| match value {
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            })
        };
        Ok((0..columns).map(cell).collect::<Result<Vec<_>, _>>()?.join("|"))
    });
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

fn ends(event: &FpvEvent) -> Vec<(Guid, Time)> {
    let upstream = event.upstream();
    let changes = upstream.event().truth().changes().iter();
    changes
        .filter_map(|change| match change.what {
            What::Ended(race) => Some((race, change.visible_at)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_idle_hour_of_sixty_races_writes_nothing_but_schedules() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("event.db");
    let gap = (Span::hours(3), Span::hours(3));
    let event = EventConfig { gap, ..EventConfig::new(3) };
    let event = FpvEvent { event, incidents: Vec::new(), database: Some(path.clone()), ..FpvEvent::new(3) };
    // After the first race: until then there is no file of results.
    let from = ends(&event)[0].1 + Span::mins(1);
    let watched = event.watch_until(event.upstream(), async |watching: &Watching| {
        watching.clock.sleep_until(from).await;
        let (before, of_targets) = (kept(&path), targets(&path));
        let (polls, written) = (watching.store.counters().polls(), watching.store.counters().rows_written());
        assert_eq!(
            of_targets.len(),
            60 + 7,
            "60 races, page, /current, event, pilots, rounds, results, channels"
        );
        watching.clock.sleep_until(from + Span::hours(1)).await;
        for (table, rows) in kept(&path) {
            assert_eq!(rows, before[table], "{table}");
        }
        // 360 readings of the page and of the event's file among them: discovery with nothing new.
        assert_eq!(targets(&path), of_targets);
        let (polls, written) =
            (watching.store.counters().polls() - polls, watching.store.counters().rows_written() - written);
        Ok((polls, written))
    });
    let ((polls, written), ..) = watched.expect("it can be watched");
    // 5 looks a second at the current race, 59 races every 5 s, 1 at `/current`, and the rest.
    assert!((60_000..70_000).contains(&polls), "{polls} polls");
    assert!(written as f64 <= polls as f64 * 1.05, "{written} rows for {polls} polls");
}

#[test]
fn another_current_race_writes_two_targets_and_two_values() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("event.db");
    let event = FpvEvent { database: Some(path.clone()), ..FpvEvent::with_races(7, 24) };
    let ends = ends(&event);
    let watched = event.watch_until(event.upstream(), async |watching: &Watching| {
        for pair in ends.windows(2).take(3) {
            let [(race, end), (next, _)] = pair else { unreachable!("windows of two") };
            watching.clock.sleep_until(*end - Span::ms(500)).await;
            let (before, value) = (targets(&path), kept(&path)["kv"].clone());
            watching.clock.sleep_until(*end + Span::ms(500)).await;
            let after = targets(&path);
            let changed: Vec<&String> =
                after.iter().filter(|(key, row)| before.get(*key) != Some(row)).map(|(key, _)| key).collect();
            let mut expected = [format!("race/{race}"), format!("race/{next}")];
            expected.sort();
            assert_eq!(changed, expected.iter().collect::<Vec<_>>());
            assert_eq!(before.len(), after.len());
            let now = kept(&path)["kv"].clone();
            let other = now.iter().filter(|row| !value.contains(row)).count();
            // Which race it is, and who flies soon.
            assert_eq!((other, now.len()), (2, value.len()));
            let [gains, loses] = [next, race].map(|id| {
                after[&format!("race/{id}")].split('|').skip(2).take(2).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(
                (gains.as_str(), loses.as_str()),
                ("Integer(1) Integer(10)", "Integer(0) Integer(10)")
            );
        }
        Ok(())
    });
    watched.expect("it can be watched");
}

#[test]
fn a_restart_publishes_and_tells_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let event = FpvEvent { database: Some(directory.path().join("event.db")), ..FpvEvent::with_races(11, 6) };
    let middle = ends(&event)[1].1 + Span::secs(20);
    let value = async |watching: &Watching| {
        let kv = watching.store.kv("race", "currentOrder").await?;
        let events = watching.store.stats().await?.events;
        let focused = watching.store.target(SOURCE, &format!("race/{}", ends(&event)[2].0)).await?;
        anyhow::Ok((kv, events, focused.map(|row| (row.plan_version, row.state.facts.focused))))
    };
    let until = |until: Time| {
        let value = &value;
        async move |watching: &Watching| {
            watching.clock.sleep_until(until).await;
            // Time stands still while the file is read, or what goes on next would begin in the past.
            let _still = watching.clock.busy();
            value(watching).await
        }
    };
    let (before, ..) = event.watch_until(event.upstream(), until(middle)).expect("it can be watched");
    assert!(before.0.is_some());
    let again = FpvEvent { start: Some(middle + Span::secs(2)), ..event.clone() };
    let restarted = again.watch_until(again.upstream(), until(middle + Span::secs(20)));
    let (after, _, _, published) = restarted.expect("it can be watched");
    assert_eq!(before, after);
    assert_eq!(published, []);
}
