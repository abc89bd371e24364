//! A real mail server (aiosmtpd, from PyPI).
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

#[path = "certificates.rs"]
pub mod certificates;

/// Where the crates are, whichever of them is tested.
const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A mail server that ends with us.
pub struct MailServer {
    child: Child,
    /// Where it listens, on `localhost`.
    pub port: u16,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    /// Its certificate authority, in PEM.
    pub ca: String,
}

impl MailServer {
    /// `None`, having said why, where there is no mail server; with `CI=true` that is a failure.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests should know what was skipped")]
    pub fn start(mode: &str) -> Option<MailServer> {
        let own = Path::new(CRATES).join("../target/aiosmtpd/bin/python");
        let python = if own.exists() { own } else { "python3".into() };
        let there = Command::new(&python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            println!("skipped: aiosmtpd is missing (scripts/test installs it)");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
            return None;
        }
        if mode != "none" && !certificates::can_certify() {
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(&python);
        command.arg(Path::new(CRATES).join("sinks/tests/smtpd.py")).arg(mode);
        let mut ca = String::new();
        if mode != "none" {
            certificates::certify(dir.path(), "DNS:localhost");
            command.args([dir.path().join("cert.pem"), dir.path().join("key.pem")]);
            ca = std::fs::read_to_string(dir.path().join("ca.pem")).expect("a certificate");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines.next().expect("a port").expect("readable").parse().expect("a number");
        Some(MailServer { child, port, lines: Some(lines), ca })
    }

    /// The next mail that it has taken.
    pub fn mail(&mut self) -> Value {
        let line = self.lines.as_mut().expect("nobody else reads").next().expect("a mail").expect("readable");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Does something with each mail from here on, when it comes: whoever does not read holds it up.
    pub fn each(&mut self, mut and: impl FnMut(Value) + Send + 'static) {
        let lines = self.lines.take().expect("nobody else reads");
        std::thread::spawn(move || {
            // Until it is gone.
            lines.map_while(Result::ok).for_each(|line| and(serde_json::from_str(&line).expect("JSON")));
        });
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
