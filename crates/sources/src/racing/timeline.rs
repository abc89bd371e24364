//! What the grid shows of a race: its history in buckets by minutes to the start, and where money and prices move.
//!
//! Pure functions over rows of history. A bucket holds the last value in it. History has a row per change only, so a
//! bucket without a row shows the value that was last known, and nothing before the first.

use serde::Serialize;
use serde_json::Value as Json;
use stakeout_core::{Span, Time};

use super::money::Cents;

/// A column of the grid: from its offset to the start until the next column's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// Half minutes to the start; negative after it.
    half_minutes: i64,
}

/// Where a bucket before the start begins, in minutes to it.
const MINUTES_BEFORE: [i64; 16] = [60, 55, 50, 45, 40, 35, 30, 25, 20, 15, 10, 5, 4, 3, 2, 1];
const HALF_MINUTE: Span = Span::secs(30);
/// The last bucket after the start: a race that is not run after four hours has other news.
const HALF_MINUTES_AFTER_MAX: i64 = 480;

impl Bucket {
    /// Its place as minutes to the start: 60, 5, 0, -0.5.
    pub fn minutes(self) -> f64 {
        self.half_minutes as f64 / 2.0
    }

    /// The bucket that `at` falls into; `None` before the first one.
    pub fn of(start: Time, at: Time) -> Option<Bucket> {
        buckets(start, at).pop()
    }

    /// When it begins.
    pub fn begins(self, start: Time) -> Time {
        start - HALF_MINUTE.times(self.half_minutes)
    }
}

impl Serialize for Bucket {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.minutes())
    }
}

/// The buckets that have begun by `until`, the earliest first: 60, 55, … 10, 5, 4, 3, 2, 1, 0, -0.5, -1, ….
pub fn buckets(start: Time, until: Time) -> Vec<Bucket> {
    let before = MINUTES_BEFORE.iter().map(|minutes| minutes * 2);
    let after = (0..=HALF_MINUTES_AFTER_MAX).map(|half_minutes| -half_minutes);
    let all = before.chain(after).map(|half_minutes| Bucket { half_minutes });
    all.take_while(|bucket| bucket.begins(start) <= until).collect()
}

/// A row of `money_flow_history` or `odds_history`, reduced to one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<T> {
    /// When.
    pub at: Time,
    /// What it said.
    pub value: T,
}

/// A fixed win price in thousandths: whole, so that a band's edge is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price(i64);

impl Price {
    /// The nearest thousandth; `None` for what is no price.
    pub fn new(odds: f64) -> Option<Price> {
        (odds > 0.0 && odds <= 1e9).then(|| Price((odds * 1_000.0).round() as i64)).filter(|p| p.0 > 0)
    }

    /// As it is written.
    pub fn odds(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

/// The money in a row of `money_flow_history`, by the field that holds it: `win_pool_amount`, `place_pool_amount`.
pub fn money_row(at: Time, values: &Json, field: &str) -> Option<Row<Cents>> {
    let value = Cents::from_dollars(values.get(field)?.as_f64()?)?;
    Some(Row { at, value })
}

/// The fixed win price in a row of `odds_history`.
pub fn odds_row(at: Time, values: &Json) -> Option<Row<Price>> {
    let value = Price::new(values.get("win_odds")?.as_f64()?)?;
    Some(Row { at, value })
}

/// The history of one runner, its rows in order of time.
#[derive(Clone, Debug)]
pub struct RunnerHistory {
    /// The entrant.
    pub entrant: String,
    /// A scratched runner is shown without indicators, and its money is not counted.
    pub is_scratched: bool,
    /// The money on it: the win (or the place) pool's amount.
    pub money: Vec<Row<Cents>>,
    /// Its fixed win price.
    pub odds: Vec<Row<Price>>,
}

/// How strong a move is, in percent or percentage points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Band {
    /// [5, 10)
    #[serde(rename = "5-10")]
    From5,
    /// [10, 15)
    #[serde(rename = "10-15")]
    From10,
    /// [15, 20)
    #[serde(rename = "15-20")]
    From15,
    /// [20, 25)
    #[serde(rename = "20-25")]
    From20,
    /// [25, 50)
    #[serde(rename = "25-50")]
    From25,
    /// [50, ∞)
    #[serde(rename = "50+")]
    From50,
}

impl Band {
    const EDGES: [(i128, Band); 6] = [
        (50, Band::From50),
        (25, Band::From25),
        (20, Band::From20),
        (15, Band::From15),
        (10, Band::From10),
        (5, Band::From5),
    ];

    /// The band of `part / whole` as a percentage; `None` below 5 %.
    fn of(part: i128, whole: i128) -> Option<Band> {
        let reaches = |edge: i128| whole > 0 && part * 100 >= whole * edge;
        Band::EDGES.into_iter().find(|(edge, _)| reaches(*edge)).map(|(_, band)| band)
    }
}

/// A move that is worth a colour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Indicator {
    /// How strong.
    pub band: Band,
    /// The exact figure: percentage points of money, percent of price.
    pub percent: f64,
}

impl Indicator {
    fn of(part: i128, whole: i128) -> Option<Indicator> {
        let band = Band::of(part, whole)?;
        Some(Indicator { band, percent: part as f64 * 100.0 / whole as f64 })
    }
}

/// How much the price shortened, in percent of what it was; longer prices say nothing.
pub fn odds_indicator(before: Price, now: Price) -> Option<Indicator> {
    Indicator::of(i128::from(before.0 - now.0), i128::from(before.0))
}

/// A part of the money that all runners gained in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What this runner gained.
    pub gained: Cents,
    /// What all of them gained, more than nothing.
    pub total: Cents,
}

impl Share {
    /// In percent.
    pub fn percent(self) -> f64 {
        self.gained.0 as f64 * 100.0 / self.total.0 as f64
    }
}

/// How many points the share of the money grew; a smaller share says nothing.
pub fn money_indicator(before: Share, now: Share) -> Option<Indicator> {
    let [gained, total, was, of] =
        [now.gained, now.total, before.gained, before.total].map(|c| i128::from(c.0));
    Indicator::of(gained * of - was * total, total * of)
}

/// One runner in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// The money on it in cents.
    pub amount_cents: Option<i64>,
    /// What was added since the bucket before; none in the first bucket with an amount.
    pub increment_cents: Option<i64>,
    /// Its part of the money that was added, in percent.
    pub share_percent: Option<f64>,
    /// Its price.
    pub odds: Option<f64>,
    /// Its part of the added money grew.
    pub money: Option<Indicator>,
    /// Its price shortened.
    pub shortened: Option<Indicator>,
}

/// One runner's line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The entrant.
    pub entrant: String,
    /// One cell per bucket.
    pub cells: Vec<Cell>,
}

/// The grid of a race.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// The columns, in minutes to the start.
    pub buckets: Vec<Bucket>,
    /// One line per runner, in the order given.
    pub lines: Vec<Line>,
}

/// The grid of a race that starts at `start`, as far as it is filled at `until`.
pub fn timeline(start: Time, until: Time, runners: &[RunnerHistory]) -> Timeline {
    let buckets = buckets(start, until);
    // A bucket ends where the next begins; the last one holds what is known by now.
    let ends: Vec<Time> = (0..buckets.len())
        .map(|i| buckets.get(i + 1).map_or(until + Span::us(1), |next| next.begins(start)))
        .collect();
    let amounts: Vec<Vec<Option<Cents>>> = runners
        .iter()
        .map(|runner| ends.iter().map(|end| last_before(&runner.money, *end)).collect())
        .collect();
    let shares = shares(runners, &amounts, ends.len());
    let line = |(index, runner): (usize, &RunnerHistory)| {
        let prices: Vec<Option<Price>> = ends.iter().map(|end| last_before(&runner.odds, *end)).collect();
        let cell = |i: usize| cell(runner.is_scratched, i, &amounts[index], &shares[index], &prices);
        Line { entrant: runner.entrant.clone(), cells: (0..ends.len()).map(cell).collect() }
    };
    Timeline { lines: runners.iter().enumerate().map(line).collect(), buckets }
}

fn cell(
    scratched: bool,
    i: usize,
    amounts: &[Option<Cents>],
    shares: &[Option<Share>],
    prices: &[Option<Price>],
) -> Cell {
    let pair = |i: usize| Some((shares[i.checked_sub(1)?]?, shares[i]?));
    let price_pair = |i: usize| Some((prices[i.checked_sub(1)?]?, prices[i]?));
    let indicated = |indicator: Option<Indicator>| indicator.filter(|_| !scratched);
    Cell {
        amount_cents: amounts[i].map(|amount| amount.0),
        increment_cents: increment(amounts, i),
        share_percent: shares[i].map(Share::percent),
        odds: prices[i].map(Price::odds),
        money: indicated(pair(i).and_then(|(before, now)| money_indicator(before, now))),
        shortened: indicated(price_pair(i).and_then(|(before, now)| odds_indicator(before, now))),
    }
}

fn increment(amounts: &[Option<Cents>], i: usize) -> Option<i64> {
    Some(amounts[i]?.0 - amounts[i.checked_sub(1)?]?.0)
}

/// Each runner's part of what all runners gained, per bucket. An amount that fell is a share that shrank in a pool
/// that grew, not money taken back: it counts as nothing gained.
fn shares(
    runners: &[RunnerHistory],
    amounts: &[Vec<Option<Cents>>],
    buckets: usize,
) -> Vec<Vec<Option<Share>>> {
    let gained = |runner: usize, i: usize| {
        let counts = !runners[runner].is_scratched;
        increment(&amounts[runner], i).filter(|_| counts).map(|by| by.max(0))
    };
    let totals: Vec<i64> =
        (0..buckets).map(|i| (0..runners.len()).filter_map(|runner| gained(runner, i)).sum()).collect();
    let share = |runner: usize, i: usize| {
        let gained = gained(runner, i).filter(|_| totals[i] > 0)?;
        Some(Share { gained: Cents(gained), total: Cents(totals[i]) })
    };
    (0..runners.len()).map(|runner| (0..buckets).map(|i| share(runner, i)).collect()).collect()
}

/// The value of the last row before `end`.
fn last_before<T: Copy>(rows: &[Row<T>], end: Time) -> Option<T> {
    let known = rows.partition_point(|row| row.at < end);
    known.checked_sub(1).map(|last| rows[last].value)
}

#[cfg(test)]
mod tests;
