//! Two processes of the real binary on one PostgreSQL. The one that holds the target is killed or stopped at random
//! moments, again and again; the other takes over when the lease has run out.
//!
//! The upstream's script knows every state it ever had. What it showed for a second while somebody was polling must be
//! in history and in the event log; none may be invented, written or told twice, and sequence numbers never go back.

#![allow(clippy::print_stdout, reason = "a failed round is understood by what came before it")]
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_sim::{Script, ScriptServer, SplitMix64, serve};
use stakeout_store::conformance::server::PostgresServer;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// Of these every third is a stop: the process comes back later and does not know that it was away.
const ROUNDS: usize = 12;
const INTERVAL_MS: u64 = 40;
/// The shortest that can be configured.
const LEASE_MS: u64 = 5_000;
/// A state that was shown for so long while somebody was polling must be known.
const SURE_MS: u64 = 1_000;
const SEED: u64 = 20_261_116;

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

fn configuration(dir: &Path, node: &str, database: &str, server: &ScriptServer) -> PathBuf {
    let path = dir.join(format!("{node}.toml"));
    let text = format!(
        r#"
[store]
url = "{database}"

[server]
listen = "off"

[engine]
node = "{node}"
lease = "{LEASE_MS}ms"

[source.script]
kind = "json"
url = "{url}"
every = "{INTERVAL_MS}ms"
records = "items"
key = "id"
fields = ["value"]
history = ["value"]
doubt = {{ at_least = 1000 }}
limits = {{ requests_per_second = 1000, burst = 100, timeout = "500ms" }}
"#,
        url = server.url("/state"),
    );
    std::fs::write(&path, text).expect("write the configuration");
    path
}

/// A running node; nothing of it is left when the test is over, however it ends.
struct Node {
    child: Child,
    log: PathBuf,
}

impl Node {
    fn start(config: &Path) -> Node {
        let log = config.with_extension("log");
        let append = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
        command.args(["run", "-c"]).arg(config).stdout(Stdio::null()).stderr(append);
        Node { child: command.spawn().expect("the binary starts"), log }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("reaped")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            println!("{}:\n{log}", self.log.display());
        }
    }
}

/// The database, looked at by other means.
struct Eye {
    runtime: Runtime,
    client: Client,
}

impl Eye {
    fn open(url: &str) -> Eye {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
            tokio::spawn(connection);
            client
        });
        Eye { runtime, client }
    }

    fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.runtime.block_on(self.client.query(sql, &[])).unwrap_or_default();
        rows.iter().filter_map(|row| row.get::<_, Option<String>>(0)).collect()
    }

    fn holder(&self) -> Option<String> {
        self.texts("SELECT owner FROM targets").pop()
    }

    fn number(&self, sql: &str) -> i64 {
        self.texts(sql).pop().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// How many polls were committed.
    fn polls(&self) -> i64 {
        self.number("SELECT poll_no::text FROM targets")
    }
}

/// Waits until something is so; the database's answers set the pace.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} (seed {SEED})");
    }
}

#[test]
fn a_killed_or_stopped_node_loses_nothing_and_doubles_nothing() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = Runtime::new().expect("a runtime");
    let database = runtime.block_on(postgres.create());
    let script = Script::new(SEED, 6, 3_000, now_ms());
    let server = serve(script.clone());
    let names = ["one", "two"];
    let configs = names.map(|node| configuration(dir.path(), node, &database, &server));
    let mut nodes = [Node::start(&configs[0]), Node::start(&configs[1])];
    let eye = Eye::open(&database);
    let mut random = SplitMix64::new(SEED);
    let mut calm: Vec<(u64, u64)> = Vec::new();
    let mut waits_ms: Vec<u64> = Vec::new();
    let mut newest = 0;

    for round in 0..ROUNDS {
        until("somebody holds the target", || eye.holder().is_some());
        let polled = eye.polls() + random.between(60, 100) as i64;
        let began = now_ms();
        until("it is polled", || eye.polls() > polled);
        let holder = eye.holder().expect("held between its polls");
        let victim = names.iter().position(|name| **name == holder).expect("one of ours");
        let other = names[1 - victim];
        // A random moment within a poll: spinning, because a sleep would always end at the same place.
        let spin = Duration::from_micros(random.between(0, 2 * INTERVAL_MS * 1_000));
        let spinning = Instant::now();
        while spinning.elapsed() < spin {
            std::hint::spin_loop();
        }
        calm.push((began, now_ms()));
        let stopped = round % 3 == 2;
        nodes[victim].signal(if stopped { "-STOP" } else { "-KILL" });
        let lost = now_ms();
        let polls = eye.polls();
        until("the other one takes over", || eye.holder().as_deref() == Some(other) && eye.polls() > polls);
        println!("round {round}: {holder} {}, {other} took over", if stopped { "stopped" } else { "killed" });
        waits_ms.push(now_ms() - lost);
        if stopped {
            nodes[victim].signal("-CONT");
        } else {
            nodes[victim].wait();
            nodes[victim] = Node::start(&configs[victim]);
        }
        let seq = eye.number("SELECT max(seq)::text FROM events");
        assert!(seq >= newest, "sequence numbers went back");
        newest = seq;
    }
    let began = now_ms();
    let polled = eye.polls() + 50;
    until("life goes on", || eye.polls() > polled);
    calm.push((began, now_ms()));
    for node in &mut nodes {
        node.signal("-TERM");
    }
    for node in &mut nodes {
        let status = node.wait();
        assert!(status.success(), "SIGTERM ends it cleanly: {status}");
    }
    println!("{ROUNDS} rounds; polled again after {waits_ms:?} ms");
    // The lease, one request time-out of the successor, a look, and a machine that has other things to do.
    let longest = waits_ms.iter().max().copied().unwrap_or_default();
    assert!(longest < LEASE_MS + 500 + 1_000 + 5_000, "{waits_ms:?}");
    assert_eq!(eye.number("SELECT count(*)::text FROM targets WHERE owner IS NOT NULL"), 0, "all given back");
    compare_with_truth(&eye, &script, &calm);
}

fn compare_with_truth(eye: &Eye, script: &Script, calm: &[(u64, u64)]) {
    let count = |texts: Vec<String>, value: fn(&serde_json::Value) -> Option<i64>| {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for text in texts {
            let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            if let Some(value) = value(&json) {
                *counts.entry(value).or_default() += 1;
            }
        }
        counts
    };
    // What is gone is told without its last value.
    let told = count(eye.texts("SELECT data FROM events ORDER BY seq"), |data| {
        data.get("natural").is_none().then(|| data["record"]["value"].as_i64().expect("a value"))
    });
    let history = count(eye.texts("SELECT values_json FROM history"), |values| values["value"].as_i64());

    let truth = script.truth(0, now_ms());
    let real: BTreeSet<i64> = truth.iter().map(|segment| segment.value as i64).collect();
    assert!(told.keys().chain(history.keys()).all(|value| real.contains(value)), "invented");
    assert!(told.values().all(|times| *times == 1), "told twice: {told:?}");
    assert!(history.values().all(|times| *times == 1), "written twice: {history:?}");
    let mut checked = 0;
    for segment in &truth {
        let shown = |(from, to): &(u64, u64)| {
            let (from, to) = (segment.from_ms.max(*from), segment.until_ms.min(*to));
            to.saturating_sub(from) >= SURE_MS
        };
        if !calm.iter().any(shown) {
            continue;
        }
        let value = segment.value as i64;
        assert!(history.contains_key(&value), "{segment:?} is not in history (seed {SEED})");
        // What was there at the baseline is not told.
        if segment.from_ms > calm[0].0 {
            assert!(told.contains_key(&value), "{segment:?} was never told (seed {SEED})");
            checked += 1;
        }
    }
    println!("{checked} states checked, {} told, {} rows of history", told.len(), history.len());
    assert!(checked > 20, "only {checked} states to check");
}

fn stakeout(database: &str, dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
    command.args(arguments).current_dir(dir).env("STAKEOUT_STORE", database);
    command.output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Commands write the shared store themselves, and the node that runs hears of it.
#[test]
fn commands_work_beside_running_nodes() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let runtime = Runtime::new().expect("a runtime");
    let database = runtime.block_on(postgres.create());
    let server = serve(Script::new(SEED, 6, 60_000, now_ms()));
    let config = configuration(dir.path(), "stakeout", &database, &server);
    // Polled so rarely that only being told can explain a poll.
    let text = std::fs::read_to_string(&config).expect("the configuration");
    std::fs::write(&config, text.replace("every = \"40ms\"", "every = \"15s\"")).expect("written");
    let command = |arguments: &[&str]| stakeout(&database, dir.path(), arguments);

    let missing = command(&["targets"]);
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no database at postgres://"));
    let mut node = Node::start(&config);
    let eye = Eye::open(&database);
    until("the target is polled", || eye.polls() >= 1);
    let table = said(&command(&["targets"]));
    assert!(table.contains("script/") && table.contains("held by stakeout"), "{table}");
    let target = eye
        .texts("SELECT s.name || '/' || t.key FROM targets t JOIN sources s ON s.id = t.source_id")
        .remove(0);

    let polls = eye.polls();
    let asked = Instant::now();
    said(&command(&["targets", "poll-now", &target]));
    until("it is polled at once", || eye.polls() > polls);
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "the node was told, not waited for: {:?}",
        asked.elapsed()
    );
    said(&command(&["targets", "disable", &target]));
    until("it is let go of", || eye.holder().is_none());
    assert!(said(&command(&["targets"])).contains("off"));
    said(&command(&["targets", "enable", &target]));
    until("it is held again", || eye.holder().is_some());
    for arguments in [&["events"][..], &["why", &target], &["settings"], &["check", "--offline"]] {
        said(&command(arguments));
    }
    node.signal("-TERM");
    assert!(node.wait().success());
    assert!(said(&command(&["poll"])).contains("polled"));

    let secret = stakeout("postgres://u:secret@127.0.0.1:1/db", dir.path(), &["targets"]);
    let complaint = String::from_utf8_lossy(&secret.stderr).into_owned();
    assert!(complaint.contains("postgres://127.0.0.1:1/db") && !complaint.contains("secret"), "{complaint}");
    let help = stakeout("postgres://u:secret@127.0.0.1:1/db", dir.path(), &["--help"]);
    assert!(!String::from_utf8_lossy(&help.stdout).contains("secret"));
}
