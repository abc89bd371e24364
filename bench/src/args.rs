//! What the programme can be asked for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

/// Measures Stakeout next to a floor in the same run and prints one table.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// What to measure.
    #[arg(value_enum, default_value_t = What::All)]
    pub(crate) what: What,
    /// Shorter windows: for seeing that it works, not for numbers to keep.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Refreshes RESULTS.md; reasons written there by hand stay.
    #[arg(long)]
    pub(crate) write: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// One part of the table, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Everything.
    All,
    /// How late polls are sent.
    Lateness,
    /// Polls per second.
    Throughput,
    /// Group commit in the store.
    Commit,
    /// The cost of claiming, by number of targets.
    Claim,
    /// A million targets: memory and start.
    Memory,
    /// From an upstream's change to a readable event.
    News,
    /// A thousand listeners: what they cost the polling, and how soon they hear.
    Streams,
    /// Racing: an answer, five races, a whole day.
    Racing,
    /// Drone racing: what is written, what a look costs, a whole event.
    Fpv,
    /// Restaurant tables: a city's bucket, 28 of them, adaptive against uniform polling.
    Tables,
    /// Several nodes on PostgreSQL: claims, commits, lateness, dead rows. Not part of `all`.
    Nodes,
}

/// What the programme starts itself as, so that nothing else shares the process.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The benchmark upstream; serves until its input closes.
    #[command(hide = true)]
    Upstream,
    /// A city's restaurants, whose tables move in real time; serves until its input closes.
    #[command(hide = true)]
    City {
        /// Its time zone, by its IANA name.
        zone: String,
    },
    /// So many listeners; prints what they heard when its input closes.
    #[command(hide = true)]
    Listen {
        /// Where the stream is.
        address: SocketAddr,
        /// How many.
        listeners: usize,
    },
    /// One throughput case without its floor, for a profiler: `trial /same/{id} 1000 100 10`.
    Trial {
        /// `/same/{id}` or `/changing/{id}`.
        path: String,
        /// How many targets.
        targets: u64,
        /// The interval.
        every_ms: u64,
        /// How long to run after the warm-up.
        seconds: u64,
    },
    /// One part of a bucket's reading without the others, for a profiler: `bucket same 100`.
    Bucket {
        /// What is done.
        #[arg(value_enum)]
        part: Part,
        /// How often.
        times: u32,
    },
    /// All buckets of a city kept fresh for so long once each was looked at twice, for a profiler: `fresh 180`.
    Fresh {
        /// How long.
        seconds: u64,
    },
    /// An engine with so many targets; prints what it took and needs.
    #[command(hide = true)]
    Million {
        /// The database.
        database: PathBuf,
        /// Where the targets are.
        url: String,
        /// How many.
        targets: u64,
    },
}

/// What can be done with a bucket's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Understood and compared: nothing is new.
    Same,
    /// Understood and compared: some of it is new.
    Changed,
    /// Parsed into plain types: the floor.
    Typed,
    /// Recognised as the same bytes.
    Repeat,
}

/// How long to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Numbers to keep.
    Full,
    /// A look whether it works.
    Quick,
}

impl Args {
    pub(crate) fn pace(&self) -> Pace {
        if self.quick { Pace::Quick } else { Pace::Full }
    }
}

impl Pace {
    /// One or the other.
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Pace::Full => full,
            Pace::Quick => quick,
        }
    }

    /// So many seconds, or fewer.
    pub(crate) fn secs(self, full: u64, quick: u64) -> Duration {
        Duration::from_secs(self.pick(full, quick))
    }
}
