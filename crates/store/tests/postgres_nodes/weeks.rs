//! History by weeks: made ahead, dropped whole, in nobody's way.

use std::time::Duration;

use stakeout_core::Span;
use stakeout_store::conformance::story::{Poll, SOURCE, STREAM, World, after, at, print};
use stakeout_store::{Claim, Retention, Stamp, Store};

use crate::support::{database, number, open, raw};

/// History goes by whole weeks; the newest row of what is held stays, and what lies outside every week is kept, too.
#[tokio::test]
async fn history_goes_by_weeks() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let raw = raw(&url).await;
    let week = 7 * 24 * 3_600;
    let keep = Span::hours(4 * 7 * 24);
    let retention = Retention { events: keep, history: keep, polls: keep, gone_records: keep };
    let weeks = "SELECT count(*) FROM pg_class WHERE relname ~ '^history_w\\d+$'";
    // Before the weeks around this time exist, rows go to the default.
    let mut claim = world.claim_one(0).await;
    let first =
        Poll::of(&claim, 1).with(|p| p.hold_until = Some(at(99 * week))).sees(&claim, &[("x", 1), ("y", 1)]);
    world.done(first.clone()).await;
    claim = after(&claim, &first);
    assert_eq!(number(&raw, "SELECT count(*) FROM history_default").await, 2);
    world.store.prune(&retention, at(2), 100).await.expect("makes weeks");
    assert_eq!(number(&raw, "SELECT count(*) FROM history_default").await, 0, "moved to its week");
    for n in 1..=9 {
        let poll = Poll::of(&claim, n * week).with(|p| p.hold_until = Some(at(99 * week)));
        let poll = poll.sees(&claim, &[("x", n + 1), ("y", 1)]);
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
        while world.store.prune(&retention, at(n * week), 100).await.expect("prune").more {}
    }
    let left = world.store.history(SOURCE, print("x"), Some(STREAM), 99).await.expect("history");
    let prices: Vec<i64> = left.iter().filter_map(|row| row.values["price"].as_i64()).collect();
    assert_eq!(prices, [6, 7, 8, 9, 10], "four weeks");
    let y = world.store.history(SOURCE, print("y"), None, 99).await.expect("history");
    assert_eq!(y.len(), 1, "its only price, although its week is gone");
    assert!(number(&raw, weeks).await <= 4 + 2 + 4 + 6, "old weeks are gone");
    let old =
        Poll::of(&claim, 10 * week).with(|p| p.now = at(-50 * week)).remembers("x", 77, Stamp::Upstream);
    let done = world.done(old.with(|p| p.now = at(10 * week))).await;
    assert_eq!(done.history_rows, 1, "a time outside every week has a place");
}

/// Where history is kept for days, rows go one by one, and the weeks that they were in go, too.
#[tokio::test]
async fn weeks_go_where_history_is_kept_for_days() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let raw = raw(&url).await;
    let week = 7 * 24 * 3_600;
    let keep = Span::hours(3 * 24);
    let retention = Retention { events: keep, history: keep, polls: keep, gone_records: keep };
    let mut claim = world.claim_one(0).await;
    for n in 1..=12 {
        let poll = Poll::of(&claim, n * week).with(|p| p.hold_until = Some(at(99 * week)));
        let poll = poll.sees(&claim, &[("x", n), ("y", 1)]);
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
        while world.store.prune(&retention, at(n * week), 100).await.expect("prune").more {}
    }
    // Those that the opening made lie elsewhere. Of the stories' there are the two before this one, its own and the four
    // ahead.
    let ours = "SELECT count(*) FROM pg_class WHERE relname ~ '^history_w\\d+$'
        AND substring(relname FROM 10)::bigint BETWEEN stakeout_week($1) - 12 AND stakeout_week($1) + 4";
    let left: i64 = raw.query_one(ours, &[&at(12 * week).us()]).await.expect("counted").get(0);
    assert!(left <= 7, "{left} weeks are left");
    for name in ["x", "y"] {
        let kept = world.store.history(SOURCE, print(name), Some(STREAM), 99).await.expect("history");
        assert_eq!(kept.len(), 1, "the newest of {name}");
    }
}

/// Whatever becomes of the weeks, a write finds a place: while one is missing, while they are made and dropped, and while
/// somebody who reads keeps them from being so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_week_never_blocks_a_write() {
    let url = database!();
    let world = World::with(open(&url).await, &["a"]).await;
    let (raw, mut reader) = (raw(&url).await, raw(&url).await);
    let week = 7 * 24 * 3_600;
    let keep = Span::hours(4 * 7 * 24);
    let retention = Retention { events: keep, history: keep, polls: keep, gone_records: keep };
    let unplaced = "SELECT count(*) FROM history_default";
    let mut claim = world.claim_one(0).await;
    let mut price = 0;
    let mut next = |claim: &Claim, secs: i64| {
        price += 1;
        Poll::of(claim, secs).with(|p| p.hold_until = Some(at(99 * week))).sees(claim, &[("x", price)])
    };
    world.store.prune(&retention, at(0), 100).await.expect("makes weeks");

    let this_week = "SELECT 'history_w' || stakeout_week(at_us) FROM (SELECT $1::bigint AS at_us) moment";
    let name: String = raw.query_one(this_week, &[&at(1).us()]).await.expect("a week").get(0);
    raw.batch_execute(&format!("DROP TABLE {name}")).await.expect("somebody removes it");
    let poll = next(&claim, 1);
    world.done(poll.clone()).await;
    claim = after(&claim, &poll);
    assert_eq!(number(&raw, unplaced).await, 1, "kept aside");
    world.store.prune(&retention, at(2), 100).await.expect("makes it again");
    assert_eq!(number(&raw, unplaced).await, 0, "moved to its week");

    // Somebody reads and takes their time: weeks have to wait, and whoever waits for weeks does not keep writers waiting.
    let reading = reader.transaction().await.expect("begins");
    reading.query("SELECT * FROM history", &[]).await.expect("reads");
    let poll = next(&claim, 6 * week);
    let (pruned, written) = tokio::join!(
        world.store.prune(&retention, at(6 * week), 100),
        tokio::time::timeout(Duration::from_secs(3), world.done(poll.clone())),
    );
    pruned.expect("gives up until later");
    assert_eq!(written.expect("in time").history_rows, 1);
    claim = after(&claim, &poll);
    reading.commit().await.expect("has read");

    // And while weeks come and go all the time.
    let pruner = open(&url).await;
    let pruning = tokio::spawn(async move {
        for n in 7..=40 {
            while pruner.prune(&retention, at(n * week), 100).await.expect("prune").more {}
        }
    });
    for n in 7..=40 {
        let poll = next(&claim, n * week);
        assert_eq!(world.done(poll.clone()).await.history_rows, 1);
        claim = after(&claim, &poll);
    }
    pruning.await.expect("done");
    let left = world.store.history(SOURCE, print("x"), Some(STREAM), 99).await.expect("history");
    let newest: Vec<i64> = left.iter().rev().take(4).filter_map(|row| row.values["price"].as_i64()).collect();
    assert_eq!(newest, [36, 35, 34, 33], "nothing young was lost");
}
