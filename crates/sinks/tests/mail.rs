//! Mail against a real mail server.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use stakeout_core::Event;
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::Found;
use stakeout_sinks::mail::MailSink;
use support::event;
use support::mail_server::MailServer;

fn mailing(server: &MailServer, more: Value) -> MailSink {
    let mut config = json!({
        "host": "localhost", "port": server.port, "allow": ["localhost"], "timeout": "5s",
        "from": "Stakeout <stakeout@example.org>", "to": ["Anna <anna@example.org>", "bert@example.org"],
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let found = ["ca", "user", "password"];
    let found = found.into_iter().filter_map(|key| Some((key.to_owned(), config[key].as_str()?.to_owned())));
    let found: Found = found.collect();
    MailSink::new("mail", &serde_json::from_value(config).expect("a configuration"), &found).expect("a sink")
}

fn secured(server: &MailServer, tls: &str) -> Value {
    json!({"tls": tls, "ca": server.ca, "user": "stakeout", "password": "correct horse"})
}

#[tokio::test]
async fn an_alert_is_a_mail_in_text_and_html_over_tls() {
    for tls in ["tls", "starttls"] {
        let Some(mut server) = MailServer::start(tls) else { return };
        let sink = mailing(&server, secured(&server, tls));
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
    let Some(mut server) = MailServer::start("none") else { return };
    let sink = mailing(&server, json!({"tls": "none", "digest": "10min"}));
    let events: Vec<Event> = (1..=3).map(event).collect();
    let outcomes = sink.deliver_all(&events.iter().collect::<Vec<_>>()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 3);
    let mail = server.mail();
    assert_eq!(mail["subject"], "Odds fell 1 (and 2 more)");
    let id = mail["id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("<digest.") && id.ends_with("@example.org>"), "{id}");
    for event in &events {
        assert!(mail["text"].as_str().expect("text").contains(&event.id.to_string()));
    }
    // Were there a second mail, it would come before this one.
    sink.deliver(&event(9)).await.expect("taken");
    assert_eq!(server.mail()["subject"], "Odds fell 9");
    // Tried again it is the same mail; what somebody wants again of it is another, though it begins and ends alike.
    sink.deliver_all(&events.iter().collect::<Vec<_>>()).await;
    assert_eq!(server.mail()["id"], id.as_str());
    sink.deliver_all(&[&events[0], &events[2]]).await;
    assert_ne!(server.mail()["id"], id.as_str());
}

#[tokio::test]
async fn whoever_is_not_there_keeps_nobody_else_from_their_mail() {
    let Some(mut server) = MailServer::start("none") else { return };
    let to = json!(["anna@example.org", "nobody@example.org", "bert@example.org"]);
    let sink = mailing(&server, json!({"tls": "none", "to": to}));
    sink.deliver(&event(3)).await.expect("the others took it");
    assert_eq!(server.mail()["to"], json!(["anna@example.org", "bert@example.org"]));
    let busy = mailing(&server, json!({"tls": "none", "to": ["anna@example.org", "later@example.org"]}));
    let said = busy.deliver(&event(4)).await.expect_err("put off for all").to_string();
    assert!(said.contains("later@example.org") && said.contains("451"), "{said}");
    sink.deliver(&event(5)).await.expect("taken");
    assert_eq!(server.mail()["subject"], "Odds fell 5", "what was put off was not sent to anybody");
}

/// A mail server that knows no TLS; everything that it is told comes out.
fn plain_server() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("localhost:0").expect("binds");
    let port = listener.local_addr().expect("an address").port();
    let (told, heard) = channel();
    std::thread::spawn(move || {
        let Ok((stream, _)) = listener.accept() else { return };
        let mut stream = BufReader::new(stream);
        let mut answer = "220 plain ESMTP";
        // Until they part, or nobody listens any more.
        while stream.get_mut().write_all(format!("{answer}\r\n").as_bytes()).is_ok() {
            let mut line = String::new();
            if !stream.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            answer = if line.starts_with("EHLO") { "250-plain\r\n250 AUTH PLAIN LOGIN" } else { "250 OK" };
            if told.send(line).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

#[tokio::test]
async fn a_server_that_offers_no_tls_is_told_nothing() {
    let (port, heard) = plain_server();
    let config = json!({
        "host": "localhost", "port": port, "allow": ["localhost"], "timeout": "5s", "tls": "starttls",
        "user": "stakeout", "password": "correct horse", "from": "a@example.org", "to": ["b@example.org"],
    });
    let found = [("user", "stakeout"), ("password", "correct horse")];
    let found: Found = found.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
    let config = serde_json::from_value(config).expect("a configuration");
    let sink = MailSink::new("mail", &config, &found).expect("a sink");
    sink.deliver(&event(1)).await.expect_err("it wants TLS");
    drop(sink);
    // The server ends when they part, and with it the channel.
    let told: Vec<String> = heard.iter().collect();
    let is_harmless = |line: &String| ["EHLO", "QUIT"].iter().any(|word| line.starts_with(word));
    assert!(!told.is_empty() && told.iter().all(is_harmless), "{told:?}");
}

#[tokio::test]
async fn what_is_not_right_is_refused_without_secrets() {
    let Some(server) = MailServer::start("tls") else { return };
    let refused = async |more: Value| {
        let mut config = secured(&server, "tls");
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        match mailing(&server, config).deliver(&event(1)).await {
            Err(SinkError::Refused(said)) => said,
            other => panic!("{more}: {other:?}"),
        }
    };
    let stranger = refused(json!({"ca": null})).await;
    assert!(stranger.to_lowercase().contains("certificate"), "an unknown certificate: {stranger}");
    let wrong = refused(json!({"password": "battery staple"})).await;
    assert!(wrong.contains("535") && wrong.contains("not right"), "what the server said: {wrong}");
    for coded in ["stakeout", "battery", "c3Rha2VvdXQ=", "YmF0dGVyeSBzdGFwbGU=", "AHN0YWtlb3V0"] {
        assert!(!wrong.contains(coded), "it repeats what it was told, and is not quoted: {wrong}");
    }
    let nobody = refused(json!({"to": ["nobody@example.org"]})).await;
    assert!(nobody.contains("550"), "a receiver who is not there: {nobody}");
    let inside = refused(json!({"allow": []})).await;
    assert!(inside.contains("localhost is at") && inside.contains("loopback"), "{inside}");
    let plain = refused(json!({"tls": "starttls", "timeout": "500ms"})).await;
    assert!(!plain.is_empty(), "a server that speaks another language");
}
