//! `stakeout simulate fpv`: a drone racing event in virtual time.

use std::process::ExitCode;

use anyhow::Result;

use super::{events, phases, seconds};
use crate::cli::SimulateFpvArgs;
use crate::output;
use crate::simulate::fpv::{FpvEvent, FpvReport, Quantiles};

pub(super) fn simulate(args: &SimulateFpvArgs) -> Result<ExitCode> {
    let event = FpvEvent { faults: args.faults, ..FpvEvent::with_races(args.seed, args.races) };
    let report = event.run()?.report;
    if args.json {
        output::pretty(&report)?
    } else {
        output::line(&text(&report))?
    }
    // With faults, something may come and go while the upstream does not answer.
    let amiss = report.misses > 0 || report.wrong_events > 0 || report.current.wrong_ms > 0;
    let failed = (args.faults == 0.0 && amiss) || report.concurrent_requests_max > 1;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(report: &FpvReport) -> String {
    let (laps, current, writes) = (&report.laps, &report.current, &report.writes);
    let mut parts = vec![
        format!(
            "{} races (seed {}): {} requests ({} refused while it was off), {} at once at most, took {}",
            report.races,
            report.seed,
            report.requests,
            report.refused,
            report.concurrent_requests_max,
            seconds(i64::try_from(report.took_ms).unwrap_or(i64::MAX)),
        ),
        phases(&report.adherence).render(),
        events(&report.events).render(),
        format!(
            "laps: {} flown, {} told, {} missed, {} gone before anybody could look, {} invented\n\
             from the lap to its event: {}",
            laps.flown,
            laps.told,
            laps.missed,
            laps.unseen,
            laps.invented,
            spread(report.lap_delay_ms),
        ),
        format!(
            "current race: {} changes, {} published, wrong for {} ms beyond what the polls had shown\n\
             from the change to its publication: {}\n\
             between two looks at it: {}",
            current.changes,
            current.published,
            current.wrong_ms,
            spread(current.delay_ms),
            spread(current.gap_ms),
        ),
        format!(
            "{} turns in the races' lives; of these and the laps {} missed, {} wrong",
            report.turns, report.misses, report.wrong_events
        ),
        format!(
            "written: {} polls in {} transactions ({} of them durable), {} rows, {} of history, {} events",
            writes.polls, writes.transactions, writes.durable, writes.rows, writes.history, writes.events
        ),
    ];
    if !report.remarks.is_empty() {
        parts.push(report.remarks.join("\n"));
    }
    parts.join("\n\n")
}

fn spread(quantiles: Option<Quantiles>) -> String {
    quantiles.map_or_else(
        || "nothing to measure".to_owned(),
        |q| format!("p50 {} ms, p99 {} ms, at most {} ms", q.p50, q.p99, q.max),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_as_tables_and_sentences() {
        let finished = FpvEvent::with_races(1, 3).run().expect("the event runs");
        let shown = text(&finished.report);
        let at = |word: &str| shown.find(word).unwrap_or_else(|| panic!("{word} is missing:\n{shown}"));
        let order = [
            "3 races (seed 1)",
            "\nfocus ",
            "\nidle ",
            "EVENT ",
            "laps: ",
            " 0 missed",
            "current race: ",
            "written: ",
        ];
        assert!(order.map(at).is_sorted(), "{shown}");
    }
}
