//! What a budget buys: how long a sweep over all buckets takes, and how long a drop waits to be seen.

use serde::Serialize;
use stakeout_core::Span;

use super::{PLANNED_SHARE, Rate};

/// What there is to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Venues in the box.
    pub venues: u64,
    /// Venues per page.
    pub per_page: u32,
    /// How many party sizes are asked for.
    pub party_sizes: u32,
    /// Buckets: days × time slots × markets.
    pub buckets: u32,
    /// How often the provider may be asked.
    pub budget: Rate,
    /// The shortest time between two polls of a bucket.
    pub min_interval: Span,
    /// The longest.
    pub max_interval: Span,
}

/// What comes of it, if nothing is hotter than the rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Requests that one poll of a bucket takes.
    pub requests_per_poll: u64,
    /// Requests that one sweep over all buckets takes.
    pub requests_per_sweep: u64,
    /// How long a sweep takes, and so how often a bucket is polled: a part of the budget is kept for retries and new
    /// buckets, and nobody is polled more often than the shortest interval.
    pub sweep_ms: i64,
    /// How long a drop waits on average until it is seen: half a sweep, and half the time that a bucket is read in.
    pub expected_delay_ms: i64,
    /// What a user should know about it.
    pub warning: Option<String>,
}

/// A drop that is seen later than this on average is worth a warning.
const SOON: Span = Span::secs(60);

/// What this load comes to.
pub fn forecast(load: &Load) -> Forecast {
    let pages = load.venues.div_ceil(u64::from(load.per_page.max(1))).max(1);
    let requests_per_poll = pages * u64::from(load.party_sizes.max(1));
    let requests_per_sweep = requests_per_poll * u64::from(load.buckets);
    let seconds = |requests: u64| requests as f64 / load.budget.per_second();
    let planned = Span::from_secs_f64(seconds(requests_per_sweep) / PLANNED_SHARE).max(load.min_interval);
    // At the longest interval the kept part is used, too, and then there is no more.
    let sweep = planned.min(load.max_interval.max(Span::from_secs_f64(seconds(requests_per_sweep))));
    let delay = (sweep + Span::from_secs_f64(seconds(requests_per_poll))).over(2);
    let warning = (delay > SOON).then(|| {
        format!(
            "a drop waits {delay} on average: raise the budget, or look at a smaller box, fewer days, times or party sizes"
        )
    });
    Forecast {
        requests_per_poll,
        requests_per_sweep,
        sweep_ms: sweep.as_ms(),
        expected_delay_ms: delay.as_ms(),
        warning,
    }
}

/// The same for people: what a sweep takes, how long a drop waits, and the warning if there is one.
pub fn words(load: &Load) -> Vec<String> {
    let Forecast { requests_per_poll, requests_per_sweep, sweep_ms, expected_delay_ms, warning } =
        forecast(load);
    let (sweep, delay) = (Span::ms(sweep_ms), Span::ms(expected_delay_ms));
    let sum = format!(
        "{} venues: {requests_per_poll} requests per poll, {requests_per_sweep} for a sweep of {} buckets, which takes {sweep} at {}; a drop waits {delay} on average",
        load.venues, load.buckets, load.budget
    );
    std::iter::once(sum).chain(warning.map(|warning| format!("warning: {warning}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_box_is_warned_about_and_a_small_one_is_not() {
        let large = Load {
            venues: 2_722,
            per_page: 75,
            party_sizes: 2,
            buckets: 28,
            budget: Rate::per_minute(60.0),
            min_interval: Span::secs(10),
            max_interval: Span::hours(2),
        };
        let seen = forecast(&large);
        assert_eq!((seen.requests_per_poll, seen.requests_per_sweep, seen.sweep_ms), (74, 2_072, 2_302_222));
        assert!(seen.warning.is_some_and(|words| words.contains("19 min")));
        let small = Load { venues: 60, party_sizes: 1, ..large };
        assert_eq!(forecast(&small).sweep_ms, 31_111);
        assert_eq!(forecast(&small).warning, None);
        assert!(words(&small)[0].ends_with("a drop waits 16.1 s on average"), "{:?}", words(&small));
        let rich = Load { budget: Rate::per_minute(6_000.0), ..small };
        assert_eq!(
            forecast(&rich).sweep_ms,
            10_000,
            "nobody is polled more often than the shortest interval"
        );
        let hurried = Load { max_interval: Span::mins(1), ..large };
        assert_eq!(forecast(&hurried).sweep_ms, 2_072_000, "more than the budget there is not");
    }
}
