//! What can be typed about deliveries.

use clap::{Args, Subcommand};

pub(super) const HELP: &str = "\
What a sink does not take is tried again for three days, then kept here until somebody decides.

Examples:
  stakeout deliveries list --sink hook
  stakeout deliveries retry hook              all that were given up
  stakeout deliveries retry hook 1207         that of event 1207
  stakeout deliveries drop hook --waiting     also what waits for its turn: the sink has an empty outbox then";

/// `deliveries`
#[derive(Debug, Subcommand)]
pub enum DeliveriesAction {
    /// List those that were given up
    List(DeliveriesListArgs),
    /// Have them delivered again, as if they had never been tried
    Retry(DeliveriesArgs),
    /// Drop them for good; the events stay in the log
    Drop(DeliveriesArgs),
}

/// Which to list.
#[derive(Debug, Args)]
pub struct DeliveriesListArgs {
    /// Only of this sink
    #[arg(long, value_name = "NAME")]
    pub sink: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u32,
    /// Print them as JSON, one per line
    #[arg(long)]
    pub json: bool,
}

/// Which are meant.
#[derive(Debug, Args)]
pub struct DeliveriesArgs {
    /// The sink
    pub sink: String,
    /// The event's number; without it, all that were given up
    #[arg(value_name = "EVENT", conflicts_with = "waiting")]
    pub event: Option<u64>,
    /// Also those that wait for their turn
    #[arg(long)]
    pub waiting: bool,
}
