//! Commands that differ by the kind of source: plan, try, simulate.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use stakeout_core::Time;

use super::{retiming, share, time};

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

/// What to try.
#[derive(Debug, Subcommand)]
pub enum TryWhat {
    /// The answer about one race, as the NZTAB affiliates API gives it
    #[command(after_help = TRY_RACING_HELP)]
    Racing(TryRacingArgs),
    /// An event, as a directory laid out like FPVTrackside's paths
    #[command(after_help = TRY_FPV_HELP)]
    Fpv(TryFpvArgs),
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
}

const SIMULATE_RACING_HELP: &str = "\
The same seed gives the same day. Exits with 1 when, without faults, anything was missed or told wrongly.

Examples:
  stakeout simulate racing                          96 races
  stakeout simulate racing --cadence tight --seed 7 another day, watched more closely after the start
  stakeout simulate racing --faults 0.01 --full     failing requests, bodies of real size";

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
