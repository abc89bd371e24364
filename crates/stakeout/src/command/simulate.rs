//! `stakeout simulate`: a whole day in virtual time.

mod fpv;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use stakeout_sources::racing::{CadenceConfig, RacingConfig};

use crate::cli::{CadencePreset, SimulateRacingArgs, SimulateTablesArgs, SimulateWhat};
use crate::output::{self, Table};
use crate::simulate::racing::{PhaseAdherence, RacingDay, RacingReport};
use crate::simulate::tables::{Fared, TablesDays, TablesReport};

/// Runs a day. Not async: virtual time needs a runtime of its own, and blocks this thread until the day is over.
pub(super) fn simulate(what: &SimulateWhat) -> Result<ExitCode> {
    match what {
        SimulateWhat::Racing(args) => racing(args),
        SimulateWhat::Fpv(args) => fpv::simulate(args),
        SimulateWhat::Tables(args) => tables(args),
    }
}

fn racing(args: &SimulateRacingArgs) -> Result<ExitCode> {
    let cadence = match args.cadence {
        CadencePreset::Seed => CadenceConfig::Seed,
        CadencePreset::Tight => CadenceConfig::Tight,
    };
    let day = RacingDay {
        races: args.races,
        full_bodies: args.full,
        faults: args.faults,
        config: RacingConfig { cadence, ..RacingConfig::default() },
        ..RacingDay::new(args.seed)
    };
    let report = day.run()?.report;
    if args.json {
        output::pretty(&report)?
    } else {
        output::line(&text(&report))?
    }
    // With faults, a change may come and go while the upstream does not answer.
    let failed = args.faults == 0.0 && (report.misses > 0 || report.wrong_events > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn tables(args: &SimulateTablesArgs) -> Result<ExitCode> {
    let days = TablesDays {
        days: args.days,
        venues: args.venues,
        budget: args.budget,
        faults: args.faults,
        outages_per_day: args.outages,
        skew: args.skew,
        ..TablesDays::new(args.seed)
    };
    let report = days.run()?;
    if args.json {
        output::pretty(&report)?
    } else {
        output::line(&tables_text(&report))?
    }
    let wrong = |way: &Fared| way.false_drops + way.missed_though_seen;
    // Whatever the upstream does: what it hid is counted apart, and what it made up must not be told.
    let failed = wrong(&report.adaptive) + wrong(&report.uniform) > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn missed(way: &Fared) -> String {
    let why = [
        (way.missed_too_short, "too short"),
        (way.missed_beside, "beside"),
        (way.missed_unproven, "unproven"),
        (way.missed_though_seen, "though seen"),
    ];
    let why: Vec<String> =
        why.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    if why.is_empty() { way.missed.to_string() } else { format!("{} ({})", way.missed, why.join(", ")) }
}

fn tables_text(report: &TablesReport) -> String {
    let mut ways = Table::new(&[
        "POLLING",
        "REPORTED",
        "FALSE",
        "SEEN",
        "MISSED",
        "DELAY MEAN",
        "P50",
        "P99",
        "REQUESTS",
        "POLLS",
    ]);
    for (name, way) in
        [("adaptive", &report.adaptive), ("uniform", &report.uniform), ("oracle", &report.oracle)]
    {
        let told = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), seconds);
        ways.row([
            name.to_owned(),
            way.reported.to_string(),
            match way.outdated_drops {
                0 => way.false_drops.to_string(),
                outdated => format!("{} ({outdated} outdated)", way.false_drops),
            },
            way.seen.to_string(),
            missed(way),
            told(way.mean_delay_ms),
            told(way.delay_ms.map(|delay| delay.p50)),
            told(way.delay_ms.map(|delay| delay.p99)),
            way.requests.to_string(),
            way.polls.to_string(),
        ]);
    }
    let head = format!(
        "{} days of {} venues (seed {}) at {}: {} drops, took {}",
        report.days,
        report.venues,
        report.seed,
        report.budget,
        report.drops,
        seconds(i64::try_from(report.took_ms).unwrap_or(i64::MAX)),
    );
    let mut parts = vec![head, ways.render()];
    if let (Some(ours), Some(known)) = (report.adaptive_to_uniform, report.known_rates_to_uniform) {
        parts.push(format!(
            "adaptive polling took {ours:.2} × as long as uniform polling; {known:.2} × is the least, for whoever knows how much every bucket will have"
        ));
    }
    if !report.remarks.is_empty() {
        parts.push(report.remarks.join("\n"));
    }
    parts.join("\n\n")
}

fn text(report: &RacingReport) -> String {
    let phases = phases(in_order(report));
    let events = events(&report.events);
    let delay = report.detection_delay_ms.map_or_else(
        || "nothing to detect".to_owned(),
        |delay| format!("p50 {}, p99 {}", seconds(delay.p50), seconds(delay.p99)),
    );
    let mut parts = vec![
        format!(
            "{} races (seed {}): {} requests, {} in the busiest minute, {} history rows, took {}",
            report.races,
            report.seed,
            report.requests,
            report.requests_per_minute_max,
            report.history_rows,
            seconds(i64::try_from(report.took_ms).unwrap_or(i64::MAX)),
        ),
        phases.render(),
        events.render(),
        format!(
            "{} changes to tell, {} missed, {} wrong events\nfrom the upstream's change to the event: {delay}",
            report.expected, report.misses, report.wrong_events
        ),
    ];
    if !report.remarks.is_empty() {
        parts.push(report.remarks.join("\n"));
    }
    parts.join("\n\n")
}

fn phases<'a>(phases: impl IntoIterator<Item = (&'a String, &'a PhaseAdherence)>) -> Table {
    let mut table = Table::new(&["PHASE", "POLLS", "LATE", "MISSED", "LONGEST GAP", "LATENESS P99"]);
    for (name, phase) in phases {
        table.row([
            name.clone(),
            phase.polls.to_string(),
            phase.late.to_string(),
            phase.missed.to_string(),
            seconds(phase.longest_gap_ms),
            phase.lateness_ms_p99.map_or_else(|| "> 1 min".to_owned(), |ms| format!("≤ {ms} ms")),
        ]);
    }
    table
}

fn events(told: &BTreeMap<String, u64>) -> Table {
    let mut table = Table::new(&["EVENT", "TOLD"]);
    for (name, told) in told {
        table.row([name.clone(), told.to_string()]);
    }
    table
}

/// The phases as a race goes through them: the countdown from the earliest, then what follows the start.
fn in_order(report: &RacingReport) -> Vec<(&String, &PhaseAdherence)> {
    let place = |name: &str| match name.strip_prefix("T-") {
        Some(before) => (0, -before.trim_end_matches(['m', 's']).parse::<i64>().unwrap_or_default()),
        None if name == "overdue" => (1, 0),
        None if name == "after" => (2, 0),
        None => (3, 0),
    };
    let mut phases: Vec<_> = report.adherence.iter().collect();
    phases.sort_by_key(|(name, _)| place(name));
    phases
}

fn seconds(ms: i64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_reads_as_tables_in_the_order_of_a_race() {
        let finished = RacingDay { races: 2, ..RacingDay::new(1) }.run().expect("the day runs");
        let shown = text(&finished.report);
        let at = |word: &str| shown.find(word).unwrap_or_else(|| panic!("{word} is missing:\n{shown}"));
        let order = [
            "2 races (seed 1)",
            "\nT-60m ",
            "\nT-20m ",
            "\nT-5m ",
            "\noverdue ",
            "\nafter ",
            "EVENT ",
            "0 missed",
        ];
        assert!(order.map(at).is_sorted(), "{shown}");
    }
}
