//! What can be typed about alerts.

use clap::{Args, Subcommand};
use stakeout_core::Span;

pub(super) const HELP: &str = "\
Rules stand in the configuration file under [alert.NAME], or are live settings called alert.NAME.

Examples:
  stakeout alerts list
  stakeout alerts test steamer                    what it would have sent in the last 24 hours
  stakeout alerts test steamer --since 7d --json
  stakeout settings set alert.bell '{\"when\": {\"on\": \"start\", \"before\": \"1m\"}}'";

/// `alerts`
#[derive(Debug, Subcommand)]
pub enum AlertsAction {
    /// List the rules in force
    List(AlertsListArgs),
    /// Replay the past against a rule and show what it would have sent; sends nothing
    Test(AlertsTestArgs),
}

/// How to list.
#[derive(Debug, Args)]
pub struct AlertsListArgs {
    /// Print them as JSON, one per line
    #[arg(long)]
    pub json: bool,
}

/// Which rule, and how much of the past.
#[derive(Debug, Args)]
pub struct AlertsTestArgs {
    /// The alert's name, or a rule as JSON
    #[arg(value_name = "RULE")]
    pub rule: String,
    /// So long ago and since
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub since: Span,
    /// Print what it would have sent as JSON, one per line
    #[arg(long)]
    pub json: bool,
}

fn duration(text: &str) -> Result<Span, String> {
    let span = Span::parse(text).filter(|span| *span > Span::ZERO);
    span.ok_or_else(|| format!("expected a duration such as 24h or 7d, found {text:?}"))
}
