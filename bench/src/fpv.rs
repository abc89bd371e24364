//! Drone racing: what polling writes when nothing happens and when the current race changes, what a look for due targets
//! costs, and a whole event.

use std::time::Instant;

use stakeout::simulate::fpv::{FpvEvent, Watching};
use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{EventConfig, What};
use stakeout_store::{Store as _, TargetFilter};

use crate::args::Pace;
use crate::claim;
use crate::print;
use crate::table::{Met, Row, grouped};

/// The most targets that one look takes, as the source has it by default.
const BURST: u32 = 2;
const FEW: u64 = 100;
const MANY: u64 = 10_000;
/// A look must cost the same however many targets are not due.
const FLAT: f64 = 2.0;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![idle(pace)?, change()?];
    rows.extend(looks(pace)?);
    rows.push(event()?);
    Ok(rows)
}

/// An event of 60 races with a long pause after the first.
fn paused() -> (FpvEvent, Time) {
    let gap = (Span::hours(3), Span::hours(3));
    let event = FpvEvent { incidents: Vec::new(), ..FpvEvent::new(1) };
    let event = FpvEvent { event: EventConfig { gap, ..event.event }, ..event };
    let upstream = event.upstream();
    let mut changes = upstream.event().truth().changes().iter();
    let ended = changes.find(|change| matches!(change.what, What::Ended(_))).map(|change| change.visible_at);
    (event, ended.unwrap_or_default())
}

fn idle(pace: Pace) -> anyhow::Result<Row> {
    let (event, ended) = paused();
    let watched = event.watch_until(event.upstream(), async |watching: &Watching| {
        watching.clock.sleep_until(ended + Span::mins(1)).await;
        let counters = watching.store.counters();
        let before = (counters.polls(), counters.rows_written(), counters.durable_transactions());
        watching.clock.sleep_until(ended + Span::mins(pace.pick(61, 6))).await;
        Ok((
            counters.polls() - before.0,
            counters.rows_written() - before.1,
            counters.durable_transactions() - before.2,
        ))
    })?;
    let (polls, rows, durable) = watched.0;
    let beyond = rows.saturating_sub(polls);
    Ok(Row {
        what: format!("rows written by {} idle polls of 60 drone races", grouped(polls as f64)),
        ours: format!("{} ({beyond} beyond schedules, {durable} durable transactions)", grouped(rows as f64)),
        floor: "one schedule per poll".to_owned(),
        ratio: Some(rows as f64 / polls.max(1) as f64),
        target: "≤ 1.05 ×, none durable".to_owned(),
        met: Met::when(rows as f64 <= polls as f64 * 1.05 && durable == 0),
    })
}

fn change() -> anyhow::Result<Row> {
    let (event, ended) = paused();
    let watched = event.watch_until(event.upstream(), async |watching: &Watching| {
        let versions = async || {
            let filter = TargetFilter { limit: 10_000, ..TargetFilter::default() };
            let rows = watching.store.targets(&filter).await?;
            anyhow::Ok(rows.into_iter().map(|row| (row.id, row.plan_version)).collect::<Vec<_>>())
        };
        watching.clock.sleep_until(ended - Span::ms(300)).await;
        let before = versions().await?;
        watching.clock.sleep_until(ended + Span::ms(600)).await;
        Ok(versions().await?.iter().filter(|row| !before.contains(row)).count())
    })?;
    let rows = watched.0;
    Ok(Row {
        what: "targets re-planned when the current race of 60 changes".to_owned(),
        ours: rows.to_string(),
        floor: "60 when every race is written".to_owned(),
        ratio: Some(rows as f64 / 60.0),
        target: "2".to_owned(),
        met: Met::when(rows == 2),
    })
}

fn looks(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let look_us = |targets: u64| -> anyhow::Result<f64> {
        let (claim_us, _) = claim::cost(targets, BURST, pace.pick(2_000, 400))?;
        print::progress(&format!("{} targets: {claim_us:.1} µs", grouped(targets as f64)));
        Ok(claim_us * f64::from(BURST))
    };
    let (few, many) = (look_us(FEW)?, look_us(MANY)?);
    Ok(vec![Row {
        what: format!("a look that takes {BURST} due targets, {} targets", grouped(MANY as f64)),
        ours: format!("{many:.1} µs"),
        floor: format!("{FEW} targets: {few:.1} µs"),
        ratio: Some(many / few),
        target: format!("flat (≤ {FLAT:.0} ×)"),
        met: Met::when(many / few <= FLAT),
    }])
}

fn event() -> anyhow::Result<Row> {
    let began = Instant::now();
    let report = FpvEvent::new(1).run()?.report;
    let delay = report.lap_delay_ms.map_or(i64::MAX, |delay| delay.p99);
    let sound = report.misses + report.wrong_events == 0 && report.current.wrong_ms == 0;
    Ok(Row {
        what: "from a lap to its event, p99, 60 races with every incident".to_owned(),
        ours: format!(
            "{delay} ms ({} laps, {} missed, {} wrong, {} requests in {:.1} s)",
            report.laps.told,
            report.misses,
            report.wrong_events,
            grouped(report.requests as f64),
            began.elapsed().as_secs_f64()
        ),
        floor: "200 ms between two looks".to_owned(),
        ratio: Some(delay as f64 / 200.0),
        target: "≤ 260 ms".to_owned(),
        met: Met::when(sound && delay <= 260),
    })
}
