//! What can be typed.

mod alerts;
mod by_kind;
mod deliveries;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use stakeout_core::{Span, Time};
use stakeout_server::Scope;

use crate::config::{Listen, LogFormat};

pub use alerts::{AlertsAction, AlertsListArgs, AlertsTestArgs};
pub use by_kind::{
    CadencePreset, PlanRacingArgs, PlanTablesArgs, PlanWhat, RebaselineArgs, SimulateFpvArgs,
    SimulateRacingArgs, SimulateTablesArgs, SimulateWhat, TablesAction, TryFpvArgs, TryRacingArgs,
    TryTablesArgs, TryWhat,
};
pub use deliveries::{DeliveriesAction, DeliveriesArgs, DeliveriesListArgs};

const AFTER_HELP: &str = "\
Examples:
  stakeout demo                       see it at work, without any configuration
  stakeout check                      is the configuration sound, do the upstreams answer?
  stakeout run                        watch until told to stop
  stakeout events --follow            what happens, as it happens
  stakeout why prices/main            why is it polled then, why was nothing told?
  stakeout simulate racing            a whole day in a few seconds
  stakeout simulate fpv               a whole drone racing event, and all that can go wrong in it

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
    /// The store, over the one in the configuration: sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "URL", env = "STAKEOUT_STORE", hide_env_values = true)]
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

/// From where to where.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The file: sqlite:PATH
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// The database: postgres://…
    #[arg(long, value_name = "URL", env = "STAKEOUT_MIGRATE_TO", hide_env_values = true)]
    pub to: String,
    /// Answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch, until told to stop (SIGTERM or Ctrl-C)
    Run(RunArgs),
    /// Watch simulated upstreams at many times the speed of life; needs no configuration
    #[command(after_help = DEMO_HELP)]
    Demo(DemoArgs),
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
    /// List alerts, or see what one would have sent
    #[command(subcommand, after_help = alerts::HELP)]
    Alerts(AlertsAction),
    /// Look after what sinks did not take
    #[command(subcommand, after_help = deliveries::HELP)]
    Deliveries(DeliveriesAction),
    /// Show the history of a record
    #[command(override_usage = HISTORY_USAGE, after_help = HISTORY_HELP)]
    History(HistoryArgs),
    /// List live settings, or change one
    #[command(args_conflicts_with_subcommands = true, after_help = SETTINGS_HELP)]
    Settings(SettingsArgs),
    /// Look after restaurant tables
    #[command(subcommand, after_help = TABLES_HELP)]
    Tables(TablesAction),
    /// Make, list or revoke tokens for the HTTP interface
    #[command(subcommand, after_help = TOKEN_HELP)]
    Token(TokenAction),
    /// Forecast when something would be polled
    #[command(subcommand)]
    Plan(PlanWhat),
    /// Show what a saved answer says, writing nothing
    #[command(subcommand)]
    Try(TryWhat),
    /// Watch a whole day in virtual time and compare with what really happened
    #[command(subcommand)]
    Simulate(SimulateWhat),
    /// Move everything from a SQLite file to an empty PostgreSQL database
    #[command(after_help = MIGRATE_HELP)]
    Migrate(MigrateArgs),
    /// Print the JSON schema of the configuration file
    Schema,
    /// Print the version
    Version,
}

const MIGRATE_HELP: &str = "\
Stop the process that writes the file first. The file stays as it is; the database must be empty. Everything is written
in one transaction, read back, and compared by counts and hashes before it is committed.

Examples:
  stakeout migrate --from sqlite:stakeout.db --to postgres://stakeout@db.example/stakeout";

const DEMO_HELP: &str = "\
Examples:
  stakeout demo                   ten times as fast as life, until Ctrl-C
  stakeout demo --speed 60 --data /tmp/racing-day
                                  an hour a minute, and the database stays";

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

const HISTORY_USAGE: &str = "stakeout history [OPTIONS] <RECORD>
       stakeout history [OPTIONS] <SOURCE> <KIND> <KEY>";

const HISTORY_HELP: &str = "\
RECORD is a key or a fingerprint that any source has, or the beginning of a name.
KIND is the kind of record, with its family or without: racing_entrants, or entrants. KEY is the record's key, its parts
joined by |, or its fingerprint.

Examples:
  stakeout history 7e2f6a52-93d5-4b0c-a4c5-0c3f3f2d8a11 --plot
  stakeout history 'Night Owl' --stream odds_history
  stakeout history prices json_prices 'north|A-17'";

const TABLES_HELP: &str = "\
Examples:
  stakeout tables rebaseline 2026-02-28_20:30
  stakeout tables rebaseline --all";

const SETTINGS_HELP: &str = "\
Live settings stand over the configuration file and act at once.

Examples:
  stakeout settings set source.prices.every_ms 5000
  stakeout settings unset source.prices.every_ms";

const TOKEN_HELP: &str = "\
A token is shown once, when it is made; the store has only a hash of it.

Examples:
  stakeout token create --scope read --name grafana
  stakeout token list
  stakeout token revoke 3f9a1c07b2d4";

/// `token`
#[derive(Debug, Subcommand)]
pub enum TokenAction {
    /// Make one, and show it
    Create {
        /// What it allows: read; operate (also switch and poll targets); admin (also change settings)
        #[arg(long, value_name = "SCOPE")]
        scope: Scope,
        /// What it is for
        #[arg(long, default_value = "")]
        name: String,
    },
    /// List them
    List {
        /// Print them as JSON, one per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke one for good
    Revoke {
        /// The id, as `token list` shows it, or the token itself
        id: String,
    },
}

/// `run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Let time run so many times as fast
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// Where the dashboard and the HTTP interface listen, or "off"; over server.listen in the configuration
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<Listen>,
}

/// `demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Let time run so many times as fast
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = speed)]
    pub speed: f64,
    /// Where the dashboard and the HTTP interface listen, or "off" [default: 127.0.0.1:8484, or a free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<Listen>,
    /// Keep the database in this directory, instead of one that is removed at the end; started again with it, the demo's
    /// time goes on from the newest that the database holds
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
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
    /// A key, a fingerprint or the beginning of a name; or source, kind and key
    #[arg(value_name = "RECORD", num_args = 1..=3, required = true)]
    pub record: Vec<String>,
    /// Only this stream
    #[arg(long)]
    pub stream: Option<String>,
    /// At most so many rows, the newest
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
    /// Draw every number over time, as wide as COLUMNS says
    #[arg(long, conflicts_with = "json")]
    pub plot: bool,
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
        // A negative number is a value, too: the setting itself says what it takes.
        #[arg(allow_hyphen_values = true)]
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

fn share(text: &str) -> Result<f64, String> {
    let given = text.parse::<f64>().ok().filter(|n| (0.0..=1.0).contains(n));
    given.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests;
