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

    fn begins(self, start: Time) -> Time {
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
mod tests {
    use super::*;

    fn start() -> Time {
        Time::parse("2026-01-10T02:00:00Z").expect("a time")
    }

    /// This long before (or, negative, after) the start.
    fn to_go(seconds: i64) -> Time {
        start() - Span::secs(seconds)
    }

    fn runner(entrant: &str, money: &[(i64, i64)], odds: &[(i64, f64)]) -> RunnerHistory {
        let price = |odds: f64| Price::new(odds).expect("a price");
        RunnerHistory {
            entrant: entrant.to_owned(),
            is_scratched: false,
            money: money.iter().map(|&(at, cents)| Row { at: to_go(at), value: Cents(cents) }).collect(),
            odds: odds.iter().map(|&(at, odds)| Row { at: to_go(at), value: price(odds) }).collect(),
        }
    }

    #[test]
    fn buckets_narrow_towards_the_start_and_go_on_after_it() {
        let all: Vec<f64> = buckets(start(), to_go(-70)).into_iter().map(Bucket::minutes).collect();
        let expected =
            [60., 55., 50., 45., 40., 35., 30., 25., 20., 15., 10., 5., 4., 3., 2., 1., 0., -0.5, -1.];
        assert_eq!(all, expected);
        assert!(buckets(start(), to_go(3_601)).is_empty());
        assert_eq!(buckets(start(), Time(i64::MAX)).len(), 16 + 481, "there is a last one");
    }

    #[test]
    fn a_moment_on_a_boundary_belongs_to_the_bucket_that_begins_there() {
        for (seconds, expected) in [
            (3_600, Some(60.0)),
            (3_301, Some(60.0)),
            (3_300, Some(55.0)),
            (301, Some(10.0)),
            (300, Some(5.0)),
            (61, Some(2.0)),
            (1, Some(1.0)),
            (0, Some(0.0)),
            (-29, Some(0.0)),
            (-30, Some(-0.5)),
            (-95, Some(-1.5)),
            (3_601, None),
        ] {
            assert_eq!(
                Bucket::of(start(), to_go(seconds)).map(Bucket::minutes),
                expected,
                "{seconds} s to go"
            );
        }
    }

    #[test]
    fn a_bucket_holds_its_last_value_and_the_increment_to_the_one_before() {
        let horse = runner("a", &[(3_590, 100), (3_400, 150), (3_000, 400), (2_690, 500)], &[]);
        let grid = timeline(start(), to_go(2_650), &[horse]);
        let found: Vec<_> = grid.lines[0].cells.iter().map(|c| (c.amount_cents, c.increment_cents)).collect();
        // 60: the last of two; 55: no row, so unchanged; 50: on its boundary; 45: so far.
        assert_eq!(
            found,
            [(Some(150), None), (Some(150), Some(0)), (Some(400), Some(250)), (Some(500), Some(100))]
        );
    }

    #[test]
    fn what_was_known_before_the_first_bucket_is_known_in_it() {
        let horse = runner("a", &[], &[(100_000, 8.5)]);
        let late = runner("b", &[(3_200, 7)], &[]);
        let grid = timeline(start(), to_go(3_150), &[horse, late]);
        assert_eq!(grid.lines[0].cells.iter().map(|c| c.odds).collect::<Vec<_>>(), [Some(8.5), Some(8.5)]);
        let amounts: Vec<_> =
            grid.lines[1].cells.iter().map(|c| (c.amount_cents, c.increment_cents)).collect();
        assert_eq!(amounts, [(None, None), (Some(7), None)]);
    }

    /// Three buckets; of the money added the first runner has 14.3 % and then 29.4 %.
    fn growing() -> [RunnerHistory; 2] {
        [
            runner("a", &[(3_600, 0), (3_300, 10_000), (3_000, 60_000)], &[(3_300, 12.0), (3_000, 7.0)]),
            runner("b", &[(3_600, 0), (3_300, 60_000), (3_000, 180_000)], &[(3_300, 2.0), (3_000, 2.6)]),
        ]
    }

    #[test]
    fn indicators_show_growing_shares_and_shortening_prices_only() {
        let grid = timeline(start(), to_go(3_000), &growing());
        let cells = |line: usize| &grid.lines[line].cells;
        let rounded = |percent: f64| (percent * 10.0).round() / 10.0;
        assert_eq!(cells(0)[1].share_percent.map(rounded), Some(14.3));
        assert_eq!(cells(0)[2].share_percent.map(rounded), Some(29.4));
        assert_eq!(cells(0)[1].money, None, "there is no share before the second bucket");
        let money = cells(0)[2].money.expect("a grown share");
        assert_eq!((money.band, rounded(money.percent)), (Band::From15, 15.1));
        let shortened = cells(0)[2].shortened.expect("a shorter price");
        assert_eq!((shortened.band, rounded(shortened.percent)), (Band::From25, 41.7));
        assert_eq!(
            (cells(1)[2].money, cells(1)[2].shortened),
            (None, None),
            "a shrunk share, a longer price"
        );
    }

    #[test]
    fn a_scratched_runner_has_no_indicators_and_no_share() {
        let mut runners = growing();
        runners[0].is_scratched = true;
        let grid = timeline(start(), to_go(3_000), &runners);
        assert!(grid.lines[0].cells.iter().all(|c| c.money.is_none() && c.shortened.is_none()));
        assert_eq!(grid.lines[0].cells[2].share_percent, None);
        assert_eq!(grid.lines[1].cells[2].share_percent, Some(100.0));
    }

    #[test]
    fn an_amount_that_fell_takes_nothing_from_the_others() {
        let runners = [
            runner("a", &[(3_600, 50_000), (3_300, 40_000)], &[]),
            runner("b", &[(3_600, 0), (3_300, 30_000)], &[]),
        ];
        let grid = timeline(start(), to_go(3_300), &runners);
        assert_eq!(grid.lines[0].cells[1].increment_cents, Some(-10_000));
        assert_eq!(grid.lines[0].cells[1].share_percent, Some(0.0));
        assert_eq!(grid.lines[1].cells[1].share_percent, Some(100.0));
    }

    #[test]
    fn rows_are_read_as_they_are_stored() {
        let values =
            serde_json::json!({ "win_pool_amount": 1738.76, "win_odds": 4.6, "place_pool_amount": null });
        assert_eq!(money_row(start(), &values, "win_pool_amount").map(|row| row.value), Some(Cents(173_876)));
        assert_eq!(money_row(start(), &values, "place_pool_amount"), None);
        assert_eq!(odds_row(start(), &values).map(|row| row.value.odds()), Some(4.6));
    }

    #[test]
    fn bands_are_closed_below_and_open_above() {
        let shorter = |before: f64, now: f64| {
            let price = |odds: f64| Price::new(odds).expect("a price");
            odds_indicator(price(before), price(now)).map(|i| i.band)
        };
        for (before, now, expected) in [
            // 5 % exactly, where floating point would say 4.999…
            (6.0, 5.7, Some(Band::From5)),
            (100.0, 95.01, None),
            (20.0, 18.0, Some(Band::From10)),
            (20.0, 17.0, Some(Band::From15)),
            (20.0, 16.0, Some(Band::From20)),
            (20.0, 15.01, Some(Band::From20)),
            (20.0, 15.0, Some(Band::From25)),
            (12.0, 7.0, Some(Band::From25)),
            (20.0, 10.0, Some(Band::From50)),
            (5.0, 5.0, None),
            (5.0, 9.0, None),
        ] {
            assert_eq!(shorter(before, now), expected, "{before} → {now}");
        }
    }
}
