//! The upstream, in a process of its own: what it costs must not hide in the process that is measured.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use anyhow::Context as _;
use stakeout_sim::FastServer;

use crate::machine::cpu_seconds;

/// A running upstream; it ends when this is dropped.
pub(crate) struct Upstream {
    child: Child,
    address: String,
}

impl Upstream {
    /// Starts this programme again as an upstream.
    pub(crate) fn start() -> anyhow::Result<Upstream> {
        Upstream::start_as(&["upstream"])
    }

    /// The same as another one, by the words that this programme knows it by.
    pub(crate) fn start_as(words: &[&str]) -> anyhow::Result<Upstream> {
        let mut child = std::process::Command::new(std::env::current_exe()?)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the upstream")?;
        let out = child.stdout.take().context("the upstream's output is piped")?;
        let mut address = String::new();
        BufReader::new(out).read_line(&mut address)?;
        Ok(Upstream { child, address: address.trim().to_owned() })
    }

    /// Processor seconds that it and this process have used so far: what a poll costs the machine.
    pub(crate) fn cpu_seconds_with_ours(&self) -> f64 {
        [self.child.id(), std::process::id()].into_iter().filter_map(cpu_seconds).sum()
    }

    /// Processor seconds that it has used so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds(self.child.id()).unwrap_or(0.0)
    }

    /// The address of `path`, which begins with `/`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // It serves until its input closes.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The other side: serves until the input closes.
pub(crate) fn serve() -> anyhow::Result<()> {
    let server = FastServer::start(1);
    let mut out = io::stdout();
    writeln!(out, "{}", server.addr())?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
