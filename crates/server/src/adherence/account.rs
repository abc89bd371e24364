//! From runs to an account of them, without I/O.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stakeout_core::adherence::{LatenessHistogram, Run, unseen_bound};
use stakeout_core::{Span, Time};

use crate::schema::Instant;
use crate::targets::{Stretch, ms, quantile_ms};

/// Targets listed by name.
const WORST: usize = 20;

/// A target's runs in the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    pub(crate) runs: Vec<Run>,
    /// Whether it was polled before the window already: then nobody looked from its beginning to the first look in it.
    pub(crate) before: bool,
    pub(crate) life: Life,
    /// When it is due.
    pub(crate) due: Option<Time>,
}

/// Whether a target is still watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is.
    Watched,
    /// Somebody switched it off. In a window in which it was on for a while, it would still be.
    Off,
    /// Its race is over: it was looked at for the last time.
    Over,
    /// It is no longer listed.
    #[default]
    Retired,
}

impl Life {
    /// Of a target that is listed, by whether it is switched on and when it is due.
    pub(crate) fn of(enabled: bool, due: Option<Time>) -> Life {
        match (due, enabled) {
            (None, _) => Life::Over,
            (Some(_), true) => Life::Watched,
            (Some(_), false) => Life::Off,
        }
    }
}

/// Was everything polled when it was due, and how long can anything have gone unseen?
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Adherence {
    /// The source.
    source: String,
    /// The window's beginning.
    #[schemars(with = "Instant")]
    from: Time,
    /// The window's end.
    #[schemars(with = "Instant")]
    to: Time,
    /// In a sentence.
    says: String,
    /// The longest that anything the upstream served can have gone unseen, over all targets and the time each was
    /// watched in the window; null when nothing can be promised.
    unseen_ms: Option<f64>,
    /// Whether there was more than is looked at for one answer: then the numbers are too small.
    incomplete: bool,
    /// Targets that were polled in the window, or should have been.
    targets: u64,
    /// Polls of the stretches that touch the window: one that begins before it or ends after it counts whole, because
    /// of regular polls only their number is kept.
    polls: u64,
    /// Of them: late.
    late: u64,
    /// Due polls of these stretches that were missed.
    missed: u64,
    /// Half of the polls were sent no later than this; null when beyond a minute.
    lateness_ms_p50: Option<f64>,
    /// 99 of 100 polls were sent no later than this; null when beyond a minute.
    lateness_ms_p99: Option<f64>,
    /// By phase.
    phases: Vec<Phase>,
    /// The targets in which something can have gone unseen longest, at most twenty.
    worst: Vec<Worst>,
}

/// The polls of one phase.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Phase {
    phase: String,
    /// Polls of its stretches that touch the window, each counted whole; likewise below.
    polls: u64,
    late: u64,
    missed: u64,
    /// The longest time from the start of one complete look to the end of the next, plus what the upstream itself takes
    /// to show a change. A gap between two stretches counts for the later one, and what is still open at the window's
    /// end for the newest.
    unseen_ms: f64,
    lateness_ms_p50: Option<f64>,
    lateness_ms_p99: Option<f64>,
}

/// A target, and how long something can have gone unseen in it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Worst {
    key: String,
    /// Null when there was no complete look at all.
    unseen_ms: Option<f64>,
    /// Since when it was watched in the window.
    #[schemars(with = "Instant")]
    since: Time,
    polls: u64,
    late: u64,
    missed: u64,
    /// Whether it is no longer watched: its race is over, its date has passed.
    over: bool,
    /// Whether it is no longer listed either.
    retired: bool,
    /// When it is due; null when never.
    #[schemars(with = "Option<Instant>")]
    due: Option<Time>,
    /// Its newest stretch of regular polling in the window.
    run: Option<Stretch>,
}

/// Counts of some runs.
#[derive(Default)]
struct Sum {
    polls: u64,
    late: u64,
    missed: u64,
    /// The longest gap, where that is asked for.
    unseen: Span,
    lateness: LatenessHistogram,
}

impl Sum {
    fn add(&mut self, run: &Run) {
        self.polls += run.polls;
        self.late += run.late;
        self.missed = self.missed.saturating_add(run.missed);
        self.lateness.merge(&run.histogram);
    }
}

/// The account of a source's targets in a window.
pub(crate) fn account(
    source: &str,
    targets: BTreeMap<String, Watched>,
    (from, to): (Time, Time),
    refresh: Span,
    incomplete: bool,
) -> Adherence {
    let mut all = Sum::default();
    let mut phases: BTreeMap<String, Sum> = BTreeMap::new();
    let mut worst = Vec::new();
    for (key, watched) in targets {
        for run in &watched.runs {
            all.add(run);
            phases.entry(run.phase.clone()).or_default().add(run);
        }
        if let Some(window) = watched.window((from, to)) {
            for (phase, gap) in gaps(&watched.runs, window) {
                let sum = phases.entry(phase.to_owned()).or_default();
                sum.unseen = sum.unseen.max(gap);
            }
            worst.push(of_target(key, &watched, window, refresh));
        }
    }
    // Nothing promised is worse than any promise.
    let badness = |worst: &Worst| worst.unseen_ms.unwrap_or(f64::INFINITY);
    worst.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
    let watched = worst.len() as u64;
    let unseen_ms = worst.first().and_then(|worst| worst.unseen_ms).filter(|_| !incomplete);
    let says = says(source, unseen_ms, worst.first(), incomplete);
    worst.truncate(WORST);
    let phase = |(phase, sum): (String, Sum)| Phase {
        phase,
        polls: sum.polls,
        late: sum.late,
        missed: sum.missed,
        unseen_ms: ms(sum.unseen + refresh),
        lateness_ms_p50: quantile_ms(&sum.lateness, 0.5),
        lateness_ms_p99: quantile_ms(&sum.lateness, 0.99),
    };
    Adherence {
        source: source.to_owned(),
        from,
        to,
        says,
        unseen_ms,
        incomplete,
        targets: watched,
        polls: all.polls,
        late: all.late,
        missed: all.missed,
        lateness_ms_p50: quantile_ms(&all.lateness, 0.5),
        lateness_ms_p99: quantile_ms(&all.lateness, 0.99),
        phases: phases.into_iter().map(phase).collect(),
        worst,
    }
}

fn says(source: &str, unseen_ms: Option<f64>, worst: Option<&Worst>, incomplete: bool) -> String {
    match (unseen_ms, worst) {
        (Some(unseen), Some(worst)) => format!(
            "nothing that {source} served can have gone unseen for longer than {}; the longest gap is at {}",
            Span::us((unseen * 1e3) as i64),
            worst.key
        ),
        (_, None) => format!("{source} was not polled in this window, so nothing can be promised"),
        (None, Some(_)) if incomplete => {
            "there are more targets or runs in this window than one answer looks at: ask for a shorter one, or for one target"
                .to_owned()
        }
        (None, Some(worst)) => {
            format!("{} had no complete answer in this window, so nothing can be promised", worst.key)
        }
    }
}

impl Watched {
    /// When it was watched: from the window's beginning, or its first look ever, to its last one or the window's end.
    /// Before it was known nothing was promised, and after it was over there was nothing to see. `None` when it was not
    /// watched at all; one that was polled before and should have been in the window is dark for all of it.
    fn window(&self, (from, to): (Time, Time)) -> Option<(Time, Time)> {
        let first = self.runs.iter().map(|run| run.from).min();
        let last = self.runs.iter().map(|run| run.to).max();
        let since = if self.before { from } else { first?.max(from) };
        let until = match self.life {
            Life::Watched => to,
            Life::Off => last.map(|_| to)?,
            Life::Over | Life::Retired => last?.min(to),
        };
        Some((since, until))
    }
}

/// The gaps of a target's runs, each with the phase that it counts for: within a run, before it, and what is still open
/// after the last. The longest of them is what [`unseen_bound`] says of the same window.
fn gaps(runs: &[Run], (since, until): (Time, Time)) -> Vec<(&str, Span)> {
    let whole = (until - since).max(Span::ZERO);
    let mut runs: Vec<&Run> = runs.iter().collect();
    runs.sort_by_key(|run| run.from);
    let (mut open, mut gaps) = (since, Vec::new());
    for run in &runs {
        let seen = run.first_end.zip(run.last_start);
        // A run without a complete look closes nothing: the one that does answers for the time.
        let Some((first_end, last_start)) = seen.filter(|&(end, start)| end <= until && start >= since)
        else {
            continue;
        };
        gaps.push((run.phase.as_str(), run.longest_gap.max(first_end - open).min(whole)));
        open = last_start;
    }
    gaps.extend(runs.last().map(|run| (run.phase.as_str(), (until - open).min(whole))));
    gaps
}

/// A target's own part of the account.
fn of_target(key: String, watched: &Watched, (since, until): (Time, Time), refresh: Span) -> Worst {
    let seen = watched.runs.iter().any(|run| run.first_end.is_some());
    let mut sum = Sum::default();
    watched.runs.iter().for_each(|run| sum.add(run));
    let bound = unseen_bound(&watched.runs, (since, until), refresh, Span::ZERO);
    Worst {
        key,
        unseen_ms: seen.then(|| ms(bound)),
        since,
        polls: sum.polls,
        late: sum.late,
        missed: sum.missed,
        over: matches!(watched.life, Life::Over | Life::Retired),
        retired: watched.life == Life::Retired,
        due: watched.due,
        run: watched.runs.iter().max_by_key(|run| run.to).map(Stretch::from),
    }
}

#[cfg(test)]
mod tests {
    use stakeout_core::adherence::{Account, Look, Punctuality, Sight};

    use super::*;

    fn run(phase: &str, starts: &[i64], sight: Sight) -> Run {
        let account = Account {
            lateness: Span::ms(3),
            punctuality: Punctuality::OnTime,
            missed: 0,
            missed_cause: None,
        };
        let looks = starts.iter().map(|start| Look {
            phase,
            interval: Span::secs(60),
            start: Time::from_secs(*start),
            end: Time::from_secs(start + 1),
            sight,
            account,
        });
        let mut looks = looks.collect::<Vec<_>>().into_iter();
        let mut run = Run::begin(&looks.next().expect("one look"));
        looks.for_each(|look| assert!(run.observe(&look).is_none()));
        run
    }

    fn watched(runs: Vec<Run>) -> Watched {
        Watched { runs, before: false, life: Life::Watched, due: None }
    }

    fn check(targets: &[(&str, Watched)], unseen_s: Option<f64>, says: &str) {
        let targets = targets.iter().map(|(key, watched)| ((*key).to_owned(), watched.clone())).collect();
        let window = (Time::from_secs(0), Time::from_secs(100));
        let account = account("nz", targets, window, Span::secs(15), false);
        assert_eq!(account.unseen_ms, unseen_s.map(|s| s * 1e3));
        assert!(account.says.contains(says), "{}", account.says);
    }

    #[test]
    fn the_longest_of_all_targets_counts() {
        let steady = watched(vec![run("T-5m", &[0, 20, 40, 60, 80, 99], Sight::Complete)]);
        let retired =
            Watched { life: Life::Retired, ..watched(vec![run("T-5m", &[0, 30], Sight::Complete)]) };
        let blind = watched(vec![run("T-5m", &[0, 30], Sight::Incomplete)]);
        // Its first poll is still to come.
        let idle = watched(vec![]);
        check(&[("a", steady.clone())], Some(36.0), "longer than 36 s; the longest gap is at a");
        check(&[("a", steady.clone()), ("b", retired.clone())], Some(46.0), "the longest gap is at b");
        // A race that is over is not looked at any more, and the time since then is no gap.
        let over = Watched { life: Life::of(true, None), ..retired };
        check(&[("a", steady.clone()), ("b", over.clone())], Some(46.0), "the longest gap is at b");
        for enabled in [true, false] {
            let watched = Watched { life: Life::of(enabled, Some(Time::from_secs(130))), ..over.clone() };
            check(&[("a", steady.clone()), ("b", watched)], Some(85.0), "the longest gap is at b");
        }
        check(&[("a", steady.clone()), ("c", idle.clone())], Some(36.0), "nothing that nz served");
        check(&[("a", steady), ("b", blind)], None, "b had no complete answer");
        check(&[("c", idle)], None, "not polled");
    }

    #[test]
    fn a_window_that_begins_in_an_outage_is_dark_until_the_first_look() {
        // Looked at from 0 s to 10 s and from 70 s to 80 s; asked for 40 s to 80 s.
        let late = Watched { before: true, ..watched(vec![run("T-5m", &[70, 79], Sight::Complete)]) };
        let window = (Time::from_secs(40), Time::from_secs(80));
        let targets = BTreeMap::from([("a".to_owned(), late)]);
        let account = account("nz", targets, window, Span::ZERO, false);
        assert_eq!(account.unseen_ms, Some(31_000.0), "{}", account.says);
        assert_eq!((account.worst[0].since, account.phases[0].unseen_ms), (window.0, 31_000.0));
    }

    #[test]
    fn who_was_polled_before_and_not_in_the_window_was_dark_for_all_of_it() {
        let steady = watched(vec![run("T-5m", &[0, 20, 40, 60, 80, 99], Sight::Complete)]);
        let dark = Watched { before: true, ..watched(vec![]) };
        check(&[("a", steady.clone()), ("c", dark.clone())], None, "c had no complete answer");
        for life in [Life::Off, Life::Over, Life::Retired] {
            let left = Watched { life, ..dark.clone() };
            check(&[("a", steady.clone()), ("c", left)], Some(36.0), "nothing that nz served");
        }
    }

    #[test]
    fn an_outage_between_two_phases_counts_for_the_later_one() {
        let runs = vec![
            run("T-1h", &[0, 5, 10], Sight::Complete),
            run("T-30m", &[20], Sight::Incomplete),
            run("T-5m", &[70, 75], Sight::Complete),
        ];
        let targets = BTreeMap::from([("a".to_owned(), watched(runs))]);
        let window = (Time::from_secs(0), Time::from_secs(100));
        let account = account("nz", targets, window, Span::secs(15), false);
        let unseen =
            |name: &str| account.phases.iter().find(|phase| phase.phase == name).map(|p| p.unseen_ms);
        assert_eq!(unseen("T-1h"), Some(21_000.0), "within its own polls");
        assert_eq!(unseen("T-5m"), Some(76_000.0), "from 10 s to 71 s nobody looked");
        assert_eq!(account.unseen_ms, unseen("T-5m"), "the whole is its worst part");
    }

    #[test]
    fn what_is_still_open_counts_for_the_newest_phase() {
        let runs = vec![run("T-1h", &[0, 5, 10], Sight::Complete), run("T-5m", &[40], Sight::Incomplete)];
        let targets = BTreeMap::from([("a".to_owned(), watched(runs))]);
        let window = (Time::from_secs(0), Time::from_secs(100));
        let account = account("nz", targets, window, Span::ZERO, false);
        let unseen: Vec<(&str, f64)> =
            account.phases.iter().map(|phase| (phase.phase.as_str(), phase.unseen_ms)).collect();
        assert_eq!(unseen, [("T-1h", 6_000.0), ("T-5m", 90_000.0)]);
        assert_eq!(account.unseen_ms, Some(90_000.0));
    }
}
