//! The binary's parts: what can be typed ([`cli`]), what is configured ([`config`]), what each command does
//! (`command`), and the socket by which commands reach a running process ([`control`]).
//!
//! **Invariants:** stdout carries only what a command was asked for, logs and errors go to stderr; only one process
//! writes a database, and commands that write ask that process when there is one.

pub mod cli;
mod command;
pub mod config;
pub mod control;
pub mod demo;
mod logging;
mod open;
mod output;
pub mod simulate;
mod suggest;
pub mod target;
mod when;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;

/// Something was asked for in a way that cannot work; exits with 2, like a bad configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Parses the command line, does what it says, and answers the exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(done) = command::at_once(&cli) {
        return done.unwrap_or_else(|error| failed(&error));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("cannot start the runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = match runtime.block_on(command::execute(cli)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    };
    // Whatever still waits (a name lookup, a slow disk) is not waited for: all that matters is committed.
    runtime.shutdown_background();
    code
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let causes = || error.chain();
    if causes().any(|cause| cause.downcast_ref::<output::ReaderGone>().is_some()) {
        // `stakeout events | head` has seen enough.
        return ExitCode::SUCCESS;
    }
    output::complain(&format!("{error:#}"));
    let usage = causes().any(|cause| cause.is::<config::ConfigError>() || cause.is::<UsageError>());
    ExitCode::from(if usage { 2 } else { 1 })
}
