//! Where sinks of all kinds may connect to: what listens inside is never spoken to unless its name is allowed.

mod support;

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::address::{Names, System};
use stakeout_sinks::http::HttpSink;
use stakeout_sinks::mail::MailSink;
use stakeout_sinks::nats::NatsSink;
use stakeout_sinks::webhook::WebhookSink;
use stakeout_sinks::{Found, Refused};
use support::event;
use support::names::InTurn;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Something on this machine that tells of everybody who connects, and hangs up on them.
fn inside(host: &str, port: u16) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind((host, port)).expect("binds");
    let port = listener.local_addr().expect("an address").port();
    let (told, connected) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let told = told.send(());
            // Nothing that anybody would take for an answer.
            let _ = { stream }.write_all(b"\r\n");
            if told.is_err() {
                return;
            }
        }
    });
    (port, connected)
}

/// Two places on this machine with the same port.
fn two_places() -> (u16, Receiver<()>, Receiver<()>) {
    let (port, one) = inside("127.0.0.1", 0);
    let (_, other) = inside("127.0.0.2", port);
    (port, one, other)
}

/// A sink of each kind for a host, with TLS or without.
fn sinks(host: &str, port: u16, secured: bool, allow: &[&str]) -> [Result<Box<dyn Sink>, Refused>; 4] {
    sinks_asking(&[(); 4].map(|()| Arc::new(System) as Arc<dyn Names>), host, port, secured, allow)
}

/// The same, each of which asks somebody else where the host is.
fn sinks_asking(
    names: &[Arc<dyn Names>; 4],
    host: &str,
    port: u16,
    secured: bool,
    allow: &[&str],
) -> [Result<Box<dyn Sink>, Refused>; 4] {
    let (http, nats, tls) = if secured { ("https", "tls", "tls") } else { ("http", "nats", "none") };
    let url = format!("{http}://{host}:{port}/");
    let found: Found = [("url", url.as_str()), ("secret", SECRET)]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into_iter()
        .collect();
    let of = |mut config: Value| {
        config["allow"] = json!(allow);
        config
    };
    fn read<C: serde::de::DeserializeOwned>(config: Value) -> C {
        serde_json::from_value(config).expect("a configuration")
    }
    fn boxed<S: Sink>(sink: Result<S, Refused>) -> Result<Box<dyn Sink>, Refused> {
        sink.map(|sink| Box::new(sink) as Box<dyn Sink>)
    }
    let webhook = of(json!({"url": url, "secret": SECRET, "timeout": "2s"}));
    let template = of(json!({"url": url, "body": "{}", "timeout": "2s"}));
    let mail = of(json!({
        "host": host, "port": port, "tls": tls, "timeout": "2s",
        "from": "stakeout@example.org", "to": ["anna@example.org"],
    }));
    let broker = of(json!({"url": format!("{nats}://{host}:{port}")}));
    let none = Found::default();
    let [hook, chat, mail_server, servers] = names.clone();
    [
        boxed(WebhookSink::asking("hook", &read(webhook), &found, hook)),
        boxed(HttpSink::asking("chat", &read(template), &found, chat)),
        boxed(MailSink::asking("mail", &read(mail), &none, mail_server)),
        boxed(NatsSink::asking("events", &read(broker), &none, servers)),
    ]
}

#[test]
fn an_address_inside_is_refused_by_every_kind_of_sink() {
    for host in ["127.0.0.1", "[::1]", "10.1.2.3", "192.168.1.1", "169.254.169.254", "[fd00:ec2::254]"] {
        for sink in sinks(host, 4222, true, &[]) {
            let refused = sink.err().expect(host).to_string();
            assert!(refused.contains("permits it"), "{host}: {refused}");
        }
        let plain = host.trim_matches(['[', ']']);
        for sink in sinks(host, 4222, false, &[plain]) {
            assert!(sink.is_ok(), "{host} is allowed: {:?}", sink.err());
        }
    }
    for sink in sinks("example.org", 4222, false, &[]) {
        let refused = sink.err().expect("without TLS").to_string();
        assert!(refused.contains("permits"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_name_that_leads_inside_is_never_connected_to_by_any_kind_of_sink() {
    let (port, connected) = inside("localhost", 0);
    let closed = sinks("localhost", port, true, &["elsewhere"]);
    for sink in &closed {
        let sink = sink.as_ref().expect("a name is looked up when something is sent");
        let refused = sink.deliver(&event(1)).await.expect_err("refused");
        let said = refused.to_string();
        assert!(said.contains("localhost is at") && said.contains("loopback"), "{}: {said}", sink.kind());
        // What nobody has tried does not count as tried.
        assert_eq!(matches!(refused, SinkError::Down(_)), sink.kind() == "nats", "{}", sink.kind());
    }
    assert!(connected.try_recv().is_err(), "nobody came");

    for sink in sinks("localhost", port, true, &["localhost"]) {
        let sink = sink.expect("allowed");
        sink.deliver(&event(1)).await.expect_err("it does not answer as it should");
        let came = connected.recv_timeout(Duration::from_secs(10));
        came.unwrap_or_else(|_| panic!("{} was allowed to come", sink.kind()));
        while connected.try_recv().is_ok() {}
    }
}

/// A host that is elsewhere each time one asks: only what was asked for a connection counts for it.
#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection_which_goes_to_what_was_found() {
    let (port, one, other) = two_places();
    let names = [(); 4].map(|()| InTurn::new(&["127.0.0.1", "127.0.0.2"]));
    let asked = names.clone().map(|names| names as Arc<dyn Names>);
    let sinks = sinks_asking(&asked, "receiver.test", port, false, &["receiver.test"]);
    for (sink, names) in sinks.into_iter().zip(names) {
        let sink = sink.expect("allowed");
        for (round, (came, stayed)) in [(&one, &other), (&other, &one)].into_iter().enumerate() {
            sink.deliver(&event(1)).await.expect_err("it does not answer as it should");
            assert_eq!(names.asked(), vec!["receiver.test"; round + 1], "{}", sink.kind());
            let came = came.recv_timeout(Duration::from_secs(10)).is_ok();
            assert!(came, "{}, round {round}: to the address that was found", sink.kind());
            assert!(stayed.try_recv().is_err(), "{}, round {round}: and to no other", sink.kind());
        }
    }
}

/// A name server that answers the check with a public address and the connection with one of this machine.
#[tokio::test]
async fn a_name_that_has_come_to_lead_inside_is_never_connected_to() {
    let (port, connected) = inside("127.0.0.1", 0);
    // Nobody has ever been given the first address.
    let names = [(); 4].map(|()| InTurn::new(&["3ffe::1", "127.0.0.1"]));
    let asked = names.clone().map(|names| names as Arc<dyn Names>);
    let sinks = sinks_asking(&asked, "receiver.test", port, true, &["elsewhere.test"]);
    let each = sinks.into_iter().zip(names).map(|(sink, names)| async move {
        let sink = sink.expect("a name is looked up when something is sent");
        let said = sink.deliver(&event(1)).await.expect_err("nobody is there").to_string();
        assert!(!said.contains("receiver.test is at"), "{}: {said}", sink.kind());
        assert_eq!(names.asked().len(), 1, "{}: there was no second look", sink.kind());
        let said = sink.deliver(&event(1)).await.expect_err("refused").to_string();
        assert!(said.contains("receiver.test is at 127.0.0.1, which is loopback"), "{}: {said}", sink.kind());
        assert_eq!(names.asked().len(), 2, "{}", sink.kind());
    });
    // Together: what nobody answers takes its time.
    join_all(each).await;
    assert!(connected.try_recv().is_err(), "nobody came");
}
