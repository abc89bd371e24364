//! What a rule looks at: the runners whose price or money moved, those that are asked if it is still so, and starts.

use stakeout_core::alert::Occasion;
use stakeout_core::judge::Change;
use stakeout_core::{Record, Span, Stage, Time, Value};

use super::AlertConfig;
use crate::racing::FAMILY as RACING;
use crate::racing::timeline;
use crate::written::Duration;

pub(super) const PRICE: &str = "win_odds";
pub(super) const SHARE: &str = "hold_percentage";
/// The field of the money that the timeline shows.
pub(super) const POOL: &str = "win_pool_amount";

/// A rule that repeats asks so often whether it is still so, where nothing moves.
const STILL_EVERY: Span = Span::mins(1);

/// What a field of a runner has done.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// It moved, from what it was.
    Moved(Option<f64>),
    /// It is where it was.
    Still,
}

impl Step {
    /// What it was before it moved.
    pub(super) fn from(self) -> Option<f64> {
        match self {
            Step::Moved(from) => from,
            Step::Still => None,
        }
    }
}

/// The runners that a rule looks at: those of which a field moved, and if it asks whether it is still so, the others.
pub(super) fn looked_at<'a>(
    rule: &AlertConfig,
    occasion: &'a Occasion<'a>,
    field: &'static str,
) -> impl Iterator<Item = (&'a Record, Step)> {
    let moved = move || {
        occasion.changes.iter().filter_map(move |change| match change {
            Change::Changed { record, fields } if is_runner(record) => {
                let change = fields.iter().find(|change| change.field == field)?;
                Some((*record, Step::Moved(change.old.as_f64())))
            }
            _ => None,
        })
    };
    let asks = asks_if_still(rule, occasion);
    let has_moved = move |record: &Record| moved().any(|(one, _)| one.fingerprint == record.fingerprint);
    let still = runners(occasion).filter(move |record| asks && !has_moved(record));
    moved().chain(still.map(|record| (record, Step::Still)))
}

/// Whether a rule that repeats asks at this look whether what it tells of still lasts: at the first good one in each
/// [`STILL_EVERY`], until the race has started.
pub(super) fn asks_if_still(rule: &AlertConfig, occasion: &Occasion<'_>) -> bool {
    let (Some(Duration(repeat)), Some((_, facts))) = (rule.repeat, occasion.facts) else { return false };
    let of_race = facts.start.is_some() && facts.stage == Stage::Pending && occasion.went.failures == 0;
    let every = repeat.min(STILL_EVERY).as_us();
    let first = occasion
        .looked
        .is_some_and(|before| before.us().div_euclid(every) != occasion.at.us().div_euclid(every));
    of_race && first
}

/// The start of a race that begins within so long and has not begun.
pub(super) fn starts_in(occasion: &Occasion<'_>, before: Span) -> Option<Time> {
    let (_, facts) = occasion.facts?;
    let soon = |start: &Time| (*start - before..*start).contains(&occasion.at);
    facts.start.filter(soon).filter(|_| facts.stage == Stage::Pending)
}

fn is_runner(record: &Record) -> bool {
    record.kind.family == RACING
        && record.kind.collection == "entrants"
        && record.get("is_scratched") != Some(&Value::Bool(true))
}

pub(super) fn runners<'a>(occasion: &'a Occasion<'a>) -> impl Iterator<Item = &'a Record> {
    occasion.records.iter().filter(|record| is_runner(record))
}

/// When the race's timeline begins.
pub(super) fn grid_begin(occasion: &Occasion<'_>) -> Option<Time> {
    let start = occasion.facts?.1.start?;
    timeline::buckets(start, occasion.at).first().map(|bucket| bucket.begins(start))
}
