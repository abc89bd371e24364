//! Benchmarks of Stakeout, each next to a floor or a peer that is measured in the same run.
//!
//! `cargo run --release -p stakeout-bench -- all` prints one table; `bench/README.md` says what its rows mean.
//!
//! - [`args`] what can be asked for; [`table`], [`results`] and [`mod@print`] what comes out.
//! - [`upstream`], [`scene`] and [`listeners`] set the stage: an upstream in its own process, a durable store, an engine,
//!   a server and those who listen to it.
//! - [`lateness`], [`throughput`], [`group_commit`], [`claim`], [`million`], [`news`], [`streams`], [`racing`],
//!   [`mod@fpv`], [`tables`], [`adaptive`] and [`nodes`] measure.

mod adaptive;
mod args;
mod bare_day;
mod claim;
mod floor;
mod fpv;
mod group_commit;
mod lateness;
mod listeners;
mod machine;
mod million;
mod news;
mod nodes;
mod polls;
mod print;
mod quantile;
mod racing;
mod results;
mod scene;
mod stamped;
mod streams;
mod table;
mod tables;
mod throughput;
mod upstream;

use std::time::Duration;

use clap::Parser;

use crate::args::{Args, Command, What};
use crate::machine::Machine;
use crate::table::Table;

/// As in the service: many small allocations from few threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    match &args.command {
        Some(Command::Upstream) => upstream::serve(),
        Some(Command::Million { database, url, targets }) => million::run_as_child(database, url, *targets),
        Some(Command::Listen { address, listeners }) => listeners::listen(*address, *listeners),
        Some(Command::Trial { path, targets, every_ms, seconds }) => {
            throughput::once(path, *targets, Duration::from_millis(*every_ms), Duration::from_secs(*seconds))
        }
        Some(Command::City { zone }) => tables::serve_city(zone),
        Some(Command::Fresh { seconds }) => tables::fresh_once(Duration::from_secs(*seconds)),
        Some(Command::Bucket { part, times }) => tables::repeat(*part, *times),
        None => measure(&args),
    }
}

/// Runs what was asked for, in the order of the table.
fn measure(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        !args.write || args.what == What::All,
        "--write replaces the whole table: it needs `all`"
    );
    let machine = Machine::here();
    print::block(&machine.to_markdown());
    let pace = args.pace();
    let mut table = Table::default();
    type Measure = fn(args::Pace) -> anyhow::Result<Vec<table::Row>>;
    let measures: [(What, &str, Measure); 11] = [
        (What::Lateness, "lateness", lateness::measure),
        (What::Throughput, "polls per second", throughput::measure),
        (What::Commit, "group commit", group_commit::measure),
        (What::Claim, "claim cost", claim::measure),
        (What::Memory, "a million targets", million::measure),
        (What::News, "change to event", news::measure),
        (What::Streams, "listeners", streams::measure),
        (What::Racing, "racing", racing::measure),
        (What::Fpv, "drone racing", fpv::measure),
        (What::Tables, "restaurant tables", tables::measure),
        (What::Nodes, "several nodes", nodes::measure),
    ];
    for (what, name, run) in measures {
        // Several nodes need a PostgreSQL and ten minutes: only when asked for.
        if (args.what == What::All && what != What::Nodes) || args.what == what {
            print::progress(name);
            table.rows.extend(run(pace)?);
        }
    }
    print::block(&table.to_markdown());
    if args.write {
        results::refresh(&results::path(), &machine, &table, pace)?;
    }
    Ok(())
}
