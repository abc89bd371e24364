//! The real binary, killed with SIGKILL while it delivers: to a webhook, whose receiver checks every signature by itself,
//! to a mail server, and to sinks that are dead. Every event arrives at least once, always under the same id and with the
//! same content.

#[path = "../../sinks/tests/support/mail_server.rs"]
mod mail_server;
#[path = "../../sinks/tests/support/standard_webhooks.rs"]
mod standard_webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mail_server::MailServer;
use rusqlite::{Connection, OpenFlags};
use stakeout_sim::{Act, Loopback, Script, SplitMix64, serve};
use standard_webhooks::verified;

const KILLS: usize = 12;
const SEED: u64 = 20_261_116;
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PREVIOUS: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// What came, as (id, content).
type Arrived = Arc<Mutex<Vec<(String, String)>>>;

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

/// The ids of what came, each of which has come with one content.
fn ids(arrived: &Arrived) -> BTreeSet<String> {
    let mut contents: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, content) in arrived.lock().expect("lock").iter() {
        contents.entry(id.clone()).or_default().insert(content.clone());
    }
    let twofold = contents.iter().find(|(_, contents)| contents.len() > 1);
    assert_eq!(twofold, None, "an id means one thing (seed {SEED})");
    contents.into_keys().collect()
}

#[test]
fn whoever_kills_it_each_event_arrives_under_one_id() {
    let Some(mut mail) = MailServer::start("none") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("stakeout.db");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let upstream = serve(Script::new(SEED, 6, 300, now().as_millis() as u64));
    let (received, mailed) = (Arrived::default(), Arrived::default());
    let log = Arc::clone(&received);
    let receiver = Loopback::start(move |seen| {
        let by = |secret: &str| verified(seen, secret, now().as_secs());
        let id = match (by(SECRET), by(PREVIOUS)) {
            (Ok(id), Ok(again)) if id == again => id,
            wrong => format!("{wrong:?}"),
        };
        log.lock().expect("lock").push((id, String::from_utf8_lossy(&seen.body).into_owned()));
        // Slow enough to be killed between the arrival and the answer.
        Act::status(200).after_ms(15)
    });
    let log = Arc::clone(&mailed);
    let port = mail.port;
    mail.each(move |mail| {
        let id = mail["id"].as_str().expect("an id");
        let id = id.trim_start_matches('<').trim_end_matches("@example.org>");
        log.lock().expect("lock").push((id.to_owned(), mail["text"].to_string()));
    });
    let hanging = Loopback::start(|_| Act::Hang);
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
[alert.moved]
when = {{ on = "event", type = "json.changed" }}
sinks = ["hook", "mail", "gone", "hanging"]
[sink.hook]
kind = "webhook"
url = "{receiver}"
secret = "{SECRET}"
previous_secret = "{PREVIOUS}"
allow = ["127.0.0.1"]
events = ["json.*"]
[sink.mail]
kind = "mail"
host = "localhost"
port = {port}
tls = "none"
allow = ["localhost"]
from = "stakeout@example.org"
to = ["anna@example.org"]
# Nobody has ever listened there.
[sink.gone]
kind = "http"
url = "http://127.0.0.1:9/"
allow = ["127.0.0.1"]
body = "{{title}}"
content_type = "text/plain"
[sink.hanging]
kind = "webhook"
url = "{hanging}"
secret = "{SECRET}"
allow = ["127.0.0.1"]
events = ["json.*"]
"#,
        db = db.display(),
        upstream = upstream.url("/state"),
        receiver = receiver.url("/in"),
        hanging = hanging.url("/"),
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
    let waiting = "SELECT count(*) FROM deliveries WHERE sink IN ('hook', 'mail')";
    until("nothing is left but for the dead", || number(&db, waiting) == 0);
    child.kill().expect("SIGKILL");
    child.wait().expect("reaped");

    let conn = Connection::open_with_flags(&db, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("open");
    let told = |which: &str| -> BTreeSet<String> {
        let sql = format!("SELECT lower(hex(id)) FROM events WHERE {which}");
        let mut rows = conn.prepare(&sql).expect("events");
        rows.query_map([], |row| row.get(0)).expect("query").map(|id| id.expect("an id")).collect()
    };
    let (all, alerts) = (told("true"), told("type = 'alert.raised'"));
    assert!(alerts.len() > KILLS && all.len() > 2 * KILLS, "{} events (seed {SEED})", all.len());
    assert_eq!(ids(&received), all, "every event signed, and nothing else (seed {SEED})");
    assert_eq!(ids(&mailed), alerts, "every alert as a mail, and nothing else (seed {SEED})");
    let dead = |sink: &str| number(&db, &format!("SELECT count(*) FROM deliveries WHERE sink = '{sink}'"));
    assert_eq!((dead("gone"), dead("hanging")), (alerts.len() as i64, all.len() as i64), "theirs wait");
    assert!(hanging.stats().requests > 0, "it was tried");
}
