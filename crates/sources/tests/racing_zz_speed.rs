//! Scratch.
use serde::Deserialize;
use stakeout_core::*;
use stakeout_sources::racing::*;
use std::time::Instant;
use std::borrow::Cow;

#[derive(Deserialize)] struct Doc<'a> { #[serde(borrow)] header: H<'a>, #[serde(borrow)] data: D<'a> }
#[derive(Deserialize)] struct H<'a> { generated_time: Cow<'a, str> }
#[derive(Deserialize)] struct D<'a> { #[serde(borrow)] race: R<'a>, #[serde(borrow)] runners: Vec<Run<'a>>, #[serde(borrow)] money_tracker: M<'a>, #[serde(borrow)] tote_pools: Vec<P<'a>>, #[serde(borrow)] results: Vec<Res<'a>>, #[serde(borrow)] dividends: Vec<Div<'a>> }
#[derive(Deserialize)] struct R<'a> { event_id:&'a str, meeting_id:&'a str, meeting_name: Cow<'a,str>, status:&'a str, description: Cow<'a,str>, advertised_start:i64, actual_start:i64, race_date_nz:&'a str, race_number:i64, country:&'a str, state:&'a str, distance:i64, weather:&'a str, track_condition:&'a str}
#[derive(Deserialize)] struct Run<'a> { entrant_id:&'a str, #[serde(borrow)] name: Cow<'a,str>, runner_number:i64, barrier:i64, #[serde(borrow)] jockey: Cow<'a,str>, #[serde(borrow)] trainer_name: Cow<'a,str>, is_scratched: bool, is_late_scratched: Option<bool>, scratch_time:i64, scr_time:Option<&'a str>, is_emergency: bool, favourite: bool, mover: bool, odds: O, #[serde(borrow)] flucs_with_timestamp: F<'a>}
#[derive(Deserialize)] struct O { fixed_win:f64, fixed_place:f64, pool_win:f64, pool_place:f64 }
#[derive(Deserialize)] struct F<'a> { #[serde(borrow)] last_six: Vec<Fl<'a>>, open: Fl<'a> }
#[derive(Deserialize)] struct Fl<'a> { timestamp:&'a str, fluc:f64 }
#[derive(Deserialize)] struct M<'a> { #[serde(borrow)] entrants: Vec<Mr<'a>> }
#[derive(Deserialize)] struct Mr<'a> { entrant_id:&'a str, hold_percentage:f64, bet_percentage:f64 }
#[derive(Deserialize)] struct P<'a> { product_type:&'a str, total:f64, status:&'a str }
#[derive(Deserialize)] struct Res<'a> { position:i64, runner_number:i64, entrant_id:&'a str, #[serde(borrow)] name: Cow<'a,str>, margin_length:f64 }
#[derive(Deserialize)] struct Div<'a> { tote:&'a str, product_name:&'a str, status:&'a str, dividend:f64, pool_size:f64, positions: Vec<Dp> }
#[derive(Deserialize)] struct Dp { position:i64, runner_number:i64 }

#[test]
fn speed() {
    let raw = std::fs::read(std::env::var("STAKEOUT_PAYLOADS").unwrap() + "/nztab/event-final-8-runners.json").unwrap();
    let v: serde_json::Value = serde_json::from_slice(&raw).unwrap();
    let body = bytes::Bytes::from(serde_json::to_vec(&v).unwrap());
    let config: RacingConfig = serde_json::from_value(serde_json::json!({})).unwrap();
    let source = RacingSource::new("nz", &config, Identity{from:"a@b.nz".into(),partner:"p".into(),partner_id:"i".into()}).unwrap();
    let id = "0f57e087-00d9-4c61-9549-835abe2ae2ed";
    let target = TargetSpec::new(format!("race/{id}"), "race");
    let ex = [Exchange{request: Request::get("x"), result: Ok(Response{status:200, body: body.clone(), content_type:None, age: Span::ZERO}), sent: Time(0), ended: Time(1)}];
    let facts = Facts::default();
    let ctx = PollContext{now: Time::parse("2025-07-17T11:17:00Z").unwrap(), facts:&facts};
    let first = source.normalize(&target, &ex, &ctx).unwrap();
    let basis0 = compare::Basis{snapshot:&Snapshot::default(), memory:&compare::Memory::default(), meaning:1, policy: source.doubt(), refresh: Span::ZERO, sent: Time(0)};
    let c0 = compare::compare(&basis0, &first);
    let snap = c0.next.unwrap();
    let basis = compare::Basis{snapshot:&snap, memory:&c0.memory, ..basis0};
    for _ in 0..3 {
        let n = 500;
        let mut best=[f64::MAX;3];
        for _ in 0..10 {
        let t = Instant::now();
        for _ in 0..n/10 { let d: Doc = serde_json::from_slice(std::hint::black_box(&body)).unwrap(); std::hint::black_box(&d); }
        best[0]=best[0].min(t.elapsed().as_secs_f64()/(n/10) as f64*1e6);
        let t = Instant::now();
        for _ in 0..n/10 { std::hint::black_box(source.normalize(&target, std::hint::black_box(&ex), &ctx).unwrap()); }
        best[1]=best[1].min(t.elapsed().as_secs_f64()/(n/10) as f64*1e6);
        let t = Instant::now();
        for _ in 0..n/10 { let o = source.normalize(&target, std::hint::black_box(&ex), &ctx).unwrap(); let c = compare::compare(&basis, &o); assert!(c.next.is_none()); }
        best[2]=best[2].min(t.elapsed().as_secs_f64()/(n/10) as f64*1e6);
        }
        eprintln!("{} bytes: typed {:.1} µs, normalise {:.1} µs ({:.2}x), +compare {:.1} µs ({:.2}x)", body.len(), best[0], best[1], best[1]/best[0], best[2], best[2]/best[0]);
    }
}
