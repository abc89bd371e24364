//! The benchmark upstream as its own process: prints its address, serves until stdin closes, prints its count.
//!
//! `fast-upstream [THREADS]`, one thread unless said otherwise.

use std::io::{self, Write};

use stakeout_sim::FastServer;

fn main() -> io::Result<()> {
    let threads = match std::env::args().nth(1) {
        None => 1,
        Some(given) => given.parse().map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("expected a number of threads, found {given:?}"),
            )
        })?,
    };
    let server = FastServer::start(threads);
    let mut out = io::stdout();
    writeln!(out, "{}", server.addr())?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    writeln!(out, "{} requests", server.requests())
}
