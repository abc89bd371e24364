//! What each command does: one file per command.

mod ask;
mod check;
mod events;
mod history;
mod plan;
mod poll;
mod run;
mod settings;
mod targets;
mod why;

use std::process::ExitCode;

use anyhow::Result;
use stakeout_core::Time;
use stakeout_engine::Clock;

use crate::cli::{Cli, Command};
use crate::open::Place;
use crate::{config, logging, output};

/// What commands other than `run` log unless told otherwise: their output is the answer, not the log.
const QUIET: &str = "warn";

/// Does what was typed.
pub(crate) async fn execute(cli: Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Schema => {
            output::line(config::schema().trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Plan(what) => return plan::plan(what),
        Command::Version => {
            output::line(&format!("stakeout {}", env!("CARGO_PKG_VERSION")))?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let place = Place::find(&cli.global)?;
    let log = &place.loaded.config.log;
    let base = if matches!(cli.command, Command::Run(_)) { log.level.as_str() } else { QUIET };
    logging::start(&cli.global, log, base)?;
    match cli.command {
        Command::Run(args) => run::run(&place, &args).await,
        Command::Poll(args) => poll::poll(&place, &args).await,
        Command::Check(args) => check::check(&place, &args).await,
        Command::Targets(args) => targets::targets(&place, args).await,
        Command::Why(args) => why::why(&place, &args).await,
        Command::Events(args) => events::events(&place, &args).await,
        Command::History(args) => history::history(&place, &args).await,
        Command::Settings(args) => settings::settings(&place, args).await,
        Command::Plan(_) | Command::Schema | Command::Version => Ok(ExitCode::SUCCESS),
    }
}

/// The wall clock.
fn now() -> Time {
    Clock::system().now()
}
