//! The answers against the truth, all through three days.

use stakeout_sim::resy::{Listed, Opening};

use super::*;

fn moments(market: &Market, step: Span) -> impl Iterator<Item = Time> {
    let (start, end) = (market.config().start, market.config().start + market.config().span);
    std::iter::successors(Some(start), move |at| Some(*at + step)).take_while(move |at| *at < end)
}

#[test]
fn what_pages_say_is_what_is_true() {
    for seed in 1..=4 {
        let slot_cap = (seed % 2 == 0).then_some(3);
        let upstream = upstream(MarketConfig { slot_cap, churn: 4.0, ..MarketConfig::new(seed) });
        let truth = upstream.market().truth();
        for (n, now) in moments(upstream.market(), Span::mins(97)).enumerate() {
            let bucket = match n % 2 {
                0 => evening(date(n % 17, upstream.market())),
                _ => afternoon(date(n % 17, upstream.market())),
            };
            let party = [2, 4, 6][n % 3];
            let found = poll(&upstream, bucket, party, now, Span::ZERO);
            let context = format!("seed {seed}, {bucket} for {party} at {now}");
            assert_eq!(found.slots, keys(truth.shown(bucket, &[party], now)), "{context}");
            let mut count = 0;
            for venue in upstream.market().venues() {
                let listed = truth.listed(venue.id, bucket, &[party], now);
                assert_eq!(found.unbookable.contains(&venue.id), listed == Listed::Unbookable, "{context}");
                count += u64::from(listed != Listed::Absent);
            }
            assert_eq!(found.totals, [count].into(), "{context}");
            assert_eq!(found.hits as u64, count, "every venue once: {context}");
        }
    }
}

#[test]
fn without_a_cap_everything_open_is_shown() {
    let market = Market::new(MarketConfig { slot_cap: None, ..MarketConfig::new(5) });
    let truth = market.truth();
    for day in [0, 3, 9] {
        let bucket = evening(date(day, &market));
        assert_eq!(truth.openings(bucket, &[2, 4]), truth.showings(bucket, &[2, 4]));
    }
}

#[test]
fn openings_say_what_is_open_when() {
    let market = Market::new(MarketConfig { slot_cap: None, churn: 3.0, ..MarketConfig::new(6) });
    let (truth, bucket) = (market.truth(), evening(date(2, &market)));
    let openings = truth.openings(bucket, &[4]);
    assert!(openings.len() > 500, "{}", openings.len());
    for now in moments(&market, Span::mins(71)) {
        let open = |opening: &&Opening| opening.from <= now && now < opening.until;
        let open: BTreeSet<Slot> = openings.iter().filter(open).map(|opening| opening.slot).collect();
        assert_eq!(open, keys(truth.shown(bucket, &[4], now)), "at {now}");
    }
}

#[test]
fn a_capped_venue_shows_its_nearest_tables_and_no_more() {
    let upstream = upstream(MarketConfig::new(7));
    let free = upstream_without_cap(7);
    let (now, bucket) = (upstream.market().config().start, evening(date(4, upstream.market())));
    let (capped, all) =
        (poll(&upstream, bucket, 2, now, Span::ZERO), poll(&free, bucket, 2, now, Span::ZERO));
    assert!(capped.slots.is_subset(&all.slots) && capped.slots.len() < all.slots.len() / 2);
    assert_eq!(capped.unbookable, all.unbookable);
    let minutes =
        |slot: &Slot| (i32::from(slot.start.hour()) * 60 + i32::from(slot.start.minute()) - 1_230).abs();
    for venue in upstream.market().venues() {
        let of = |found: &Found| {
            found.slots.iter().filter(|s| s.venue == venue.id).map(minutes).collect::<Vec<_>>()
        };
        let farthest_shown = of(&capped).into_iter().max();
        let hidden =
            all.slots.difference(&capped.slots).filter(|slot| slot.venue == venue.id).map(minutes).min();
        assert!(of(&capped).len() <= 3);
        assert!(hidden.is_none() || farthest_shown <= hidden, "{} {hidden:?}", venue.name);
    }
}

fn upstream_without_cap(seed: u64) -> Upstream {
    upstream(MarketConfig { slot_cap: None, ..MarketConfig::new(seed) })
}

#[test]
fn the_same_seed_is_the_same_market_and_time_may_run_backwards() {
    let (one, two) = (upstream(MarketConfig::new(8)), upstream(MarketConfig::new(8)));
    let other = upstream(MarketConfig::new(9));
    let bucket = evening(date(3, one.market()));
    let request = body(bucket, 2, 1);
    let times: Vec<Time> = moments(one.market(), Span::hours(3)).collect();
    let forwards: Vec<Answer> = times.iter().map(|now| ask(&one, &request, *now)).collect();
    let mut backwards: Vec<Answer> = times.iter().rev().map(|now| ask(&two, &request, *now)).collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    assert_ne!(forwards[0], ask(&other, &request, times[0]));
    assert!(forwards.windows(2).any(|pair| pair[0] != pair[1]), "tables move");
}

#[test]
fn tables_go_off_the_market_before_their_time() {
    let market = Market::new(MarketConfig { slot_cap: None, ..MarketConfig::new(10) });
    let today = evening(date(0, &market));
    // Local midnight at the start; the last table is at 23:30 at the latest.
    let at = |hours| market.truth().shown(today, &[2], market.config().start + Span::hours(hours)).len();
    assert!(at(1) > 300, "{}", at(1));
    assert!(at(20) < at(1) && at(20) > 0, "{}", at(20));
    assert_eq!(at(24), 0);
}
