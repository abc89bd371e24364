//! What the budget buys: at equal cost, how much sooner things are noticed than by polling everyone alike.

use proptest::prelude::*;
use stakeout_core::Span;
use stakeout_core::budget::{Fit, Item, RateEstimate, fit, price, spend};

/// splitmix64: a test needs no more of randomness than a seed that is printed with the failure.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The time to the next event of a Poisson process.
    fn wait(&mut self, rate: f64) -> f64 {
        -(1.0 - self.roll()).ln() / rate
    }

    /// Standard normal, by the sum of twelve: good to the tails that matter here.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.roll()).sum::<f64>() - 6.0
    }
}

const TARGETS: usize = 400;
const BUDGET: f64 = 5.0;
const BOUNDS: (Span, Span) = (Span::secs(20), Span::hours(24));
/// A hot and a cold target differ by e^8 or so; the median one has an event a day.
const MEDIAN: f64 = 1.0 / 86_400.0;

/// A market: log-normal rates with σ = 2, costs from 1 to 40 requests.
fn market(dice: &mut Dice) -> Vec<Item> {
    (0..TARGETS)
        .map(|_| Item {
            weight: 1.0,
            rate: MEDIAN * (2.0 * dice.normal()).exp(),
            cost: (1.0 + 39.0 * dice.roll()).round(),
            min: BOUNDS.0,
            max: BOUNDS.1,
        })
        .collect()
}

/// The mean expected delay per event, in seconds, when every target is polled at these intervals.
fn expected_delay(items: &[Item], seconds: impl Fn(&Item) -> f64) -> f64 {
    let events: f64 = items.iter().map(|item| item.rate).sum();
    items.iter().map(|item| item.rate * seconds(item) / 2.0).sum::<f64>() / events
}

fn uniform_delay(items: &[Item]) -> f64 {
    let costs: f64 = items.iter().map(|item| item.cost).sum();
    expected_delay(items, |_| costs / BUDGET)
}

/// One target of the simulation: its true events, and what its polls have taught so far.
struct Watched {
    believed: RateEstimate,
    next_event: f64,
    last_poll: f64,
    next_poll: f64,
}

/// Polls by the estimates for `days`, re-pricing every half hour; the mean measured delay, the time of learning
/// included, and the requests made per second.
fn learned_delay(items: &[Item], dice: &mut Dice, days: f64) -> (f64, f64) {
    // As the engine begins with every target: nothing is known about this market.
    let guess = RateEstimate::default();
    let mut watched: Vec<Watched> = items
        .iter()
        .map(|item| {
            let next_event = dice.wait(item.rate);
            Watched { believed: guess, next_event, last_poll: 0.0, next_poll: 0.0 }
        })
        .collect();
    let (end, epoch) = (days * 86_400.0, 1_800.0);
    let (mut delay, mut events, mut requests) = (0.0, 0_u32, 0.0);
    let mut now = 0.0;
    while now < end {
        let believed: Vec<Item> = items
            .iter()
            .zip(&watched)
            .map(|(item, seen)| Item { rate: seen.believed.rate(), ..*item })
            .collect();
        let price = price(&believed, BUDGET);
        for ((item, guess), seen) in items.iter().zip(&believed).zip(&mut watched) {
            let every = guess.interval(price).as_secs_f64();
            if now == 0.0 {
                seen.next_poll = every * dice.roll();
            }
            seen.next_poll = seen.next_poll.min(seen.last_poll + every).max(now);
            while seen.next_poll < now + epoch {
                let poll = seen.next_poll;
                let mut found = 0;
                while seen.next_event <= poll {
                    (delay, events) = (delay + poll - seen.next_event, events + 1);
                    found += 1;
                    seen.next_event += dice.wait(item.rate);
                }
                seen.believed.observe(Span::from_secs_f64(poll - seen.last_poll), found);
                requests += item.cost;
                seen.last_poll = poll;
                seen.next_poll = poll + every;
            }
        }
        now += epoch;
    }
    (delay / f64::from(events), requests / end)
}

#[test]
fn learning_the_rates_comes_close_to_knowing_them() {
    let (mut oracle, mut learned, mut rounds) = (0.0, 0.0, 0.0);
    for seed in 1..=3 {
        let mut dice = Dice(seed);
        let items = market(&mut dice);
        let uniform = uniform_delay(&items);
        let best = price(&items, BUDGET);
        oracle += expected_delay(&items, |item| item.interval(best).as_secs_f64()) / uniform;
        let (delay, spent) = learned_delay(&items, &mut dice, 3.0);
        assert!((spent / BUDGET - 1.0).abs() < 0.05, "seed {seed}: {spent} requests/s of {BUDGET}");
        learned += delay / uniform;
        rounds += 1.0;
    }
    let (oracle, learned) = (oracle / rounds, learned / rounds);
    assert!((0.28..0.42).contains(&oracle), "an oracle reaches {oracle:.3} × uniform");
    assert!(learned <= 0.45, "learning reaches {learned:.3} × uniform, an oracle {oracle:.3}");
}

#[test]
fn without_costs_and_bounds_an_oracle_reaches_the_textbook_ratio() {
    // E[√λ]² / E[λ] = e^(-σ²/4) = 0.368 for log-normal rates with σ = 2; quantiles instead of draws, because
    // the mean of such a heavy tail settles slowly. The tail beyond the last quantile is missing from 0.368.
    let items: Vec<Item> = (0..20_000)
        .map(|n| {
            let q = (f64::from(n) + 0.5) / 20_000.0;
            Item {
                weight: 1.0,
                rate: MEDIAN * (2.0 * inverse_normal(q)).exp(),
                cost: 1.0,
                min: Span::us(1),
                max: Span::hours(9_999_999),
            }
        })
        .collect();
    let best = price(&items, BUDGET);
    let ratio = expected_delay(&items, |item| item.interval(best).as_secs_f64()) / uniform_delay(&items);
    assert!((0.36..0.39).contains(&ratio), "{ratio:.3}");
}

/// The quantile of the standard normal distribution by bisection of its series; slow and simple.
fn inverse_normal(q: f64) -> f64 {
    let below = |x: f64| {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= x * x / f64::from(2 * n + 1);
            sum += term;
        }
        0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if below(middle) < q { low = middle } else { high = middle }
    }
    low
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = (0.01_f64..10.0, -14.0_f64..2.0, 1_u32..80, 1_i64..600, 1_i64..86_400);
    prop::collection::vec(item, 1..60).prop_map(|rows| {
        let item = |(weight, log_rate, cost, min, longer): (f64, f64, u32, i64, i64)| Item {
            weight,
            rate: log_rate.exp(),
            cost: f64::from(cost),
            min: Span::secs(min),
            max: Span::secs(min + longer),
        };
        rows.into_iter().map(item).collect()
    })
}

/// Requests per second at the intervals that targets really get, rounded to microseconds.
fn really_spent(items: &[Item], price: f64) -> f64 {
    items.iter().map(|item| item.cost / item.interval(price).as_secs_f64()).sum()
}

proptest! {
    #[test]
    fn the_budget_is_spent_to_a_thousandth(items in items(), share in 0.001_f64..0.999) {
        let (least, most) = (spend(&items, f64::INFINITY), spend(&items, 0.0));
        let budget = least + share * (most - least);
        prop_assert_eq!(fit(&items, budget), Fit::Spent);
        let price = price(&items, budget);
        let spent = really_spent(&items, price);
        prop_assert!((spent / budget - 1.0).abs() < 1e-3, "{spent} of {budget} at {price}");
        for item in &items {
            let every = item.interval(price);
            prop_assert!(every >= item.min && every <= item.max);
        }
    }

    #[test]
    fn moving_requests_between_two_targets_never_helps(items in items(), share in 0.01_f64..0.99) {
        let (least, most) = (spend(&items, f64::INFINITY), spend(&items, 0.0));
        let price = price(&items, least + share * (most - least));
        let delay = |item: &Item, rate: f64| item.weight * item.rate / (2.0 * rate);
        let moved = 1e-3;
        for pair in items.windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|item| 1.0 / item.interval(price).as_secs_f64());
            // A thousandth of the first one's requests goes to the second, if their bounds allow it.
            let requests = from * pair[0].cost * moved;
            let (less, more) = (from * (1.0 - moved), to + requests / pair[1].cost);
            if 1.0 / less > pair[0].max.as_secs_f64() || 1.0 / more < pair[1].min.as_secs_f64() {
                continue;
            }
            let before = delay(&pair[0], from) + delay(&pair[1], to);
            let after = delay(&pair[0], less) + delay(&pair[1], more);
            prop_assert!(after >= before * (1.0 - 1e-6), "{before} {after}");
        }
    }

    #[test]
    fn a_larger_budget_never_polls_anyone_less_often(items in items(), budget in 0.001_f64..100.0) {
        let (small, large) = (price(&items, budget), price(&items, budget * 1.5));
        prop_assert!(large <= small);
        prop_assert!(items.iter().all(|item| item.interval(large) <= item.interval(small)));
    }
}
