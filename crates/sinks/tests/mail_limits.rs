//! What a mail server may do to us: say anything for as long as it likes. We hang up after a limited number of bytes, and
//! the delivery is refused with words that say why.

mod support;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::Found;
use stakeout_sinks::mail::MailSink;
use support::event;
use support::mail_server::certificates::{can_certify, certify};
use support::rogue::{Rogue, Talk};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What is read of a mail server in one conversation: the limit of the sink, as its documentation says it.
const SAID_BYTES_MAX: usize = 256 << 10;
/// A part of a line that never ends.
const ENDLESS: &str = "xxxxxxxxxxxxxxxx";

/// What becomes of an event at a server that behaves like this: it is refused, for a reason with these words.
async fn refused(because: &str, tls: &str, more: Value, behave: impl AsyncFnOnce(Talk)) {
    let rogue = Rogue::new().await;
    let mut config = json!({
        "host": "localhost", "port": rogue.port, "allow": ["localhost"], "timeout": "1min", "tls": tls,
        "from": "a@example.org", "to": ["b@example.org"],
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let found: Found = config["ca"].as_str().map(|ca| ("ca".to_owned(), ca.to_owned())).into_iter().collect();
    let config = serde_json::from_value(config).expect("a configuration");
    let here = support::names::InTurn::new(&["127.0.0.1"]);
    let sink = MailSink::asking("mail", &config, &found, here).expect("a sink");
    let event = event(1);
    let (outcome, ()) = tokio::join!(sink.deliver(&event), async { behave(rogue.meet().await).await });
    match outcome {
        Err(SinkError::Refused(words)) => assert!(words.contains(because), "{words}"),
        other => panic!("expected that it is refused, found {other:?}"),
    }
}

/// A server's side of TLS, and the authority that vouches for it.
fn certified() -> Option<(TlsAcceptor, Value)> {
    if !can_certify() {
        return None;
    }
    let dir = tempfile::tempdir().expect("a directory");
    certify(dir.path(), "DNS:localhost");
    let file = |name: &str| dir.path().join(name);
    let certificate = CertificateDer::from_pem_file(file("cert.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("key.pem")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(vec![certificate], key))
        .expect("a configuration");
    let ca = std::fs::read_to_string(file("ca.pem")).expect("a certificate");
    Some((TlsAcceptor::from(Arc::new(config)), json!({ "ca": ca })))
}

async fn secured(acceptor: &TlsAcceptor, talk: Talk) -> Talk<TlsStream<TcpStream>> {
    Talk::over(acceptor.accept(talk.stream.into_inner()).await.expect("a handshake"))
}

#[tokio::test]
async fn an_endless_greeting_is_not_listened_to() {
    refused("it said more than 256 KB", "none", json!({}), async |mut talk: Talk| {
        talk.say("220 ").await;
        talk.hung_up_on_after(SAID_BYTES_MAX, ENDLESS).await;
    })
    .await;
}

#[tokio::test]
async fn an_endless_greeting_over_tls_is_not_listened_to() {
    let Some((acceptor, ca)) = certified() else { return };
    refused("it said more than 256 KB", "tls", ca, async |talk: Talk| {
        let mut talk = secured(&acceptor, talk).await;
        talk.say("220 ").await;
        talk.hung_up_on_after(SAID_BYTES_MAX, ENDLESS).await;
    })
    .await;
}

#[tokio::test]
async fn an_endless_line_after_starttls_is_not_listened_to() {
    let Some((acceptor, ca)) = certified() else { return };
    refused("it said more than 256 KB", "starttls", ca, async |mut talk: Talk| {
        talk.say("220 here\r\n").await;
        assert!(talk.line().await.starts_with("EHLO "));
        talk.say("250-here\r\n250 STARTTLS\r\n").await;
        assert_eq!(talk.line().await, "STARTTLS");
        talk.say("220 go on\r\n").await;
        let mut talk = secured(&acceptor, talk).await;
        assert!(talk.line().await.starts_with("EHLO "));
        talk.say("250 ").await;
        talk.hung_up_on_after(SAID_BYTES_MAX, ENDLESS).await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_of_endless_lines_is_not_listened_to() {
    refused("too large", "none", json!({}), async |talk: Talk| {
        talk.hung_up_on_after(SAID_BYTES_MAX, &format!("220-{}\r\n", ENDLESS.repeat(50))).await;
    })
    .await;
}

/// Each answer may be long, but not all of them.
#[tokio::test]
async fn a_conversation_of_long_answers_is_ended() {
    let to: Vec<String> = (0..50).map(|n| format!("b{n}@example.org")).collect();
    refused("it said more than 256 KB", "none", json!({ "to": to }), async |mut talk: Talk| {
        let long = format!("{}250 ok\r\n", format!("250-{}\r\n", ENDLESS.repeat(50)).repeat(100));
        talk.say("220 here\r\n").await;
        let mut answered = 0;
        // An empty line is the end.
        while !matches!(talk.line().await.as_str(), "" | "QUIT") {
            talk.say(&long).await;
            answered += 1;
        }
        assert!(answered * long.len() <= SAID_BYTES_MAX + long.len(), "{answered} answers of {}", long.len());
    })
    .await;
}
