//! Encryption: who is believed to be the database, and who is not.

#![allow(clippy::print_stderr, reason = "a test that leaves something out says so where people look")]

use std::path::Path;
use std::process::Command;

use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::postgres::{PgOptions, PgStore};

/// Runs openssl; `None`, having said so, where there is none.
fn openssl(directory: &Path, arguments: &str) -> Option<()> {
    let ran = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    match ran {
        Ok(ran) => {
            assert!(ran.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&ran.stderr));
            Some(())
        }
        Err(error) => {
            eprintln!("skipped: openssl cannot be started (Debian's package openssl): {error}");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
            None
        }
    }
}

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/// An authority of its own.
fn authority(directory: &Path, name: &str) -> Option<()> {
    openssl(
        directory,
        &format!("req -x509 {KEY} -keyout {name}.key -out {name}.crt -days 2 -subj /CN={name}"),
    )
}

#[tokio::test]
async fn only_a_certificate_that_is_good_for_the_name_is_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let made = authority(here, "ours").and_then(|()| authority(here, "others"));
    let Some(()) = made else { return };
    std::fs::write(here.join("names"), "subjectAltName = DNS:localhost").expect("written");
    openssl(here, &format!("req {KEY} -keyout server.key -out server.csr -subj /CN=database"));
    openssl(
        here,
        "x509 -req -in server.csr -CA ours.crt -CAkey ours.key -CAcreateserial -days 2 -extfile names -out server.crt",
    );
    let read = |name: &str| std::fs::read_to_string(here.join(name)).expect("made above");
    let Some((_server, port)) = PostgresServer::encrypted(&read("server.crt"), &read("server.key")) else {
        return;
    };
    let open = async |host: &str, query: &str| {
        let url = format!("postgres://stakeout@{host}:{port}/postgres?{query}");
        let store = PgStore::open(&url, PgOptions::default()).await;
        store.map(drop).map_err(|error| error.to_string())
    };
    let root = |name: &str| format!("sslrootcert={}", here.join(name).display());

    for mode in ["require", "verify-full"] {
        open("localhost", &format!("sslmode={mode}&{}", root("ours.crt"))).await.expect("the right one");
        let stranger = open("localhost", &format!("sslmode={mode}&{}", root("others.crt"))).await;
        let error = stranger.expect_err("signed by somebody else");
        assert!(error.contains("UnknownIssuer"), "{error}");
        let misnamed = open("127.0.0.1", &format!("sslmode={mode}&{}", root("ours.crt"))).await;
        let error = misnamed.expect_err("good for another name");
        assert!(error.contains("not valid for name"), "{error}");
    }
    let unknown = open("localhost", "sslmode=require").await.expect_err("no authority of the system's");
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    // Encrypted, but believing anybody; and not at all.
    open("localhost", "sslmode=prefer").await.expect("whoever it is");
    open("localhost", "sslmode=disable").await.expect("in the clear");
}
