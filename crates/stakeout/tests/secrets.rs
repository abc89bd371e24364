//! The secrets of sinks and sources stay secret: every kind of sink fails in its own way while everything is logged, and
//! then nothing that is left behind, answered or said has any of them.

#[path = "../../sinks/tests/support/mail_server.rs"]
mod mail_server;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mail_server::MailServer;
use rusqlite::{Connection, OpenFlags};
use stakeout_sim::{Act, Loopback, Seen};

/// What must be seen by nobody but the receiver it is meant for, by the variable it comes from.
const SECRETS: [(&str, &str); 12] = [
    ("UPSTREAM_TOKEN", "Bearer upstream-4c1f7e9a2b"),
    ("HOOK_URL_PART", "hook-path-9d21c07bd4"),
    ("HOOK_SECRET", "whsec_c2lnbmluZy1zZWNyZXQtb2YtdGhlLWhvb2stMDAwMQ=="),
    ("HOOK_PREVIOUS", "whsec_cHJldmlvdXMtc2VjcmV0LW9mLXRoZS1ob29rLTAwMg=="),
    ("CHAT_TOKEN", "Bearer chat-5e8bb01f3c"),
    ("BOT_TOKEN", "bot771203:AAF-bot-token-1b2c"),
    ("SMTP_PASSWORD", "smtp-battery-staple-63"),
    ("NATS_PASSWORD", "nats-password-88e1d0"),
    ("NATS_TOKEN", "nats-token-40aa9c17"),
    ("NATS_PASS", "eyJ0eXAiOiJKV1QifQ.jwt-of-nobody-6b1f"),
    ("NATS_SEED", "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY"),
    ("SMTP_USER", "smtp-user-5d0f72"),
];

/// Everything whose presence would give a secret away.
fn needles() -> BTreeMap<String, &'static str> {
    let mut needles = BTreeMap::new();
    for (name, secret) in SECRETS {
        let bare = secret.trim_start_matches("Bearer ").trim_start_matches("whsec_");
        needles.insert(bare.to_owned(), name);
        needles.insert(bare.replace(':', "%3A"), name);
        needles.insert(STANDARD.encode(secret), name);
        needles.insert(URL_SAFE_NO_PAD.encode(secret), name);
        if let Ok(key) = STANDARD.decode(bare) {
            needles.insert(String::from_utf8_lossy(&key).into_owned(), name);
        }
    }
    // As SMTP's AUTH PLAIN has it.
    needles.insert(STANDARD.encode("\0smtp-user-5d0f72\0smtp-battery-staple-63"), "SMTP_PASSWORD");
    needles
}

/// Fails if a secret is in what is found somewhere.
fn keeps_silent(place: &str, found: &[u8]) {
    let found = String::from_utf8_lossy(found);
    for (needle, name) in needles() {
        if let Some(at) = found.find(&needle) {
            let before: Vec<char> = found[..at].chars().rev().take(200).collect();
            panic!("{place} has {name} after …{}", before.iter().rev().collect::<String>());
        }
    }
}

/// A broker that lets nobody in, and tells with what they tried: us, and whoever tried.
fn broker() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = listener.local_addr().expect("an address").port();
    let (told, tried) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let info = r#"INFO {"server_id":"x","version":"2.10.0","auth_required":true,"nonce":"bm9uY2U","max_payload":1048576}"#;
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            let greeted = stream.get_mut().write_all(format!("{info}\r\n").as_bytes());
            if greeted.and_then(|()| stream.read_line(&mut line)).is_ok() {
                // They may be gone by now, and so may whoever listens.
                let _ = stream.get_mut().write_all(format!("-ERR 'not with {}'\r\n", line.trim()).as_bytes());
                let _ = told.send(line);
            }
        }
    });
    (port, tried)
}

fn tried(with: &Receiver<String>) -> String {
    with.recv_timeout(Duration::from_secs(30)).expect("it was tried")
}

/// Refuses, and repeats everything it was told: nobody should be listening.
fn echoing(seen: &Seen) -> Act {
    let said = format!("{} {:?} {}", seen.path, seen.headers, String::from_utf8_lossy(&seen.body));
    let status = if seen.path.contains("moved") { 302 } else { 500 };
    Act::Answer {
        status,
        headers: vec![("location".to_owned(), format!("/{}", seen.path))],
        body: said.into(),
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn get(address: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a limit");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("writes");
    let mut answer = Vec::new();
    // A stream does not end by itself: what it has said so far is enough.
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Every path that can be asked without knowing more than the source.
fn paths(address: SocketAddr) -> Vec<String> {
    let answer = get(address, "/openapi.json");
    let text = String::from_utf8_lossy(&answer);
    let body = &text[text.find("\r\n\r\n").expect("a body") + 4..];
    let described: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let described = described["paths"].as_object().expect("paths");
    let readable = described.iter().filter(|(_, of)| of.get("get").is_some()).map(|(path, _)| path);
    let filled = readable
        .map(|path| path.replace("{source}", "s").replace("{seq}", "1").replace("{key}", "alert.mine"));
    filled.filter(|path| !path.contains('{')).collect()
}

#[test]
fn no_log_row_answer_or_message_has_a_secret() {
    let Some(mut mail) = MailServer::start("tls") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Loopback::start(|seen| {
        Act::json(&serde_json::json!({"items": [{"id": "a", "value": seen.n.min(5)}]}))
    });
    let receiver = Loopback::start(echoing);
    let (password_port, password_tried) = broker();
    let (token_port, token_tried) = broker();
    let (seed_port, seed_tried) = broker();
    std::fs::write(dir.path().join("ca.pem"), &mail.ca).expect("written");
    let secret = |name: &str| SECRETS.iter().find(|(known, _)| *known == name).expect("known").1;
    let credentials = format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        secret("NATS_PASS"),
        secret("NATS_SEED")
    );
    let variables: Vec<(&str, String)> = SECRETS
        .into_iter()
        .map(|(name, secret)| (name, secret.to_owned()))
        .chain([
            ("HOOK_URL", receiver.url(&format!("/{}", secret("HOOK_URL_PART")))),
            ("BOT_URL", receiver.url(&format!("/{}/sendMessage", secret("BOT_TOKEN")))),
            ("MOVED_URL", receiver.url(&format!("/moved/{}", secret("BOT_TOKEN")))),
            ("DOWN_URL", format!("http://127.0.0.1:9/{}", secret("BOT_TOKEN"))),
            ("NATS_CREDENTIALS", credentials),
        ])
        .collect();
    let text = format!(
        r#"
[store]
url = "sqlite:s.db"
[server]
listen = "127.0.0.1:0"
[source.s]
kind = "json"
url = "{upstream}"
every = "100ms"
records = "items"
key = "id"
fields = ["value"]
headers = {{ authorization = {{ env = "UPSTREAM_TOKEN" }} }}
[alert.each]
when = {{ on = "event", type = "json.changed" }}
sinks = ["hook", "chat", "bot", "moved", "down", "mail", "password", "token", "credentials"]
[sink.hook]
kind = "webhook"
url = {{ env = "HOOK_URL" }}
secret = {{ env = "HOOK_SECRET" }}
previous_secret = {{ env = "HOOK_PREVIOUS" }}
allow = ["127.0.0.1"]
[sink.chat]
kind = "http"
url = "{chat}"
headers = {{ authorization = {{ env = "CHAT_TOKEN" }} }}
allow = ["127.0.0.1"]
body = '{{"text": "{{title}}"}}'
[sink.bot]
kind = "http"
url = {{ env = "BOT_URL" }}
allow = ["127.0.0.1"]
body = '{{"text": "{{title}}"}}'
[sink.moved]
kind = "http"
url = {{ env = "MOVED_URL" }}
allow = ["127.0.0.1"]
body = '{{"text": "{{title}}"}}'
[sink.down]
kind = "http"
url = {{ env = "DOWN_URL" }}
allow = ["127.0.0.1"]
body = '{{"text": "{{title}}"}}'
[sink.mail]
kind = "mail"
host = "localhost"
port = {smtp}
ca = {{ file = "ca.pem" }}
user = {{ env = "SMTP_USER" }}
password = {{ env = "SMTP_PASSWORD" }}
allow = ["localhost"]
from = "stakeout@example.org"
to = ["anna@example.org"]
[sink.password]
kind = "nats"
url = "nats://127.0.0.1:{password_port}"
user = "stakeout"
password = {{ env = "NATS_PASSWORD" }}
allow = ["127.0.0.1"]
[sink.token]
kind = "nats"
url = "nats://127.0.0.1:{token_port}"
token = {{ env = "NATS_TOKEN" }}
allow = ["127.0.0.1"]
[sink.credentials]
kind = "nats"
url = "nats://127.0.0.1:{seed_port}"
credentials = {{ env = "NATS_CREDENTIALS" }}
allow = ["127.0.0.1"]
"#,
        upstream = upstream.url("/state"),
        chat = receiver.url("/chat"),
        smtp = mail.port,
    );
    std::fs::write(dir.path().join("stakeout.toml"), &text).expect("written");
    mail.each(|mail| panic!("a wrong password opens nothing: {mail}"));
    let stakeout = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
        command.args(arguments).current_dir(dir.path()).envs(variables.clone());
        command
    };

    let log = dir.path().join("log");
    let stderr = std::fs::File::create(&log).expect("a log");
    let mut running =
        stakeout(&["--log", "trace", "run"]).stdout(Stdio::piped()).stderr(stderr).spawn().expect("starts");
    let mut lines = BufReader::new(running.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let mut said = String::new();
    let address: SocketAddr = lines
        .by_ref()
        .find_map(|line| {
            said.push_str(&line);
            line.split_once("API at http://")?.1.trim_end_matches('/').parse().ok()
        })
        .expect("it says where it listens");
    std::thread::spawn(move || lines.for_each(drop));

    // Each was tried with its secret, and each failed.
    let db = dir.path().join("s.db");
    let refused = "SELECT count(DISTINCT sink) FROM deliveries WHERE attempts > 0";
    let count = || -> Option<i64> {
        let conn = Connection::open_with_flags(&db, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        conn.query_row(refused, [], |row| row.get(0)).ok()
    };
    until("six sinks have refused something", || count() == Some(6));
    assert!(tried(&password_tried).contains(secret("NATS_PASSWORD")));
    assert!(tried(&token_tried).contains(secret("NATS_TOKEN")));
    assert!(tried(&seed_tried).contains(secret("NATS_PASS")));
    let seen = receiver.seen();
    for path in [secret("HOOK_URL_PART"), secret("BOT_TOKEN"), "moved"] {
        assert!(seen.iter().any(|seen| seen.path.contains(path)), "{path} was asked");
    }
    assert!(seen.iter().any(|seen| seen.header("authorization") == Some(secret("CHAT_TOKEN"))));
    assert!(
        upstream.seen().iter().all(|seen| seen.header("authorization") == Some(secret("UPSTREAM_TOKEN")))
    );

    // The mail server repeats whom and what it refused: that it did is known, what it repeated is not.
    let conn = Connection::open_with_flags(&db, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database");
    let said: String = conn
        .query_row("SELECT error FROM deliveries WHERE sink = 'mail' AND attempts > 0", [], |row| row.get(0))
        .expect("what the mail server said");
    assert!(said.contains("not right") && said.contains("[redacted]"), "{said}");

    // While it runs: everything it answers, and what commands say beside it.
    let paths = paths(address);
    assert!(paths.iter().any(|path| path == "/v1/deliveries/dead" || path.contains("sinks")), "{paths:?}");
    for path in &paths {
        keeps_silent(path, &get(address, path));
    }
    for arguments in [
        &["check"][..],
        &["-vv", "check"],
        &["deliveries", "list"],
        &["alerts", "list"],
        &["settings"],
        &["events"],
        &["targets"],
        &["-vv", "alerts", "test", "each"],
    ] {
        let output = stakeout(arguments).output().expect("runs");
        keeps_silent(&arguments.join(" "), &[output.stdout, output.stderr].concat());
    }
    assert!(Command::new("kill").arg(running.id().to_string()).status().expect("kill").success());
    assert!(running.wait().expect("reaped").success(), "it ends cleanly");
    keeps_silent("stdout", said.as_bytes());

    // What it leaves behind.
    let mut files = 0;
    for entry in std::fs::read_dir(dir.path()).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            files += 1;
            keeps_silent(&path.display().to_string(), &std::fs::read(&path).expect("readable"));
        }
    }
    assert!(files >= 4, "database, log, configuration and certificate: {files}");
    let log = std::fs::read_to_string(&log).expect("a log");
    assert!(log.contains("TRACE") && log.contains("delivery failed"), "everything was logged");
    assert!(
        log.contains("not with") && log.contains("[redacted]"),
        "what the brokers said, but for the secrets"
    );
    what_cannot_be_is_refused_without_being_shown(dir.path(), &variables);
}

/// A secret that cannot be one is not repeated to whoever reads the message.
fn what_cannot_be_is_refused_without_being_shown(dir: &Path, variables: &[(&str, String)]) {
    for (wrong, value) in [
        ("HOOK_SECRET", format!("{}!", SECRETS[2].1)),
        ("HOOK_URL", format!("ftp://127.0.0.1/{}", SECRETS[1].1)),
        ("BOT_URL", format!("not a url {}", SECRETS[5].1)),
        ("CHAT_TOKEN", format!("{}\n", SECRETS[4].1)),
        ("NATS_CREDENTIALS", SECRETS[10].1.to_owned()),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
        command.args(["-vv", "poll"]).current_dir(dir).envs(variables.iter().cloned()).env(wrong, value);
        let output = command.output().expect("runs");
        keeps_silent(wrong, &[output.stdout, output.stderr].concat());
    }
}
