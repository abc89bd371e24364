//! What was polled, in numbers: a line a minute in the log, and the answer of a pass.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;
use stakeout_core::adherence::{LatenessHistogram, Quantile};
use stakeout_core::{Span, Time};
use stakeout_store::PollOutcome;

use crate::poll::Report;

/// Failures listed by name; more are only counted.
const MOST_FAILURES: usize = 100;
/// Targets named per source and phase in a summary.
const MOST_NAMED: usize = 3;

/// A failed poll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedPoll {
    /// `source/key`.
    pub target: String,
    /// The failure's class.
    pub class: String,
    /// The failure in words.
    pub message: String,
}

/// Polls in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassReport {
    /// Polls that were committed.
    pub polled: u64,
    /// Of them: something was new.
    pub changed: u64,
    /// Of them: nothing was new.
    pub unchanged: u64,
    /// Of them: a first or renewed baseline.
    pub baselines: u64,
    /// Of them: seen in part, doubted or stale.
    pub inconclusive: u64,
    /// Of them: failed.
    pub failed: u64,
    /// Polls that left no trace: the claim was lost or the store refused.
    pub dropped: u64,
    /// Sent later than tolerated.
    pub late: u64,
    /// Due polls that were missed.
    pub missed: u64,
    /// Requests made.
    pub requests: u64,
    /// Body bytes read.
    pub bytes: u64,
    /// What was polled, by source and role: `nz race` → polls.
    pub targets: BTreeMap<String, u64>,
    /// Records added, changed or removed.
    pub changes: u64,
    /// The same, by their kind: `racing_entrants` → records.
    pub records: BTreeMap<String, u64>,
    /// Events that came about.
    pub events: u64,
    /// History rows written.
    pub history_rows: u64,
    /// Oddities found while normalising.
    pub warnings: u64,
    /// Which phases were polled how often, with their intervals: `nz T-5m every 15 s` → polls.
    pub phases: BTreeMap<String, u64>,
    /// The failures, up to a hundred.
    pub failures: Vec<FailedPoll>,
    /// When the next target is due, as far as these polls know.
    pub next_due: Option<Time>,
    /// How long it took.
    pub took_ms: u64,
    /// Half of the polls were sent no later than this; `None` when beyond a minute.
    pub lateness_ms_p50: Option<f64>,
    /// 99 of 100 polls were sent no later than this; `None` when beyond a minute.
    pub lateness_ms_p99: Option<f64>,
}

#[derive(Default)]
struct Window {
    report: PassReport,
    lateness: LatenessHistogram,
    /// Which targets were chosen: `source phase` → a few keys.
    chosen: BTreeMap<String, Vec<String>>,
}

/// What a source's polls came to since the start; only ever grows.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Committed polls by how they ended.
    pub polls: BTreeMap<&'static str, u64>,
    /// Failed polls by the failure's class.
    pub failures: BTreeMap<&'static str, u64>,
    /// Polls that left no trace: the claim was lost or the store refused.
    pub dropped: u64,
    /// Sent later than tolerated.
    pub late: u64,
    /// The same by cause.
    pub late_causes: BTreeMap<&'static str, u64>,
    /// Due polls that were missed.
    pub missed: u64,
    /// The same by cause.
    pub missed_causes: BTreeMap<&'static str, u64>,
    /// Requests made.
    pub requests: u64,
    /// Body bytes read.
    pub bytes: u64,
    /// Records added, changed or removed.
    pub changes: u64,
    /// Events that came about.
    pub events: u64,
    /// History rows written.
    pub history_rows: u64,
    /// How late polls were sent.
    pub lateness: LatenessHistogram,
    /// The sum of all lateness, in microseconds.
    pub lateness_us: u64,
}

impl Totals {
    fn add(&mut self, report: &Report) {
        let Some(outcome) = report.outcome else {
            self.dropped += 1;
            return;
        };
        *self.polls.entry(outcome.name()).or_default() += 1;
        if let Some(failure) = &report.failure {
            *self.failures.entry(failure.class.name()).or_default() += 1;
        }
        if let Some(cause) = report.late {
            self.late += 1;
            *self.late_causes.entry(cause.name()).or_default() += 1;
        }
        self.missed += report.missed;
        if let Some(cause) = report.missed_cause {
            *self.missed_causes.entry(cause.name()).or_default() += report.missed;
        }
        self.requests += u64::from(report.requests);
        self.bytes += report.bytes;
        self.changes += u64::from(report.changes);
        self.events += u64::from(report.events);
        self.history_rows += u64::from(report.history_rows);
        self.lateness.record(Span(report.lateness_us));
        self.lateness_us += u64::try_from(report.lateness_us).unwrap_or_default();
    }
}

/// A minute's polls.
pub(crate) struct Minute {
    pub(crate) report: PassReport,
    /// More than one of 100 polls was sent later than this, when there is no knowing how much later.
    pub(crate) lateness_ms_p99_above: Option<f64>,
    /// Which targets were chosen, in words.
    pub(crate) chosen: String,
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Collects the reports of polls.
#[derive(Default)]
pub(crate) struct Stats {
    windows: Mutex<[Window; 2]>,
    totals: Mutex<BTreeMap<String, Totals>>,
}

const MINUTE: usize = 0;
const PASS: usize = 1;

impl Stats {
    pub(crate) fn record(&self, report: &Report) {
        let mut windows =
            self.windows.lock().expect("never poisoned, because nothing panics while it is held");
        windows.iter_mut().for_each(|window| window.add(report));
        drop(windows);
        let mut totals = self.totals.lock().expect("never poisoned, because nothing panics while it is held");
        match totals.get_mut(&*report.source) {
            Some(totals) => totals.add(report),
            None => totals.entry(report.source.to_string()).or_default().add(report),
        }
    }

    /// What the polls of each source came to since the start.
    pub(crate) fn totals(&self) -> BTreeMap<String, Totals> {
        self.totals.lock().expect("never poisoned, because nothing panics while it is held").clone()
    }

    /// The numbers since the last call, and which targets were chosen.
    pub(crate) fn take_minute(&self) -> Minute {
        let mut windows =
            self.windows.lock().expect("never poisoned, because nothing panics while it is held");
        let window = std::mem::take(&mut windows[MINUTE]);
        let named = window.chosen.iter().map(|(phase, keys)| {
            let polls = window.report.phases.get(phase).copied().unwrap_or_default();
            let more = if polls as usize > keys.len() { ", …" } else { "" };
            format!("{phase}: {polls} ({}{more})", keys.join(", "))
        });
        let chosen = named.collect::<Vec<_>>().join("; ");
        let above = window.lateness.quantile(0.99).and_then(Quantile::above).map(ms);
        Minute { report: window.finish(), lateness_ms_p99_above: above, chosen }
    }

    /// The numbers since the last call, for the caller of a pass.
    pub(crate) fn take_pass(&self) -> PassReport {
        let mut windows =
            self.windows.lock().expect("never poisoned, because nothing panics while it is held");
        std::mem::take(&mut windows[PASS]).finish()
    }
}

impl Window {
    fn add(&mut self, report: &Report) {
        let sum = &mut self.report;
        match report.outcome {
            None => {
                sum.dropped += 1;
                return;
            }
            Some(PollOutcome::Changed) => sum.changed += 1,
            Some(PollOutcome::Unchanged) => sum.unchanged += 1,
            Some(PollOutcome::Baseline) => sum.baselines += 1,
            Some(PollOutcome::Partial | PollOutcome::Doubted | PollOutcome::Stale) => sum.inconclusive += 1,
            Some(PollOutcome::Failed) => sum.failed += 1,
        }
        sum.polled += 1;
        sum.late += u64::from(report.late.is_some());
        sum.missed += report.missed;
        sum.requests += u64::from(report.requests);
        sum.bytes += report.bytes;
        *sum.targets.entry(format!("{} {}", report.source, report.role)).or_default() += 1;
        sum.changes += u64::from(report.changes);
        for (kind, records) in &report.updated {
            *sum.records.entry(kind.clone()).or_default() += u64::from(*records);
        }
        sum.events += u64::from(report.events);
        sum.history_rows += u64::from(report.history_rows);
        sum.warnings += u64::from(report.warnings);
        self.lateness.record(Span(report.lateness_us));
        let phase = format!("{} {} every {}", report.source, report.phase, report.interval);
        *sum.phases.entry(phase.clone()).or_default() += 1;
        let named = self.chosen.entry(phase).or_default();
        if named.len() < MOST_NAMED && !named.contains(&report.target) {
            named.push(report.target.clone());
        }
        if let Some(failure) = report.failure.as_ref().filter(|_| sum.failures.len() < MOST_FAILURES) {
            sum.failures.push(FailedPoll {
                target: format!("{}/{}", report.source, report.target),
                class: failure.class.name().to_owned(),
                message: failure.message.clone(),
            });
        }
        sum.next_due = [sum.next_due, report.next_due].into_iter().flatten().min();
    }

    fn finish(mut self) -> PassReport {
        let at_most_ms = |q: f64| self.lateness.quantile(q).and_then(Quantile::at_most).map(ms);
        self.report.lateness_ms_p50 = at_most_ms(0.5);
        self.report.lateness_ms_p99 = at_most_ms(0.99);
        self.report
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stakeout_core::adherence::Cause;

    use super::*;

    fn report(lateness: Span) -> Report {
        Report {
            source: Arc::from("s"),
            target: "main".to_owned(),
            role: "main".to_owned(),
            phase: "fixed".to_owned(),
            interval: Span::secs(1),
            outcome: Some(PollOutcome::Unchanged),
            failure: None,
            late: None,
            missed: 0,
            missed_cause: None,
            lateness_us: lateness.as_us(),
            requests: 1,
            bytes: 0,
            changes: 0,
            updated: BTreeMap::new(),
            events: 0,
            history_rows: 0,
            warnings: 0,
            next_due: None,
            touched: Vec::new(),
            relisted: Vec::new(),
        }
    }

    #[test]
    fn what_was_late_or_missed_is_counted_by_cause() {
        let stats = Stats::default();
        let late = |cause| Report { late: Some(cause), ..report(Span::secs(1)) };
        let missed = |missed, cause| Report { missed, missed_cause: Some(cause), ..report(Span::ZERO) };
        for poll in [late(Cause::Queue), late(Cause::RateLimit), late(Cause::Queue)] {
            stats.record(&poll);
        }
        for poll in [missed(3, Cause::Backoff), missed(1, Cause::Queue), missed(2, Cause::Backoff)] {
            stats.record(&poll);
        }
        stats.record(&report(Span::ZERO));
        let totals = &stats.totals()["s"];
        assert_eq!((totals.late, totals.missed), (3, 6));
        assert_eq!(totals.late_causes, BTreeMap::from([("queue", 2), ("rate_limit", 1)]));
        assert_eq!(totals.missed_causes, BTreeMap::from([("backoff", 5), ("queue", 1)]));
    }

    fn lateness_of(polls: &[Span]) -> (Option<f64>, Option<f64>) {
        let stats = Stats::default();
        polls.iter().for_each(|lateness| stats.record(&report(*lateness)));
        let minute = stats.take_minute();
        (minute.report.lateness_ms_p99, minute.lateness_ms_p99_above)
    }

    #[test]
    fn a_lateness_beyond_all_bounds_is_called_so() {
        assert_eq!(lateness_of(&[]), (None, None), "nothing was sent");
        assert_eq!(lateness_of(&[Span::ms(3)]), (Some(5.0), None));
        assert_eq!(lateness_of(&[Span::ms(3), Span::mins(2)]), (None, Some(60_000.0)), "after an outage");
        let stats = Stats::default();
        stats.record(&report(Span::mins(2)));
        let pass = stats.take_pass();
        assert_eq!((pass.lateness_ms_p50, pass.lateness_ms_p99), (None, None));
    }
}
