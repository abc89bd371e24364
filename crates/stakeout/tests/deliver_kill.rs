//! The real binary, killed with SIGKILL while it delivers to a webhook: every event arrives at least once, always under
//! the same id and with the same content.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags};
use stakeout_sim::{Act, Loopback, Script, SplitMix64, serve};

const KILLS: usize = 12;
const SEED: u64 = 20_261_116;

fn start(config: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
    command.args(["run", "-c"]).arg(config).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary starts")
}

fn number(db: &Path, sql: &str) -> i64 {
    let Ok(conn) = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return -1 };
    conn.query_row(sql, [], |row| row.get(0)).unwrap_or(-1)
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(120), "waited in vain until {what} (seed {SEED})");
        std::thread::yield_now();
    }
}

#[test]
fn whoever_kills_it_each_event_arrives_under_one_id() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("stakeout.db");
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64;
    let upstream = serve(Script::new(SEED, 6, 300, now_ms));
    let received: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let log = Arc::clone(&received);
    let receiver = Loopback::start(move |seen| {
        let id = seen.header("webhook-id").expect("an id").to_owned();
        log.lock().expect("lock").push((id, String::from_utf8_lossy(&seen.body).into_owned()));
        // Slow enough to be killed between the arrival and the answer.
        let answer = Act::Answer { status: 200, headers: vec![], body: "".into() };
        Act::Delay { ms: 15, then: Box::new(answer) }
    });
    let config = dir.path().join("stakeout.toml");
    let text = format!(
        r#"
[store]
url = "sqlite:{db}"
[server]
listen = "off"
[source.script]
kind = "json"
url = "{upstream}"
every = "40ms"
records = "items"
key = "id"
fields = ["value"]
doubt = {{ at_least = 1000 }}
limits = {{ requests_per_second = 1000, burst = 100, timeout = "2s" }}
[sink.hook]
kind = "webhook"
url = "{receiver}"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
allow = ["127.0.0.1"]
events = ["*"]
"#,
        db = db.display(),
        upstream = upstream.url("/state"),
        receiver = receiver.url("/in"),
    );
    std::fs::write(&config, text).expect("written");
    let mut random = SplitMix64::new(SEED);
    for _ in 0..KILLS {
        let before = receiver.stats().requests;
        let mut child = start(&config);
        let wanted = before + random.between(1, 8);
        until("something arrives", || receiver.stats().requests >= wanted);
        // A random moment within a delivery: spinning, because a sleep would always end at the same place.
        let (began, spin) = (Instant::now(), Duration::from_micros(random.between(0, 30_000)));
        while began.elapsed() < spin {
            std::hint::spin_loop();
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("reaped");
    }
    // A last life, whose upstream is silent, delivers what is left.
    drop(upstream);
    let mut child = start(&config);
    until("nothing is left", || number(&db, "SELECT count(*) FROM deliveries") == 0);
    child.kill().expect("SIGKILL");
    child.wait().expect("reaped");

    let conn = Connection::open_with_flags(&db, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("open");
    let mut rows = conn.prepare("SELECT lower(hex(id)) FROM events").expect("events");
    let told: BTreeSet<String> =
        rows.query_map([], |row| row.get(0)).expect("query").map(|id| id.expect("an id")).collect();
    let received = received.lock().expect("lock");
    let mut arrived: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, body) in received.iter() {
        arrived.entry(id).or_default().insert(body);
    }
    assert!(told.len() > KILLS, "{} events (seed {SEED})", told.len());
    let ids: BTreeSet<String> = arrived.keys().map(|id| (*id).to_owned()).collect();
    assert_eq!(ids, told, "every event, and nothing else (seed {SEED})");
    assert!(arrived.values().all(|bodies| bodies.len() == 1), "an id means one thing (seed {SEED})");
}
