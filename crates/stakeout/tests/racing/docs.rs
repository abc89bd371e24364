#[path = "../support/sql_blocks.rs"]
mod sql_blocks;

use crate::support::World;

#[test]
fn every_query_in_the_guide_runs_and_finds_something() {
    let world = World::polled();
    sql_blocks::run_all("racing.md", &world.database());
}
