//! From a file to a database server, and on from there.

use std::process::{Command, Output};

use crate::support::{LEASE_MS, Node, Site, said, until};
use crate::truth::Truth;

fn stakeout(site: &Site, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
    command.args(arguments).current_dir(site.dir.path()).output().expect("the binary runs")
}

#[test]
fn a_file_moves_to_an_empty_database_and_life_goes_on_there() {
    let Some(site) = Site::new() else { return };
    let mut truth = Truth::new(2_000);
    let file = format!("sqlite:{}", site.dir.path().join("s.db").display());
    let source = truth.source("40ms");
    let config = site.configure("file", &file, "off", &source);
    let path = config.display().to_string();
    let mut node = Node::start(&config);
    let began = crate::support::now_ms();
    let events = || {
        let output = stakeout(&site, &["events", "-c", &path, "--json", "--limit", "1000"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    until("a few things happen", || events().lines().count() > 8);
    let move_it = || stakeout(&site, &["migrate", "--from", &file, "--to", &site.database]);
    let busy = move_it();
    assert!(!busy.status.success() && said_wrong(&busy).contains("is in use by process"), "{busy:?}");
    truth.calm_since(began);
    node.stop();
    said(&stakeout(&site, &["settings", "set", "source.script.timeout_ms", "450", "-c", &path]));
    said(&stakeout(&site, &["token", "create", "--scope", "read", "--name", "kept", "-c", &path]));
    let before = events();

    // A database that cannot hold every text is refused before anything is written.
    let narrow = format!("{}_narrow", site.database);
    let name = narrow.rsplit('/').next().expect("a name");
    let made = format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
    site.eye().texts(&made);
    let refused = stakeout(&site, &["migrate", "--from", &file, "--to", &narrow]);
    assert!(!refused.status.success() && said_wrong(&refused).contains("ENCODING 'UTF8'"), "{refused:?}");

    let moved = said(&move_it());
    println!("{moved}");
    assert!(moved.contains("counts and hashes are the same on both sides"), "{moved}");
    for question in [&["events", "--json", "--limit", "1000"][..], &["settings"]] {
        let here = said(&stakeout(&site, &[question, &["--store", &file]].concat()));
        let there = said(&stakeout(&site, &[question, &["--store", &site.database]].concat()));
        assert_eq!(here, there, "{question:?}");
    }
    assert!(before.lines().count() > 8);
    assert!(said(&stakeout(&site, &["token", "list", "--store", &site.database])).contains("kept"));
    let again = move_it();
    assert!(!again.status.success() && said_wrong(&again).contains("the database is not empty"), "{again:?}");

    // The same rows, the same numbers: a node goes on where the file ended.
    let eye = site.eye();
    let newest = eye.number("SELECT max(seq)::text FROM events");
    assert_eq!(newest, eye.number("SELECT value::text FROM meta WHERE key = 'seq'"));
    let began = crate::support::now_ms() + LEASE_MS;
    let mut node = site.node("server", &source);
    until("more happens", || eye.number("SELECT max(seq)::text FROM events") > newest + 5);
    if began < crate::support::now_ms() {
        truth.calm_since(began);
    }
    node.stop();
    truth.compare(&eye);
}

fn said_wrong(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_move_that_cannot_be_says_what_is_expected() {
    let Some(site) = Site::new() else { return };
    let nowhere = format!("sqlite:{}", site.dir.path().join("none.db").display());
    let missing = stakeout(&site, &["migrate", "--from", &nowhere, "--to", &site.database]);
    assert!(said_wrong(&missing).contains("there is no database at"), "{missing:?}");
    let backwards = stakeout(&site, &["migrate", "--from", &site.database, "--to", &nowhere]);
    assert_eq!(backwards.status.code(), Some(2));
    assert!(said_wrong(&backwards).contains("expected --from sqlite:PATH"), "{backwards:?}");
}
