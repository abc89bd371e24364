//! `stakeout plan`: when something would be polled, by the same cadence that the engine uses.

mod tables;

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use stakeout_core::cadence::{self, Countdown, Seat};
use stakeout_core::{Facts, Last, LastOutcome, Next, Plan, Span, Stage, Time};

use crate::cli::{CadencePreset, GlobalArgs, PlanRacingArgs, PlanWhat};
use crate::output::{self, Table};

/// A race whose final status is set so late that more polls than this would be needed is a slip of the keyboard.
const MOST_POLLS: usize = 100_000;

pub(super) fn plan(what: &PlanWhat, global: &GlobalArgs) -> Result<ExitCode> {
    match what {
        PlanWhat::Racing(args) => racing(args),
        PlanWhat::Tables(args) => tables::plan(args, global),
    }
}

fn racing(args: &PlanRacingArgs) -> Result<ExitCode> {
    let countdown = match args.cadence {
        CadencePreset::Seed => Countdown::seed(),
        CadencePreset::Tight => Countdown::tight(),
    };
    let polls = Race::told(args).polls(countdown);
    if args.json {
        output::json(&serde_json::json!({ "polls": polls }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["AT", "PHASE", "EVERY", "BECAUSE"]);
    for poll in &polls {
        let every = Span::ms(poll.interval_ms).to_string();
        table.row([poll.at.to_string(), poll.phase.clone(), every, poll.reason.clone()]);
    }
    output::line(&table.render())?;
    output::line(&format!("{} polls", polls.len()))?;
    Ok(ExitCode::SUCCESS)
}

/// A race as the upstream will tell it.
struct Race {
    /// From when on which start is advertised, in order; the first is known from the beginning.
    starts: Vec<(Time, Time)>,
    started: Time,
    final_at: Time,
}

/// One poll of the forecast.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct PlannedPoll {
    at: Time,
    phase: String,
    interval_ms: i64,
    reason: String,
}

impl Race {
    fn told(args: &PlanRacingArgs) -> Race {
        let mut starts = vec![(Time(i64::MIN), args.start)];
        starts.extend(&args.retimed);
        starts.sort();
        let advertised_last = starts.last().map_or(args.start, |(_, start)| *start);
        let started = args.started.unwrap_or(advertised_last);
        Race { starts, started, final_at: args.final_at.unwrap_or(started + Span::mins(8)) }
    }

    fn start_at(&self, time: Time) -> Time {
        let known = self.starts.iter().rev().find(|(from, _)| *from <= time);
        known.unwrap_or(&self.starts[0]).1
    }

    fn stage_at(&self, time: Time) -> Stage {
        match time {
            time if time >= self.final_at => Stage::Over,
            time if time >= self.started => Stage::Started,
            _ => Stage::Pending,
        }
    }

    /// The polls from the first to the one that sees the final status.
    fn polls(&self, countdown: Countdown) -> Vec<PlannedPoll> {
        let first_from = countdown.before.first().map_or(Span::ZERO, |phase| phase.from);
        let earliest = self.starts.iter().map(|(_, start)| *start).min().unwrap_or_default();
        let plan = Plan::Countdown(countdown);
        let seat = Seat { spread: 0, priority: 50, budgeted: None, bell: None };
        // Known since the day before, as a listing would have it.
        let known = earliest - first_from - Span::hours(24);
        let mut facts = Facts { start: Some(self.start_at(known)), ..Facts::default() };
        let mut last = Last::default();
        let mut next = cadence::next(&plan, &facts, &last, known, &seat);
        let mut polls = Vec::new();
        let mut untold = self.starts.iter().filter(|(at, _)| *at > known).peekable();
        while let (Some(mut due), true) = (next.due, polls.len() < MOST_POLLS) {
            // Before the countdown begins, and when a later start put it back there, the listing keeps the start time
            // fresh. What the polls see themselves is passed over.
            while let Some((at, start)) = untold.next_if(|(at, _)| *at <= due) {
                let is_waiting = facts.start.is_some_and(|start| *at < start - first_from);
                if !is_waiting || facts.stage != Stage::Pending {
                    continue;
                }
                facts.start = Some(*start);
                next = cadence::replan(&plan, &facts, &last, *at, &seat);
                due = next.due.unwrap_or(due);
            }
            polls.push(PlannedPoll::new(due, &next));
            let stage = self.stage_at(due);
            if stage != facts.stage {
                facts.stage_since = Some(due);
            }
            facts.start = Some(self.start_at(due));
            facts.stage = stage;
            last = Last { slot: Some(due), outcome: LastOutcome::Good };
            next = cadence::next(&plan, &facts, &last, due, &seat);
        }
        polls
    }
}

impl PlannedPoll {
    fn new(at: Time, next: &Next) -> PlannedPoll {
        PlannedPoll {
            at,
            phase: next.phase.to_string(),
            interval_ms: next.interval.as_ms(),
            reason: next.reason.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        Time::parse(&format!("2026-01-10T{text}Z")).expect("a time")
    }

    fn race(retimed: &[(Time, Time)]) -> Race {
        Race::told(&PlanRacingArgs {
            start: at("02:00:00"),
            started: Some(at("02:01:08")),
            final_at: Some(at("02:09:00")),
            retimed: retimed.to_vec(),
            cadence: CadencePreset::Seed,
            json: true,
        })
    }

    fn times(polls: &[PlannedPoll]) -> Vec<Time> {
        polls.iter().map(|poll| poll.at).collect()
    }

    #[test]
    fn the_seeds_table_poll_by_poll() {
        let polls = race(&[]).polls(Countdown::seed());
        let mut expected = Vec::new();
        let mut every = |from: &str, to: &str, step: Span| {
            let (mut time, end) = (at(from), at(to));
            while time < end {
                expected.push(time);
                time += step;
            }
        };
        every("01:00:00", "01:40:00", Span::mins(5));
        every("01:40:00", "01:50:00", Span::mins(2));
        every("01:50:00", "01:55:00", Span::mins(1));
        every("01:55:00", "02:01:16", Span::secs(15));
        expected.extend([at("02:06:15"), at("02:11:15")]);
        assert_eq!(times(&polls), expected);
        let phase_at =
            |time: &str| polls.iter().find(|p| p.at == at(time)).map(|p| (p.phase.as_str(), p.interval_ms));
        assert_eq!(
            phase_at("01:40:00"),
            Some(("T-20m", 120_000)),
            "a boundary belongs to the phase that begins there"
        );
        assert_eq!(phase_at("02:00:00"), Some(("overdue", 15_000)));
        assert_eq!(phase_at("02:06:15"), Some(("after", 300_000)));
    }

    #[test]
    fn every_retiming_before_the_first_poll_counts() {
        // Each is told only because the one before it put the first poll off.
        let told = [
            (at("00:30:00"), at("03:00:00")),
            (at("01:30:00"), at("04:00:00")),
            (at("02:30:00"), at("05:00:00")),
        ];
        let race = Race { started: at("05:00:30"), final_at: at("05:08:00"), ..race(&told) };
        assert_eq!(times(&race.polls(Countdown::seed()))[0], at("04:00:00"));
    }

    #[test]
    fn a_retimed_race_is_followed() {
        // Told while waiting, and again in the last minutes.
        let polls = race(&[(at("00:30:00"), at("02:10:00")), (at("02:07:01"), at("02:12:00"))]);
        let polls =
            Race { started: at("02:12:30"), final_at: at("02:20:00"), ..polls }.polls(Countdown::seed());
        let times = times(&polls);
        assert_eq!(times[0], at("01:10:00"));
        assert!(times.contains(&at("02:12:00")), "the new start is polled");
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= Span::mins(5)));
        assert_eq!(*times.last().expect("polls"), at("02:22:30"));
    }

    #[test]
    fn a_race_that_was_put_back_is_followed_when_it_is_brought_forward() {
        // The first is seen by a poll, which puts the race back to waiting; of the second only the listing tells.
        let told = [(at("01:12:00"), at("06:00:00")), (at("02:00:00"), at("04:00:00"))];
        let race = Race { started: at("04:00:30"), final_at: at("04:08:00"), ..race(&told) };
        let times = times(&race.polls(Countdown::seed()));
        assert_eq!(times[3..5], [at("01:15:00"), at("03:00:00")], "{times:?}");
        assert!(times.contains(&at("04:00:00")));
    }

    #[test]
    fn tight_follows_the_result_closely() {
        let polls = race(&[]).polls(Countdown::tight());
        assert_eq!(polls.last().map(|poll| poll.at), Some(at("02:09:15")));
    }
}
