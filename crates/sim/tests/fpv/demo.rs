//! What the demonstration shows.

use stakeout_core::Span;
use stakeout_sim::fpv::{Incident, What, demo};

use super::*;

#[test]
fn within_a_minute_at_speed_ten_races_change_and_laps_come() {
    for hour in [0, 5, 8, 9, 20, 21, 23] {
        let now = Time::parse("2026-07-16T00:13:37.25Z").expect("valid") + Span::hours(hour);
        let upstream = demo(now);
        let truth = upstream.event().truth();
        let soon =
            || truth.changes().iter().filter(|change| change.at > now && change.at < now + Span::secs(600));
        let mut current: Vec<Guid> =
            soon()
                .filter_map(|change| {
                    if let What::Current { to, .. } = &change.what { to.map(|to| to.race) } else { None }
                })
                .collect();
        current.dedup();
        assert!(current.len() >= 3, "{} current races", current.len());
        let first = soon().find(|change| matches!(change.what, What::Lap(_))).expect("laps");
        assert!(first.at - now < Span::secs(60), "the first lap comes {} in", first.at - now);
        assert!(soon().filter(|change| matches!(change.what, What::Lap(_))).count() > 30);
        assert!(upstream.event().ended() - now > Span::hours(12));
        let starts = race(&upstream, truth.order(now)[0], now)["Start"].as_str().expect("a date").to_owned();
        assert!(starts.contains(" 8:") || starts.contains(" 7:"), "{starts}");
    }
}

#[test]
fn in_the_first_event_everything_that_is_listed_can_be_read() {
    let now = Time::parse("2026-07-16T00:13:37.25Z").expect("valid");
    let upstream = demo(now);
    let truth = upstream.event().truth();
    for at in (0..120).map(|minute| now + Span::mins(minute)) {
        assert!(!truth.is_off(at), "nobody answers at {at}");
        let event = list(&upstream, "Event.json", at).unwrap_or_else(|| panic!("no event at {at}"));
        for file in ["Rounds.json", "Pilots.json", "Results.json"] {
            assert!(list(&upstream, file, at).is_some(), "no {file} at {at}");
        }
        let channels = body(upstream.honest("/httpfiles/Channels.json", at));
        assert!(channels.starts_with(b"["), "no channels at {at}");
        for id in event[0]["Races"].as_array().expect("races") {
            let file = format!("{}/Race.json", id.as_str().expect("an id"));
            assert!(list(&upstream, &file, at).is_some(), "no {file} at {at}");
        }
    }
    let later = |incident| upstream.event().incidents().iter().any(|played| played.incident == incident);
    assert!(Incident::ALL.into_iter().all(|incident| later(incident) || incident == Incident::EventSwitch));
}
