//! What nodes agree on: parts of limits, leases, prices.

use stakeout_core::Span;
use stakeout_store::conformance::story::{SOURCE, World, at};
use stakeout_store::{Allowance, GrantRequest, LaneRequest, Lease, LeaseRequest, Store};

use crate::support::{database, open};

fn wish(node: &str, now: i64, demand: f64, using: Allowance) -> GrantRequest {
    GrantRequest {
        source: SOURCE.to_owned(),
        node: node.to_owned(),
        now: at(now),
        holds: Span::secs(5),
        limits: Allowance { requests_per_second: 100.0, burst: 10, concurrency: 4 },
        demand,
        using,
        slow_until: None,
    }
}

/// What is granted never adds up to more than there is, also while a part is being made smaller.
#[tokio::test]
async fn limits_are_divided_and_never_handed_out_twice() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let nothing = Allowance::default();
    let ask = async |node: &str, now, demand, using| {
        world.store.grant(&wish(node, now, demand, using)).await.expect("asked").expect("known")
    };
    let one = ask("one", 0, 90.0, nothing).await;
    assert_eq!(one.allowance, Allowance { requests_per_second: 100.0, burst: 10, concurrency: 4 });
    assert!(one.first, "nobody was here before");
    let two = ask("two", 1, 0.0, nothing).await;
    assert_eq!(two.allowance, nothing, "everything is in use");
    let less = ask("one", 1, 90.0, one.allowance).await;
    assert!(less.allowance.requests_per_second < 96.0 && less.allowance.concurrency == 3, "{less:?}");
    let two = ask("two", 2, 0.0, nothing).await;
    assert_eq!(two.allowance, nothing, "it may still be using what it had");
    let one = ask("one", 2, 90.0, less.allowance).await.allowance;
    let two = ask("two", 2, 90.0, nothing).await;
    assert!(
        two.allowance.requests_per_second > 4.0 && two.allowance.concurrency == 1 && !two.first,
        "{two:?}"
    );
    assert_eq!(two.mean_demand, 90.0);
    let sum = one.requests_per_second + two.allowance.requests_per_second;
    assert!(sum <= 100.0 + 1e-9, "{sum}");
    // Both want the same: after a few rounds both have the same.
    let (mut a, mut b) = (one, two.allowance);
    for now in 3..8 {
        a = ask("one", now, 90.0, a).await.allowance;
        b = ask("two", now, 90.0, b).await.allowance;
        assert!(a.requests_per_second + b.requests_per_second <= 100.0 + 1e-9, "{a:?} {b:?}");
        assert!(a.burst + b.burst <= 10 && a.concurrency + b.concurrency <= 4, "{a:?} {b:?}");
    }
    assert_eq!((a.requests_per_second.round(), a.concurrency, a.burst), (50.0, 2, 5));
    assert_eq!((b.requests_per_second.round(), b.concurrency, b.burst), (50.0, 2, 5));
    world.store.leave("one").await.expect("leaves");
    let all = ask("two", 8, 90.0, b).await.allowance;
    assert_eq!((all.requests_per_second, all.concurrency), (100.0, 4), "what is left behind is free at once");
}

#[tokio::test]
async fn a_lease_has_one_owner_and_outlives_it_by_its_time() {
    let url = database!();
    let world = World::with(open(&url).await, &[]).await;
    let ask = async |node: &str, now| {
        let name = "source x".to_owned();
        let request = LeaseRequest { name, node: node.to_owned(), now: at(now), holds: Span::secs(5) };
        world.store.lease(&request).await.expect("asked")
    };
    assert_eq!(ask("one", 0).await, Some(Lease { until: at(5), taken_over: false }));
    assert_eq!(ask("two", 1).await, None);
    assert_eq!(ask("one", 2).await, Some(Lease { until: at(7), taken_over: false }));
    assert_eq!(ask("two", 6).await, None);
    assert_eq!(ask("two", 7).await, Some(Lease { until: at(12), taken_over: true }));
    assert_eq!(ask("one", 8).await, None);
    world.store.leave("two").await.expect("leaves");
    assert_eq!(ask("one", 8).await, Some(Lease { until: at(13), taken_over: false }));
}

fn whole(node: &str, now: i64, under_way: bool, slow_until: Option<i64>) -> LaneRequest {
    LaneRequest {
        source: SOURCE.to_owned(),
        node: node.to_owned(),
        now: at(now),
        holds: Span::secs(5),
        under_way,
        slow_until: slow_until.map(at),
    }
}

/// A setting makes a lane of a source whose limits were divided, and the other way round; nodes hear of it one after the
/// other. Nobody has the whole while another may be using a part, nor a part while another has the whole.
#[tokio::test]
async fn a_source_is_never_whole_here_and_divided_there() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let nothing = Allowance::default();
    let part = async |node: &str, now, using| {
        world.store.grant(&wish(node, now, 50.0, using)).await.expect("asked").expect("known").allowance
    };
    let lane = async |node: &str, now, under_way| {
        world.store.lane(&whole(node, now, under_way, None)).await.expect("asked").map(|lane| lane.lease)
    };
    let (mut one, mut two) = (nothing, nothing);
    for now in 0..5 {
        one = part("one", now, one).await;
        two = part("two", now, two).await;
    }
    assert!(one.concurrency > 0 && two.concurrency > 0, "{one:?} {two:?}");
    // One hears of it first, with a request under way; two has its part.
    assert_eq!(lane("one", 4, true).await, None, "two may be asking");
    assert_eq!(lane("two", 5, false).await, None, "one may still be asking");
    assert_eq!(
        lane("one", 6, false).await,
        Some(Lease { until: at(11), taken_over: false }),
        "both have done"
    );
    // And back: two hears of it first.
    assert_eq!(part("two", 7, nothing).await, nothing, "one has the whole");
    let one = part("one", 8, Allowance { concurrency: 1, ..nothing }).await;
    assert!(one.concurrency > 0, "what it had under way counts with its part: {one:?}");
    let two = part("two", 9, nothing).await;
    assert!(one.concurrency + two.concurrency <= 4, "{one:?} {two:?}");
    assert_eq!(lane("three", 10, false).await, None, "parts are alive");
    // A part that runs out without a word: its node may not know yet.
    assert_eq!(lane("three", 15, false).await, Some(Lease { until: at(20), taken_over: true }));
}

/// What the upstream asked one node for, every other one hears, however they share the source.
#[tokio::test]
async fn an_upstream_that_asks_for_silence_is_heard_by_all() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let part = async |node: &str, now, slow: Option<i64>| {
        let wish = GrantRequest { slow_until: slow.map(at), ..wish(node, now, 50.0, Allowance::default()) };
        world.store.grant(&wish).await.expect("asked").expect("known").slow_until
    };
    let lane =
        async |node: &str, now, slow| world.store.lane(&whole(node, now, false, slow)).await.expect("asked");
    assert_eq!(part("one", 0, None).await, None);
    assert_eq!(part("one", 1, Some(100)).await, Some(at(100)));
    assert_eq!(part("two", 1, None).await, Some(at(100)), "another node hears of it");
    assert_eq!(part("two", 2, Some(90)).await, Some(at(100)), "the longest counts");
    // The holder of a lane is told to wait, and dies: its successor waits, too.
    assert_eq!(lane("one", 10, Some(200)).await.expect("alone").slow_until, Some(at(200)));
    assert_eq!(lane("two", 11, None).await, None);
    assert_eq!(lane("two", 15, None).await.expect("taken over").slow_until, Some(at(200)));
    // And so does whoever is given a part of it afterwards.
    world.store.leave("two").await.expect("leaves");
    assert_eq!(part("three", 16, None).await, Some(at(200)));
}

#[tokio::test]
async fn one_node_writes_the_price_and_all_read_it() {
    let url = database!();
    let (one, two) = (World::with(open(&url).await, &["a"]).await, open(&url).await);
    assert_eq!(two.price(SOURCE).await.expect("read"), None);
    one.store.set_price(SOURCE, 0.25, at(1)).await.expect("written");
    one.store.set_price(SOURCE, 0.5, at(2)).await.expect("written");
    assert_eq!(two.price(SOURCE).await.expect("read"), Some(0.5));
}
