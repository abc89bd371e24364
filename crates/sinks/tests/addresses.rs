//! Where sinks of all kinds may connect to: what listens inside is never spoken to unless its name is allowed.

mod support;

use std::io::Write;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::http::HttpSink;
use stakeout_sinks::mail::MailSink;
use stakeout_sinks::nats::{Access, NatsSink};
use stakeout_sinks::webhook::WebhookSink;
use stakeout_sinks::{Found, Refused};
use support::event;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Something on this machine that tells of everybody who connects, and hangs up on them.
fn inside() -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("localhost:0").expect("binds");
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

/// A sink of each kind for a host, with TLS or without.
fn sinks(host: &str, port: u16, secured: bool, allow: &[&str]) -> [Result<Box<dyn Sink>, Refused>; 4] {
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
    [
        boxed(WebhookSink::new("hook", &read(webhook), &found)),
        boxed(HttpSink::new("chat", &read(template), &found)),
        boxed(MailSink::new("mail", &read(mail), &found)),
        boxed(NatsSink::new("events", &read(broker), Access::Open)),
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
    let (port, connected) = inside();
    let closed = sinks("localhost", port, true, &["elsewhere"]);
    for sink in &closed {
        let sink = sink.as_ref().expect("a name is looked up when something is sent");
        let refused = sink.deliver(&event(1)).await.expect_err("refused");
        let said = refused.to_string();
        assert!(said.contains("localhost is at") && said.contains("loopback"), "{}: {said}", sink.kind());
        // What nobody has tried does not count as tried.
        assert_eq!(matches!(refused, SinkError::Down(_)), sink.kind() == "nats", "{}", sink.kind());
    }
    // The broker would be connected to in the background, at once.
    assert!(connected.recv_timeout(Duration::from_millis(300)).is_err(), "nobody came");
    drop(closed);

    for sink in sinks("localhost", port, true, &["localhost"]) {
        let sink = sink.expect("allowed");
        sink.deliver(&event(1)).await.expect_err("it does not answer as it should");
        // The broker is connected to in the background.
        let came = tokio::task::block_in_place(|| connected.recv_timeout(Duration::from_secs(10)));
        came.unwrap_or_else(|_| panic!("{} was allowed to come", sink.kind()));
        while connected.try_recv().is_ok() {}
    }
}
