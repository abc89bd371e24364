//! A database that cannot be used is a clear error and an exit code that is not 0, and nothing is lost.

use std::path::Path;
use std::process::{Command, Output};

fn stakeout(dir: &Path, arguments: &[&str]) -> Output {
    std::fs::write(
        dir.join("stakeout.toml"),
        "[store]\nurl = \"sqlite:s.db\"\n[server]\nlisten = \"off\"\n[source.x]\nkind = \"json\"\nurl = \"http://127.0.0.1:9/\"\nevery = \"1h\"\n",
    )
    .expect("write");
    Command::new(env!("CARGO_BIN_EXE_stakeout")).args(arguments).current_dir(dir).output().expect("runs")
}

/// `run` and `poll` refuse, say why, and leave the file as it was.
fn refused(dir: &Path, words: &str) {
    let before = std::fs::read(dir.join("s.db")).ok();
    for command in ["run", "poll"] {
        let output = stakeout(dir, &[command]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains(words), "{command}: {said}");
    }
    assert_eq!(before, std::fs::read(dir.join("s.db")).ok(), "the file is as it was");
}

#[test]
fn a_database_of_a_newer_version() {
    let dir = tempfile::tempdir().expect("dir");
    let made = stakeout(dir.path(), &["poll"]);
    assert!(dir.path().join("s.db").exists(), "{made:?}");
    let conn = rusqlite::Connection::open(dir.path().join("s.db")).expect("open");
    conn.pragma_update(None, "user_version", 999).expect("a version of the future");
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("checkpoint");
    drop(conn);
    refused(dir.path(), "schema version 999");
}

#[test]
fn a_file_that_is_no_database() {
    let dir = tempfile::tempdir().expect("dir");
    std::fs::write(dir.path().join("s.db"), vec![b'x'; 9_000]).expect("write");
    refused(dir.path(), "damaged or not a Stakeout database");
}

#[test]
fn a_directory_that_does_not_exist() {
    let dir = tempfile::tempdir().expect("dir");
    let output = stakeout(dir.path(), &["poll", "--store", "sqlite:nowhere/s.db"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("nowhere"), "{said}");
}

#[test]
fn a_second_process_is_told_who_has_the_file() {
    let dir = tempfile::tempdir().expect("dir");
    let store = stakeout_store::sqlite::SqliteStore::open(
        dir.path().join("s.db"),
        stakeout_store::sqlite::OpenOptions::default(),
    )
    .expect("open");
    let output = stakeout(dir.path(), &["run"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(&std::process::id().to_string()), "{said}");
    drop(store);
}
