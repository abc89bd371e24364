//! Whole events.

use stakeout::simulate::fpv::{Finished, FpvEvent};
use stakeout_core::{Source, Span, Time};
use stakeout_sim::fpv::{EventConfig, Incident, What};
use stakeout_sources::fpv::{FpvConfig, FpvSource};

/// An event with every incident in it, without the long waits between races.
fn brisk(seed: u64) -> FpvEvent {
    let lap = (Span::secs(15), Span::secs(20));
    let gap = (Span::secs(32), Span::secs(40));
    let event = EventConfig { lap, gap, off: Span::mins(20), ..EventConfig::new(seed) };
    FpvEvent { event, ..FpvEvent::new(seed) }
}

fn told(finished: &Finished, name: &str) -> u64 {
    finished.report.events.get(name).copied().unwrap_or_default()
}

#[test]
fn sixty_races_with_every_incident_are_told_as_they_were() {
    let finished = brisk(1).run().expect("the event runs");
    let report = &finished.report;
    assert_eq!((report.misses, report.wrong_events), (0, 0), "{:#?}", report.remarks);
    assert_eq!(report.current.wrong_ms, 0, "{:#?}", report.remarks);
    assert!(report.laps.flown > 1_000, "{:?}", report.laps);
    assert_eq!(report.laps.told + report.laps.unseen, report.laps.flown, "{:?}", report.laps);
    assert!(report.laps.unseen <= 2, "{:?}", report.laps);
    // One thread upstream: one request at a time, with room to breathe between two.
    assert_eq!(report.concurrent_requests_max, 1);
    assert!(report.least_gap_ms >= Some(5.0), "{:?}", report.least_gap_ms);
    // Five times a second means five times a second.
    let delay = report.lap_delay_ms.expect("laps were told");
    assert!(delay.p99 <= 260, "{delay:?}");
    let gap = report.current.gap_ms.expect("the current race was looked at");
    assert!(gap.p50 <= 200 && gap.p99 <= 240, "{gap:?}");
    assert_eq!(report.adherence["focus"].late, 0, "{:?}", report.adherence);
    // What happened once is told once.
    let happened = |is: fn(&What) -> bool| {
        let changes = finished.upstream.event().truth().changes();
        changes.iter().filter(|change| is(&change.what)).count() as u64
    };
    assert_eq!(told(&finished, "fpv.event.switched"), happened(|what| *what == What::Switched));
    assert_eq!(told(&finished, "fpv.upstream.lost"), happened(|what| *what == What::Lost));
    assert_eq!(told(&finished, "fpv.upstream.back"), happened(|what| *what == What::Back));
    assert_eq!(told(&finished, "fpv.race.reset"), 2);
    assert_eq!(told(&finished, "fpv.race.resumed"), 1);
    assert_eq!(told(&finished, "fpv.race.invalidated"), 1);
    // Everything that can happen did, and each type of event is one that the source lists.
    let listed =
        FpvSource::new("event", &FpvConfig::at("http://localhost:8080")).expect("a source").event_types();
    let untold: Vec<&String> = listed.iter().filter(|name| told(&finished, name) == 0).collect();
    assert!(report.events.keys().all(|told| listed.contains(told)), "{:?} of {listed:?}", report.events);
    assert!(untold.is_empty(), "{untold:?}");
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let log = || {
        let event = FpvEvent::with_races(4, 3);
        let events = event.run().expect("the event runs").events;
        events.into_iter().map(|e| (e.seq, e.id, e.at, e.event_type, e.subject_key)).collect::<Vec<_>>()
    };
    let first = log();
    assert!(first.len() > 50, "only {} events", first.len());
    assert_eq!(first, log());
}

#[test]
fn a_race_that_becomes_the_current_one_comes_with_those_who_fly_soon() {
    let finished = FpvEvent::with_races(4, 3).run().expect("the event runs");
    let turns = finished.events.iter().filter(|event| event.event_type == "fpv.race.current_changed");
    let called = turns.filter(|event| event.data["upcoming"][0]["name"].is_string()).count();
    assert!(called >= 3, "only {called} of 3 races came with pilots");
}

#[test]
fn hours_without_the_upstream_cost_little_and_lose_nothing() {
    let incidents = vec![Incident::UpstreamOff];
    let event = EventConfig { off: Span::hours(2), brackets: 0, ..EventConfig::new(2) }.with_races(24);
    let finished = FpvEvent { event, incidents, ..FpvEvent::with_races(2, 24) };
    let (off, back) = off(&finished);
    // Until ten minutes after it is back.
    let finished = FpvEvent { until: Some(back + Span::mins(10)), ..finished }.run().expect("the event runs");
    let report = &finished.report;
    assert_eq!((told(&finished, "fpv.upstream.lost"), told(&finished, "fpv.upstream.back")), (1, 1));
    assert_eq!(
        (report.laps.invented, report.wrong_events, report.current.wrong_ms),
        (0, 0, 0),
        "{:#?}",
        report.remarks
    );
    // Pauses of two to four intervals: 23 races, the current one, results, `/current`, and the rest.
    let per_second = 23.0 / 5.0 + 1.0 / 0.2 + 1.0 / 2.0 + 1.0 + 5.0 / 10.0;
    let expected = (back - off).as_secs_f64() * per_second / 3.0;
    let refused = report.refused as f64;
    assert!((expected * 0.9..expected * 1.1).contains(&refused), "{refused} refused, {expected} expected");
    let told_while_off = finished.events.iter().filter(|event| (off..back).contains(&event.at));
    let types: Vec<&str> = told_while_off.map(|event| event.event_type.as_str()).collect();
    assert_eq!(types, ["fpv.upstream.lost"]);
    // Everything is asked again within its longest pause, and the current race at its own pace.
    let again = finished.asked.looks.iter().filter(|look| look.read >= back);
    let first: Vec<&stakeout::simulate::fpv::Look> = again.take(200).collect();
    assert!(first[0].read < back + Span::ms(1_000), "{} after {back}", first[0].read);
    let current = |from: Span| {
        let (from, until) = (back + from, back + from + Span::secs(10));
        let place = finished.published.iter().rev().find(|(at, _)| *at <= from).expect("a current race");
        let path = format!("/{}/Race.json", place.1["raceId"].as_str().expect("an id"));
        finished
            .asked
            .looks
            .iter()
            .filter(|l| l.path.ends_with(&path) && (from..until).contains(&l.read))
            .count()
    };
    assert!((48..=51).contains(&current(Span::secs(5))), "{}", current(Span::secs(5)));
}

/// When the upstream goes away and comes back.
fn off(event: &FpvEvent) -> (Time, Time) {
    let upstream = event.upstream();
    let changes = upstream.event().truth().changes();
    let at = |what: What| changes.iter().find(|change| change.what == what).expect("it happens").at;
    (at(What::Lost), at(What::Back))
}

#[test]
fn under_faults_nothing_is_invented() {
    let finished = FpvEvent { faults: 0.01, ..FpvEvent::with_races(5, 6) }.run().expect("the event runs");
    let faulted: u64 = finished.upstream.faulted().values().sum();
    assert!(faulted > 100, "only {faulted} faults");
    let report = &finished.report;
    assert_eq!((report.laps.invented, report.wrong_events), (0, 0), "{:#?}", report.remarks);
    assert_eq!(
        report.laps.told, report.laps.flown,
        "a lap stays: it is told when the upstream answers again"
    );
}
