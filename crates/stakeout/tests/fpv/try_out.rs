//! `stakeout try fpv`: captures of the simulator, and a real one where `STAKEOUT_PAYLOADS` has it.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{Event, Reply, Upstream};
use tempfile::TempDir;

use crate::support::{stakeout, stdout};

/// Everything that the upstream serves at that moment, as files.
fn capture(upstream: &Upstream, now: Time) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let open = upstream.event().id(now).to_string();
    for path in upstream.event().paths() {
        let ours = path.contains(&open) || path.starts_with("/httpfiles/");
        let Reply::Answer(answer) = upstream.honest(&path, now) else { panic!("{path} is not served") };
        if ours && !answer.body.is_empty() {
            let file = directory.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            std::fs::write(file, &answer.body).expect("written");
        }
    }
    directory
}

fn tried(directory: &Path) -> Json {
    let directory = directory.display().to_string();
    let output = stakeout(Path::new("."), &["try", "fpv", "--dir", &directory, "--json"]);
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn a_capture_says_what_is_true_at_that_moment() {
    let upstream = Upstream::new(Event::with_all_incidents(3));
    let (began, ended) = (upstream.event().began(), upstream.event().ended());
    for now in [began - Span::mins(5), began + Span::secs(60), began + Span::mins(33), ended + Span::mins(1)]
    {
        let seen = tried(capture(&upstream, now).path());
        let truth = upstream.event().truth();
        let order: Vec<&str> = seen["order"]
            .as_array()
            .expect("an order")
            .iter()
            .filter_map(|r| r["race_id"].as_str())
            .collect();
        let expected: Vec<String> = truth.order(now).iter().map(ToString::to_string).collect();
        assert_eq!(order, expected, "at {now}");
        let current = truth.current(now).expect("a current race");
        let rule = ["", "active", "next", "last_completed", "first"][usize::from(current.rule)];
        assert_eq!(
            (
                seen["current"]["race_id"].as_str(),
                seen["current"]["order"].as_u64(),
                &seen["current"]["rule"]
            ),
            (Some(current.race.to_string().as_str()), Some(current.order.into()), &Json::from(rule)),
            "at {now}"
        );
        let flown = truth.laps(now).iter().filter(|lap| lap.valid && lap.number > 0).count() as u64;
        let told = seen["leaderboard"].as_array().expect("a leaderboard").iter();
        assert_eq!(told.filter_map(|standing| standing["laps"].as_u64()).sum::<u64>(), flown, "at {now}");
    }
}

#[test]
fn a_directory_that_is_no_capture_is_refused_with_what_was_expected() {
    let place = tempfile::tempdir().expect("a directory");
    let refused = |name: &str, code: i32, said: &str| {
        let output = stakeout(place.path(), &["try", "fpv", "--dir", name]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(said), "{text}");
        assert!(output.stdout.is_empty());
    };
    let make = |path: &str| std::fs::create_dir_all(place.path().join(path)).expect("made");
    refused("nowhere", 1, "nowhere cannot be read: No such file or directory");
    std::fs::write(place.path().join("file"), "x").expect("written");
    refused("file", 1, "file is a file: expected a directory laid out like FPVTrackside's paths");
    make("other/Event.json");
    refused("other", 1, "other has no readable events/");
    make("empty/events");
    refused("empty", 1, "events is empty: expected a directory laid out like FPVTrackside's paths");
    make("odd/events/day-one");
    refused("odd", 1, "expected an event's id, a GUID, under events/, found \"day-one\"");
    make("bare/events/3a96b1b6-7b6b-43a8-b93e-d918f43607d2");
    refused("bare", 1, "has nothing of an event that can be read:\nwarning no_file: events/");
    make("bare/events/4a96b1b6-7b6b-43a8-b93e-d918f43607d2");
    refused(
        "bare",
        1,
        "expected one event under events/ or an index.html that names it, found 2 and no page",
    );
    let output = stakeout(place.path(), &["try", "fpv", "--dir", "bare", "--zone", "Mars/Base"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--zone: expected an IANA time zone"));
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn a_real_event_reads_as_tables_and_as_an_overlay() {
    let Some(payloads) = std::env::var_os("STAKEOUT_PAYLOADS") else {
        eprintln!("skipped: STAKEOUT_PAYLOADS is not set");
        return;
    };
    let directory = PathBuf::from(payloads).join("fpvtrackside/event-14-races");
    let words = directory.display().to_string();
    let shown = stdout(&stakeout(Path::new("."), &["try", "fpv", "--dir", &words]));
    for line in [
        "name          New Event (Jan 29)",
        "current race  5 (b9e533e8-fd41-466e-8d5f-1862222b2303): it comes after the last completed one",
        "5      b9e533e8-fd41-466e-8d5f-1862222b2303  current",
        "1         Joe    19    15.575  5.007     3.969",
        "no warnings",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line:?} is missing:\n{shown}");
    }
    let seen = tried(&directory);
    assert_eq!(
        (seen["order"].as_array().map(Vec::len), &seen["current"]["order"]),
        (Some(11), &Json::from(5))
    );
    let output = stakeout(Path::new("."), &["try", "fpv", "--dir", &words, "--overlay"]);
    let overlay: Json = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(
        [&overlay["last"]["order"], &overlay["current"]["order"], &overlay["next"]["order"]],
        [&Json::from(4), &Json::from(5), &Json::from(6)]
    );
    assert_eq!(overlay["current"]["pilots"][0]["colour"], "#FF00FF");
}
