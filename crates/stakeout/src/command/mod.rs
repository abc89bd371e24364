//! What each command does: one file per command.

mod alerts;
mod ask;
mod check;
mod deliveries;
mod events;
mod history;
mod migrate;
mod plan;
mod poll;
mod run;
mod settings;
mod simulate;
mod tables;
mod targets;
mod token;
mod try_out;
mod why;

use std::process::ExitCode;

use anyhow::Result;
use stakeout_core::Time;
use stakeout_engine::Clock;

use crate::cli::{Cli, Command};
use crate::config::LogConfig;
use crate::demo::DemoArgs;
use crate::open::Place;
use crate::{config, demo, logging, output};

/// What commands other than `run` log unless told otherwise: their output is the answer, not the log.
const QUIET: &str = "warn";

/// Does what needs no store, and a configuration only if it is told to; `None` when the command needs them.
///
/// Outside of any runtime, because a simulated day brings its own.
pub(crate) fn at_once(cli: &Cli) -> Option<Result<ExitCode>> {
    let printed = |text: &str| output::line(text).map(|()| ExitCode::SUCCESS);
    match &cli.command {
        Command::Schema => Some(printed(config::schema().trim_end())),
        Command::Version => Some(printed(&format!("stakeout {}", env!("CARGO_PKG_VERSION")))),
        Command::Plan(what) => Some(plan::plan(what, &cli.global)),
        Command::Try(what) => Some(try_out::try_out(what)),
        Command::Simulate(what) => Some(simulate::simulate(what)),
        _ => None,
    }
}

/// Does what is about a configuration and its store.
pub(crate) async fn execute(cli: Cli) -> Result<ExitCode> {
    if let Command::Demo(args) = cli.command {
        // That polls fail is part of the show, and would tear its picture.
        logging::start(&cli.global, &LogConfig::default(), "error")?;
        return demo::run(DemoArgs { speed: args.speed, listen: args.listen, data: args.data }).await;
    }
    if let Command::Migrate(args) = &cli.command {
        logging::start(&cli.global, &LogConfig::default(), QUIET)?;
        return migrate::migrate(args).await;
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
        Command::Alerts(action) => alerts::alerts(&place, action).await,
        Command::Deliveries(action) => deliveries::deliveries(&place, action).await,
        Command::History(args) => history::history(&place, &args).await,
        Command::Settings(args) => settings::settings(&place, args).await,
        Command::Tables(action) => tables::tables(&place, action).await,
        Command::Token(action) => token::token(&place, action).await,
        // Done before a configuration was looked for.
        Command::Demo(_)
        | Command::Migrate(_)
        | Command::Plan(_)
        | Command::Try(_)
        | Command::Simulate(_)
        | Command::Schema
        | Command::Version => Ok(ExitCode::SUCCESS),
    }
}

/// The wall clock.
fn now() -> Time {
    Clock::system().now()
}
