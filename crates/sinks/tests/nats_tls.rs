//! A broker with TLS: the connection goes to an address, and the certificate has to be for the name.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::Found;
use stakeout_sinks::nats::NatsSink;
use support::broker::Broker;
use support::mail_server::certificates::{can_certify, certify};
use support::names::InTurn;
use support::rogue::Rogue;
use support::{delivered, event};
use tempfile::TempDir;
use tokio_rustls::LazyConfigAcceptor;

/// A broker that speaks TLS only, and lets in whoever knows the token.
struct Site {
    dir: TempDir,
    broker: Broker,
}

impl Site {
    /// With a certificate for these names.
    fn certified_for(names: &str) -> Option<Site> {
        let dir = tempfile::tempdir().expect("a directory");
        if !can_certify() {
            return None;
        }
        certify(dir.path(), names);
        let file = |name: &str| dir.path().join(name);
        let more = format!(
            "authorization {{ token: sesame }}\ntls {{ cert_file: {:?}, key_file: {:?} }}",
            file("cert.pem"),
            file("key.pem")
        );
        let broker = Broker::start(dir.path(), None, &more)?;
        Some(Site { broker, dir })
    }

    fn ca(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("ca.pem")).expect("a certificate")
    }

    /// A sink for servers of these names and schemes, all of them at 127.0.0.1.
    fn sink(&self, names: &Arc<InTurn>, servers: &[&str], more: Value) -> NatsSink {
        let url: Vec<String> =
            servers.iter().map(|server| format!("{server}:{}", self.broker.port)).collect();
        let mut config = json!({
            "url": url.join(","), "ca": self.ca(), "token": "sesame",
            "allow": ["broker.test", "other.test", "127.0.0.1"],
        });
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let found = ["ca", "token"].into_iter();
        let found = found.filter_map(|key| Some((key.to_owned(), config[key].as_str()?.to_owned())));
        let found: Found = found.collect();
        let config = serde_json::from_value(config).expect("a configuration");
        NatsSink::asking("events", &config, &found, names.clone()).expect("a sink")
    }
}

fn here() -> Arc<InTurn> {
    InTurn::new(&["127.0.0.1"])
}

#[tokio::test]
async fn a_certificate_for_the_name_is_accepted_although_an_address_was_connected_to() {
    let Some(site) = Site::certified_for("DNS:broker.test") else { return };
    for server in ["tls://broker.test", "nats://broker.test", "tls://BROKER.test"] {
        let names = here();
        let sink = site.sink(&names, &[server], json!({}));
        assert_eq!(delivered(&sink).await, None, "{server}");
        assert!(names.asked().iter().all(|name| name == "broker.test"), "nobody asks for what is known");
        let before = names.asked().len();
        assert_eq!(delivered(&sink).await, None, "again");
        assert_eq!(names.asked().len(), before, "it is the same connection");
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    // It would be good for the address.
    let Some(site) = Site::certified_for("DNS:other.test,IP:127.0.0.1") else { return };
    for server in ["tls://broker.test", "nats://broker.test"] {
        let said = delivered(&site.sink(&here(), &[server], json!({}))).await.expect("refused");
        assert!(said.contains("not valid for name \"broker.test\""), "{server}: {said}");
        assert!(!said.contains("sesame"), "{said}");
    }
    let by_address = site.sink(&here(), &["tls://127.0.0.1"], json!({}));
    assert_eq!(delivered(&by_address).await, None, "where the address is the name");
    // Of several servers each has its own name.
    let both = site.sink(&here(), &["tls://broker.test", "tls://other.test"], json!({}));
    assert_eq!(delivered(&both).await, None, "the second is what it says");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let Some(site) = Site::certified_for("DNS:broker.test") else { return };
    let sink = site.sink(&here(), &["tls://broker.test"], json!({ "ca": null }));
    let said = delivered(&sink).await.expect("refused");
    assert!(said.contains("invalid peer certificate"), "{said}");
}

#[tokio::test]
async fn a_broker_that_does_not_let_us_in_is_not_quoted_with_our_token() {
    let Some(site) = Site::certified_for("DNS:broker.test") else { return };
    let sink = site.sink(&here(), &["tls://broker.test"], json!({ "token": "barley" }));
    let said = delivered(&sink).await.expect("not let in");
    assert!(said.contains("Authorization Violation") && !said.contains("barley"), "{said}");
}

/// A server that has several certificates knows by the name which one is wanted.
#[tokio::test]
async fn the_server_is_asked_for_by_its_name() {
    for (server, asked_for) in [
        ("tls://broker.test", Some("broker.test")),
        ("nats://Broker.test", Some("broker.test")),
        // TLS has no way to ask for an address.
        ("tls://127.0.0.1", None),
    ] {
        let rogue = Rogue::new().await;
        let config = json!({
            "url": format!("{server}:{}", rogue.port), "allow": ["broker.test", "127.0.0.1"],
        });
        let config = serde_json::from_value(config).expect("a configuration");
        let sink = NatsSink::asking("events", &config, &Found::default(), here()).expect("a sink");
        let event = event(1);
        let (outcome, name) = tokio::join!(sink.deliver(&event), async {
            let mut talk = rogue.meet().await;
            talk.introduce("{\"tls_required\":true}").await;
            let stream = talk.stream.into_inner();
            let hello = LazyConfigAcceptor::new(Default::default(), stream).await.expect("a handshake");
            hello.client_hello().server_name().map(str::to_owned)
        });
        assert_eq!(name.as_deref(), asked_for, "{server}");
        assert!(matches!(outcome, Err(SinkError::Down(_))), "it goes no further: {outcome:?}");
    }
}

/// When the connection is lost, the name is looked up anew: a broker may have moved.
#[tokio::test]
async fn a_lost_connection_is_followed_by_a_new_look() {
    let Some(mut site) = Site::certified_for("DNS:broker.test") else { return };
    let names = here();
    let sink = site.sink(&names, &["tls://broker.test"], json!({}));
    assert_eq!(delivered(&sink).await, None);
    let before = names.asked().len();
    site.broker.kill();
    let lost = sink.deliver(&event(2)).await;
    assert!(matches!(lost, Err(SinkError::Down(_))), "{lost:?}");
    let port = site.broker.port;
    let config = std::fs::read_to_string(site.dir.path().join("nats.conf")).expect("written");
    let more = config.lines().skip(2).collect::<Vec<_>>().join("\n");
    site.broker = Broker::start(site.dir.path(), Some(port), &more).expect("it was there before");
    assert_eq!(delivered(&sink).await, None, "connected again");
    assert!(names.asked().len() > before, "after a look");
}
