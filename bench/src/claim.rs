//! What claiming costs, by the number of targets that are not due. It must not grow with them.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use rusqlite::{Connection, params};
use stakeout_core::Span;
use stakeout_store::Store as _;
use stakeout_store::sqlite::{OpenOptions, SqliteStore};

use crate::args::Pace;
use crate::polls::{START, claim_request, unchanged, wanted};
use crate::print;
use crate::quantile::Sorted;
use crate::scene::{SOURCE, runtime};
use crate::table::{Met, Row, grouped};

/// Targets due at the same time, and taken at once.
const DUE_AT_ONCE: u32 = 100;
const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];
/// "Flat": a B-tree a thousand times as large is a level or two deeper.
const FLAT: f64 = 2.0;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut smallest = None;
    for targets in &SIZES[..pace.pick(SIZES.len(), 2)] {
        let (claim_us, commit_us) = cost(*targets, DUE_AT_ONCE, pace.pick(400, 100))?;
        let each_us = claim_us + commit_us;
        let base_us = *smallest.get_or_insert(each_us);
        print::progress(&format!("{} targets: {each_us:.1} µs", grouped(*targets as f64)));
        let first = *targets == SIZES[0];
        rows.push(Row {
            what: format!("claim and reschedule a target, {} targets", grouped(*targets as f64)),
            ours: format!("{each_us:.1} µs (claim {claim_us:.1}, commit {commit_us:.1})"),
            floor: format!("{} targets: {base_us:.1} µs", grouped(SIZES[0] as f64)),
            ratio: Some(each_us / base_us),
            target: if first { String::new() } else { format!("flat (≤ {FLAT:.0} ×)") },
            met: if first { Met::NoTarget } else { Met::when(each_us / base_us <= FLAT) },
        });
    }
    Ok(rows)
}

/// Microseconds per target of claiming and of committing with a later due time, at the median, when so many are due and
/// taken at once.
pub(crate) fn cost(targets: u64, at_once: u32, rounds: u64) -> anyhow::Result<(f64, f64)> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bench.db");
    runtime()?.block_on(async {
        let store = SqliteStore::open(&path, OpenOptions::default())?;
        store.reconcile_roots(SOURCE, &[wanted("0".into(), START)], START).await?;
        anyhow::Ok(())
    })?;
    multiply(&path, targets, at_once)?;
    let store = SqliteStore::open(&path, OpenOptions::default())?;
    runtime()?.block_on(turn(&store, targets, at_once, rounds))
}

/// Copies the only target, so many due in every second, one second after another. In SQL: making a million one by
/// one would take longer than the measurement.
fn multiply(path: &Path, targets: u64, at_once: u32) -> anyhow::Result<()> {
    let conn = Connection::open(path)?;
    let columns = columns(&conn)?;
    let copied = |name: &String| match name.as_str() {
        "key" => "n".to_owned(),
        "due_us" | "wake_us" => format!("{name} + n / {at_once} * 1000000"),
        _ => name.clone(),
    };
    let values: Vec<String> = columns.iter().map(copied).collect();
    let (columns, values) = (columns.join(", "), values.join(", "));
    conn.execute(
        &format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?1)
             INSERT INTO targets ({columns}) SELECT {values} FROM numbers, targets WHERE targets.key = '0'"
        ),
        params![targets as i64],
    )
    .context("cannot copy the target")?;
    Ok(())
}

fn columns(conn: &Connection) -> anyhow::Result<Vec<String>> {
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info('targets') WHERE name <> 'id'")?;
    let names = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(names)
}

/// Claims what is due second by second and puts it behind everything else.
async fn turn(store: &SqliteStore, targets: u64, at_once: u32, rounds: u64) -> anyhow::Result<(f64, f64)> {
    let cycle = Span::secs((targets / u64::from(at_once)) as i64);
    let per_target_us = |since: Instant| since.elapsed().as_secs_f64() * 1e6 / f64::from(at_once);
    let (mut claims_us, mut commits_us) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let now = START + Span::secs(round as i64);
        let began = Instant::now();
        let claims = store.claim(claim_request(now, at_once)).await?;
        claims_us.push(per_target_us(began));
        anyhow::ensure!(claims.len() == at_once as usize, "{} were due, not {at_once}", claims.len());
        let polls = claims.iter().map(|claim| unchanged(claim, now, now + cycle).into()).collect();
        let began = Instant::now();
        store.commit(polls).await?;
        commits_us.push(per_target_us(began));
    }
    Ok((Sorted::new(claims_us).quantile(0.5), Sorted::new(commits_us).quantile(0.5)))
}
