//! A real NATS server (Debian's package nats-server).
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A broker with JetStream that ends with us.
pub struct Broker {
    child: Child,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
}

impl Broker {
    /// One that keeps its things in a directory, at this port or at any, with `more` in its configuration. `None`, having
    /// said why, where there is no nats-server; with `CI=true` that is a failure.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests should know what was skipped")]
    pub fn start(dir: &Path, port: Option<u16>, more: &str) -> Option<Broker> {
        let port = port.unwrap_or_else(|| {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            free.local_addr().expect("an address").port()
        });
        let config = dir.join("nats.conf");
        let store = dir.join("nats");
        let text = format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?} }}\n{more}\n");
        std::fs::write(&config, text).expect("written");
        // Debian keeps it where only root's path leads.
        let aside = Path::new("/usr/sbin/nats-server");
        let mut command = Command::new(if aside.exists() { aside } else { Path::new("nats-server") });
        match command.arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => Some(Broker { child, port }),
            Err(error) => {
                println!("skipped: nats-server cannot be started (Debian's package nats-server): {error}");
                assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
                None
            }
        }
    }

    /// Ends it without a word.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
