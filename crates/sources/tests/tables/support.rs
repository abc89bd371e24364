//! Pages as the upstream would write them, and one bucket without an engine.

use serde_json::{Value as Json, json};
use stakeout_core::{
    Exchange, Facts, Failure, Observation, PollContext, Record, Request, Response, Source, Span, TargetSpec,
    Time,
};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};

pub(crate) const DATE: &str = "2026-02-28";
pub(crate) const BUCKET: &str = "2026-02-28_20:30";

/// A quiet afternoon two days before the bucket's date, in New York.
pub(crate) fn now() -> Time {
    time("2026-02-26T19:00:00Z")
}

pub(crate) fn time(text: &str) -> Time {
    Time::parse(text).expect("a time")
}

pub(crate) fn credentials() -> Credentials {
    Credentials { api_key: "k3y-s3cret".into(), auth_token: "t0ken-s3cret".into() }
}

pub(crate) fn source_with(config: Json) -> TablesSource {
    let config: TablesConfig = serde_json::from_value(config).expect("a configuration");
    TablesSource::new("nyc", &config, credentials()).expect("a source")
}

/// One party size, so that a page is an answer.
pub(crate) fn source() -> TablesSource {
    source_with(json!({ "party_sizes": [2] }))
}

pub(crate) fn bucket_of(source: &TablesSource, key: &str) -> TargetSpec {
    let facts = Facts::default();
    let window = source.roots(now()).remove(0);
    let seen = source.normalize(&window, &[], &PollContext { now: now(), facts: &facts }).expect("a window");
    let targets = seen.targets.expect("targets");
    targets.into_iter().find(|target| target.key == key).expect("the bucket")
}

pub(crate) fn bucket(source: &TablesSource) -> TargetSpec {
    bucket_of(source, BUCKET)
}

/// A venue with slots at these times of the bucket's date.
pub(crate) fn venue(id: i64, times: &[&str]) -> Json {
    let slot = |clock: &&str| slot(&format!("{DATE} {clock}:00"), "Dining Room", 1);
    json!({ "id": { "resy": id }, "name": format!("Venue {id}"), "neighborhood": "Tribeca",
        "availability": { "slots": times.iter().map(slot).collect::<Vec<_>>() } })
}

pub(crate) fn slot(start: &str, seating: &str, config: i64) -> Json {
    json!({ "date": { "start": start, "end": null }, "config": { "id": config, "type": seating, "token": "x" } })
}

/// A page of so many venues in all.
pub(crate) fn page_of(total: usize, pages: u32, venues: &[Json]) -> Json {
    json!({ "meta": { "total": total, "total_pages": pages }, "search": { "nbPages": pages, "hits": venues } })
}

/// The only page.
pub(crate) fn page(venues: &[Json]) -> Json {
    page_of(venues.len(), 1, venues)
}

pub(crate) fn answered(request: Request, body: &str, at: Time) -> Exchange {
    let body = bytes::Bytes::from(body.to_owned());
    let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
    Exchange { request, result: Ok(response), sent: at, ended: at }
}

/// Everything a poll asks, answered page by page, a second each.
pub(crate) fn fetch(
    source: &TablesSource,
    target: &TargetSpec,
    mut answer: impl FnMut(u32, u32) -> Result<Json, Failure>,
) -> Vec<Exchange> {
    let facts = Facts::default();
    let context = PollContext { now: now(), facts: &facts };
    let mut exchanges: Vec<Exchange> = Vec::new();
    loop {
        let requests = source.requests(target, &exchanges, &context);
        if requests.is_empty() {
            return exchanges;
        }
        for request in requests {
            let asked: Json = serde_json::from_slice(&request.body).expect("a JSON body");
            let number = |value: &Json| u32::try_from(value.as_u64().expect("a number")).expect("small");
            let (size, page) = (number(&asked["slot_filter"]["party_size"]), number(&asked["page"]));
            let at = now() + Span::secs(exchanges.len() as i64);
            exchanges.push(match answer(size, page) {
                Ok(body) => answered(request, &body.to_string(), at),
                Err(failure) => Exchange { request, result: Err(failure), sent: at, ended: at },
            });
            assert!(exchanges.len() < 1_000, "it asks for ever");
        }
    }
}

pub(crate) fn look(
    source: &TablesSource,
    target: &TargetSpec,
    exchanges: &[Exchange],
) -> Result<Observation, Failure> {
    let facts = Facts::default();
    source.normalize(target, exchanges, &PollContext { now: now(), facts: &facts })
}

/// What one page, the same for every question, amounts to.
pub(crate) fn see(source: &TablesSource, page: &Json) -> Observation {
    let target = bucket(source);
    let exchanges = fetch(source, &target, |_, _| Ok(page.clone()));
    look(source, &target, &exchanges).expect("an observation")
}

pub(crate) fn of<'a>(seen: &'a Observation, collection: &str) -> Vec<&'a Record> {
    seen.records.iter().filter(|record| record.kind.collection == collection).collect()
}

pub(crate) fn get(record: &Record, field: &str) -> Json {
    record.get(field).expect("a field").to_json()
}

pub(crate) fn codes(seen: &Observation) -> Vec<&'static str> {
    seen.warnings.iter().map(|warning| warning.code).collect()
}
