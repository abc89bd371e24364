//! A simulated racing day through the real engine and parser, compared with the simulator's truth.

use serde_json::json;
use stakeout::simulate::racing::{Finished, RacingDay, RacingReport};
use stakeout_core::{Event, Fingerprint, Span, Time};
use stakeout_sim::nztab::{Category, Day, DayConfig, RaceTruth, Status, nz_date};
use stakeout_store::{HistoryRow, RecordFilter, Store};

#[test]
fn a_race_day_has_no_misses_and_no_wrong_events() {
    for seed in [1, 2] {
        let finished = RacingDay { races: 40, ..RacingDay::new(seed) }.run().expect("the day runs");
        let report = &finished.report;
        assert_eq!((report.misses, report.wrong_events), (0, 0), "seed {seed}: {:#?}", report.remarks);
        assert!(report.expected > 100, "seed {seed}: only {} changes", report.expected);
        for (phase, adherence) in &report.adherence {
            assert_eq!((adherence.late, adherence.missed), (0, 0), "seed {seed}: {phase}");
        }
    }
}

/// In memory the polls of several instants are written together; with a file every one is waited for.
#[test]
fn a_day_is_the_same_whether_its_commits_are_waited_for_or_not() {
    let dir = tempfile::tempdir().expect("a directory");
    for seed in [1, 2, 3] {
        let together = RacingDay { races: 16, ..RacingDay::new(seed) };
        let waited = RacingDay { database: Some(dir.path().join(format!("{seed}.db"))), ..together.clone() };
        let (together, waited) = (together.run().expect("the day runs"), waited.run().expect("the day runs"));
        assert!(together.events.len() > 500, "only {} events", together.events.len());
        assert_eq!(together.events, waited.events, "seed {seed}");
        assert_eq!(together.asked, waited.asked, "seed {seed}");
        let timeless = |finished: &Finished| {
            let report = RacingReport { took_ms: 0, ..finished.report.clone() };
            serde_json::to_value(report).expect("JSON")
        };
        assert_eq!(timeless(&together), timeless(&waited), "seed {seed}");
    }
}

#[test]
fn every_type_of_event_that_is_told_is_one_that_the_source_lists() {
    let day = RacingDay { races: 24, ..RacingDay::new(1) };
    let listed = day.source().expect("a source").event_types();
    let told = day.run().expect("the day runs").report.events;
    assert!(told.keys().all(|told| listed.contains(told)), "told {told:?}, listed {listed:?}");
    assert!(told.contains_key("racing.favourite.changed"), "which no rule makes: {told:?}");
}

#[test]
fn under_faults_nothing_is_invented_and_every_result_arrives_once() {
    let finished = RacingDay { races: 24, faults: 0.02, ..RacingDay::new(5) }.run().expect("the day runs");
    let faulted: u64 = finished.upstream.faulted().values().sum();
    assert!(faulted > 100, "only {faulted} faults");
    let told = |race: &str, name: &str| {
        let name = format!("racing.race.{name}");
        finished.events.iter().filter(|e| e.subject_key == race && e.event_type == name).count()
    };
    for race in finished.upstream.days().iter().flat_map(|day| day.truth()) {
        let times = |status: Status| race.statuses.iter().filter(|(_, s)| *s == status).count();
        assert_eq!(told(&race.id, "final"), times(Status::Final), "{}", race.id);
        assert_eq!(told(&race.id, "abandoned"), times(Status::Abandoned), "{}", race.id);
        // A start can be taken back only by a race that is open again.
        let reopened = times(Status::Open) - 1;
        for (name, most) in [
            ("interim", times(Status::Interim)),
            ("closed", times(Status::Closed)),
            ("reopened", reopened),
            ("started", race.actual_start.map_or(0, |_| 1) + reopened),
            ("retimed", race.starts.len() - 1),
        ] {
            let told = told(&race.id, name);
            assert!(told <= most, "{}: {name} {told} times, it happened {most} times", race.id);
        }
        let of = |subject: &str, kind: &str| {
            finished.events.iter().filter(|e| e.subject_key == subject && e.event_type == kind).count()
        };
        // A price or a share that moved so often cannot have been seen to move more often.
        for entrant in &race.entrants {
            for (kind, changes) in
                [("racing.odds.moved", entrant.odds.len()), ("racing.money.moved", entrant.money.len())]
            {
                let told = of(&entrant.id, kind);
                assert!(told < changes.max(1), "{}: {kind} {told} times, {changes} values", entrant.name);
            }
        }
        let prices: usize = race.entrants.iter().map(|e| e.flucs.len()).sum();
        let told = of(&race.id, "racing.favourite.changed");
        assert!(told <= prices, "{}: {told} favourites, {prices} prices", race.id);
    }
    let scratchings: usize = finished
        .upstream
        .days()
        .iter()
        .flat_map(|day| day.truth())
        .map(|race| race.entrants.iter().filter(|e| e.scratched.is_some()).count())
        .sum();
    let told = finished.events.iter().filter(|e| e.event_type == "racing.runner.scratched").count();
    assert!(told <= scratchings, "{told} scratchings told, {scratchings} happened");
}

#[test]
fn odds_history_is_the_upstreams_own_to_the_microsecond() {
    odds_history_is_the_upstreams(0);
}

#[test]
fn odds_history_is_the_upstreams_own_where_its_stamps_come_later_than_its_prices() {
    odds_history_is_the_upstreams(1);
}

fn odds_history_is_the_upstreams(lagging_flucs_one_in: u64) {
    let day = RacingDay { races: 16, lagging_flucs_one_in, ..RacingDay::new(3) };
    let finished = day.run().expect("the day runs");
    let report = &finished.report;
    assert_eq!((report.misses, report.wrong_events), (0, 0), "{:#?}", report.remarks);
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let (mut kept, mut lost) = (0, 0);
    for race in finished.upstream.days().iter().flat_map(|day| day.truth()) {
        let path = format!("/events/{}?", race.id);
        let Some(last) = finished.asked.iter().rev().find(|asked| asked.path.contains(&path)) else {
            continue;
        };
        for entrant in &race.entrants {
            let print = Fingerprint::of("racing_entrants", &[&entrant.id]);
            let rows = runtime.block_on(finished.store.history("nz", print, Some("odds_history"), 10_000));
            let rows = rows.expect("history");
            let stamped: Vec<(Time, u32)> =
                rows.iter().filter(|row| row.upstream).map(|row| (row.at, cents(row))).collect();
            let truth: Vec<(Time, u32)> = entrant.flucs.clone();
            assert!(
                stamped.iter().all(|row| truth.contains(row)),
                "{}: {stamped:?}\n{truth:?}",
                entrant.name
            );
            // Rows stamped by us carry a price that was really served.
            for row in rows.iter().filter(|row| !row.upstream) {
                let served = stakeout_sim::nztab::held(&entrant.odds, race.served_at(row.at));
                assert_eq!(
                    served.map(|odds| odds.fixed_win),
                    Some(cents(row)),
                    "{} at {}",
                    entrant.name,
                    row.at
                );
            }
            let until = entrant
                .scratched
                .as_ref()
                .map_or(race.served_at(last.at), |s| s.at.min(race.served_at(last.at)));
            let missing = truth.iter().filter(|fluc| fluc.0 <= until && !stamped.contains(fluc)).count();
            let marked = rows.iter().any(|row| row.gap);
            assert!(
                missing == 0 || marked,
                "{}: {missing} moves are missing and no gap is marked",
                entrant.name
            );
            kept += stamped.len();
            lost += missing;
        }
    }
    assert!(kept > 1_000 && lost < kept / 10, "{kept} rows kept, {lost} moves lost between two looks");
}

fn cents(row: &HistoryRow) -> u32 {
    (row.values["win_odds"].as_f64().expect("a price") * 100.0).round() as u32
}

#[test]
fn nothing_is_orphaned() {
    let finished = RacingDay { races: 16, ..RacingDay::new(4) }.run().expect("the day runs");
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let record = |kind: &str, id: &str| {
        let print = Fingerprint::of(kind, &[id]);
        let found = runtime.block_on(finished.store.records("nz", &[print])).expect("records");
        found.into_iter().next()
    };
    for race in finished.upstream.days().iter().flat_map(|day| day.truth()) {
        let stored = record("racing_races", &race.id).expect("every race is kept");
        assert_eq!(stored.parent, Some(Fingerprint::of("racing_meetings", &[&race.meeting_id])));
        assert!(record("racing_meetings", &race.meeting_id).is_some(), "every race has its meeting");
        for entrant in &race.entrants {
            let Some(stored) = record("racing_entrants", &entrant.id) else { continue };
            assert_eq!(
                stored.parent,
                Some(Fingerprint::of("racing_races", &[&race.id])),
                "every entrant has its race"
            );
        }
    }
}

#[test]
fn alerts_ring_once_and_in_time() {
    let rules = json!({
        "bell": { "when": { "on": "start", "before": "1m" } },
        "finals": { "when": { "on": "event", "type": "racing.race.final" } },
        "steam": { "when": { "on": "odds", "direction": "shortened", "percent": 20, "within": "30m" } },
    });
    let alerts = serde_json::from_value(rules).expect("rules");
    let finished = RacingDay { races: 24, alerts, ..RacingDay::new(6) }.run().expect("the day runs");
    assert_eq!(
        (finished.report.misses, finished.report.wrong_events),
        (0, 0),
        "{:?}",
        finished.report.remarks
    );
    let rung = |alert: &str| -> Vec<&Event> {
        let rule = format!("alert:{alert}");
        finished.events.iter().filter(|event| event.rule == rule).collect()
    };
    let told = |event_type: &str| finished.events.iter().filter(|e| e.event_type == event_type).count();
    assert_eq!(rung("finals").len(), told("racing.race.final"), "one per result");

    // Every race that is still open a minute before its start rings then, and no other.
    let mut expected = Vec::new();
    for race in finished.upstream.days().iter().flat_map(|day| day.truth()) {
        for (_, start) in &race.starts {
            let bell = *start - Span::mins(1);
            let served = race.served_at(bell);
            let known = race.starts.iter().rev().find(|(at, _)| *at <= served).map(|(_, start)| *start);
            let status = race.statuses.iter().rev().find(|(at, _)| *at <= served).map(|(_, status)| *status);
            if known == Some(*start) && status == Some(Status::Open) {
                expected.push((format!("race/{}", race.id), start.to_string()));
            }
        }
    }
    let bells = rung("bell");
    let mut found: Vec<(String, String)> = bells
        .iter()
        .map(|bell| {
            (bell.subject_key.clone(), bell.data["about"]["start"].as_str().expect("a start").to_owned())
        })
        .collect();
    for bell in &bells {
        let start = Time::parse(bell.data["about"]["start"].as_str().expect("a start")).expect("a time");
        let late = bell.at - (start - Span::mins(1));
        assert!(late >= Span::ZERO && late < Span::secs(2), "{}: {late} late", bell.subject_key);
    }
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    assert!(!rung("steam").is_empty(), "some price shortened by a fifth");
}

#[test]
fn money_results_and_dividends_are_the_upstreams() {
    let finished = RacingDay { races: 12, ..RacingDay::new(7) }.run().expect("the day runs");
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let (mut rows_seen, mut finals) = (0, 0);
    for race in finished.upstream.days().iter().flat_map(|day| day.truth()) {
        let path = format!("/events/{}?", race.id);
        if !finished.asked.iter().any(|asked| asked.path.contains(&path)) {
            continue;
        }
        for entrant in &race.entrants {
            let print = Fingerprint::of("racing_entrants", &[&entrant.id]);
            let rows =
                runtime.block_on(finished.store.history("nz", print, Some("money_flow_history"), 10_000));
            for row in rows.expect("history") {
                let served = race.served_at(row.at);
                let share = stakeout_sim::nztab::held(&entrant.money, served).expect("a share");
                let held = |field: &str| row.values[field].as_f64();
                assert_eq!(
                    (held("hold_percentage"), held("bet_percentage")),
                    (Some(f64::from(share.hold)), Some(f64::from(share.bet))),
                    "{} at {}",
                    entrant.name,
                    row.at
                );
                rows_seen += 1;
            }
        }
        let Some(_) = race.final_at else { continue };
        finals += 1;
        let below = |collection: &str| {
            let filter = RecordFilter {
                source: "nz".to_owned(),
                kind: Some(format!("racing_{collection}")),
                parent: Some(Fingerprint::of("racing_races", &[&race.id])),
                gone: false,
                after: None,
                limit: 1_000,
            };
            let found = runtime.block_on(finished.store.list_records(&filter)).expect("records");
            found.into_iter().map(|listed| listed.record.body).collect::<Vec<_>>()
        };
        let mut placings: Vec<(i64, String)> = below("race_results")
            .iter()
            .map(|body| {
                (
                    body["position"].as_i64().expect("a place"),
                    body["entrant"].as_str().expect("an id").to_owned(),
                )
            })
            .collect();
        placings.sort();
        let placings: Vec<String> = placings.into_iter().map(|(_, id)| id).collect();
        assert_eq!(placings, race.final_placings, "{}", race.id);
        let dividends = below("dividends");
        assert!(dividends.iter().all(|body| body["status"] == "Final"), "{}: {dividends:?}", race.id);
        let winner =
            race.entrants.iter().find(|e| Some(&e.id) == race.final_placings.first()).expect("a winner");
        let win = dividends.iter().find(|body| body["product"] == "Pool Win").expect("a win dividend");
        assert_eq!(
            win["positions"],
            json!([{ "position": 1, "runner_number": winner.number }]),
            "{}",
            race.id
        );
        let odds = winner.odds.last().expect("prices").1;
        let paid = f64::from(odds.pool_win.unwrap_or(odds.fixed_win)) / 100.0;
        assert_eq!(win["dividend"].as_f64(), Some(paid), "{}", race.id);
    }
    assert!(rows_seen > 500 && finals > 5, "{rows_seen} rows of money, {finals} results");
}

/// A race that is retimed and over between two readings of the list of meetings: the list learns of the new start when
/// nothing more is to happen.
fn ends_before_the_list_knows(race: &RaceTruth) -> bool {
    let reading = |at: Time| at.us().div_euclid(Span::mins(30).as_us());
    let told = race.starts.last().filter(|_| race.starts.len() > 1).map(|(told, _)| reading(*told));
    let watched = ["NZ", "AUS"].contains(&race.country) && race.category != Category::Greyhound;
    watched && told.is_some() && told == race.final_at.map(|at| reading(at + Span::mins(6)))
}

#[test]
fn a_race_that_is_over_is_never_asked_for_again_however_it_was_retimed() {
    let date = nz_date(Time::parse("2026-01-10T00:00:00Z").expect("a time"));
    let day = |seed: u64| Day::new(&DayConfig::new(seed, date).with_races(12));
    let seed = (0..500).find(|seed| day(*seed).truth().iter().any(ends_before_the_list_knows));
    let seed = seed.expect("a day with such a race");
    let finished = RacingDay { races: 12, ..RacingDay::new(seed) }.run().expect("the day runs");
    let mut late = 0;
    for race in finished.upstream.days().iter().flat_map(|day| day.truth()) {
        let path = format!("/events/{}?", race.id);
        let over = |at: Time| race.status_at(at).is_terminal();
        let after =
            finished.asked.iter().filter(|asked| asked.path.contains(&path) && over(asked.at)).count();
        assert!(after <= 1, "seed {seed}: {} was asked for {after} times when it was over", race.id);
        late += usize::from(after == 1 && ends_before_the_list_knows(&race));
    }
    assert!(late > 0, "seed {seed}: no race ended before the list of meetings knew its start");
}
