//! A source on a real socket: what commands say about it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_sim::fpv::{Server, demo, serve};
use tempfile::TempDir;

use crate::support::{stakeout, stdout};

struct World {
    upstream: Server,
    directory: TempDir,
}

impl World {
    fn new() -> World {
        let upstream = serve(Arc::new(demo(now())), now);
        let directory = tempfile::tempdir().expect("a directory");
        let text = format!("[source.track]\nkind = \"fpv\"\nurl = \"{}\"\n", upstream.url(""));
        std::fs::write(directory.path().join("stakeout.toml"), text).expect("written");
        World { upstream, directory }
    }

    fn stakeout(&self, words: &str) -> std::process::Output {
        stakeout(self.directory.path(), &words.split(' ').collect::<Vec<_>>())
    }
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Time(i64::try_from(since.as_micros()).expect("before the year 294247"))
}

#[test]
fn check_looks_at_the_page_and_a_pass_finds_the_races() {
    let world = World::new();
    let checked = stdout(&world.stakeout("check"));
    assert!(checked.contains("ok      source track: target page: status 200"), "{checked}");
    let report: Json = serde_json::from_str(&stdout(&world.stakeout("poll --json"))).expect("a report");
    // Page, /current, and what the page lists; each race has its own place in the next five seconds.
    assert!(report["polled"].as_u64() >= Some(7) && report["next_due"].is_string(), "{report}");
    let targets = stdout(&world.stakeout("targets --json"));
    assert!(targets.lines().count() > 50, "{targets}");
    // One thread upstream: nobody asks twice at once.
    assert_eq!(world.upstream.stats().max_concurrent, 1);
}

#[test]
fn a_live_setting_is_checked_before_it_is_stored() {
    let world = World::new();
    stdout(&world.stakeout("poll"));
    let set = stdout(&world.stakeout("settings set source.track.scheduler.raceActiveMs 100"));
    assert!(set.contains("source.track.scheduler.raceActiveMs is 100"), "{set}");
    let output = world.stakeout("settings set source.track.scheduler.burst 0");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("give a whole number from 1 to 10000"), "{said}");
}
