//! Which openings are drops: the truth's replay against the rules applied naively to what polls show.

use stakeout_sim::SplitMix64;
use stakeout_sim::resy::{Drop, Listed, Look, Report, Verdict, Watch};

use super::*;

/// Looks at every bucket of the first dates at uneven times.
fn looks(market: &Market, watch: &Watch, seed: u64, mean: Span) -> Vec<Look> {
    let mut rng = SplitMix64::new(seed);
    let mut looks = Vec::new();
    for day in market.dates().take(4) {
        for time in &watch.times {
            let mut at = market.config().start;
            while at < market.config().start + market.config().span {
                at += Span::us(rng.between(1, 2 * mean.as_us() as u64) as i64);
                looks.push(Look { at, bucket: Bucket::new(day, *time) });
            }
        }
    }
    looks.sort();
    looks
}

/// What a bucket knows after a look.
#[derive(Default)]
struct Known {
    slots: BTreeSet<Slot>,
    absent: BTreeMap<u64, u32>,
    at: Option<Time>,
}

/// The rules, look by look over whole buckets.
fn naive(market: &Market, watch: &Watch, looks: &[Look]) -> Vec<(Time, Bucket, Slot)> {
    let truth = market.truth();
    let mut known: BTreeMap<Bucket, Known> = BTreeMap::new();
    let mut told: BTreeMap<Slot, Time> = BTreeMap::new();
    let mut drops = Vec::new();
    for Look { at, bucket } in looks {
        let slots = keys(truth.shown(*bucket, &watch.parties, *at));
        let before = known.remove(bucket).unwrap_or_default();
        if before.at.is_some() {
            for slot in slots.difference(&before.slots) {
                let had_none = !before.slots.iter().any(|other| other.venue == slot.venue)
                    && before.absent.get(&slot.venue).is_none_or(|looks| *looks >= 2);
                let elsewhere = known.iter().any(|(other, known)| {
                    other.day == bucket.day
                        && known.at.is_some_and(|last| *at - last <= watch.fresh)
                        && known.slots.iter().any(|open| open.venue == slot.venue)
                });
                let quiet = told.get(slot).is_some_and(|last| *at - *last < watch.quiet);
                if had_none && !elsewhere && !quiet {
                    told.insert(*slot, *at);
                    drops.push((*at, *bucket, *slot));
                }
            }
        }
        let absent = market
            .venues()
            .iter()
            .filter(|venue| truth.listed(venue.id, *bucket, &watch.parties, *at) == Listed::Absent);
        let absent = absent.map(|venue| (venue.id, before.absent.get(&venue.id).unwrap_or(&0) + 1)).collect();
        known.insert(*bucket, Known { slots, absent, at: Some(*at) });
    }
    drops.sort_by_key(|(at, bucket, slot)| (*at, *slot, *bucket));
    drops
}

fn told(drops: &[Drop]) -> Vec<(Time, Bucket, Slot)> {
    drops.iter().map(|drop| (drop.seen, drop.bucket, drop.slot)).collect()
}

#[test]
fn the_replay_agrees_with_the_rules_applied_naively() {
    for seed in 1..=4 {
        let config = MarketConfig { venues: 30, cancellations: 400.0, ..MarketConfig::new(seed) };
        let config = MarketConfig { slot_cap: (seed % 2 == 0).then_some(3), ..config };
        let (market, watch) = (Market::new(config), Watch::default());
        let looks = looks(&market, &watch, seed, Span::mins(15));
        let expected = market.truth().expected(&watch, &looks);
        assert!(expected.len() > 40, "seed {seed}: {}", expected.len());
        assert_eq!(told(&expected), naive(&market, &watch, &looks), "seed {seed}");
    }
}

#[test]
fn every_told_drop_is_true_and_was_open_when_seen() {
    let (market, watch) = (Market::new(MarketConfig::new(5)), Watch::default());
    let looks = looks(&market, &watch, 5, Span::mins(5));
    for drop in market.truth().expected(&watch, &looks) {
        assert!(drop.opened <= drop.seen && drop.seen < drop.closed);
        let own: Vec<Time> =
            looks.iter().filter(|look| look.bucket == drop.bucket).map(|look| look.at).collect();
        let since = own[own.partition_point(|at| *at < drop.seen) - 1];
        let report = Report { bucket: drop.bucket, slot: drop.slot, since, at: drop.seen };
        assert_eq!(
            market.truth().verdict(&watch, &report),
            Verdict::True { opened: drop.opened },
            "{}",
            drop.slot
        );
        let shown = market.truth().shown(drop.bucket, &watch.parties, drop.seen);
        assert_eq!(shown[&drop.slot], drop.parties);
    }
}

#[test]
fn who_looks_more_often_sees_more_and_sooner_and_nobody_more_than_is_there() {
    let (market, watch) = (Market::new(MarketConfig::new(6)), Watch::default());
    let (start, end) = (market.config().start, market.config().start + market.config().span);
    let truth = market.truth();
    let all = truth.drops(&watch, start, end);
    assert!(all.iter().all(|drop| drop.opened == drop.seen), "who always looks sees at once");
    let evenings: BTreeSet<Bucket> = all.iter().map(|drop| drop.bucket).collect();
    let every = |span: Span| -> Vec<Look> {
        let times = (0..).map(|n| start + span.times(n)).take_while(|at| *at < end);
        times.flat_map(|at| evenings.iter().map(move |bucket| Look { at, bucket: *bucket })).collect()
    };
    let mut counts = Vec::new();
    let mut delays = Vec::new();
    for minutes in [1, 10, 60] {
        let looks = every(Span::mins(minutes));
        let seen = truth.expected(&watch, &looks);
        let delay: f64 = seen.iter().map(|drop| (drop.seen - drop.opened).as_secs_f64()).sum::<f64>();
        counts.push(seen.len());
        delays.push(delay / seen.len() as f64);
        let mut times: Vec<Time> = looks.iter().map(|look| look.at).collect();
        times.dedup();
        let could = all.iter().filter(|drop| drop.first_seen(&times).is_some()).count();
        assert!(
            could <= all.len() && could * 10 > seen.len() * 8,
            "{could} could be seen, {} were",
            seen.len()
        );
    }
    assert!(counts[0] > counts[1] && counts[1] > counts[2], "{counts:?} of {}", all.len());
    assert!(delays[0] < delays[1] && delays[1] < delays[2], "{delays:?}");
    assert!(all.len() * 9 > counts[0] * 8, "{} in all, {counts:?}", all.len());
}
