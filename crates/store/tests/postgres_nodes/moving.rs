//! A file that cannot be moved says why, and where.

use std::sync::Arc;

use stakeout_store::conformance::story::{Poll, World};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::transfer::transfer;

use crate::support::{database, number, raw};

/// A file of before NULs were refused may hold one. Whoever moves it is told which row it is, and nothing is kept.
#[tokio::test]
async fn a_text_that_the_server_cannot_hold_is_named_by_its_row() {
    let url = database!();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("stakeout.db");
    let store = SqliteStore::open(&path, OpenOptions::default()).expect("opens");
    let world = World::with(Arc::new(store), &["a"]).await;
    let claim = world.claim_one(0).await;
    world.done(Poll::of(&claim, 1).sees(&claim, &[("x", 1), ("y", 1)])).await;
    drop(world);
    let file = rusqlite::Connection::open(&path).expect("raw");
    file.execute("UPDATE records SET key = 'y' || char(0) WHERE key = 'y'", []).expect("changed");
    let row: i64 =
        file.query_row("SELECT id FROM records WHERE key <> 'x'", [], |row| row.get(0)).expect("there");
    drop(file);
    let refused = transfer(&path, &url, |_| {}).await.expect_err("it cannot be").to_string();
    for told in ["records", &format!("id = {row}"), "column key", "a NUL character"] {
        assert!(refused.contains(told), "{told}: {refused}");
    }
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'";
    assert_eq!(number(&raw(&url).await, left).await, 0);
}
