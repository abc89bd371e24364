//! Pools, results and dividends of a race.

use std::collections::HashSet;

use stakeout_core::{Fingerprint, Record, Value};

use super::kinds::Kinds;
use super::money::Cents;
use super::wire::{Dividend, Placing, Pool};
use crate::lenient::Leaf;
use crate::odd::Odd;

/// Words in the names of products that run over several races: their money is not this race's.
const MULTI_LEG: [&str; 9] =
    ["double", "treble", "quad", "parlay", "pick", "six", "big6", "jackpot", "multi"];

/// The race that something belongs to.
#[derive(Clone, Copy)]
pub(super) struct Parent<'a> {
    pub(super) kinds: &'a Kinds,
    pub(super) race_id: &'a str,
    pub(super) race: Fingerprint,
}

impl Parent<'_> {
    /// Each list of a race is a group of its own, so that one that is damaged proves nothing and the others still do.
    pub(super) fn group(&self, collection: &str) -> Fingerprint {
        Fingerprint::of(collection, &[self.race_id])
    }
}

/// What one list of an answer amounts to.
pub(super) struct Rows {
    pub(super) records: Vec<Record>,
    /// Whether every one of its rows was understood.
    pub(super) whole: bool,
}

/// A number that cannot be below zero; nothing where the upstream says nothing.
fn amount(leaf: &Leaf<'_>, code: &'static str, what: &str, odd: &mut Odd) -> Value {
    let amount = leaf.number().filter(|amount| *amount >= 0.0);
    if amount.is_none() && !leaf.is_null() {
        odd.add(code, || format!("expected a {what} of at least 0, found {leaf:?}"));
    }
    amount.into()
}

/// Whether a pool is decided by this race alone.
pub(super) fn is_single_race(product: &str) -> bool {
    let product = product.to_ascii_lowercase();
    !MULTI_LEG.iter().any(|word| product.contains(word))
}

/// The total of the pool of this product.
pub(super) fn pool_total(pools: &[Pool<'_>], product: &str) -> Option<Cents> {
    let found =
        pools.iter().find(|p| p.product_type.text().is_some_and(|t| t.eq_ignore_ascii_case(product)))?;
    found.total.number().and_then(Cents::from_dollars)
}

/// The pools that hold this race's money.
pub(super) fn pools(parent: Parent<'_>, pools: &[Pool<'_>], odd: &mut Odd) -> Rows {
    let mut rows = Rows { records: Vec::with_capacity(pools.len()), whole: true };
    for pool in pools {
        let Some(product) = pool.product_type.text() else {
            odd.add("bad_pool", || "a pool without a product_type".to_owned());
            rows.whole = false;
            continue;
        };
        if !is_single_race(&product) {
            continue;
        }
        let total = pool.total.number().and_then(Cents::from_dollars);
        if total.is_none() && !pool.total.is_null() {
            odd.add("bad_pool", || format!("expected dollars in {product}, found {:?}", pool.total));
        }
        let values =
            vec![Value::text(&*product), total.into(), pool.status.text_value(), Value::text(parent.race_id)];
        let record = Record::new(&parent.kinds.pools, &[parent.race_id, &product], values);
        rows.records.push(record.under(parent.race).in_group(parent.group("race_pools")));
    }
    rows
}

/// The placings, one per runner: a dead heat has two of one position. `runners` are the ids of those who ran, where the
/// answer names any; a placing of somebody else is none.
pub(super) fn results(
    parent: Parent<'_>,
    placings: &[Placing<'_>],
    runners: &HashSet<String>,
    odd: &mut Odd,
) -> Rows {
    let mut rows = Rows { records: Vec::with_capacity(placings.len()), whole: true };
    for placing in placings {
        let who = placing.entrant_id.text().or_else(|| placing.runner_number.text());
        let Some((who, position)) = who.zip(placing.position.int()) else {
            odd.add("bad_result", || "a placing without a position or a runner".to_owned());
            rows.whole = false;
            continue;
        };
        let id = placing.entrant_id.text();
        if let Some(stranger) = id.filter(|id| !runners.is_empty() && !runners.contains(&**id)) {
            odd.add("bad_result", || format!("a placing of {stranger}, which is no runner"));
            rows.whole = false;
            continue;
        }
        let values = vec![
            position.into(),
            placing.runner_number.int().into(),
            placing.entrant_id.text_value(),
            placing.name.text_value(),
            amount(&placing.margin_length, "bad_result", "margin", odd),
            Value::text(parent.race_id),
        ];
        let record = Record::new(&parent.kinds.results, &[parent.race_id, &who], values);
        rows.records.push(record.under(parent.race).in_group(parent.group("race_results")));
    }
    rows
}

/// What was paid. Interim and Final rows of one product stand side by side: once a product has a Final row, its
/// Interim ones no longer count.
pub(super) fn dividends(parent: Parent<'_>, dividends: &[Dividend<'_>], odd: &mut Odd) -> Rows {
    let is_final = |d: &Dividend<'_>| d.status.text().is_some_and(|s| s.eq_ignore_ascii_case("final"));
    let product = |d: &Dividend<'_>| {
        let tote = d.tote.text().unwrap_or_default().into_owned();
        Some((tote, d.product_name.text()?.into_owned()))
    };
    let settled: Vec<_> = dividends.iter().filter(|d| is_final(d)).filter_map(product).collect();
    let mut rows = Rows { records: Vec::with_capacity(dividends.len()), whole: true };
    for dividend in dividends {
        let Some(name) = dividend.product_name.text() else {
            odd.add("bad_dividend", || "a dividend without a product_name".to_owned());
            rows.whole = false;
            continue;
        };
        let superseded =
            !is_final(dividend) && product(dividend).is_some_and(|product| settled.contains(&product));
        if superseded {
            continue;
        }
        let (runners, positions) = positions(dividend);
        let values = vec![
            Value::text(&*name),
            dividend.status.text_value(),
            amount(&dividend.dividend, "bad_dividend", "dividend", odd),
            amount(&dividend.pool_size, "bad_dividend", "pool size", odd),
            positions,
            dividend.tote.text_value(),
            Value::text(parent.race_id),
        ];
        let tote = dividend.tote.text().unwrap_or_default();
        let key = [parent.race_id, &*name, &runners, &*tote];
        let record = Record::new(&parent.kinds.dividends, &key, values);
        rows.records.push(record.under(parent.race).in_group(parent.group("dividends")));
    }
    rows
}

/// The runners in order of position, as `2:4:7` and as a list.
fn positions(dividend: &Dividend<'_>) -> (String, Value) {
    let mut paid: Vec<(Option<i64>, Option<i64>)> =
        dividend.positions.items().iter().map(|p| (p.position.int(), p.runner_number.int())).collect();
    paid.sort_unstable();
    let word = |(_, runner): &(_, Option<i64>)| runner.map_or("?".to_owned(), |n| n.to_string());
    let words: Vec<String> = paid.iter().map(word).collect();
    let entry = |(position, runner): (Option<i64>, Option<i64>)| {
        Value::Map([("position", position.into()), ("runner_number", runner.into())].into())
    };
    (words.join(":"), Value::List(paid.into_iter().map(entry).collect()))
}
