//! Logs: to stderr, for people or for programs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::UsageError;
use crate::cli::GlobalArgs;
use crate::config::{LogConfig, LogFormat};

/// Starts logging. `base` is the level when neither a flag nor a filter says otherwise.
pub(crate) fn start(args: &GlobalArgs, config: &LogConfig, base: &str) -> Result<(), UsageError> {
    let filter = match (&args.log, args.verbose, args.quiet) {
        (Some(filter), ..) => filter.as_str(),
        (None, 0, 0) => base,
        (None, 0, 1) => "warn",
        (None, 0, _) => "error",
        (None, 1, _) => "debug",
        (None, ..) => "trace",
    };
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        UsageError(format!(
            "log filter {filter:?}: {error}. Expected a level such as info, or a filter such as info,stakeout_engine=debug"
        ))
    })?;
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start (in tests) keeps the first.
    let _ = match args.log_format.unwrap_or(config.format) {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
