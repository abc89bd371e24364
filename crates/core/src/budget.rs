//! Dividing a source's requests among its targets so that what happens is noticed soonest.
//!
//! With events at rate λ and a poll every `i` seconds, the expected delay of an event is `i / 2`. Minimising the
//! weighted total `Σ weight·λ·i / 2` under a budget of `Σ cost / i` requests per second gives, by Lagrange,
//! `i = √(price · cost / (weight · λ))` with one price for the whole source: the higher it is, the less often
//! everyone is polled. Clamped targets keep their bound and the common price re-divides the rest.

use serde::{Deserialize, Serialize};

use crate::Span;

/// What is believed about how often a target has something to tell: events that the rules select, per second.
///
/// A Gamma prior (so many events in so much time) plus what complete polls found, fading exponentially so that a
/// target that turned cold is believed cold. A poll is interval-censored: it tells how many events happened since the
/// last complete look, not when.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateEstimate {
    prior_events: f64,
    prior_seconds: f64,
    memory_seconds: f64,
    events: f64,
    seconds: f64,
}

impl RateEstimate {
    /// An estimate that begins at `rate` events per second, as sure of it as if `strength` events had been seen,
    /// and forgets what it sees by a factor of e in `memory`.
    pub fn new(rate: f64, strength: f64, memory: Span) -> RateEstimate {
        // Bounds, so that no prior can make a later division meaningless.
        let rate = if rate.is_finite() { rate.clamp(1e-12, 1e6) } else { 1e-12 };
        let strength = if strength.is_finite() { strength.clamp(1e-6, 1e6) } else { 1.0 };
        RateEstimate {
            prior_events: strength,
            prior_seconds: strength / rate,
            memory_seconds: memory.as_secs_f64().max(1.0),
            events: 0.0,
            seconds: 0.0,
        }
    }

    /// A complete poll found this many selected events, `interval` after the last complete look began.
    pub fn observe(&mut self, interval: Span, events: u32) {
        let seconds = interval.as_secs_f64();
        if seconds <= 0.0 {
            self.events += f64::from(events);
            return;
        }
        let kept = (-seconds / self.memory_seconds).exp();
        // What happened within the interval has itself faded by its end, on average by this factor.
        let faded = (1.0 - kept) * self.memory_seconds / seconds;
        self.events = self.events * kept + f64::from(events) * faded;
        self.seconds = self.seconds * kept + seconds * faded;
    }

    /// Events per second, always positive.
    pub fn rate(&self) -> f64 {
        (self.prior_events + self.events) / (self.prior_seconds + self.seconds)
    }
}

/// One event an hour, not held very firmly, forgotten over a week.
impl Default for RateEstimate {
    fn default() -> RateEstimate {
        RateEstimate::new(1.0 / 3_600.0, 0.5, Span::hours(24 * 7))
    }
}

/// A target as the budget sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// How much an event here is worth, against 1 for the others.
    pub weight: f64,
    /// Events per second.
    pub rate: f64,
    /// Requests per poll.
    pub cost: f64,
    /// The shortest interval.
    pub min: Span,
    /// The longest interval.
    pub max: Span,
}

impl Item {
    /// The interval that this price gives.
    pub fn interval(&self, price: f64) -> Span {
        interval(price, self.weight, self.rate, self.cost, self.min, self.max)
    }

    /// Seconds between polls at this price, not rounded to microseconds.
    fn seconds(&self, price: f64) -> f64 {
        let longest = self.max.max(self.min).as_secs_f64();
        let value = self.weight * self.rate;
        if price.is_nan() || value.is_nan() || value <= 0.0 {
            return longest;
        }
        // Zero over zero: a free poll at no price may come as often as allowed.
        let seconds = (price * self.cost / value).sqrt();
        seconds.max(self.min.as_secs_f64()).min(longest)
    }

    /// Requests per second at this price.
    fn spend(&self, price: f64) -> f64 {
        self.cost / self.seconds(price).max(1e-6)
    }

    /// The price at which the unclamped interval is `bound`.
    fn price_at(&self, bound: Span) -> f64 {
        let seconds = bound.as_secs_f64();
        seconds * seconds * self.weight * self.rate / self.cost
    }
}

/// The interval of a target at this price: `√(price · cost / (weight · rate))` within its bounds. Something
/// that is worth nothing or never happens is polled at `max`.
pub fn interval(price: f64, weight: f64, rate: f64, cost: f64, min: Span, max: Span) -> Span {
    let item = Item { weight, rate, cost, min, max };
    Span::from_secs_f64(item.seconds(price))
}

/// Requests per second that all targets together make at this price.
pub fn spend(items: &[Item], price: f64) -> f64 {
    items.iter().map(|item| item.spend(price)).sum()
}

/// How a budget and its targets fit together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// The budget is spent exactly.
    Spent,
    /// Even with every target at its longest interval `needed` requests per second are made.
    TooSmall {
        /// Requests per second at the longest intervals.
        needed: f64,
    },
    /// With every target at its shortest interval only `usable` requests per second are made.
    TooLarge {
        /// Requests per second at the shortest intervals.
        usable: f64,
    },
}

/// Whether the budget can be kept and spent.
pub fn fit(items: &[Item], requests_per_second: f64) -> Fit {
    let (needed, usable) = (spend(items, f64::INFINITY), spend(items, 0.0));
    if requests_per_second.is_nan() || needed > requests_per_second {
        Fit::TooSmall { needed }
    } else if usable < requests_per_second {
        Fit::TooLarge { usable }
    } else {
        Fit::Spent
    }
}

/// The price at which the targets spend exactly the budget. Infinite when the budget is too small even for the
/// longest intervals (all sit there), zero when the shortest ones do not use it up (all sit there, as do none); see
/// [`fit`].
pub fn price(items: &[Item], requests_per_second: f64) -> f64 {
    match fit(items, requests_per_second) {
        Fit::TooSmall { .. } => return f64::INFINITY,
        Fit::TooLarge { .. } => return 0.0,
        Fit::Spent => {}
    }
    // Below the least of these prices everyone is at min, above the greatest at max; between them the spending falls
    // steadily, and halving the logarithm 64 times leaves nothing to find.
    let at = |bound: fn(&Item) -> Span| {
        items.iter().map(move |item| item.price_at(bound(item))).filter(|p| p.is_finite() && *p > 0.0)
    };
    let mut low = at(|item| item.min).fold(f64::INFINITY, f64::min);
    let mut high = at(|item| item.max).fold(0.0, f64::max);
    if low > high {
        return high;
    }
    for _ in 0..64 {
        let middle = low.sqrt() * high.sqrt();
        if spend(items, middle) > requests_per_second {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: (Span, Span) = (Span::us(1), Span::hours(100_000));

    fn item(rate: f64, cost: f64) -> Item {
        Item { weight: 1.0, rate, cost, min: WIDE.0, max: WIDE.1 }
    }

    #[test]
    fn the_estimate_begins_at_the_prior_and_follows_what_is_seen() {
        let mut estimate = RateEstimate::new(0.01, 2.0, Span::hours(24));
        assert!((estimate.rate() - 0.01).abs() < 1e-12);
        for _ in 0..2_000 {
            estimate.observe(Span::secs(60), 3);
        }
        assert!((estimate.rate() - 0.05).abs() < 0.002, "{}", estimate.rate());
        for _ in 0..5_000 {
            estimate.observe(Span::secs(60), 0);
        }
        assert!(estimate.rate() < 0.005, "a target that turned cold is believed cold: {}", estimate.rate());
    }

    #[test]
    fn how_the_time_is_cut_hardly_matters() {
        let mut often = RateEstimate::default();
        let mut rarely = RateEstimate::default();
        for n in 0..6_000 {
            often.observe(Span::mins(1), u32::from(n % 10 == 0));
        }
        for _ in 0..100 {
            rarely.observe(Span::mins(60), 6);
        }
        assert!((often.rate() / rarely.rate() - 1.0).abs() < 0.01, "{} {}", often.rate(), rarely.rate());
    }

    #[test]
    fn an_estimate_survives_storage_and_nonsense() {
        let mut estimate = RateEstimate::new(f64::NAN, f64::INFINITY, Span::ZERO);
        estimate.observe(Span::ZERO, 1);
        estimate.observe(-Span::secs(5), 0);
        assert!(estimate.rate().is_finite() && estimate.rate() > 0.0);
        let text = serde_json::to_string(&estimate).expect("numbers");
        assert_eq!(serde_json::from_str::<RateEstimate>(&text).expect("the same"), estimate);
    }

    #[test]
    fn without_bounds_the_division_is_lagranges() {
        let items = [item(0.001, 1.0), item(0.04, 10.0), item(0.2, 40.0)];
        let price = price(&items, 2.0);
        let root: f64 = items.iter().map(|item| (item.rate * item.cost).sqrt()).sum();
        for item in &items {
            let expected = root / 2.0 * (item.cost / item.rate).sqrt();
            let found = item.interval(price).as_secs_f64();
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn a_clamped_target_leaves_its_surplus_to_the_others() {
        let hot = Item { min: Span::secs(60), ..item(100.0, 1.0) };
        let items = [hot, item(0.01, 1.0), item(0.01, 1.0)];
        let price = price(&items, 1.0);
        assert_eq!(items[0].interval(price), Span::secs(60));
        let left = (1.0 - 1.0 / 60.0) / 2.0;
        assert!((items[1].interval(price).as_secs_f64() * left - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_budget_that_cannot_fit_says_so() {
        let bounded = |rate| Item { min: Span::secs(10), max: Span::secs(100), ..item(rate, 2.0) };
        let items = [bounded(0.1), bounded(0.0)];
        assert_eq!(fit(&items, 0.01), Fit::TooSmall { needed: 0.04 });
        assert_eq!(price(&items, 0.01), f64::INFINITY);
        assert!(items.iter().all(|item| item.interval(f64::INFINITY) == Span::secs(100)));
        assert_eq!(fit(&items, 9.0), Fit::TooLarge { usable: 0.22 });
        assert_eq!(price(&items, 9.0), 0.0);
        assert_eq!(items[0].interval(0.0), Span::secs(10));
        assert_eq!(items[1].interval(0.0), Span::secs(100), "what never happens stays at its longest");
        assert_eq!(fit(&items, 0.1), Fit::Spent);
        assert_eq!((price(&[], 1.0), spend(&[], 0.0)), (0.0, 0.0));
        assert_eq!(price(&items, f64::NAN), f64::INFINITY);
    }

    #[test]
    fn wrong_bounds_do_not_panic() {
        let wrong = Item { min: Span::secs(100), max: Span::secs(10), ..item(0.1, 1.0) };
        assert_eq!(wrong.interval(price(&[wrong], 1.0)), Span::secs(100));
    }
}
