//! A capture flown again.

use std::path::{Path, PathBuf};

use stakeout_core::Span;
use stakeout_sim::fpv::{Replay, What};

use super::*;

/// Writes what an event serves at the end as a capture.
fn capture(dir: &Path, upstream: &Upstream) {
    let now = upstream.event().ended() + Span::mins(1);
    for path in upstream.event().paths() {
        let content = body(upstream.honest(&path, now));
        if !content.is_empty() {
            let file = dir.join(&path[1..]);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            std::fs::write(file, content).expect("written");
        }
    }
}

fn own_dir(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("made");
    dir
}

#[test]
fn a_recorded_event_happens_again_from_now_on() {
    let dir = own_dir("fpv-replay");
    let recorded = Upstream::new(Event::new(&small(9)));
    capture(&dir, &recorded);
    let replay = Replay::in_zone(&dir, "Australia/Sydney").expect("a capture");
    let now = Time::parse("2027-01-01T00:00:00Z").expect("valid");
    let upstream = Upstream::new(replay.event(now));
    let (truth, original) = (upstream.event().truth(), recorded.event().truth());

    let (end, then) = (upstream.event().ended(), recorded.event().ended());
    assert_eq!(truth.order(end), original.order(then));
    assert_eq!(truth.current(now).map(|current| current.rule), Some(4));
    assert_eq!(truth.current(end).map(|current| current.rule), Some(3));
    let count = |truth: &stakeout_sim::fpv::Truth<'_>, what: fn(&What) -> bool| {
        truth.changes().iter().filter(|change| what(&change.what)).count()
    };
    let told: [fn(&What) -> bool; 3] = [
        |what| matches!(what, What::Lap(_)),
        |what| matches!(what, What::Started(_)),
        |what| matches!(what, What::Ended(_)),
    ];
    for what in told {
        assert_eq!(count(&truth, what), count(&original, what));
    }
    for (moved, was) in truth.laps(end).iter().zip(original.laps(then)) {
        assert_eq!((moved.id, moved.pilot, moved.number), (was.id, was.pilot, was.number));
        assert!(((moved.end - moved.start) - (was.end - was.start)).as_us().abs() <= 2_000);
    }
    let laps = |now| truth.laps(now).len();
    assert_eq!((laps(now), laps(now + Span::secs(9))), (0, 0));
    assert!(laps(now + Span::secs(70)) > 3 && laps(now + Span::secs(70)) < laps(end));
    assert!(end - now <= (then - recorded.event().began()) + Span::secs(20), "breaks are cut, not stretched");
    assert!(list(&upstream, "Results.json", now).is_none());
    assert_eq!(
        list(&upstream, "Results.json", end).map(|l| l.len()),
        list(&recorded, "Results.json", then + Span::secs(1)).map(|l| l.len())
    );
}

#[test]
fn a_directory_without_an_event_is_refused_with_its_path() {
    let dir = own_dir("fpv-no-capture");
    std::fs::create_dir_all(dir.join("events")).expect("made");
    let error = Replay::new(&dir).expect_err("no event").to_string();
    assert!(error.contains("events: expected a directory named by an event's id"), "{error}");
}
