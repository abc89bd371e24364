//! Stretches of regular polling, run-length encoded, and what they prove about a window.

use serde::{Deserialize, Serialize};

use crate::{Span, Time};

use super::{Account, LatenessHistogram};

/// What a poll saw, as far as proof is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// A complete observation that was believed: nothing the upstream served at its start was unseen at its end.
    Complete,
    /// Partial, doubted, stale or failed: it proves nothing and closes no gap.
    Incomplete,
}

/// One poll, as a run counts it.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The phase it belonged to.
    pub phase: &'a str,
    /// The interval in that phase.
    pub interval: Span,
    /// When its first request was sent.
    pub start: Time,
    /// When its last answer was whole.
    pub end: Time,
    /// What it proves.
    pub sight: Sight,
    /// How punctual it was.
    pub account: Account,
}

/// A stretch of regular polling of one target in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The phase.
    pub phase: String,
    /// The start of its first poll.
    pub from: Time,
    /// The end of its last poll.
    pub to: Time,
    /// How many polls, of any outcome.
    pub polls: u64,
    /// How many of them were late.
    pub late: u64,
    /// How many due polls were missed.
    pub missed: u64,
    /// The longest (end of complete observation i+1 − start of observation i) within the run; zero with fewer
    /// than two.
    pub longest_gap: Span,
    /// The end of its first complete observation: it closes the gap that the run before left open.
    pub first_end: Option<Time>,
    /// The start of its last complete observation: the gap that is still open began here.
    pub last_start: Option<Time>,
    /// How late its polls were.
    pub histogram: LatenessHistogram,
}

impl Run {
    /// A run that begins with this poll.
    pub fn begin(look: &Look<'_>) -> Run {
        let mut run = Run {
            phase: look.phase.to_owned(),
            from: look.start,
            to: look.end,
            polls: 0,
            late: 0,
            missed: 0,
            longest_gap: Span::ZERO,
            first_end: None,
            last_start: None,
            histogram: LatenessHistogram::default(),
        };
        run.count(look);
        run
    }

    /// Extends the run by a poll. When the phase changed, or more than two intervals went by since the last
    /// complete observation began, a new run begins with this poll and the finished one is returned: an irregular
    /// gap lies between two runs and spoils neither.
    pub fn observe(&mut self, look: &Look<'_>) -> Option<Run> {
        let irregular = self.last_start.is_some_and(|start| look.start - start > look.interval.times(2));
        if irregular || self.phase != look.phase {
            return Some(std::mem::replace(self, Run::begin(look)));
        }
        self.count(look);
        None
    }

    fn count(&mut self, look: &Look<'_>) {
        self.to = self.to.max(look.end);
        self.polls += 1;
        self.late += u64::from(look.account.is_late());
        self.missed = self.missed.saturating_add(look.account.missed);
        self.histogram.record(look.account.lateness);
        if look.sight == Sight::Incomplete {
            return;
        }
        if let Some(start) = self.last_start {
            self.longest_gap = self.longest_gap.max(look.end - start);
        }
        self.first_end.get_or_insert(look.end);
        self.last_start = Some(look.start);
    }
}

/// How long anything the upstream served could have gone unseen in the window: the longest time from the start of
/// one complete observation to the end of the next, the open ends of the window included, plus the upstream's own
/// refresh time and the age of cached answers.
///
/// `runs` are one target's, in any order. Where the window cuts a run, the run's longest gap stands for the ones
/// that are no longer known one by one, so the answer may be too long, never too short.
pub fn unseen_bound(runs: &[Run], window: (Time, Time), refresh: Span, max_age: Span) -> Span {
    let (from, to) = window;
    let whole = (to - from).max(Span::ZERO);
    // Runs with an observation that may lie in the window: (closes, opens, longest gap).
    let mut seen: Vec<(Time, Time, &Run)> = runs
        .iter()
        .filter_map(|run| Some((run.first_end?, run.last_start?, run)))
        .filter(|&(first_end, last_start, _)| first_end <= to && last_start >= from)
        .collect();
    seen.sort_by_key(|&(first_end, _, _)| first_end);

    let mut open = from;
    let mut bound = Span::ZERO;
    for (first_end, last_start, run) in seen {
        bound = bound.max(first_end - open).max(run.longest_gap);
        open = last_start;
    }
    bound.max(to - open).min(whole) + refresh + max_age
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Punctuality;
    use super::*;

    const PUNCTUAL: Account =
        Account { lateness: Span::ZERO, punctuality: Punctuality::OnTime, missed: 0, missed_cause: None };

    /// A poll of a target that is polled every 10 s, in seconds.
    fn look(phase: &str, start: i64, end: i64, sight: Sight) -> Look<'_> {
        let (start, end) = (Time::from_secs(start), Time::from_secs(end));
        Look { phase, interval: Span::secs(10), start, end, sight, account: PUNCTUAL }
    }

    fn runs_of(looks: &[Look<'_>]) -> Vec<Run> {
        let (first, others) = looks.split_first().expect("at least one poll");
        let mut current = Run::begin(first);
        let mut runs: Vec<Run> = others.iter().filter_map(|look| current.observe(look)).collect();
        runs.push(current);
        runs
    }

    fn bound(looks: &[Look<'_>], from: i64, to: i64) -> Span {
        let window = (Time::from_secs(from), Time::from_secs(to));
        unseen_bound(&runs_of(looks), window, Span::ZERO, Span::ZERO)
    }

    #[test]
    fn a_gap_runs_from_the_start_of_one_look_to_the_end_of_the_next() {
        let looks: Vec<_> = (0..10).map(|n| look("fixed", n * 10, n * 10 + 2, Sight::Complete)).collect();
        let runs = runs_of(&looks);
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].polls, runs[0].longest_gap), (10, Span::secs(12)));
        assert_eq!(bound(&looks, 0, 92), Span::secs(12));
    }

    #[test]
    fn only_complete_answers_close_a_gap() {
        use Sight::*;
        let sights = [Complete, Complete, Incomplete, Complete, Complete];
        let looks: Vec<_> =
            (0..).zip(sights).map(|(n, sight)| look("fixed", n * 10, n * 10 + 1, sight)).collect();
        assert_eq!(runs_of(&looks)[0].longest_gap, Span::secs(21));
        assert_eq!(bound(&looks, 0, 41), Span::secs(21));
    }

    #[test]
    fn an_irregular_gap_lies_between_two_runs() {
        let starts = [0, 10, 20, 95, 105];
        let looks: Vec<_> = starts.map(|start| look("fixed", start, start + 1, Sight::Complete)).into();
        let runs = runs_of(&looks);
        assert_eq!(runs.iter().map(|run| run.polls).collect::<Vec<_>>(), [3, 2]);
        assert!(runs.iter().all(|run| run.longest_gap == Span::secs(11)));
        assert_eq!(bound(&looks, 0, 106), Span::secs(76));
    }

    #[test]
    fn an_hour_of_failures_is_one_run_of_its_own() {
        let mut looks = vec![look("fixed", 0, 1, Sight::Complete)];
        looks.extend((1..90).map(|n| look("fixed", n * 40, n * 40 + 1, Sight::Incomplete)));
        looks.push(look("fixed", 3_600, 3_601, Sight::Complete));
        let runs = runs_of(&looks);
        assert_eq!(runs.iter().map(|run| run.polls).collect::<Vec<_>>(), [1, 90]);
        assert_eq!(bound(&looks, 0, 3_601), Span::secs(3_601));
    }

    #[test]
    fn the_windows_open_ends_count_and_so_do_refresh_and_age() {
        let looks = [look("fixed", 100, 101, Sight::Complete), look("fixed", 110, 111, Sight::Complete)];
        assert_eq!(bound(&looks, 60, 111), Span::secs(41), "before the first");
        assert_eq!(bound(&looks, 100, 200), Span::secs(90), "after the last");
        assert_eq!(bound(&looks, 300, 400), Span::secs(100), "outside");
        let window = (Time::from_secs(100), Time::from_secs(111));
        let told = unseen_bound(&runs_of(&looks), window, Span::secs(15), Span::secs(3));
        assert_eq!(told, Span::secs(29));
        assert_eq!(unseen_bound(&[], window, Span::ZERO, Span::ZERO), Span::secs(11));
    }

    /// The truth: only observations wholly inside the window prove anything about it.
    fn brute_force(looks: &[Look<'_>], from: Time, to: Time) -> Span {
        let mut open = from;
        let mut longest = Span::ZERO;
        for look in looks {
            if look.sight == Sight::Complete && look.start >= from && look.end <= to {
                longest = longest.max(look.end - open);
                open = look.start;
            }
        }
        longest.max(to - open)
    }

    proptest! {
        #[test]
        fn the_bound_is_never_too_short(
            steps in prop::collection::vec((0_i64..25, 0_i64..9, 0_u8..4, 0_u8..12), 1..60),
            edges in (-20_i64..900, 0_i64..900),
        ) {
            let mut now = 0;
            let mut phase = 0_usize;
            let mut looks = Vec::new();
            for (idle, took, sight, turn) in steps {
                phase = (phase + usize::from(turn == 0)) % 3;
                let sight = if sight == 0 { Sight::Incomplete } else { Sight::Complete };
                looks.push(look(["a", "b", "c"][phase], now + idle, now + idle + took, sight));
                now += idle + took;
            }
            let window = (Time::from_secs(edges.0), Time::from_secs(edges.0 + edges.1));
            let runs = runs_of(&looks);
            let told = unseen_bound(&runs, window, Span::ZERO, Span::ZERO);
            prop_assert!(told >= brute_force(&looks, window.0, window.1));
            prop_assert!(told <= window.1 - window.0);
            // A window that cuts no run is answered exactly.
            let all = (Time::from_secs(-1), Time::from_secs(now + 1));
            prop_assert_eq!(
                unseen_bound(&runs, all, Span::ZERO, Span::ZERO),
                brute_force(&looks, all.0, all.1)
            );
            prop_assert_eq!(runs.iter().map(|run| run.polls).sum::<u64>(), looks.len() as u64);
        }
    }
}
