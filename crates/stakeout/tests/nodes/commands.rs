//! Commands beside running nodes.

use std::time::{Duration, Instant};

use crate::support::{Node, Site, said, stakeout, until};
use crate::truth::Truth;

/// Commands write the shared store themselves, and the node that runs hears of it.
#[test]
fn commands_work_beside_running_nodes() {
    let Some(site) = Site::new() else { return };
    let (dir, database) = (&site.dir, &site.database);
    let truth = Truth::new(60_000);
    // Polled so rarely that only being told can explain a poll.
    let config = site.configure("stakeout", database, "off", &truth.source("15s"));
    let command = |arguments: &[&str]| stakeout(database, dir.path(), arguments);

    let missing = command(&["targets"]);
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no database at postgres://"));
    let mut node = Node::start(&config);
    let eye = site.eye();
    until("the target is polled", || eye.polls() >= 1);
    let table = said(&command(&["targets"]));
    assert!(table.contains("script/") && table.contains("held by stakeout"), "{table}");
    let target = eye
        .texts("SELECT s.name || '/' || t.key FROM targets t JOIN sources s ON s.id = t.source_id")
        .remove(0);

    let polls = eye.polls();
    let asked = Instant::now();
    said(&command(&["targets", "poll-now", &target]));
    until("it is polled at once", || eye.polls() > polls);
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "the node was told, not waited for: {:?}",
        asked.elapsed()
    );
    said(&command(&["targets", "disable", &target]));
    until("it is let go of", || eye.holder().is_none());
    assert!(said(&command(&["targets"])).contains("off"));
    said(&command(&["targets", "enable", &target]));
    until("it is held again", || eye.holder().is_some());
    for arguments in [&["events"][..], &["why", &target], &["settings"], &["check", "--offline"]] {
        said(&command(arguments));
    }
    node.signal("-TERM");
    assert!(node.wait().success());
    assert!(said(&command(&["poll"])).contains("polled"));

    let secret = stakeout("postgres://u:secret@127.0.0.1:1/db", dir.path(), &["targets"]);
    let complaint = String::from_utf8_lossy(&secret.stderr).into_owned();
    assert!(complaint.contains("postgres://127.0.0.1:1/db") && !complaint.contains("secret"), "{complaint}");
    let help = stakeout("postgres://u:secret@127.0.0.1:1/db", dir.path(), &["--help"]);
    assert!(!String::from_utf8_lossy(&help.stdout).contains("secret"));
}
