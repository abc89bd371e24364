//! Mail against a real mail server (aiosmtpd, from PyPI).

mod support;

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::Found;
use stakeout_sinks::mail::MailSink;
use support::event;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// A mail server that ends with us.
struct Server {
    child: Child,
    port: u16,
    lines: Lines<BufReader<ChildStdout>>,
    /// Its certificate authority, in PEM.
    ca: String,
}

impl Server {
    /// `None`, having said why, where there is no mail server; with `CI=true` that is a failure.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests should know what was skipped")]
    fn start(mode: &str) -> Option<Server> {
        let own = Path::new(HERE).join("../../target/aiosmtpd/bin/python");
        let python = if own.exists() { own } else { "python3".into() };
        let there = Command::new(&python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success())
            || Command::new("openssl").arg("version").output().is_err()
        {
            println!("skipped: aiosmtpd or openssl is missing (scripts/test installs them)");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(&python);
        command.arg(Path::new(HERE).join("tests/smtpd.py")).arg(mode);
        let mut ca = String::new();
        if mode != "none" {
            certify(dir.path());
            command.args([dir.path().join("cert.pem"), dir.path().join("key.pem")]);
            ca = std::fs::read_to_string(dir.path().join("ca.pem")).expect("a certificate");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines.next().expect("a port").expect("readable").parse().expect("a number");
        Some(Server { child, port, lines, ca })
    }

    fn sink(&self, more: Value) -> MailSink {
        let mut config = json!({
            "host": "localhost", "port": self.port, "allow": ["localhost"], "timeout": "5s",
            "from": "Stakeout <stakeout@example.org>", "to": ["Anna <anna@example.org>", "bert@example.org"],
        });
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let found = ["ca", "user", "password"];
        let found =
            found.into_iter().filter_map(|key| Some((key.to_owned(), config[key].as_str()?.to_owned())));
        let found: Found = found.collect();
        MailSink::new("mail", &serde_json::from_value(config).expect("a configuration"), &found)
            .expect("a sink")
    }

    fn secured(&self, tls: &str) -> Value {
        json!({"tls": tls, "ca": self.ca, "user": "stakeout", "password": "correct horse"})
    }

    /// The next mail that it has taken.
    fn mail(&mut self) -> Value {
        let line = self.lines.next().expect("a mail").expect("readable");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate authority and a certificate of it for `localhost`.
fn certify(dir: &Path) {
    std::fs::write(dir.join("san"), "subjectAltName = DNS:localhost\n").expect("written");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for arguments in [
        format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"),
        format!("req {key} -keyout key.pem -out request -subj /CN=localhost"),
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out cert.pem"
            .to_owned(),
    ] {
        let made =
            Command::new("openssl").args(arguments.split(' ')).current_dir(dir).output().expect("openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

#[tokio::test]
async fn an_alert_is_a_mail_in_text_and_html_over_tls() {
    for tls in ["tls", "starttls"] {
        let Some(mut server) = Server::start(tls) else { return };
        let sink = server.sink(server.secured(tls));
        let event = event(5);
        sink.deliver(&event).await.expect(tls);
        let mail = server.mail();
        assert_eq!((&mail["encrypted"], &mail["user"]), (&json!(true), &json!("stakeout")), "{tls}");
        assert_eq!(mail["from"], "stakeout@example.org");
        assert_eq!(mail["to"], json!(["anna@example.org", "bert@example.org"]));
        assert_eq!(mail["id"], format!("<{}@example.org>", event.id));
        assert_eq!(mail["subject"], "Odds fell 5");
        let text = mail["text"].as_str().expect("text");
        assert!(text.starts_with("Odds fell 5") && text.contains("4.2 → 3.1"), "{text}");
        assert!(mail["html"].as_str().expect("html").contains("<h2>Odds fell 5</h2>"));
        sink.deliver(&event).await.expect("again");
        assert_eq!(server.mail()["id"], mail["id"], "the same mail, however often");
    }
}

#[tokio::test]
async fn several_events_are_one_mail_where_they_are_gathered() {
    let Some(mut server) = Server::start("none") else { return };
    let sink = server.sink(json!({"tls": "none", "digest": "10min"}));
    let events: Vec<Event> = (1..=3).map(event).collect();
    let outcomes = sink.deliver_all(&events.iter().collect::<Vec<_>>()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 3);
    let mail = server.mail();
    assert_eq!(mail["subject"], "Odds fell 1 (and 2 more)");
    assert_eq!(mail["id"], format!("<{}.{}@example.org>", events[0].id, events[2].id));
    for event in &events {
        assert!(mail["text"].as_str().expect("text").contains(&event.id.to_string()));
    }
    // Were there a second mail, it would come before this one.
    sink.deliver(&event(9)).await.expect("taken");
    assert_eq!(server.mail()["subject"], "Odds fell 9");
}

#[tokio::test]
async fn whoever_is_not_there_keeps_nobody_else_from_their_mail() {
    let Some(mut server) = Server::start("none") else { return };
    let to = json!(["anna@example.org", "nobody@example.org", "bert@example.org"]);
    let sink = server.sink(json!({"tls": "none", "to": to}));
    sink.deliver(&event(3)).await.expect("the others took it");
    assert_eq!(server.mail()["to"], json!(["anna@example.org", "bert@example.org"]));
    let busy = server.sink(json!({"tls": "none", "to": ["anna@example.org", "later@example.org"]}));
    let said = busy.deliver(&event(4)).await.expect_err("put off for all").to_string();
    assert!(said.contains("later@example.org") && said.contains("451"), "{said}");
    sink.deliver(&event(5)).await.expect("taken");
    assert_eq!(server.mail()["subject"], "Odds fell 5", "what was put off was not sent to anybody");
}

#[tokio::test]
async fn what_is_not_right_is_refused_without_secrets() {
    let Some(server) = Server::start("tls") else { return };
    let refused = async |more: Value| {
        let mut config = server.secured("tls");
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        match server.sink(config).deliver(&event(1)).await {
            Err(SinkError::Refused(said)) => said,
            other => panic!("{more}: {other:?}"),
        }
    };
    let stranger = refused(json!({"ca": null})).await;
    assert!(stranger.to_lowercase().contains("certificate"), "an unknown certificate: {stranger}");
    let wrong = refused(json!({"password": "battery staple"})).await;
    assert!(wrong.contains("535") && !wrong.contains("battery"), "a wrong password: {wrong}");
    let nobody = refused(json!({"to": ["nobody@example.org"]})).await;
    assert!(nobody.contains("550"), "a receiver who is not there: {nobody}");
    let inside = refused(json!({"allow": []})).await;
    assert!(inside.contains("localhost is at") && inside.contains("loopback"), "{inside}");
    let plain = refused(json!({"tls": "starttls", "timeout": "500ms"})).await;
    assert!(!plain.is_empty(), "a server that speaks another language");
}
