//! What runners do: prices, money, and the coloured bands of the timeline.

use serde_json::{Value as Json, json};
use stakeout_core::alert::Ring;
use stakeout_core::judge::Effect;
use stakeout_core::{Fingerprint, Record, Span, Time};

use super::super::look::{POOL, PRICE, SHARE, Step, looked_at, runners};
use super::super::words::{self, Words};
use super::super::{AlertConfig, Direction, IndicatorOf, moves};
use super::Seen;
use crate::racing::timeline::{self, Band, RunnerHistory};
use crate::racing::{MONEY_FLOW_HISTORY, ODDS_HISTORY};

impl Seen<'_> {
    pub(super) fn price(
        &self,
        name: &str,
        rule: &AlertConfig,
        record: &Record,
        step: Step,
        (direction, percent, within): (Direction, f64, Span),
    ) -> Option<Ring> {
        let now = record.get(PRICE)?.as_f64()?;
        let mut earlier = moves::since(self.rows(record, ODDS_HISTORY), PRICE, self.occasion.at - within);
        let old = step.from();
        earlier.extend(old);
        let (from, by) =
            moves::percent(&earlier, now, direction).filter(|(_, by)| moves::reaches(*by, percent))?;
        let held = old
            .and_then(|old| moves::percent(&earlier, old, direction))
            .is_some_and(|(_, by)| moves::reaches(by, percent));
        let way = match direction {
            Direction::Shortened => "shortened",
            Direction::Lengthened => "lengthened",
        };
        let runner = words::runner(record);
        let words = Words::new(
            format!("{runner} {way} to {}", words::number(now)),
            format!(
                "{runner}: {} → {}, {} % within {within}",
                words::number(from),
                words::number(now),
                words::number(by)
            ),
        );
        let about = json!({ "from": from, "to": now, "percent": by });
        of_move(rule, step, held, self.ring(name, rule, subject(record), words, about))
    }

    pub(super) fn share(
        &self,
        name: &str,
        rule: &AlertConfig,
        record: &Record,
        step: Step,
        (points, within): (f64, Span),
    ) -> Option<Ring> {
        let now = record.get(SHARE)?.as_f64()?;
        let mut earlier =
            moves::since(self.rows(record, MONEY_FLOW_HISTORY), SHARE, self.occasion.at - within);
        let old = step.from();
        earlier.extend(old);
        let (from, by) = moves::points(&earlier, now).filter(|(_, by)| moves::reaches(*by, points))?;
        let held = old
            .and_then(|old| moves::points(&earlier, old))
            .is_some_and(|(_, by)| moves::reaches(by, points));
        let runner = words::runner(record);
        let words = Words::new(
            format!("Money for {runner}"),
            format!(
                "{runner}: {} % → {} % of the pool, {} points within {within}",
                words::number(from),
                words::number(now),
                words::number(by)
            ),
        );
        let about = json!({ "from": from, "to": now, "points": by });
        of_move(rule, step, held, self.ring(name, rule, subject(record), words, about))
    }

    /// The runners whose cell of the present column has just reached a band.
    pub(super) fn indicators(
        &self,
        name: &str,
        rule: &AlertConfig,
        of: IndicatorOf,
        percent: u8,
    ) -> Vec<Ring> {
        let Some(start) = self.occasion.facts.and_then(|(_, facts)| facts.start) else { return Vec::new() };
        let field = match of {
            IndicatorOf::Odds => PRICE,
            IndicatorOf::Money => POOL,
        };
        let before = self.grid(start, false);
        let now = self.grid(start, true);
        let reached = |grid: &timeline::Timeline, entrant: &str| {
            let cell = grid.lines.iter().find(|line| line.entrant == entrant)?.cells.last()?;
            let indicator = match of {
                IndicatorOf::Odds => cell.shortened,
                IndicatorOf::Money => cell.money,
            }?;
            (edge(indicator.band) >= percent).then_some(indicator)
        };
        let mut rings = Vec::new();
        for (record, step) in looked_at(rule, self.occasion, field) {
            let Some(indicator) = reached(&now, &record.key) else { continue };
            let runner = words::runner(record);
            let what = match of {
                IndicatorOf::Odds => "price shortened",
                IndicatorOf::Money => "share of the new money grew",
            };
            let by = words::number(indicator.percent);
            let words = Words::new(
                format!("{runner}: {what}"),
                format!("{runner}: its {what} by {by} since the column before"),
            );
            let about = json!({ "percent": indicator.percent, "band": indicator.band });
            let ring = self.ring(name, rule, subject(record), words, about);
            let held = reached(&before, &record.key).is_some();
            rings.extend(of_move(rule, step, held, ring));
        }
        rings
    }

    /// The race's timeline, with or without what this poll brought.
    fn grid(&self, start: Time, with_now: bool) -> timeline::Timeline {
        let at = self.occasion.at;
        let history = |record: &Record| {
            let mut money: Vec<_> = self
                .rows(record, MONEY_FLOW_HISTORY)
                .iter()
                .filter_map(|(at, values)| timeline::money_row(*at, values, POOL))
                .collect();
            let mut odds: Vec<_> = self
                .rows(record, ODDS_HISTORY)
                .iter()
                .filter_map(|(at, values)| timeline::odds_row(*at, values))
                .collect();
            if with_now {
                let body = Json::Object(record.body());
                money.extend(timeline::money_row(at, &body, POOL));
                odds.extend(timeline::odds_row(at, &body));
            }
            RunnerHistory { entrant: record.key.clone(), is_scratched: false, money, odds }
        };
        let histories: Vec<RunnerHistory> = runners(self.occasion).map(history).collect();
        timeline::timeline(start, at, &histories)
    }
}

/// A move rings when it gets there; while it stays there, whether it moves or not, only if the rule repeats.
fn of_move(rule: &AlertConfig, step: Step, held: bool, ring: Ring) -> Option<Ring> {
    let quiet = rule.silence();
    let again = rule.repeat.map(|repeat| repeat.0.max(quiet));
    let (requires, quiet) = match (step, held) {
        (Step::Moved(_), false) => (Effect::Changed, quiet),
        (Step::Moved(_), true) => (Effect::Changed, again?),
        (Step::Still, _) => (Effect::Any, again?),
    };
    Some(Ring { requires, quiet: Some(quiet), ..ring })
}

fn subject(record: &Record) -> (Fingerprint, &str) {
    (record.fingerprint, record.key.as_str())
}

/// The lower edge of a band.
fn edge(band: Band) -> u8 {
    match band {
        Band::From5 => 5,
        Band::From10 => 10,
        Band::From15 => 15,
        Band::From20 => 20,
        Band::From25 => 25,
        Band::From50 => 50,
    }
}
