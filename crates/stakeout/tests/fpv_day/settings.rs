//! Every live setting shows its effect, at once and until it is unset.

use serde_json::{Value as Json, json};
use stakeout::simulate::fpv::{FpvEvent, SOURCE, Watching};
use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{EventConfig, What};

/// A lull after the first race of six: the second one is current, nothing happens for a while.
fn lull(latency: Span, script: impl AsyncFnOnce(&Lull<'_>)) {
    let gap = (Span::hours(1), Span::hours(1));
    let event = EventConfig { gap, ..EventConfig::new(9) }.with_races(6);
    let event = FpvEvent { event, incidents: Vec::new(), latency: (latency, latency), ..FpvEvent::new(9) };
    let upstream = event.upstream();
    let truth = upstream.event().truth();
    let ended =
        truth.changes().iter().find(|change| matches!(change.what, What::Ended(_))).expect("an end").at;
    let from = ended + Span::mins(1);
    let order = truth.order(from);
    let race = |n: usize| format!("/{}/Race.json", order[n]);
    let (current, idle) = (race(1), race(4));
    let watched = event.watch_until(upstream, async |watching: &Watching| {
        watching.clock.sleep_until(from).await;
        script(&Lull { watching, current, idle }).await;
        Ok(())
    });
    watched.expect("it can be watched");
}

struct Lull<'a> {
    watching: &'a Watching,
    current: String,
    idle: String,
}

impl Lull<'_> {
    /// When the paths that end so were looked at within that time from now on.
    async fn looks(&self, path: &str, span: Span) -> Vec<Time> {
        let from = self.watching.clock.now();
        self.watching.clock.sleep_until(from + span).await;
        let looks = self.watching.trackside.asked().looks;
        looks
            .iter()
            .filter(|look| look.read >= from && look.path.ends_with(path))
            .map(|look| look.read)
            .collect()
    }

    async fn set(&self, name: &str, value: impl Into<Option<Json>>) {
        let key = format!("source.{SOURCE}.scheduler.{name}");
        self.watching.control.set_setting(&key, value.into()).await.expect("a good setting");
    }
}

#[test]
fn every_interval_is_followed_at_once_switched_off_by_nothing_and_restored() {
    lull(Span::ms(5), async |lull| {
        let span = Span::secs(20);
        for (name, path, every, other) in [
            ("raceActiveMs", lull.current.as_str(), 200, 100),
            ("raceIdleMs", lull.idle.as_str(), 5_000, 1_000),
            ("resultsMs", "/Results.json", 2_000, 500),
            ("fullIntervalMs", "/Event.json", 10_000, 2_000),
            ("fullIntervalMs", "/Rounds.json", 10_000, 2_000),
            ("channelsMs", "/Channels.json", 10_000, 1_000),
            ("activeCheckMs", "/current", 1_000, 250),
        ] {
            let fits = |looks: usize, every: i64| {
                let expected = span.as_ms() / every;
                assert!(
                    (expected - 1..=expected + 1).contains(&(looks as i64)),
                    "{name} {every}: {looks} looks"
                );
            };
            fits(lull.looks(path, span).await.len(), every);
            lull.set(name, json!(other)).await;
            fits(lull.looks(path, span).await.len(), other);
            lull.set(name, json!(0)).await;
            // A poll that was under way has taken its next turn by the old setting.
            lull.looks("", Span::ms(other)).await;
            let from = lull.watching.clock.now();
            let off: Vec<Span> = lull.looks(path, span).await.into_iter().map(|at| at - from).collect();
            assert_eq!(off, [], "{name} 0");
            lull.set(name, None).await;
            fits(lull.looks(path, span).await.len(), every);
        }
    });
}

#[test]
fn a_setting_without_the_sources_name_holds_for_it_too() {
    lull(Span::ms(5), async |lull| {
        lull.watching.control.set_setting("scheduler.raceActiveMs", Some(json!(100))).await.expect("known");
        let looks = lull.looks(&lull.current, Span::secs(10)).await.len();
        assert!((99..=101).contains(&looks), "{looks}");
    });
}

#[test]
fn nothing_is_asked_while_it_is_not_enabled() {
    lull(Span::ms(5), async |lull| {
        lull.set("enabled", json!(false)).await;
        // A poll that was under way has taken its next turn by the old setting.
        lull.looks("", Span::secs(10)).await;
        let from = lull.watching.clock.now();
        let off: Vec<Span> = lull.looks("", Span::mins(2)).await.into_iter().map(|at| at - from).collect();
        assert_eq!(off, []);
        lull.set("enabled", json!(true)).await;
        let looks = lull.looks(&lull.current, Span::secs(10)).await.len();
        assert!((49..=51).contains(&looks), "{looks}");
    });
}

#[test]
fn jitter_is_at_most_what_is_set_and_a_tenth_of_the_interval() {
    lull(Span::ms(1), async |lull| {
        // How far the looks at an idle race stray from the grid: it can wait for those before it as well.
        let strays = |looks: &[Time], every: Span| {
            let off = |at: &Time| at.us().rem_euclid(every.as_us());
            let least = looks.iter().map(off).min().expect("looks");
            Span::us(looks.iter().map(off).max().expect("looks") - least)
        };
        let idle = Span::secs(5);
        let usual = strays(&lull.looks(&lull.idle, Span::mins(2)).await, idle);
        assert!(usual > Span::ms(60) && usual < Span::ms(180), "{usual}");
        let current = strays(&lull.looks(&lull.current, Span::mins(1)).await, Span::ms(200));
        assert!(current < Span::ms(35), "a tenth of 200 ms, and a wait: {current}");
        lull.set("jitterMs", json!(0)).await;
        lull.looks("", idle).await;
        let none = strays(&lull.looks(&lull.idle, Span::mins(2)).await, idle);
        assert!(none < Span::ms(30), "{none}");
    });
}

#[test]
fn with_more_concurrency_slow_requests_overlap() {
    lull(Span::ms(50), async |lull| {
        lull.looks("", Span::secs(20)).await;
        assert_eq!(lull.watching.trackside.asked().most_at_once, 1);
        lull.set("concurrency", json!(4)).await;
        lull.looks("", Span::secs(60)).await;
        let at_once = lull.watching.trackside.asked().most_at_once;
        assert!((2..=4).contains(&at_once), "{at_once}");
    });
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    lull(Span::ms(5), async |lull| {
        for (name, value) in [
            ("workerIntervalMs", json!(0)),
            ("burst", json!(0)),
            ("concurrency", json!(-1)),
            ("raceActiveMs", json!("fast")),
            ("enabled", json!(1)),
            ("raceActive", json!(100)),
        ] {
            let key = format!("source.{SOURCE}.scheduler.{name}");
            let refused = lull.watching.control.set_setting(&key, Some(value)).await;
            assert!(refused.is_err(), "{name}");
        }
        let looks = lull.looks(&lull.current, Span::secs(10)).await.len();
        assert!((49..=51).contains(&looks), "{looks}");
    });
}
