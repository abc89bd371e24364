//! Who brings drops: a few, so that it pays to look where they come.

use stakeout_sim::resy::Watch;

use super::*;

/// How much of the whole the largest `share` of the counts have.
fn top(counts: impl IntoIterator<Item = usize>, share: f64) -> f64 {
    let mut counts: Vec<usize> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let all: usize = counts.iter().sum();
    let few = (counts.len() as f64 * share).round() as usize;
    counts[..few].iter().sum::<usize>() as f64 / all as f64
}

#[test]
fn a_few_venues_and_buckets_bring_most_drops() {
    for seed in 1..=3 {
        let (market, watch) = (Market::new(MarketConfig::new(seed)), Watch::default());
        let start = market.config().start;
        let drops = market.truth().drops(&watch, start, start + market.config().span);
        assert!((150..900).contains(&drops.len()), "seed {seed}: {} drops in three days", drops.len());
        let mut by_venue: BTreeMap<u64, usize> = market.venues().iter().map(|venue| (venue.id, 0)).collect();
        let days = market.dates().take(14);
        let mut by_bucket: BTreeMap<Bucket, usize> =
            days.flat_map(|day| [afternoon(day), evening(day)]).map(|bucket| (bucket, 0)).collect();
        for drop in &drops {
            *by_venue.entry(drop.slot.venue).or_default() += 1;
            *by_bucket.entry(drop.bucket).or_default() += 1;
        }
        let (venues, buckets) =
            (top(by_venue.into_values(), 0.1), top(by_bucket.clone().into_values(), 0.25));
        assert!(venues > 0.6, "seed {seed}: a tenth of the venues bring {venues:.2}");
        assert!(buckets > 0.6, "seed {seed}: a quarter of the buckets bring {buckets:.2}");
        assert!(by_bucket.values().filter(|count| **count <= 2).count() >= 6, "seed {seed}: {by_bucket:?}");
    }
}

#[test]
fn some_buckets_change_all_the_time_and_bring_next_to_nothing() {
    let (market, watch) =
        (Market::new(MarketConfig { slot_cap: None, ..MarketConfig::new(4) }), Watch::default());
    let start = market.config().start;
    let drops = market.truth().drops(&watch, start, start + market.config().span);
    let of = |bucket: Bucket| drops.iter().filter(|drop| drop.bucket == bucket).count();
    let churn = |bucket: Bucket| {
        market.truth().openings(bucket, &watch.parties).iter().filter(|o| o.from > start).count()
    };
    // The second Tuesday: a whole week and more ahead, and nobody cancels a Tuesday.
    let tuesday = afternoon(date(13, &market));
    assert!(churn(tuesday) > 100, "{} openings", churn(tuesday));
    assert!(of(tuesday) * 50 < churn(tuesday), "{} drops of {}", of(tuesday), churn(tuesday));
}
