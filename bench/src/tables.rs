//! Restaurant tables: what a bucket of a whole city costs to understand, what keeping 28 of them fresh takes of a core,
//! and what the adaptive budget buys next to uniform polling.

mod bucket;
mod city;
mod fresh;
mod typed;

use std::time::{Duration, Instant};

use crate::args::{Pace, Part};
use crate::table::{Met, Row, grouped};
use crate::{adaptive, print};

use bucket::Bucket;
pub(crate) use fresh::serve_city;

/// Two weeks of two times a day.
const BUCKETS: f64 = 28.0;
/// How often each of them is looked at where their share of a core is reported.
const EVERY_SECS: f64 = 60.0;
const PARSE_MAX: f64 = 1.5;
const CHANGED_MAX: f64 = 2.0;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let (mut rows, typed_ms) = understanding(pace)?;
    rows.push(freshness(pace, typed_ms)?);
    rows.extend(adaptive::rows(pace)?);
    Ok(rows)
}

/// One part of a bucket's reading, so many times, for a profiler.
pub(crate) fn repeat(part: Part, times: u32) -> anyhow::Result<()> {
    let bucket = Bucket::of_a_city()?;
    (0..times).for_each(|_| bucket.work(part));
    Ok(())
}

/// All buckets kept fresh without a floor, for a profiler.
pub(crate) fn fresh_once(window: Duration) -> anyhow::Result<()> {
    print::block(&fresh::keep(window)?.describe());
    Ok(())
}

/// Reading and comparing a bucket, of which nothing or one slot in a hundred has changed, next to a typed parse of the
/// same bodies, and to telling that they are the same. Also the milliseconds of that typed parse.
fn understanding(pace: Pace) -> anyhow::Result<(Vec<Row>, f64)> {
    let bucket = Bucket::of_a_city()?;
    let [mut same, mut moved, mut typed, mut repeat] = [f64::MAX; 4];
    let end = Instant::now() + pace.secs(10, 2);
    // Turn by turn, so that all see the same machine.
    while Instant::now() < end {
        same = same.min(millis(|| bucket.work(Part::Same)));
        moved = moved.min(millis(|| bucket.work(Part::Changed)));
        typed = typed.min(millis(|| bucket.work(Part::Typed)));
        repeat = repeat.min(millis(|| bucket.work(Part::Repeat)));
    }
    let size = format!(
        "{} slots, {} pages, {:.1} MB",
        grouped(bucket.slots as f64),
        bucket.pages(),
        bucket.bytes() as f64 / 1e6
    );
    let floor = format!("typed serde_json of the same {typed:.1} ms");
    let row = |what: String, ours: String, ms: f64, most: f64| Row {
        what,
        ours,
        floor: floor.clone(),
        ratio: Some(ms / typed),
        target: format!("≤ {most} ×"),
        met: Met::when(ms <= most * typed),
    };
    let rows = vec![
        row(
            format!("a bucket ({size}), understood and compared, unchanged"),
            format!("{same:.1} ms ({repeat:.1} ms where it is recognised as the same bytes)"),
            same,
            PARSE_MAX,
        ),
        row(
            format!("the same with {} slots changed", grouped(bucket.changed as f64)),
            format!("{moved:.1} ms"),
            moved,
            CHANGED_MAX,
        ),
    ];
    Ok((rows, typed))
}

/// What keeping all buckets fresh takes of a core, measured through the whole engine.
fn freshness(pace: Pace, typed_ms: f64) -> anyhow::Result<Row> {
    let fresh = fresh::keep(pace.secs(180, 60))?;
    let ours = fresh.percent(fresh.engine_cpu_secs);
    let floor = fresh.percent(fresh.looks as f64 * typed_ms / 1e3);
    Ok(Row {
        what: "28 such buckets kept fresh every minute by the engine, of one core".to_owned(),
        ours: fresh.describe(),
        floor: format!("typed serde_json of the same answers {floor:.1} %"),
        ratio: Some(ours / floor),
        target: String::new(),
        met: Met::NoTarget,
    })
}

fn millis(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e3
}
