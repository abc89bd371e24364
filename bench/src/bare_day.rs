//! The floor of a simulated race day: what anybody has to do who reads the same answers and keeps the same rows.

use std::time::Instant;

use anyhow::Context as _;
use rusqlite::{Connection, params};
use serde::de::IgnoredAny;
use stakeout::simulate::racing::Finished;

use crate::racing::{Typed, headers};

const TABLES: &str = "
    CREATE TABLE records (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE history (record INTEGER, stream TEXT, at INTEGER, row TEXT NOT NULL,
        PRIMARY KEY (record, stream, at)) WITHOUT ROWID;
    CREATE TABLE events (seq INTEGER PRIMARY KEY, data TEXT NOT NULL);";
const PRICES: &str = r#"{"place_odds":1.75,"pool_place":1.6,"pool_win":4.2,"win_odds":4.6}"#;

/// Seconds for the same answers, rendered and read by typed serde_json without any meaning, and for as many rows in a
/// bare SQLite in memory: a transaction per answer, each row of history with its record rewritten beside it. Nothing is
/// compared, looked up, planned or judged.
pub(crate) fn seconds(day: &Finished) -> anyhow::Result<f64> {
    let requests = day.asked.len() as u64;
    let (history, events) = (day.report.history_rows, day.events.len() as u64);
    let told = day.events.first().context("a day in which something happened")?.data.clone();
    let (event, record) = (told.to_string(), told["record"].to_string());
    let conn = Connection::open_in_memory()?;
    conn.execute_batch(TABLES)?;
    let began = Instant::now();
    let (mut rows, mut news) = (0, 0);
    for (n, asked) in (1..).zip(&day.asked) {
        let body = day.upstream.honest(&asked.path, &headers(), asked.at).body;
        if asked.path.contains("/events/") {
            serde_json::from_slice::<Typed>(&body)?;
        } else {
            serde_json::from_slice::<IgnoredAny>(&body)?;
        }
        conn.execute_batch("BEGIN")?;
        while rows < history * n / requests {
            // About as many records as the day has, in no order.
            let id = (rows * 7_919 % 1_500) as i64;
            conn.prepare_cached("INSERT OR REPLACE INTO records VALUES (?1, ?2)")?
                .execute(params![id, record])?;
            conn.prepare_cached("INSERT INTO history VALUES (?1, 'odds_history', ?2, ?3)")?
                .execute(params![id, rows as i64, PRICES])?;
            rows += 1;
        }
        while news < events * n / requests {
            conn.prepare_cached("INSERT INTO events VALUES (?1, ?2)")?
                .execute(params![news as i64, event])?;
            news += 1;
        }
        conn.execute_batch("COMMIT")?;
    }
    Ok(began.elapsed().as_secs_f64())
}
