//! Commands that differ by the kind of source: plan, try, simulate.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use stakeout_core::Time;
use stakeout_sources::tables::Rate;

use super::{retiming, share, time};

/// What to forecast.
#[derive(Debug, Subcommand)]
pub enum PlanWhat {
    /// The polls of one race, without jitter
    #[command(after_help = PLAN_RACING_HELP)]
    Racing(PlanRacingArgs),
    /// What a request budget buys for restaurant tables
    #[command(after_help = PLAN_TABLES_HELP)]
    Tables(PlanTablesArgs),
}

const PLAN_TABLES_HELP: &str = "\
Examples:
  stakeout plan tables --venues 2722 --budget 60/min                   two weeks of a box, two times a day, two party sizes
  stakeout plan tables --source nyc --venues 2722                      as configured
  stakeout plan tables --source nyc --venues 2722 --venues boston=700  the same with a second market";

/// `plan tables`
#[derive(Debug, Args)]
pub struct PlanTablesArgs {
    /// A source of the configuration; what else is typed stands over what it says
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Venues in the box: of every market, or MARKET=N of one
    #[arg(long, value_name = "[MARKET=]N", required = true, value_parser = venues)]
    pub venues: Vec<(Option<String>, u64)>,
    /// How often the provider may be asked; as configured, or 60/min
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub budget: Option<Rate>,
    /// Days from today on; as configured, or 14
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub days: Option<u32>,
    /// Time slots a day; as configured, or 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=24))]
    pub time_slots: Option<u32>,
    /// Party sizes; as configured, or 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub party_sizes: Option<u32>,
    /// Venues per page; as configured, or 75
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=75))]
    pub per_page: Option<u32>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

fn venues(text: &str) -> Result<(Option<String>, u64), String> {
    let (market, count) = match text.split_once('=') {
        Some((market, count)) => (Some(market.to_owned()), count),
        None => (None, text),
    };
    let count = count.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    let count = count.ok_or_else(|| "expected 1 to 1000000 venues, such as 2722 or boston=700".to_owned())?;
    Ok((market, count))
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| "expected a rate such as 60/min, 2/s or 600/h".to_owned())
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

/// What to try.
#[derive(Debug, Subcommand)]
pub enum TryWhat {
    /// The answer about one race, as the NZTAB affiliates API gives it
    #[command(after_help = TRY_RACING_HELP)]
    Racing(TryRacingArgs),
    /// An event, as a directory laid out like FPVTrackside's paths
    #[command(after_help = TRY_FPV_HELP)]
    Fpv(TryFpvArgs),
    /// A page of Resy's venue search
    #[command(after_help = TRY_TABLES_HELP)]
    Tables(TryTablesArgs),
}

const TRY_TABLES_HELP: &str = "\
Examples:
  stakeout try tables --file response.json                           the slots in a table
  stakeout try tables --file now.json --previous before.json --json  what would be added, closed and told";

/// `try tables`
#[derive(Debug, Args)]
pub struct TryTablesArgs {
    /// The saved body of an answer
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// An earlier one, taken as the baseline
    #[arg(long, value_name = "FILE")]
    pub previous: Option<PathBuf>,
    /// For how many people was asked
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub party_size: u32,
    /// The market's time zone
    #[arg(long, value_name = "NAME", default_value = "America/New_York")]
    pub zone: String,
    /// The most slots that the provider shows of a venue; 0 if it shows all
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub slot_cap: u32,
    /// Print {"slots", "coverage", "added", "closed", "drops", "warnings"}
    #[arg(long)]
    pub json: bool,
}

/// What to do with the buckets of tables sources.
#[derive(Debug, Subcommand)]
pub enum TablesAction {
    /// Set baseline and previous state anew from the next complete poll, silently
    Rebaseline(RebaselineArgs),
}

/// `tables rebaseline`
#[derive(Debug, Args)]
pub struct RebaselineArgs {
    /// SOURCE/BUCKET, or the bucket alone if only one source has it
    #[arg(value_name = "BUCKET", required_unless_present = "all", conflicts_with = "all")]
    pub bucket: Option<String>,
    /// Every bucket of every source
    #[arg(long)]
    pub all: bool,
}

const TRY_RACING_HELP: &str = "\
Examples:
  stakeout try racing --file event.json          race, runners, pools and result in tables
  stakeout try racing --file event.json --json   the same as one JSON document";

/// `try racing`
#[derive(Debug, Args)]
pub struct TryRacingArgs {
    /// The saved body of an answer
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const TRY_FPV_HELP: &str = "\
The directory has events/EVENT/Event.json, Pilots.json, Rounds.json, Results.json and RACE/Race.json, httpfiles/Channels.json,
and index.html (the page, which names the event) when there are several events.

Examples:
  stakeout try fpv --dir capture             event, order, current race and leaderboard in tables
  stakeout try fpv --dir capture --json      the same as one JSON document
  stakeout try fpv --dir capture --overlay   what a stream overlay would show, as JSON";

/// `try fpv`
#[derive(Debug, Args)]
pub struct TryFpvArgs {
    /// The captured directory
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// The venue's time zone, should the event not say it
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Print what a stream overlay would show, as JSON
    #[arg(long, conflicts_with = "json")]
    pub overlay: bool,
}

/// What to simulate.
#[derive(Debug, Subcommand)]
pub enum SimulateWhat {
    /// A racing day, watched by the real engine and compared with what really happened
    #[command(after_help = SIMULATE_RACING_HELP)]
    Racing(SimulateRacingArgs),
    /// A drone racing event, watched by the real engine and compared with what really happened
    #[command(after_help = SIMULATE_FPV_HELP)]
    Fpv(SimulateFpvArgs),
    /// Days of restaurant tables: the adaptive budget next to uniform polling and to an oracle
    #[command(after_help = SIMULATE_TABLES_HELP)]
    Tables(SimulateTablesArgs),
}

const SIMULATE_TABLES_HELP: &str = "\
The same seed gives the same days. Exits with 1 when, whatever went wrong, a drop was told that was none, or one was not
told that could be seen.

Examples:
  stakeout simulate tables                                150 venues, three days, 60 requests a minute
  stakeout simulate tables --budget 20/min --days 7       a week on a smaller budget
  stakeout simulate tables --outages 4                    four times a day nothing but empty answers, for minutes
  stakeout simulate tables --faults 0.002 --seed 7        failing requests, torn and wrong pages";

/// `simulate tables`
#[derive(Debug, Args)]
pub struct SimulateTablesArgs {
    /// How many days
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=30))]
    pub days: u32,
    /// Venues in the market
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=3_000))]
    pub venues: u32,
    /// Decides everything that happens
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How often the upstream may be asked: 60/min, 2/s, 600/h
    #[arg(long, value_name = "RATE", default_value = "60/min", value_parser = rate)]
    pub budget: Rate,
    /// The chance of each sort of fault per request, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub faults: f64,
    /// How often a day every answer is empty for some minutes, from 0 to 100
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = outages)]
    pub outages: f64,
    /// How unevenly the dates bring drops: the sigma of a log-normal factor, from 0 to 4; by the day of the week unless given
    #[arg(long, value_name = "SIGMA", value_parser = sigma)]
    pub skew: Option<f64>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

fn sigma(text: &str) -> Result<f64, String> {
    let given = text.parse::<f64>().ok().filter(|sigma| (0.0..=4.0).contains(sigma));
    given.ok_or_else(|| "expected a number from 0 to 4".to_owned())
}

const SIMULATE_RACING_HELP: &str = "\
The same seed gives the same day. Exits with 1 when, without faults, anything was missed or told wrongly.

Examples:
  stakeout simulate racing                          96 races
  stakeout simulate racing --cadence tight --seed 7 another day, watched more closely after the start
  stakeout simulate racing --faults 0.01 --full     failing requests, bodies of real size";

fn outages(text: &str) -> Result<f64, String> {
    let given = text.parse::<f64>().ok().filter(|n| (0.0..=100.0).contains(n));
    given.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// `simulate racing`
#[derive(Debug, Args)]
pub struct SimulateRacingArgs {
    /// Races that are watched
    #[arg(long, value_name = "N", default_value_t = 96, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub races: u32,
    /// Decides everything that happens
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Answer with bodies of real size
    #[arg(long)]
    pub full: bool,
    /// The chance of each sort of fault per request, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub faults: f64,
    /// The table of intervals: seed or tight
    #[arg(long, value_name = "NAME", default_value = "seed")]
    pub cadence: CadencePreset,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

const SIMULATE_FPV_HELP: &str = "\
The same seed gives the same event. With 48 races or more every incident happens: crashes, resets, rounds that are
inserted, hours without the upstream, another event, and 13 more. Exits with 1 when, without faults, a lap or a turn was
missed or invented, or the published race was not what the polls had shown.

Examples:
  stakeout simulate fpv                    60 races and everything that goes wrong in them
  stakeout simulate fpv --races 12         a short one in which all goes by plan
  stakeout simulate fpv --faults 0.01      failing requests on top";

/// `simulate fpv`
#[derive(Debug, Args)]
pub struct SimulateFpvArgs {
    /// Races of the event
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub races: u32,
    /// Decides everything that happens
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The chance of each sort of fault per request, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub faults: f64,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}
