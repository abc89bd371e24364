#[path = "../support/sql_blocks.rs"]
mod sql_blocks;

use stakeout::simulate::fpv::FpvEvent;
use stakeout_core::Span;

#[test]
fn every_query_in_the_guide_runs_and_finds_something() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = directory.path().join("event.db");
    let event = FpvEvent { database: Some(database.clone()), ..FpvEvent::with_races(1, 6) };
    // Two races are over by then, and four are to come.
    let until = event.upstream().event().began() + Span::mins(7);
    FpvEvent { until: Some(until), ..event }.run().expect("the event runs");
    sql_blocks::run_all("fpv.md", &database);
}
