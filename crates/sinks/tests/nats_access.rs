//! How a real broker lets us in: by a password, a token or a credentials file, and not otherwise.

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use stakeout_sinks::Found;
use stakeout_sinks::nats::NatsSink;
use support::broker::Broker;
use support::delivered;

fn sink(port: u16, access: &[(&str, &str)]) -> NatsSink {
    let mut config = json!({ "url": format!("nats://127.0.0.1:{port}"), "allow": ["127.0.0.1"] });
    for (key, value) in access {
        config[key] = (*value).into();
    }
    let config = serde_json::from_value(config).expect("a configuration");
    let found: Found = access.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    NatsSink::new("events", &config, &found).expect("a sink")
}

/// With the first we are let in, with the second we are not.
async fn check(configuration: &str, good: &[(&str, &str)], bad: &[(&str, &str)]) {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(broker) = Broker::start(dir.path(), None, configuration) else { return };
    assert_eq!(delivered(&sink(broker.port, good)).await, None);
    for wrong in [bad, &[]] {
        let said = delivered(&sink(broker.port, wrong)).await.expect("not let in");
        assert!(said.contains("Authorization Violation"), "{said}");
        assert!(bad.iter().all(|(_, secret)| !said.contains(secret)), "{said}");
    }
}

#[tokio::test]
async fn a_password_opens() {
    let configuration = "authorization { user: anna, password: sesame }";
    let good = [("user", "anna"), ("password", "sesame")];
    check(configuration, &good, &[("user", "anna"), ("password", "barley")]).await;
}

#[tokio::test]
async fn a_token_opens() {
    check("authorization { token: sesame }", &[("token", "sesame")], &[("token", "barley")]).await;
}

/// A pass as NATS signs it.
fn pass(of: &KeyPair, by: &KeyPair, mut nats: Value) -> String {
    nats["version"] = 2.into();
    let claims = json!({
        "jti": "test", "iat": 1_700_000_000, "iss": by.public_key(), "sub": of.public_key(), "name": "test", "nats": nats,
    });
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let signature = URL_SAFE_NO_PAD.encode(by.sign(signed.as_bytes()).expect("signed"));
    format!("{signed}.{signature}")
}

fn credentials_file(pass: &str, key: &KeyPair) -> String {
    let seed = key.seed().expect("a seed");
    format!(
        "-----BEGIN NATS USER JWT-----\n{pass}\n------END NATS USER JWT------\n\n\
         ************************* IMPORTANT *************************\n\
         NKEY Seed printed below can be used to sign and prove identity.\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

#[tokio::test]
async fn a_credentials_file_opens_and_another_key_for_the_same_pass_does_not() {
    let (operator, system, account, user) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account(), KeyPair::new_user());
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
    });
    let mut of_system = limits.clone();
    for stored in ["mem_storage", "disk_storage", "streams", "consumer"] {
        of_system[stored] = 0.into();
    }
    let account_pass =
        |of: &KeyPair, limits: Value| pass(of, &operator, json!({ "type": "account", "limits": limits }));
    let configuration = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{ {}: {}, {}: {} }}",
        pass(&operator, &operator, json!({ "type": "operator" })),
        system.public_key(),
        system.public_key(),
        account_pass(&system, of_system),
        account.public_key(),
        account_pass(&account, limits),
    );
    let user_pass = pass(
        &user,
        &account,
        json!({ "type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1 }),
    );
    let good = credentials_file(&user_pass, &user);
    let bad = credentials_file(&user_pass, &KeyPair::new_user());
    check(&configuration, &[("credentials", &good)], &[("credentials", &bad)]).await;
}
