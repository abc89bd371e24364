//! Adaptive polling at equal budget next to uniform polling and to an oracle that knows how often something happens.
//!
//! The division is that of `core`'s budget; what is simulated here is only when things happen and who looks when. Once
//! more through the whole engine ([`engine`]), which has to find everything out by itself.

mod engine;

use stakeout_core::Span;
use stakeout_core::budget::{Item, RateEstimate, price};
use stakeout_sim::SplitMix64;

use crate::args::Pace;
use crate::table::{Met, Row};

const TARGETS: usize = 400;
/// Requests per second.
const BUDGET: f64 = 5.0;
const BOUNDS: (Span, Span) = (Span::secs(20), Span::hours(24));
const DAY: f64 = 86_400.0;
/// The median target has an event a day; a hot and a cold one differ by e^8 or so.
const MEDIAN: f64 = 1.0 / DAY;
/// How often the price is found anew, in seconds.
const EPOCH: f64 = 1_800.0;
const MOST: f64 = 0.45;

/// Log-normal rates with σ = 2, costs of 1 to 40 requests.
fn market(dice: &mut SplitMix64) -> Vec<Item> {
    let item = |dice: &mut SplitMix64| {
        // The sum of twelve is normal enough to the tails that matter here.
        let normal = (0..12).map(|_| dice.unit()).sum::<f64>() - 6.0;
        let rate = MEDIAN * (2.0 * normal).exp();
        Item { weight: 1.0, rate, cost: dice.between(1, 40) as f64, min: BOUNDS.0, max: BOUNDS.1 }
    };
    (0..TARGETS).map(|_| item(dice)).collect()
}

/// When the events of every target happen.
fn events(items: &[Item], dice: &mut SplitMix64, days: f64) -> Vec<Vec<f64>> {
    let of = |item: &Item, dice: &mut SplitMix64| {
        let mut times = Vec::new();
        let mut at = 0.0;
        loop {
            at += -(1.0 - dice.unit()).ln() / item.rate;
            if at >= days * DAY {
                return times;
            }
            times.push(at);
        }
    };
    items.iter().map(|item| of(item, dice)).collect()
}

/// What a way of polling came to.
#[derive(Clone, Copy, Debug, Default)]
struct Fared {
    delay: f64,
    seen: u32,
    requests: f64,
}

impl Fared {
    fn mean(&self) -> f64 {
        self.delay / f64::from(self.seen.max(1))
    }
}

/// How every target's rate is believed.
#[derive(Clone, Copy)]
enum Belief {
    /// All alike: every target at the same interval.
    Uniform,
    /// As it is.
    Known,
    /// By what the polls have found.
    Learned,
}

/// Polls every target for `days`, re-pricing every half hour.
fn poll(items: &[Item], events: &[Vec<f64>], dice: &mut SplitMix64, days: f64, belief: Belief) -> Fared {
    struct Seen {
        rate: RateEstimate,
        next_event: usize,
        last: f64,
        next: f64,
    }
    // As the engine begins: nothing is known about this market.
    let begin = || Seen { rate: RateEstimate::default(), next_event: 0, last: 0.0, next: 0.0 };
    let mut all: Vec<Seen> = items.iter().map(|_| begin()).collect();
    let uniform = items.iter().map(|item| item.cost).sum::<f64>() / BUDGET;
    let mut fared = Fared::default();
    let mut now = 0.0;
    while now < days * DAY {
        let believed = |(item, seen): (&Item, &Seen)| match belief {
            Belief::Learned => Item { rate: seen.rate.rate(), ..*item },
            Belief::Uniform | Belief::Known => *item,
        };
        let items: Vec<Item> = items.iter().zip(&all).map(believed).collect();
        let price = price(&items, BUDGET);
        for ((item, events), seen) in items.iter().zip(events).zip(&mut all) {
            let every = match belief {
                Belief::Uniform => uniform,
                Belief::Known | Belief::Learned => item.interval(price).as_secs_f64(),
            };
            if now == 0.0 {
                seen.next = every * dice.unit();
            }
            seen.next = seen.next.min(seen.last + every).max(now);
            while seen.next < now + EPOCH {
                let at = seen.next;
                let found = events[seen.next_event..].iter().take_while(|event| **event <= at).count();
                let delays = events[seen.next_event..][..found].iter().map(|event| at - event);
                fared.delay += delays.sum::<f64>();
                fared.seen += found as u32;
                seen.next_event += found;
                seen.rate.observe(Span::from_secs_f64(at - seen.last), found as u32);
                fared.requests += item.cost;
                (seen.last, seen.next) = (at, at + every);
            }
        }
        now += EPOCH;
    }
    fared
}

/// Mean delays over a few markets, the time of learning included, and one market through the engine.
pub(crate) fn rows(pace: Pace) -> anyhow::Result<Vec<Row>> {
    Ok(vec![divided(pace), through_the_engine(pace)?])
}

fn through_the_engine(pace: Pace) -> anyhow::Result<Row> {
    let (seed, days) = (1, pace.pick(3.0, 0.5));
    let mut dice = SplitMix64::new(seed);
    let items = market(&mut dice);
    let events = events(&items, &mut dice, days);
    let uniform = engine::poll(&items, &events, days, true)?;
    let adaptive = engine::poll(&items, &events, days, false)?;
    let known = poll(&items, &events, &mut dice, days, Belief::Known);
    let ratio = adaptive.mean() / uniform.mean();
    Ok(Row {
        what: format!("the same through the engine, {days} days, market {seed}"),
        ours: format!(
            "{:.0} s, {} events ({:.2} × the requests)",
            adaptive.mean(),
            adaptive.seen,
            adaptive.requests / uniform.requests
        ),
        floor: format!(
            "uniform {:.0} s; an oracle reaches {:.2} ×",
            uniform.mean(),
            known.mean() / uniform.mean()
        ),
        ratio: Some(ratio),
        target: format!("≤ {MOST} ×"),
        met: Met::when(ratio <= MOST),
    })
}

fn divided(pace: Pace) -> Row {
    let (seeds, days) = (pace.pick(10, 3), 3.0);
    let [mut adaptive, mut oracle, mut spent] = [0.0; 3];
    let mut uniform_secs = 0.0;
    for seed in 1..=seeds {
        let mut dice = SplitMix64::new(seed);
        let items = market(&mut dice);
        let events = events(&items, &mut dice, days);
        let mut fared = |belief| poll(&items, &events, &mut dice, days, belief);
        let uniform = fared(Belief::Uniform);
        let (learned, known) = (fared(Belief::Learned), fared(Belief::Known));
        adaptive += learned.mean() / uniform.mean() / seeds as f64;
        oracle += known.mean() / uniform.mean() / seeds as f64;
        spent += learned.requests / uniform.requests / seeds as f64;
        uniform_secs += uniform.mean() / seeds as f64;
    }
    Row {
        what: format!(
            "mean delay by adaptive polling, {TARGETS} targets, log-normal rates (σ = 2), 1–40 requests per poll, {days} days, {seeds} markets"
        ),
        ours: format!("{:.0} s ({spent:.2} × the requests)", adaptive * uniform_secs),
        floor: format!("uniform {uniform_secs:.0} s; an oracle reaches {oracle:.2} ×"),
        ratio: Some(adaptive),
        target: format!("≤ {MOST} ×"),
        met: Met::when(adaptive <= MOST),
    }
}
