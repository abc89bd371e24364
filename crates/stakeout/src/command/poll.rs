//! `stakeout poll`: one pass over what is due.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_engine::{Clock, Engine};

use super::run::{Signals, engine_config};
use super::{ask, now};
use crate::cli::PollArgs;
use crate::config::{Secrets, Wired};
use crate::control::Request;
use crate::open::{Door, Place};
use crate::{output, when};

pub(super) async fn poll(place: &Place, args: &PollArgs) -> Result<ExitCode> {
    let report = match place.running()? {
        Some(Door::Running { socket, pid }) => {
            ask::running(&socket, &pid, &Request::Pass { limit_ms: args.limit.as_ms() }).await?
        }
        _ => pass(place, args).await?,
    };
    if args.json {
        output::pretty(&report)?;
    } else {
        output::line(&summary(&report, now()))?;
    }
    let count = |name: &str| report[name].as_u64().unwrap_or_default();
    let all_failed = count("failed") > 0 && count("failed") == count("polled");
    Ok(if all_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn pass(place: &Place, args: &PollArgs) -> Result<Json> {
    let mut signals = Signals::listen()?;
    let Wired { sources, warnings } = place.loaded.some_sources(&Secrets::Environment)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let opened = place.create_beside().await?;
    let mut config = engine_config(place, opened.store(), sources, Clock::system())?;
    config.node = place.visitor();
    tokio::select! {
        report = Engine::pass(config, args.limit) => Ok(serde_json::to_value(report?)?),
        // What is committed is committed; claims left behind are free when the lock is, or the lease has run out.
        name = signals.next() => anyhow::bail!("stopped by {name}"),
    }
}

/// The report in a few lines.
fn summary(report: &Json, now: Time) -> String {
    let count = |name: &str| report[name].as_u64().unwrap_or_default();
    let each = |name: &str| {
        let counts = report[name].as_object().into_iter().flatten();
        let counts: Vec<String> = counts.map(|(what, count)| format!("{what}: {count}")).collect();
        Some(counts.join(", ")).filter(|counts| !counts.is_empty())
    };
    let aside = |name: &str| each(name).map(|counts| format!(" ({counts})")).unwrap_or_default();
    let mut lines = vec![format!(
        "polled {}{} in {} ms: {} changed, {} unchanged, {} baselines, {} inconclusive, {} failed",
        count("polled"),
        aside("targets"),
        count("took_ms"),
        count("changed"),
        count("unchanged"),
        count("baselines"),
        count("inconclusive"),
        count("failed")
    )];
    lines.extend(each("phases").map(|phases| format!("by phase: {phases}")));
    lines.push(format!(
        "{} records updated{}, {} history rows, {} events; {} requests, {} bytes",
        count("changes"),
        aside("records"),
        count("history_rows"),
        count("events"),
        count("requests"),
        count("bytes")
    ));
    for failure in report["failures"].as_array().into_iter().flatten() {
        let text = |name: &str| failure[name].as_str().unwrap_or_default();
        lines.push(format!("failed: {} {}: {}", text("target"), text("class"), text("message")));
    }
    if let Some(due) = report["next_due"].as_str().and_then(Time::parse) {
        lines.push(format!("next due {}", when::at(due, now)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_report_reads_in_a_few_lines() {
        let report = json!({
            "polled": 3, "targets": { "nz catalogue": 1, "nz race": 2 }, "changed": 1, "unchanged": 1, "failed": 1, "changes": 5,
            "records": { "racing_entrants": 4, "racing_races": 1 },
            "events": 2, "history_rows": 4, "phases": { "nz T-5m every 15 s": 2, "nz after every 5 min": 1 }, "requests": 3, "bytes": 120, "took_ms": 40,
            "failures": [{ "target": "shop/main", "class": "timeout", "message": "no answer within 10 s" }],
            "next_due": "1970-01-01T00:00:12.000Z",
        });
        assert_eq!(
            summary(&report, Time(0)),
            "polled 3 (nz catalogue: 1, nz race: 2) in 40 ms: 1 changed, 1 unchanged, 0 baselines, 0 inconclusive, 1 failed\n\
             by phase: nz T-5m every 15 s: 2, nz after every 5 min: 1\n\
             5 records updated (racing_entrants: 4, racing_races: 1), 4 history rows, 2 events; 3 requests, 120 bytes\n\
             failed: shop/main timeout: no answer within 10 s\n\
             next due 1970-01-01T00:00:12.000Z (in 12 s)"
        );
    }
}
