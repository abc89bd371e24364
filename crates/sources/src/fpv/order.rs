//! The order of the races, and which of them is the current one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::picture::{Picture, Race};

/// Why a race is the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CurrentRule {
    /// 1: it is being flown.
    Active,
    /// 2: it comes after the last one in the order that is completed.
    Next,
    /// 3: it is the last completed one and nothing comes after it.
    LastCompleted,
    /// 4: nothing has been flown yet and it is the first.
    First,
}

/// The current race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Current {
    /// Its id.
    pub race_id: String,
    /// Its place in the order; `None` while its round is not known.
    pub order: Option<i64>,
    /// Why it is the current one.
    pub rule: CurrentRule,
}

/// The races that are numbered, in their order: valid ones in valid rounds, by round, race number and, where both are the
/// same, by id. A race whose round is not known yet waits for it.
pub fn race_order(picture: &Picture) -> Vec<&Race> {
    let place = |race: &Race| {
        let round = picture.rounds.get(race.round.as_ref()?)?;
        (race.valid && round.valid).then(|| round.place())
    };
    let mut placed: Vec<(i64, &Race)> =
        picture.races.iter().filter_map(|race| Some((place(race)?, race))).collect();
    let number = |race: &Race| race.number.unwrap_or(i64::MAX);
    placed
        .sort_by(|(a_place, a), (b_place, b)| (a_place, number(a), &a.id).cmp(&(b_place, number(b), &b.id)));
    placed.into_iter().map(|(_, race)| race).collect()
}

/// The number of each race that has one, counted from 1.
pub fn numbers<'a>(order: &[&'a Race]) -> BTreeMap<&'a str, i64> {
    order.iter().zip(1..).map(|(race, number)| (race.id.as_str(), number)).collect()
}

/// The current race by the four rules; `None` when there is no race that could be it.
pub fn current_race(picture: &Picture) -> Option<Current> {
    let order = race_order(picture);
    let numbers = numbers(&order);
    let current = |race: &Race, rule| {
        let order = numbers.get(race.id.as_str()).copied();
        Some(Current { race_id: race.id.clone(), order, rule })
    };
    if let Some(race) = active(picture, &numbers) {
        return current(race, CurrentRule::Active);
    }
    // Last in the order, not in time: what was left out is not gone back to, unless somebody flies it.
    let Some(last) = order.iter().rposition(|race| race.is_completed()) else {
        return first_to_fly(&order).and_then(|race| current(race, CurrentRule::First));
    };
    match first_to_fly(&order[last + 1..]) {
        Some(race) => current(race, CurrentRule::Next),
        None => current(order[last], CurrentRule::LastCompleted),
    }
}

/// The race that is being flown, also while its round is not known. After a crash several look like it: the one that
/// started last is, of equal ones the last in the order.
pub(super) fn active<'a>(picture: &'a Picture, numbers: &BTreeMap<&str, i64>) -> Option<&'a Race> {
    let out = |race: &Race| {
        let round = race.round.as_ref().and_then(|round| picture.rounds.get(round));
        round.is_some_and(|round| !round.valid)
    };
    let running = picture.races.iter().filter(|race| race.valid && race.is_running() && !out(race));
    running.max_by_key(|race| (race.start, numbers.get(race.id.as_str()), &race.id))
}

/// The first race that is still to be flown; one without pilots only when all are.
fn first_to_fly<'a>(order: &[&'a Race]) -> Option<&'a Race> {
    let mut to_fly = order.iter().copied().filter(|race| !race.is_completed());
    let first = to_fly.next()?;
    if !first.seats.is_empty() {
        return Some(first);
    }
    to_fly.find(|race| !race.seats.is_empty()).or(Some(first))
}
