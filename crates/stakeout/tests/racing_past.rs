//! What the API says of a race that is over, while its day is in the catalogue and when it has left it.

use std::sync::Arc;

use jiff::ToSpan;
use serde_json::{Value as Json, json};
use stakeout::simulate::nztab::InProcess;
use stakeout::simulate::racing::{Finished, RacingDay};
use stakeout_core::{Span, Time};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Engine, EngineConfig, Fetch, virtual_runtime};
use stakeout_server::{Server, ServerConfig};
use stakeout_sim::nztab::{Day, DayConfig, RaceTruth, Upstream};
use tokio_util::sync::CancellationToken;

/// A day that was watched from its midnight on, and what is asked of it afterwards.
struct Past {
    day: RacingDay,
    finished: Finished,
    now: Time,
}

impl Past {
    fn of(day: RacingDay) -> Past {
        let finished = day.run().expect("the day runs");
        Past { now: finished.until, day, finished }
    }

    fn races(&self) -> Vec<RaceTruth> {
        self.finished.upstream.days().iter().flat_map(Day::truth).collect()
    }

    fn engine(&self, clock: Clock, fetch: Arc<dyn Fetch>) -> EngineConfig {
        let source = self.day.source().expect("a source");
        let mut config = EngineConfig::new(self.finished.store.clone(), vec![source], fetch);
        config.clock = clock;
        config
    }

    /// Goes on watching until the day is older than yesterday.
    fn until_it_has_left_the_catalogue(&mut self) {
        let today = self.finished.upstream.days()[0].date();
        let dates = (0..4).map(|n| today.saturating_add(n.days()));
        let day = |date| Day::new(&DayConfig::new(self.day.seed, date).with_races(self.day.races));
        let fetch = InProcess::new(Arc::new(Upstream::new(dates.map(day))));
        let (runtime, clock) = virtual_runtime(self.now).expect("a runtime");
        let config = self.engine(clock.clone(), Arc::new(fetch));
        self.now += Span::hours(30);
        runtime.block_on(async {
            let engine = Engine::start(config).await.expect("starts");
            clock.sleep_until(self.now).await;
            engine.shutdown().await.expect("stops");
        });
    }

    /// Asks a server for these paths, below `/v1/racing/nz/races`. Nothing more happens there.
    fn ask(&self, paths: &[String]) -> Vec<Json> {
        tokio::runtime::Runtime::new().expect("runtime").block_on(async {
            let fetch = Arc::new(InProcess::new(Arc::clone(&self.finished.upstream)));
            let config = self.engine(Clock::scaled_from(self.now, 1.0), fetch);
            let engine = Engine::start(config).await.expect("starts");
            let server = ServerConfig::new(([127, 0, 0, 1], 0).into());
            let server = Server::bind(server, self.finished.store.clone()).await.expect("binds");
            let base = format!("http://{}/v1/racing/nz/races", server.address());
            let stop = CancellationToken::new();
            let server = tokio::spawn(server.run(engine.control(), stop.clone()));
            // What makes the process's cryptography known, which a client wants even for plain HTTP.
            HttpFetch::new().expect("a client");
            let http = reqwest::Client::builder().no_proxy().build().expect("client");
            let mut answers = Vec::new();
            for path in paths {
                let answer = http.get(format!("{base}/{path}")).send().await.expect("an answer");
                let body = answer.error_for_status().expect("an answer").bytes().await.expect("a body");
                answers.push(serde_json::from_slice(&body).expect("JSON"));
            }
            stop.cancel();
            server.await.expect("stops");
            engine.shutdown().await.expect("stops");
            answers
        })
    }
}

/// The winning numbers and the wins that are paid, and whether the race is still held.
fn told(results: &Json) -> (Vec<i64>, Vec<(String, Json)>, bool) {
    let rows = |name: &str| results[name].as_array().expect("a list").clone();
    let first = rows("results").into_iter().filter(|row| row["body"]["position"] == 1);
    let wins = rows("dividends").into_iter().filter(|row| row["body"]["product"] == "Pool Win");
    (
        first.filter_map(|row| row["body"]["runner_number"].as_i64()).collect(),
        wins.map(|row| (row["body"]["status"].to_string(), row["body"]["positions"].clone())).collect(),
        results["race"]["gone"].is_null(),
    )
}

#[test]
fn a_race_with_an_upheld_protest_pays_once_also_when_its_day_has_left_the_catalogue() {
    let mut past = Past::of(RacingDay { races: 12, ..RacingDay::new(7) });
    let swapped = |race: &RaceTruth| {
        let both = race.interim_placings.first().zip(race.final_placings.first());
        race.protest && both.is_some_and(|(interim, last)| interim != last)
    };
    let race = past.races().into_iter().find(swapped).expect("every day has such a race");
    let winner = race.entrants.iter().find(|e| e.id == race.final_placings[0]).expect("a winner").number;
    let asked = [format!("{}/results", race.id), race.id.clone()];
    let pools = |answer: &Json| answer["pools"].as_array().expect("a list").len();
    let win = ("\"Final\"".to_owned(), json!([{ "position": 1, "runner_number": winner }]));

    let live = past.ask(&asked);
    assert_eq!(told(&live[0]), (vec![i64::from(winner)], vec![win.clone()], true));
    past.until_it_has_left_the_catalogue();
    let over = past.ask(&asked);
    assert_eq!(told(&over[0]), (vec![i64::from(winner)], vec![win], false));
    let counts = [&live[0], &live[1], &over[0], &over[1]].map(pools);
    assert!(counts[0] > 0 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

#[test]
fn a_finished_races_grid_gains_no_columns() {
    let past = Past::of(RacingDay { races: 12, ..RacingDay::new(7) });
    let over: Vec<RaceTruth> = past.races().into_iter().filter(|race| race.final_at.is_some()).collect();
    let asked: Vec<String> = over.iter().map(|race| format!("{}/timeline", race.id)).collect();
    let mut grids = 0;
    for (race, grid) in over.iter().zip(past.ask(&asked)) {
        let path = format!("/events/{}?", race.id);
        let looks = past.finished.asked.iter().filter(|asked| asked.path.contains(&path));
        let Some(last) = looks.map(|asked| asked.at).max() else { continue };
        let until = Time::parse(grid["until"].as_str().expect("a time")).expect("a time");
        assert!(until <= last, "{}: seen to be over at {last}, the grid goes until {until}", race.id);
        grids += 1;
    }
    assert!(grids > 5, "only {grids} races were watched to their end");
}
