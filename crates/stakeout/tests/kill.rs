//! The real binary, killed with SIGKILL at random moments while its upstream changes by its own time.
//!
//! The upstream's script knows every state it ever had, and when it answered. A target is polled again only after its
//! last poll was committed, so every answer that is followed by another one to the same process is committed: every
//! state in such an answer must be in history and in the event log. That is stronger than "held longer than downtime
//! plus interval". None may be invented or told twice, and sequence numbers must never go back.
//!
//! Two alerts listen: what they tell must follow from the event log alone, however often the process died in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};
use stakeout_sim::{Script, ScriptServer, SplitMix64, serve};

const KILLS: usize = 50;
const INTERVAL_MS: u64 = 40;
const SEED: u64 = 20_261_115;
/// A rule that rings with every change to a value from here on.
const RINGS_FROM: i64 = 40;
/// How long the other rule keeps silent after it rang about the same item.
const QUIET_MS: i64 = 1_500;

struct Run {
    child: Child,
    started_ms: u64,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

fn configuration(dir: &Path, server: &ScriptServer) -> PathBuf {
    let path = dir.join("stakeout.toml");
    let text = format!(
        r#"
[store]
url = "sqlite:{db}"

[server]
listen = "off"

[source.script]
kind = "json"
url = "{url}"
every = "{INTERVAL_MS}ms"
records = "items"
key = "id"
fields = ["value"]
history = ["value"]
doubt = {{ at_least = 1000 }}
limits = {{ requests_per_second = 1000, burst = 100, timeout = "2s" }}

[alert.each]
when = {{ on = "event", type = "json.*", where = {{ "record.value" = {{ at_least = {RINGS_FROM} }} }} }}

[alert.calm]
when = {{ on = "event", type = "json.changed" }}
quiet = "{QUIET_MS}ms"
"#,
        db = dir.join("kill.db").display(),
        url = server.url("/state"),
    );
    std::fs::write(&path, text).expect("write the configuration");
    path
}

fn start(config: &Path) -> Run {
    let child = Command::new(env!("CARGO_BIN_EXE_stakeout"))
        .args(["run", "-c"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    Run { child, started_ms: now_ms() }
}

/// Reads what is durable while the writer may be running, as any user could.
fn read(db: &Path) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    db.exists().then(|| Connection::open_with_flags(db, flags).expect("open for reading"))
}

fn newest_seq(db: &Path) -> i64 {
    let Some(conn) = read(db) else { return 0 };
    conn.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0)).unwrap_or(0)
}

/// Waits for a number of new answers, so that every life of the process does something.
fn wait_for_answers(server: &ScriptServer, more: u64, run: &mut Run) {
    let wanted = server.stats().answered + more;
    let began = Instant::now();
    while server.stats().answered < wanted {
        assert!(began.elapsed() < Duration::from_secs(60), "the process does not poll");
        if let Some(status) = run.child.try_wait().expect("wait") {
            panic!("the process ended by itself: {status}");
        }
        std::thread::yield_now();
        server.wait_for_requests(server.stats().requests + 1);
    }
}

#[test]
fn fifty_kills_lose_nothing_and_invent_nothing() {
    let dir = tempfile::tempdir().expect("dir");
    let db = dir.path().join("kill.db");
    let script = Script::new(SEED, 6, 900, now_ms());
    let server = serve(script.clone());
    let config = configuration(dir.path(), &server);
    let mut random = SplitMix64::new(SEED);
    let mut lives: Vec<(u64, u64)> = Vec::new();
    let mut seqs = vec![0];

    for _ in 0..KILLS {
        let mut run = start(&config);
        wait_for_answers(&server, random.between(1, 12), &mut run);
        // A random moment within a poll: spinning, because a sleep would always end at the same place.
        let spin = Duration::from_micros(random.between(0, 2 * INTERVAL_MS * 1_000));
        let began = Instant::now();
        while began.elapsed() < spin {
            std::hint::spin_loop();
        }
        run.child.kill().expect("SIGKILL");
        run.child.wait().expect("reaped");
        lives.push((run.started_ms, now_ms()));
        seqs.push(newest_seq(&db));
        let last_two = &seqs[seqs.len() - 2..];
        assert!(last_two[0] <= last_two[1], "sequence numbers went back: {last_two:?} (seed {SEED})");
    }
    // One last life, ended politely, sees what is there now.
    let mut run = start(&config);
    wait_for_answers(&server, 10, &mut run);
    let pid = i32::try_from(run.child.id()).expect("pid");
    terminate(pid);
    let status = run.child.wait().expect("reaped");
    assert!(status.success(), "SIGTERM ends it cleanly: {status}");

    lives.push((run.started_ms, now_ms()));

    compare_with_truth(&db, &script, &certainly_committed(&server, &lives));
    compare_with_rules(&db);
}

/// When the answers were given that were followed by another one to the same process.
fn certainly_committed(server: &ScriptServer, lives: &[(u64, u64)]) -> Vec<u64> {
    let answered: Vec<u64> = server.answers().iter().map(|answer| answer.at_ms).collect();
    let in_life = |(from, to): &(u64, u64)| {
        let mut answers: Vec<u64> = answered.iter().copied().filter(|at| (from..=to).contains(&at)).collect();
        answers.pop();
        answers
    };
    lives.iter().flat_map(in_life).collect()
}

fn terminate(pid: i32) {
    let killed = Command::new("kill").args(["-TERM", &pid.to_string()]).status().expect("kill");
    assert!(killed.success());
}

fn compare_with_truth(db: &Path, script: &Script, committed: &[u64]) {
    let conn = read(db).expect("the database exists");
    let baseline = committed[0];
    // The script's whole past: an answer before the first certain one may have been committed as well.
    let truth = script.truth(0, now_ms());

    let mut told: BTreeMap<i64, u64> = BTreeMap::new();
    let mut rows = conn
        .prepare("SELECT seq, id, data FROM events WHERE type <> 'alert.raised' ORDER BY seq")
        .expect("events");
    let mut ids = BTreeSet::new();
    let mut newest = 0;
    let events = rows
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, String>(2)?)))
        .expect("query");
    for event in events {
        let (seq, id, data) = event.expect("row");
        assert!(seq > newest, "sequence numbers grow");
        newest = seq;
        assert!(ids.insert(id), "an event id twice");
        let data: serde_json::Value = serde_json::from_str(&data).expect("json");
        if data.get("natural").is_none() {
            *told.entry(data["record"]["value"].as_i64().expect("value")).or_default() += 1;
        }
    }
    let mut history: BTreeMap<i64, u64> = BTreeMap::new();
    let mut rows = conn.prepare("SELECT values_json FROM history").expect("history");
    for values in rows.query_map([], |row| row.get::<_, String>(0)).expect("query") {
        let values: serde_json::Value = serde_json::from_str(&values.expect("row")).expect("json");
        *history.entry(values["value"].as_i64().expect("value")).or_default() += 1;
    }

    let real: BTreeSet<i64> =
        truth.iter().map(|segment| i64::try_from(segment.value).expect("small")).collect();
    assert!(told.keys().all(|value| real.contains(value)), "invented events: {told:?}");
    assert!(history.keys().all(|value| real.contains(value)), "invented history: {history:?}");
    assert!(told.values().all(|times| *times == 1), "told twice: {told:?}");
    assert!(history.values().all(|times| *times == 1), "written twice: {history:?}");

    let mut checked = 0;
    for segment in &truth {
        let seen = committed.iter().find(|at| (segment.from_ms..segment.until_ms).contains(at));
        let Some(seen) = seen else { continue };
        let value = i64::try_from(segment.value).expect("small");
        assert!(
            history.contains_key(&value),
            "{segment:?} was answered at {seen} and is not in history (seed {SEED})"
        );
        // What was there at the baseline is not told, and the baseline is the first committed answer at the latest.
        if segment.from_ms > baseline {
            assert!(
                told.contains_key(&value),
                "{segment:?} was answered at {seen} and never told (seed {SEED})"
            );
            checked += 1;
        }
    }
    assert!(checked > 50, "only {checked} states to check");
}

/// An event as the log has it.
struct Logged {
    event_type: String,
    rule: String,
    subject: Vec<u8>,
    at_us: i64,
    data: serde_json::Value,
}

/// Every change that a rule is about rang once, in the commit that told it; a quiet time lasts beyond a crash.
fn compare_with_rules(db: &Path) {
    let conn = read(db).expect("the database exists");
    let mut rows =
        conn.prepare("SELECT type, rule, subject, at_us, data FROM events ORDER BY seq").expect("events");
    let events: Vec<Logged> = rows
        .query_map([], |row| {
            let (event_type, rule, data) = (row.get(0)?, row.get(1)?, row.get::<_, String>(4)?);
            let data = serde_json::from_str(&data).expect("json");
            Ok(Logged { event_type, rule, subject: row.get(2)?, at_us: row.get(3)?, data })
        })
        .expect("query")
        .map(|row| row.expect("row"))
        .collect();
    // What each rule says it rang about: the subject, the moment, and the event it followed.
    let rang = |alert: &str| -> Vec<(&[u8], i64, &serde_json::Value)> {
        let rule = format!("alert:{alert}");
        let ours = events.iter().filter(|event| event.rule == rule);
        ours.map(|ring| (ring.subject.as_slice(), ring.at_us, &ring.data["about"]["data"])).collect()
    };
    let told = events.iter().filter(|event| event.event_type != "alert.raised");
    let mut each = Vec::new();
    let mut calm = Vec::new();
    let mut last_us: BTreeMap<&[u8], i64> = BTreeMap::new();
    for event in told {
        let ring = (event.subject.as_slice(), event.at_us, &event.data);
        if event.data["record"]["value"].as_i64().expect("value") >= RINGS_FROM {
            each.push(ring);
        }
        let awake = last_us.get(ring.0).is_none_or(|last| event.at_us - last >= QUIET_MS * 1_000);
        if event.event_type == "json.changed" && awake {
            last_us.insert(ring.0, event.at_us);
            calm.push(ring);
        }
    }
    assert_eq!(rang("each"), each, "each change once (seed {SEED})");
    assert_eq!(rang("calm"), calm, "no sooner than the quiet time, and no later (seed {SEED})");
    assert!(each.len() > KILLS && calm.len() > 10, "{} and {} rings to check", each.len(), calm.len());
}
