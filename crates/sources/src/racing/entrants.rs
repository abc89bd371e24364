//! Runners: who they are, their prices, and the money on them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use stakeout_core::{Fingerprint, Point, Record, Span, Time, Value};

use super::kinds::{Kinds, ODDS_HISTORY};
use super::money::{Cents, Percent};
use super::wire::{Fluc, Flucs, MoneyRow, Runner};
use crate::lenient::Leaf;
use crate::odd::Odd;

/// A move stamped later than this after now is a mistake of the upstream, and would hide all later ones.
const CLOCKS_DIFFER: Span = Span::hours(1);
/// So many moves the upstream remembers besides the opening.
const REMEMBERED: usize = 6;

/// What all runners of a race share.
pub(super) struct Field<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) race_id: &'a str,
    pub(super) race: Fingerprint,
    pub(super) win_pool: Option<Cents>,
    pub(super) place_pool: Option<Cents>,
    pub(super) now: Time,
    /// Whether the upstream has said of this race's runners whether they were scratched.
    pub(super) says_scratched: bool,
}

/// The records of all runners that have an identity.
pub(super) fn records(
    field: &Field<'_>,
    runners: &[Runner<'_>],
    money: &[MoneyRow<'_>],
    odd: &mut Odd,
) -> Vec<Record> {
    let money = money_by_entrant(runners, money, odd);
    let money = |index: usize| money.get(index).copied().unwrap_or_default();
    let mut known = HashSet::with_capacity(runners.len());
    let runners = runners.iter().enumerate();
    let mut records = Vec::with_capacity(runners.len());
    for (index, runner) in runners {
        let Some(record) = record(field, runner, money(index), odd) else { continue };
        if !known.insert(record.fingerprint) {
            odd.add("bad_runner", || format!("a second runner with the entrant_id {}", record.key));
            continue;
        }
        records.push(record);
    }
    records
}

fn record(field: &Field<'_>, runner: &Runner<'_>, money: Money, odd: &mut Odd) -> Option<Record> {
    let Some(id) = runner.entrant_id.text() else {
        odd.add("bad_runner", || format!("a runner without an entrant_id, name {:?}", runner.name.text()));
        return None;
    };
    let win_odds = price(&runner.odds.fixed_win, odd);
    let (hold, bet) = (money.hold.share(odd), money.bet.share(odd));
    let amount = |pool: Option<Cents>| Value::from(pool.zip(hold).map(|(pool, hold)| hold.of(pool)));
    let late = flag(&runner.is_late_scratched, odd);
    let scratched = match (flag(&runner.is_scratched, odd), late) {
        (_, Some(true)) => Some(true),
        // The bare shape never says so: then nobody was. Once it was said, silence changes nothing.
        (None, _) if runner.is_scratched.is_null() && !field.says_scratched => Some(false),
        (scratched, _) => scratched,
    };
    let scratch_time = runner.scratch_time.time().or_else(|| runner.scr_time.time());
    let (points, told) = odds_points(&runner.flucs, &win_odds, field.now, odd);
    let values = vec![
        Value::text(&*id),
        Value::text(field.race_id),
        runner.name.text_value(),
        runner.runner_number.int().into(),
        runner.barrier.text_value(),
        runner.jockey.text_value(),
        runner.trainer_name.text_value(),
        win_odds,
        price(&runner.odds.fixed_place, odd),
        price(&runner.odds.pool_win, odd),
        price(&runner.odds.pool_place, odd),
        hold.into(),
        bet.into(),
        amount(field.win_pool),
        amount(field.place_pool),
        scratched.into(),
        late.into(),
        scratch_time.into(),
        flag(&runner.is_emergency, odd).into(),
        flag(&runner.favourite, odd).into(),
        flag(&runner.mover, odd).into(),
    ];
    let mut record =
        Record::new(&field.kinds.entrants, &[&id], values).under(field.race).in_group(field.race);
    record.points = points;
    record.told = told;
    Some(record)
}

fn flag(leaf: &Leaf<'_>, odd: &mut Odd) -> Option<bool> {
    let flag = leaf.flag();
    if flag.is_none() && !leaf.is_null() {
        odd.add("bad_field", || format!("expected yes or no, found {leaf:?}"));
    }
    flag
}

/// A price; none where there is no market, which the upstream writes as nothing, null or 0.
fn price(leaf: &Leaf<'_>, odd: &mut Odd) -> Value {
    match leaf.number() {
        Some(0.0) => Value::Null,
        Some(price) if price > 0.0 => Value::number(price),
        None if leaf.is_null() => Value::Null,
        _ => {
            odd.add("bad_odds", || format!("expected a price above 0, found {leaf:?}"));
            Value::Null
        }
    }
}

/// The moves that the upstream stamped itself, and the fields whose moves they tell.
fn odds_points(flucs: &Flucs<'_>, win_odds: &Value, now: Time, odd: &mut Odd) -> (Vec<Point>, Vec<String>) {
    let mut moves: Vec<(Time, f64)> = Vec::with_capacity(REMEMBERED + 1);
    // Answers whether and when it was stamped, a move or not.
    let mut read = |fluc: &Fluc<'_>| {
        let at = fluc.timestamp.time();
        match (at, fluc.fluc.number()) {
            (Some(at), Some(price)) if price > 0.0 && at <= now + CLOCKS_DIFFER => moves.push((at, price)),
            _ => odd.add("bad_fluc", || format!("{:?} at {:?}", fluc.fluc, fluc.timestamp)),
        }
        at
    };
    let opened = (!flucs.open.timestamp.is_null()).then_some(&flucs.open);
    let opening = opened.and_then(&mut read);
    let last_six = flucs.last_six.items();
    let oldest = last_six.iter().filter_map(&mut read).min();
    // The sort is stable, so of two moves in one microsecond the one that was listed last is kept.
    moves.sort_by_key(|(at, _)| *at);
    moves.reverse();
    moves.dedup_by_key(|(at, _)| *at);
    moves.reverse();
    // Fewer than six are the whole story; of six, older ones may have been forgotten.
    let full = last_six.len() >= REMEMBERED;
    let oldest = oldest.filter(|oldest| full && Some(*oldest) != opening);
    let point = |&(at, price): &(Time, f64)| Point {
        stream: Cow::Borrowed(ODDS_HISTORY),
        at,
        values: vec![Value::number(price), Value::Null, Value::Null, Value::Null],
        oldest_known: Some(at) == oldest,
    };
    let newest = moves.last().map(|(_, price)| Value::number(*price));
    let told = if newest.as_ref() == Some(win_odds) { vec!["win_odds".to_owned()] } else { vec![] };
    (moves.iter().map(point).collect(), told)
}

/// The money on one entrant: the slices of it, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Money {
    hold: Sum,
    bet: Sum,
}

#[derive(Clone, Copy, Debug, Default)]
enum Sum {
    #[default]
    Nothing,
    Of(Percent),
    Refused,
}

impl Sum {
    fn add(&mut self, slice: &Leaf<'_>) {
        *self = match (*self, slice.number().and_then(Percent::new)) {
            (sum, None) if slice.is_null() => sum,
            (Sum::Refused, _) | (_, None) => Sum::Refused,
            (Sum::Nothing, Some(percent)) => Sum::Of(percent),
            (Sum::Of(sum), Some(percent)) => Sum::Of(sum.plus(percent)),
        };
    }

    /// The whole, if one entrant can have as much.
    fn share(self, odd: &mut Odd) -> Option<Percent> {
        match self {
            Sum::Nothing => None,
            Sum::Of(percent) if percent.is_share() => Some(percent),
            Sum::Of(_) | Sum::Refused => {
                odd.add("bad_money", || format!("expected slices that come to 0 to 100 %, found {self:?}"));
                None
            }
        }
    }
}

/// By the runners' indices. Rows are slices of one whole, many per entrant; some are about ids that no runner has.
fn money_by_entrant(runners: &[Runner<'_>], rows: &[MoneyRow<'_>], odd: &mut Odd) -> Vec<Money> {
    let mut by_runner = vec![Money::default(); runners.len()];
    if rows.is_empty() {
        return by_runner;
    }
    let mut indices = HashMap::with_capacity(runners.len());
    for (index, runner) in runners.iter().enumerate() {
        if let Some(id) = runner.entrant_id.text() {
            // Of two with one id the first is the runner.
            indices.entry(id).or_insert(index);
        }
    }
    for row in rows {
        match row.entrant_id.text() {
            Some(id) => {
                if let Some(&index) = indices.get(&id) {
                    by_runner[index].hold.add(&row.hold_percentage);
                    by_runner[index].bet.add(&row.bet_percentage);
                }
            }
            None => odd.add("bad_money", || "a row without an entrant_id".to_owned()),
        }
    }
    by_runner
}
