//! graphile-worker, a job queue on PostgreSQL, when it can be installed: jobs that do nothing, taken and finished in
//! batches.

use std::process::Command;

use crate::args::Pace;
use crate::print;

/// Adds jobs in one statement and lets the worker run until none is left.
const SCRIPT: &str = r#"
const { run, makeWorkerUtils } = require("graphile-worker");
const { Pool } = require("pg");
const jobs = Number(process.argv[2]);
async function main() {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 12 });
  const utils = await makeWorkerUtils({ pgPool: pool });
  await utils.migrate();
  await pool.query("select graphile_worker.add_job('nothing', json_build_object('n', n)) from generate_series(1, $1) n", [jobs]);
  let done = 0, finish;
  const all = new Promise((resolve) => (finish = resolve));
  const began = process.hrtime.bigint();
  const runner = await run({
    pgPool: pool, concurrency: 24, noHandleSignals: true,
    preset: { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    taskList: { nothing: async () => { if (++done === jobs) finish(); } },
  });
  await all;
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  console.log("jobs per second: " + jobs / seconds);
  await runner.stop(); await utils.release(); await pool.end();
}
main().then(() => process.exit(0), (error) => { console.error(error.message); process.exit(1); });
"#;

/// Jobs per second, or why they were not measured.
pub(super) fn jobs_per_second(url: &str, pace: Pace) -> Result<f64, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    print::progress("installing graphile-worker");
    let install = ["install", "--no-audit", "--no-fund", "--silent", "graphile-worker@0.17", "pg@8"];
    let installed = Command::new("npm").args(install).current_dir(&directory).output();
    let installed = installed.map_err(|error| format!("npm cannot be run ({error})"))?;
    if !installed.status.success() {
        return Err("it cannot be installed here".to_owned());
    }
    std::fs::write(directory.path().join("bench.js"), SCRIPT).map_err(|error| error.to_string())?;
    let jobs = pace.pick(60_000, 5_000).to_string();
    let ran = Command::new("node")
        .args(["bench.js", &jobs])
        .env("DATABASE_URL", as_node_says(url))
        .env("NO_LOG_SUCCESS", "1")
        .current_dir(&directory)
        .output()
        .map_err(|error| format!("node cannot be run ({error})"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let number = said.lines().find_map(|line| line.strip_prefix("jobs per second: ")?.trim().parse().ok());
    number.ok_or_else(|| {
        let why = String::from_utf8_lossy(&ran.stderr).lines().last().unwrap_or("it says nothing").to_owned();
        format!("it does not run here ({why})")
    })
}

/// The same address as the node driver writes it: a socket's directory is a parameter.
fn as_node_says(url: &str) -> String {
    let (rest, database) = url.rsplit_once('/').unwrap_or((url, "postgres"));
    let host = rest.split_once('@').map_or("", |(_, host)| host).replace("%2F", "/");
    format!("postgres:///{database}?host={host}&user=stakeout")
}
