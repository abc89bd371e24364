//! Sizes, quirks and endpoints.

use std::collections::BTreeSet;
use std::io::Read as _;

use stakeout_core::Span;
use stakeout_sim::nztab::{Body, nz_date};

use super::*;

#[test]
fn bodies_are_lean_or_as_big_as_the_real_ones() {
    for (body, low, high) in [(Body::Lean, 7_000, 20_000), (Body::Full, 170_000, 235_000)] {
        let upstream = upstream(&DayConfig { body, ..config(1) });
        let mut total = 0;
        let races = upstream.days()[0].truth();
        let some: Vec<_> = races.iter().step_by(11).collect();
        for race in &some {
            let now = race.starts[0].1 - Span::mins(3);
            let size = get(&upstream, &event_path(&race.id), now).body.len();
            assert!(
                (low..high).contains(&size),
                "{body:?}: {size} bytes with {} runners",
                race.entrants.len()
            );
            total += size;
        }
        let mean = total / some.len();
        let (low, high) = if body == Body::Lean { (9_000, 15_500) } else { (185_000, 215_000) };
        assert!((low..high).contains(&mean), "{body:?}: {mean} bytes on average");
    }
}

#[test]
fn bodies_are_compressed_for_those_who_ask() {
    let upstream = upstream(&DayConfig { body: Body::Full, ..config(1) });
    let race = &upstream.days()[0].truth()[0];
    let (now, path) = (race.starts[0].1, event_path(&race.id));
    let mut headers = identified();
    headers.push(("accept-encoding".to_owned(), "gzip, br".to_owned()));
    let packed = upstream.honest(&path, &headers, now);
    assert!(packed.headers.contains(&("Content-Encoding".to_owned(), "gzip".to_owned())));
    assert!((12_000..45_000).contains(&packed.body.len()), "{} bytes", packed.body.len());
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut plain).expect("gzip");
    assert_eq!(plain, get(&upstream, &path, now).body);
}

#[test]
fn the_listing_pages_and_filters() {
    let upstream = upstream(&DayConfig { others: 140, ..DayConfig::new(2, DATE) });
    let now = upstream.days()[0].truth()[0].starts[0].1;
    let ids = |query: &str| -> Vec<String> {
        meetings(&upstream, query, now)
            .iter()
            .map(|m| m["meeting"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(ids("date_from=2026-07-16&date_to=2026-07-16").len(), 100, "100 unless told otherwise");
    let all = ids("limit=999");
    assert_eq!(all.len(), 152, "today unless told otherwise");
    let pages = [ids("limit=60&offset=0"), ids("limit=60&offset=60"), ids("limit=60&offset=120")].concat();
    assert_eq!(pages, all);
    assert_eq!(ids("limit=60&offset=152"), Vec::<String>::new());
    assert_eq!(ids("date_from=2026-07-17&date_to=2026-07-17"), Vec::<String>::new());
    assert_eq!(ids("country=AU"), Vec::<String>::new(), "it is AUS");
    assert!(!ids("country=AUS&category=H").is_empty());
    assert_eq!(ids(&format!("ids={}", all[3])), [all[3].clone()]);
}

#[test]
fn a_day_has_everything_a_watcher_must_cope_with() {
    let upstream = upstream(&DayConfig::new(3, DATE));
    let day = &upstream.days()[0];
    let truth = day.truth();
    assert_eq!(truth.len(), 96);
    let meetings_watched: BTreeSet<&str> = truth.iter().map(|race| race.meeting_id.as_str()).collect();
    assert_eq!(meetings_watched.len(), 12);
    let evening = truth[95].starts[0].1;
    let listed = meetings(&upstream, "date_from=2026-07-16&date_to=2026-07-16", truth[0].starts[0].1);
    assert_eq!(listed.len(), 76);
    assert!(listed.iter().any(|m| m.get("tote_status").is_none()), "some fields are missing per meeting");
    assert!(listed.iter().all(|m| m["date"] == "2026-07-16T00:00:00Z"));
    let unwatched = day.unwatched();
    assert!(unwatched.len() > 400 && truth.iter().all(|race| !unwatched.contains(&race.id)));

    assert!(truth[0].starts[0].1.to_string().starts_with("2026-07-15T23"), "the previous date in UTC");
    assert!(nz_date(evening) > DATE, "past midnight in New Zealand");
    assert!(truth.iter().any(|race| race.starts.len() > 1), "retimed");
    assert!(truth.iter().filter(|race| race.abandoned.is_some()).count() >= 4, "a meeting called off");
    assert!(truth.iter().any(|race| race.protest && race.interim_placings[0] != race.final_placings[0]));
    let late = truth.iter().flat_map(|race| &race.entrants).filter(|e| e.scratched.is_some_and(|s| s.late));
    assert!(late.count() >= 3, "scratched late");

    let before: Vec<Value> =
        truth.iter().map(|r| event(&upstream, &r.id, r.starts[0].1 - Span::mins(61))).collect();
    let actual = |body: &Value| body["data"]["race"].get("actual_start").cloned();
    let advertised = |body: &Value| body["data"]["race"].get("advertised_start").cloned();
    assert!(before.iter().any(|body| actual(body).is_none()), "no actual start");
    assert!(before.iter().any(|body| actual(body) == Some(0.into())), "actual start 0");
    assert!(before.iter().any(|body| actual(body) == advertised(body)), "actual start as advertised");
    let runner = |body: &Value, key: &str| body["data"]["runners"][0][key].clone();
    assert!(before.iter().any(|body| runner(body, "barrier").is_string()));
    assert!(before.iter().any(|body| runner(body, "barrier").is_number()));
    assert!(before.iter().any(|body| runner(body, "gear").is_object()));
    assert!(before.iter().any(|body| runner(body, "gear").is_null()));
    assert_eq!(before[0]["data"]["race"]["race_date_nz"], "2026-07-16");
    assert_eq!(before[0]["data"]["race"]["start_time_nz"], "11:45:00 NZST");
}

#[test]
fn interim_and_final_dividends_stand_side_by_side_and_pools_close_in_capitals() {
    let upstream = upstream(&config(6));
    let truth = upstream.days()[0].truth();
    let race = truth.iter().find(|r| !r.interim_placings.is_empty()).expect("one went through Interim");
    let body = event(&upstream, &race.id, race.seen_from(race.final_at.expect("it ran")));
    let told = |status: &str| {
        let rows = body["data"]["dividends"].as_array().expect("a list");
        rows.iter().filter(|row| row["status"] == status && row["product_name"] == "Pool Win").count()
    };
    assert_eq!((told("Interim"), told("Final")), (1, 1));
    let pools = body["data"]["tote_pools"].as_array().expect("a list");
    assert!(pools.iter().all(|pool| pool["status"] == "CLOSED"));
    assert_eq!(body["data"]["race"]["status"], "Final");
    let multi = ["RunningDouble", "EarlyQuadrella", "Quadrella"];
    assert!(pools.iter().any(|pool| multi.contains(&pool["product_type"].as_str().expect("a text"))));
}

#[test]
fn every_answer_has_its_own_generated_time() {
    let upstream = upstream(&config(7));
    let race = &upstream.days()[0].truth()[0];
    let stamps: BTreeSet<String> = (0..50)
        .map(|n| {
            event(&upstream, &race.id, race.starts[0].1 + Span::ms(n))["header"]["generated_time"].to_string()
        })
        .collect();
    assert_eq!(stamps.len(), 50);
}

#[test]
fn money_comes_only_when_asked_for() {
    let upstream = upstream(&config(7));
    let race = &upstream.days()[0].truth()[0];
    let path = format!("/affiliates/v1/racing/events/{}", race.id);
    assert!(json(&get(&upstream, &path, race.starts[0].1))["data"]["money_tracker"].is_null());
}

#[test]
fn errors_come_in_the_upstreams_envelope() {
    let upstream = upstream(&config(8));
    let race = &upstream.days()[0].truth()[0];
    let now = race.starts[0].1;
    for (path, headers, status) in [
        (event_path("00000000-0000-4000-8000-000000000000"), identified(), 404),
        ("/affiliates/v1/nowhere".to_owned(), identified(), 404),
        (event_path(&race.id), Vec::new(), 400),
        (event_path(&race.id), identified()[..2].to_vec(), 400),
        ("/affiliates/v1/racing/meetings?date_from=yesterday".to_owned(), identified(), 400),
        ("/affiliates/v1/racing/meetings?limit=many".to_owned(), identified(), 400),
    ] {
        let answer = upstream.honest(&path, &headers, now);
        assert_eq!(answer.status, status, "{path}");
        assert!(json(&answer)["header"]["error"].as_str().is_some_and(|error| !error.is_empty()));
    }
}
