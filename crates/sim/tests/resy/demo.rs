//! The demonstration's market.

use stakeout_sim::resy::{Look, Watch, demo};

use super::*;

#[test]
fn within_a_minute_of_the_demo_several_drops_are_seen() {
    for start in ["2026-02-25T05:00:00Z", "2026-07-18T02:30:00Z", "2026-11-01T17:45:12Z"] {
        let now = Time::parse(start).expect("valid");
        let upstream = demo(now);
        let market = upstream.market();
        let today = market.date_at(now);
        assert_eq!(market.dates().next(), Some(today));
        // A sweep a minute at the demo's ten times the speed.
        let looks: Vec<Look> = (0..10)
            .flat_map(|n| market.dates().take(4).map(move |day| (n, day)).collect::<Vec<_>>())
            .flat_map(|(n, day)| {
                [afternoon(day), evening(day)].map(|b| Look { at: now + Span::mins(n), bucket: b })
            })
            .collect();
        let seen = market.truth().expected(&Watch::default(), &looks);
        assert!(seen.len() >= 5, "{start}: {} drops", seen.len());
        assert!(seen[0].seen <= now + Span::mins(1), "{start}: the first at {}", seen[0].seen);
        // At the speed of life, too.
        let always = market.truth().drops(&Watch::default(), now, now + Span::mins(1));
        assert!(!always.is_empty(), "{start}");
        assert_eq!(poll(&upstream, evening(today), 2, now, Span::ZERO).hits / 75, 0, "one page");
    }
}
