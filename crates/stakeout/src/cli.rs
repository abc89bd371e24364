//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use stakeout_core::{Span, Time};

use crate::config::LogFormat;

const AFTER_HELP: &str = "\
Examples:
  stakeout check                      is the configuration sound, do the upstreams answer?
  stakeout run                        watch until told to stop
  stakeout events --follow            what happens, as it happens
  stakeout why prices/main            why is it polled then, why was nothing told?

Exit codes: 0 all is well, 1 something failed, 2 wrong usage or configuration.";

/// Watches systems that have no webhooks: polls each target as often as the moment demands and says what changed, once.
#[derive(Debug, Parser)]
#[command(name = "stakeout", version, after_help = AFTER_HELP, propagate_version = true)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// The configuration file [default: stakeout.toml]
    #[arg(short, long, global = true, value_name = "FILE", env = "STAKEOUT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The store, over the one in the configuration: sqlite:PATH
    #[arg(long, global = true, value_name = "URL", env = "STAKEOUT_STORE")]
    pub store: Option<String>,
    /// Log lines for people (text) or for programs (json)
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// What to log: a level, or a filter such as info,stakeout_engine=debug
    #[arg(long, global = true, value_name = "FILTER", env = "STAKEOUT_LOG")]
    pub log: Option<String>,
    /// Log more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Log only warnings; twice for errors only
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub quiet: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch, until told to stop (SIGTERM or Ctrl-C)
    Run(RunArgs),
    /// Poll what is due once, then exit; for cron and other schedulers
    #[command(
        after_help = "While a process runs, it is asked to do the pass. Exits with 1 only if every poll failed."
    )]
    Poll(PollArgs),
    /// Check configuration, environment, store and upstreams; writes nothing
    Check(CheckArgs),
    /// List targets, or change one
    #[command(args_conflicts_with_subcommands = true, after_help = TARGETS_HELP)]
    Targets(TargetsArgs),
    /// Explain a target: why it is due then, what its polls did, why there is no event
    #[command(after_help = "Examples:\n  stakeout why prices/main\n  stakeout why main --json")]
    Why(WhyArgs),
    /// List events, or follow them
    #[command(after_help = EVENTS_HELP)]
    Events(EventsArgs),
    /// Show the history of a record
    #[command(after_help = "Example:\n  stakeout history prices json_prices 'north|A-17'")]
    History(HistoryArgs),
    /// List live settings, or change one
    #[command(args_conflicts_with_subcommands = true, after_help = SETTINGS_HELP)]
    Settings(SettingsArgs),
    /// Forecast when something would be polled
    #[command(subcommand)]
    Plan(PlanWhat),
    /// Print the JSON schema of the configuration file
    Schema,
    /// Print the version
    Version,
}

const TARGETS_HELP: &str = "\
Examples:
  stakeout targets --source prices
  stakeout targets disable prices/north
  stakeout targets poll-now north         (a key that only one source has)";

const EVENTS_HELP: &str = "\
Examples:
  stakeout events --limit 10              the ten newest
  stakeout events --after 1200 --json     those after number 1200, a JSON object per line
  stakeout events --follow --type json.   types that begin with json.";

const SETTINGS_HELP: &str = "\
Live settings stand over the configuration file and act at once.

Examples:
  stakeout settings set source.prices.every_ms 5000
  stakeout settings unset source.prices.every_ms";

/// `run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Let time run so many times as fast
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
}

/// `poll`
#[derive(Debug, Args)]
pub struct PollArgs {
    /// Stop waiting after this long
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = span)]
    pub limit: Span,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Send no requests
    #[arg(long)]
    pub offline: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// `targets`
#[derive(Debug, Args)]
pub struct TargetsArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: Option<TargetsAction>,
    /// Which to list.
    #[command(flatten)]
    pub list: TargetsListArgs,
}

/// What to do with targets.
#[derive(Debug, Subcommand)]
pub enum TargetsAction {
    /// List them
    List(TargetsListArgs),
    /// Switch one on
    Enable(TargetArg),
    /// Switch one off, until it is switched on again
    Disable(TargetArg),
    /// Poll one at once, and then as planned
    PollNow(TargetArg),
    /// Take one's next complete answer as it is, without telling anybody
    Rebaseline(TargetArg),
}

/// Which targets to list.
#[derive(Debug, Args)]
pub struct TargetsListArgs {
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub limit: u32,
    /// Print them as JSON, one per line
    #[arg(long)]
    pub json: bool,
}

/// One target.
#[derive(Debug, Args)]
pub struct TargetArg {
    /// SOURCE/KEY, or the key alone if only one source has it
    #[arg(value_name = "SOURCE/KEY")]
    pub target: String,
}

/// `why`
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// SOURCE/KEY, or the key alone if only one source has it
    #[arg(value_name = "SOURCE/KEY")]
    pub target: String,
    /// Print the explanation as JSON
    #[arg(long)]
    pub json: bool,
}

/// `events`
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only those after this number; without it, the newest
    #[arg(long, value_name = "N")]
    pub after: Option<u64>,
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only of this type, or of types beginning with it when it ends in a dot
    #[arg(long = "type", value_name = "TYPE")]
    pub event_type: Option<String>,
    /// Go on as they happen, until stopped
    #[arg(long, short)]
    pub follow: bool,
    /// At most so many (of the past, when following)
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Print them as JSON, one per line
    #[arg(long)]
    pub json: bool,
}

/// `history`
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The source's name
    pub source: String,
    /// The kind of record: json_prices, or prices
    pub kind: String,
    /// The record's key, its parts joined by |, or its fingerprint
    pub key: String,
    /// Only this stream
    #[arg(long)]
    pub stream: Option<String>,
    /// At most so many rows, the newest
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
    /// Print rows as JSON, one per line
    #[arg(long)]
    pub json: bool,
}

/// `settings`
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// What to do with them.
    #[command(subcommand)]
    pub action: Option<SettingsAction>,
    /// How to list them.
    #[command(flatten)]
    pub list: SettingsListArgs,
}

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub enum SettingsAction {
    /// List them
    List(SettingsListArgs),
    /// Change one
    Set {
        /// source.NAME.SETTING
        key: String,
        /// A number, true, false, or text
        value: String,
    },
    /// Go back to the configuration file
    Unset {
        /// source.NAME.SETTING
        key: String,
    },
}

/// How to list settings.
#[derive(Debug, Args)]
pub struct SettingsListArgs {
    /// Print them as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What to forecast.
#[derive(Debug, Subcommand)]
pub enum PlanWhat {
    /// The polls of one race, without jitter
    #[command(after_help = PLAN_RACING_HELP)]
    Racing(PlanRacingArgs),
}

const PLAN_RACING_HELP: &str = "\
Example: a race that starts 68 s late and is final eight minutes later
  stakeout plan racing --start 2026-01-10T02:00:00Z --started 2026-01-10T02:01:08Z --final 2026-01-10T02:09:00Z";

/// `plan racing`
#[derive(Debug, Args)]
pub struct PlanRacingArgs {
    /// The advertised start, T
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub start: Time,
    /// When the upstream begins to confirm the start; T, unless given
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub started: Option<Time>,
    /// From when on the status is Final; eight minutes after the start, unless given
    #[arg(long = "final", value_name = "TIME", value_parser = time)]
    pub final_at: Option<Time>,
    /// From AT on the upstream advertises NEWSTART; may be given several times
    #[arg(long, value_name = "AT=NEWSTART", value_parser = retiming)]
    pub retimed: Vec<(Time, Time)>,
    /// The table of intervals: seed or tight
    #[arg(long, value_name = "NAME", default_value = "seed")]
    pub cadence: CadencePreset,
    /// Print {"polls": [{"at", "phase", "interval_ms", "reason"}]}
    #[arg(long)]
    pub json: bool,
}

/// A ready-made table of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CadencePreset {
    /// Every 5 minutes after the start
    Seed,
    /// Every 30 seconds after the start
    Tight,
}

fn time(text: &str) -> Result<Time, String> {
    Time::parse(text).ok_or_else(|| "expected an RFC 3339 time, such as 2026-01-10T02:00:00Z".to_owned())
}

fn retiming(text: &str) -> Result<(Time, Time), String> {
    let (at, start) = text.split_once('=').ok_or("expected AT=NEWSTART, two RFC 3339 times")?;
    Ok((time(at)?, time(start)?))
}

fn span(text: &str) -> Result<Span, String> {
    Span::parse(text)
        .filter(|span| *span > Span::ZERO)
        .ok_or_else(|| "expected a duration with its unit, such as 250ms, 30s or 2min".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let given = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0 && *n <= 100_000.0);
    given.ok_or_else(|| "expected a number above 0, at most 100000".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_parse() {
        for good in [
            "run",
            "run --speed 10 -v",
            "poll --limit 5s --json",
            "check --offline",
            "targets",
            "targets --source x",
            "targets list --json",
            "targets poll-now a/b/c",
            "why a/b",
            "events -f --type json. --after 3",
            "history s k key --stream h",
            "settings",
            "settings set source.a.every_ms 5",
            "settings unset x",
            "schema",
            "plan racing --start 2026-01-10T02:00:00Z --cadence tight",
            "plan racing --start 2026-01-10T02:00:00Z --retimed 2026-01-10T01:00:00Z=2026-01-10T02:05:00Z --json",
            "-c other.toml --store sqlite:x.db version",
        ] {
            let words = std::iter::once("stakeout").chain(good.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{good}");
        }
        for bad in [
            "",
            "runn",
            "run --speed 0",
            "poll --limit 5",
            "targets enable",
            "why",
            "run -v -q",
            "settings set x",
            "plan racing",
            "plan racing --start noon",
            "plan racing --start 2026-01-10T02:00:00Z --retimed 2026-01-10T01:00:00Z",
        ] {
            let words = std::iter::once("stakeout").chain(bad.split(' ').filter(|w| !w.is_empty()));
            assert!(Cli::try_parse_from(words).is_err(), "{bad}");
        }
    }
}
