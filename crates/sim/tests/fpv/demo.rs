//! What the demonstration shows.

use stakeout_core::Span;
use stakeout_sim::fpv::{What, demo};

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
