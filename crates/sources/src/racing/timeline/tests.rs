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
    let expected = [60., 55., 50., 45., 40., 35., 30., 25., 20., 15., 10., 5., 4., 3., 2., 1., 0., -0.5, -1.];
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
        assert_eq!(Bucket::of(start(), to_go(seconds)).map(Bucket::minutes), expected, "{seconds} s to go");
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
    let amounts: Vec<_> = grid.lines[1].cells.iter().map(|c| (c.amount_cents, c.increment_cents)).collect();
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
    assert_eq!((cells(1)[2].money, cells(1)[2].shortened), (None, None), "a shrunk share, a longer price");
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
