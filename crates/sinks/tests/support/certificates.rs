//! Certificates for tests, made by openssl.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use std::path::Path;
use std::process::Command;

/// Whether there is openssl; says so where there is none, and with `CI=true` that is a failure.
#[expect(clippy::print_stdout, reason = "whoever runs the tests should know what was skipped")]
pub fn can_certify() -> bool {
    let there = Command::new("openssl").arg("version").output().is_ok();
    if !there {
        println!("skipped: openssl is missing (Debian's package openssl)");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
    }
    there
}

/// Makes an authority (`ca.pem`), and a certificate of it for these names (`DNS:localhost`) with its key (`cert.pem`,
/// `key.pem`). Of an authority that is there already, another certificate.
pub fn certify(dir: &Path, names: &str) {
    std::fs::write(dir.join("san"), format!("subjectAltName = {names}\n")).expect("written");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    if !dir.join("ca.pem").exists() {
        openssl(dir, &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"));
    }
    openssl(dir, &format!("req {key} -keyout key.pem -out request -subj /CN=receiver"));
    openssl(
        dir,
        "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out cert.pem",
    );
}

fn openssl(dir: &Path, arguments: &str) {
    let made = Command::new("openssl").args(arguments.split(' ')).current_dir(dir).output().expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
