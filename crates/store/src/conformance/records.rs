//! Records, who holds them, and their history.

use super::Backend;
use super::story::{Poll, SOURCE, STREAM, World, after, at, print};
use crate::{Base, Claim, CommitOutcome, Effect, PollCommit, Stamp};

/// The life of a record: first seen once, changed when its content is, gone when nobody holds it.
pub async fn a_record_appears_changes_and_vanishes(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 100)]);
    world.done(first.clone().tells(&claim, "new", "x", Effect::Appeared)).await;
    let record = world.record("x").await.expect("stored");
    assert_eq!((record.key.as_str(), record.holders, record.gone), ("x", 1, None));
    assert_eq!((record.first_seen, record.last_changed), (at(1), at(1)));
    assert_eq!(record.body["price"], 100);

    let claim = after(&claim, &first);
    let second = Poll::of(&claim, 2).holding(&claim).sees(&claim, &[("x", 90)]);
    let told = second.clone().tells(&claim, "new", "x", Effect::Appeared).tells(
        &claim,
        "price",
        "x",
        Effect::Changed,
    );
    let done = world.done(told).await;
    assert_eq!(done.events.iter().map(|e| e.rule.as_str()).collect::<Vec<_>>(), ["price"]);
    let record = world.record("x").await.expect("stored");
    assert_eq!((record.first_seen, record.last_changed), (at(1), at(2)));

    let claim = after(&claim, &second);
    let third = Poll::of(&claim, 3).holding(&claim).sees(&claim, &[]);
    let done = world.done(third.clone().tells(&claim, "gone", "x", Effect::Vanished)).await;
    assert_eq!(done.events.len(), 1);
    let record = world.record("x").await.expect("still known");
    assert_eq!((record.holders, record.gone, record.gone_natural), (0, Some(at(3)), false));

    let claim = after(&claim, &third);
    let fourth = Poll::of(&claim, 4).holding(&claim).sees(&claim, &[("x", 90)]);
    let done = world.done(fourth.clone().tells(&claim, "new", "x", Effect::Appeared)).await;
    assert_eq!(done.events.len(), 1, "it appeared again");
    let record = world.record("x").await.expect("stored");
    assert_eq!((record.holders, record.gone, record.first_seen), (1, None, at(1)));
    assert_eq!(world.history_rows("x").await, 3, "100, 90, and 90 again after it had been gone");

    let claim = after(&claim, &fourth);
    let passed = |commit: &mut PollCommit| commit.releases.iter_mut().for_each(|gone| gone.natural = true);
    let fifth = Poll::of(&claim, 5).holding(&claim).sees(&claim, &[]).with(passed);
    world.done(fifth.clone()).await;
    let record = world.record("x").await.expect("still known");
    assert_eq!((record.gone, record.gone_natural), (Some(at(5)), true), "its time had come");
    let claim = after(&claim, &fifth);
    world.done(Poll::of(&claim, 6).sees(&claim, &[("x", 90)])).await;
    let record = world.record("x").await.expect("stored");
    assert_eq!((record.gone, record.gone_natural), (None, false));
}

/// Two targets see one slot: it appears once and vanishes when the second lets go.
pub async fn a_shared_record_is_one_record(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["party-2", "party-4"]).await;
    let claims = world.claim(0).await;
    let mut told = Vec::new();
    for claim in &claims {
        let poll = Poll::of(claim, 1).sees(claim, &[("slot", 1)]);
        told.push(world.done(poll.tells(claim, "drop", "slot", Effect::Appeared)).await.events.len());
    }
    assert_eq!(told, [1, 0], "told once");
    assert_eq!(world.record("slot").await.expect("stored").holders, 2);
    assert_eq!(world.history_rows("slot").await, 1, "one change, one row");

    let claims = world.claim(11).await;
    let mut told = Vec::new();
    for claim in &claims {
        let poll = Poll::of(claim, 12).sees(claim, &[]);
        told.push(world.done(poll.tells(claim, "taken", "slot", Effect::Vanished)).await.events.len());
    }
    assert_eq!(told, [0, 1], "gone when nobody holds it");
    assert_eq!(world.record("slot").await.expect("known").gone, Some(at(12)));
}

/// An answer that was asked for earlier does not bring back what is outdated.
pub async fn the_newest_observation_of_a_shared_record_wins(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["party-2", "party-4"]).await;
    let claims = world.claim(0).await;
    let (slow, quick) = (&claims[0], &claims[1]);
    world.done(Poll::of(quick, 10).sees(quick, &[("slot", 2)])).await;
    let outdated = Poll::of(slow, 5).sees(slow, &[("slot", 1)]).tells(slow, "price", "slot", Effect::Changed);
    assert_eq!(world.done(outdated).await.events, []);
    let record = world.record("slot").await.expect("stored");
    assert_eq!((record.body["price"].as_i64(), record.holders), (Some(2), 2), "older, but one more holder");
    assert_eq!(world.history_rows("slot").await, 1);

    let slow = world.claim(15).await.remove(0);
    let caught_up =
        Poll::of(&slow, 15).sees(&slow, &[("slot", 2)]).tells(&slow, "price", "slot", Effect::Changed);
    assert_eq!(world.done(caught_up).await.events, [], "news to this target, but to nobody else");
}

/// The upstream's own points come with every answer; each is kept once.
pub async fn upstream_history_is_written_once(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)]).with(|p| p.history.clear());
    world.done(first.clone().remembers("x", 7, Stamp::Upstream)).await;
    let claim = after(&claim, &first);
    let second = Poll::of(&claim, 2).with(|p| p.now = at(1)).remembers("x", 8, Stamp::Upstream);
    let second = second.with(|p| p.now = at(2)).remembers("x", 9, Stamp::Upstream);
    assert_eq!(world.done(second).await.history_rows, 1, "the one at second 1 is there already");
    let rows = world.store.history(SOURCE, print("x"), Some(STREAM), 10).await.expect("history");
    let seen: Vec<_> = rows.iter().map(|r| (r.at, r.values["price"].as_i64(), r.upstream)).collect();
    assert_eq!(seen, [(at(1), Some(7), true), (at(2), Some(9), true)], "oldest first");
    let newest = world.store.history(SOURCE, print("x"), None, 1).await.expect("history");
    assert_eq!(newest[0].at, at(2), "a limit keeps the newest");
    let streams = [("y", STREAM), ("x", STREAM), ("x", "other")].map(|(x, s)| (print(x), s.to_owned()));
    let told = world.store.told_until(SOURCE, &streams).await.expect("told");
    assert_eq!(told, [None, Some(at(2)), None], "one answer per question, in order");
    assert_eq!(world.store.history(SOURCE, print("x"), Some("other"), 9).await.expect("history"), []);
}

/// A move that a poll saw and stamped is told again by the upstream with its own, earlier time: one move, one row.
pub async fn the_upstreams_row_replaces_the_observed_one(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let seen = Poll::of(&claim, 5).holding(&claim).sees(&claim, &[("x", 7)]);
    world.done(seen.clone()).await;
    let stream = [(print("x"), STREAM.to_owned())];
    assert_eq!(world.store.told_until(SOURCE, &stream).await.expect("told"), [None], "we saw it ourselves");
    let claim = after(&claim, &seen);
    let told = Poll::of(&claim, 9).with(|p| p.now = at(3)).remembers("x", 7, Stamp::Upstream);
    world.done(told.with(|p| p.now = at(9))).await;
    let rows = world.store.history(SOURCE, print("x"), None, 10).await.expect("history");
    let rows: Vec<_> = rows.iter().map(|r| (r.at, r.values["price"].as_i64(), r.upstream)).collect();
    assert_eq!(rows, [(at(3), Some(7), true)]);
}

/// The upstream tells of one price, and the rows have two: of the other one its row says what was known then.
pub async fn the_upstreams_row_replaces_the_observed_one_although_another_field_moved_since(
    backend: &dyn Backend,
) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let row = |price: i64, pool: i64| format!(r#"{{"price":{price},"pool":{pool}}}"#);
    for (second, price, pool) in [(1, 5, 44), (5, 7, 44), (6, 7, 45)] {
        // The record itself is another one every time.
        let seen = Poll::of(&claim, second).holding(&claim).sees(&claim, &[("x", second)]);
        let seen = seen.with(|p| p.history[0].values = row(price, pool));
        world.done(seen.clone()).await;
        claim = after(&claim, &seen);
    }
    let told = Poll::of(&claim, 9).with(|p| p.now = at(3)).remembers("x", 7, Stamp::Upstream);
    world.done(told.with(|p| (p.now, p.history[0].values) = (at(9), row(7, 45)))).await;
    let rows = world.store.history(SOURCE, print("x"), None, 10).await.expect("history");
    let pair = |row: &crate::HistoryRow| (row.values["price"].as_i64(), row.values["pool"].as_i64());
    let rows: Vec<_> = rows.iter().map(|row| (row.at, pair(row), row.upstream)).collect();
    let expected = [(1, 5, 44, false), (3, 7, 44, true), (6, 7, 45, false)];
    let expected =
        expected.map(|(second, price, pool, upstream)| (at(second), (Some(price), Some(pool)), upstream));
    assert_eq!(rows, expected);
}

/// The upstream remembers only so much: when all of it is news, something in between may be lost, and that is said.
pub async fn a_gap_in_the_upstreams_history_is_marked(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    for (second, price, forgetful, gap) in [(1, 1, false, false), (2, 1, true, false), (6, 2, true, true)] {
        let oldest = |mut poll: Poll| {
            poll.0.history.iter_mut().for_each(|point| point.oldest_known = forgetful);
            poll
        };
        let poll = Poll::of(&claim, second)
            .holding(&claim)
            .sees(&claim, &[("x", price)])
            .with(|p| p.history.clear());
        // At second 2 the oldest that the upstream remembers is still the one of second 1.
        let stamped = at(if second == 2 { 1 } else { second });
        let poll = poll
            .with(|p| p.now = stamped)
            .remembers("x", price, Stamp::Upstream)
            .with(|p| p.now = at(second));
        let poll = oldest(poll);
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
        let rows = world.store.history(SOURCE, print("x"), None, 10).await.expect("history");
        assert_eq!(rows.last().map(|row| row.gap), Some(gap), "second {second}");
    }
}

/// What was seen before the clock was set back must not look newer than what is seen now.
pub async fn a_clock_set_back_does_not_freeze_records(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let ahead = Poll::of(&claim, 3_600).holding(&claim).sees(&claim, &[("x", 1)]);
    world.done(ahead.clone()).await;
    let claim = after(&claim, &ahead);
    let back = Poll::of(&claim, 5).sees(&claim, &[("x", 2)]).tells(&claim, "price", "x", Effect::Changed);
    assert_eq!(world.done(back).await.events.len(), 1);
    assert_eq!(world.record("x").await.expect("stored").body["price"].as_i64(), Some(2));
}

/// Two targets see one record change at the same time: the second has to look again at what the first made of it.
pub async fn a_record_that_changed_meanwhile_is_a_conflict(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    let claims = world.claim(0).await;
    let first = |claim: &Claim| Poll::of(claim, 1).holding(claim).sees(claim, &[("x", 1)]);
    world.done(first(&claims[0])).await;
    world.done(first(&claims[1])).await;
    let base = Base::Recalled(Some(world.record("x").await.expect("stored").content));
    let second = |n: usize, price: i64| {
        let claim = after(&claims[n], &first(&claims[n]));
        let poll =
            Poll::of(&claim, 2).sees(&claim, &[("x", price)]).tells(&claim, "price", "x", Effect::Changed);
        poll.with(|p| p.records[0].base = base)
    };
    assert_eq!(world.done(second(0, 2)).await.events.len(), 1);
    assert_eq!(world.commit(second(1, 3)).await, CommitOutcome::Conflict);
    assert_eq!(
        world.record("x").await.expect("stored").body["price"].as_i64(),
        Some(2),
        "nothing was written"
    );
}

/// What a poll stamps itself counts only if the record is another than before.
pub async fn observed_history_needs_a_real_change(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)]);
    assert_eq!(world.done(first.clone()).await.history_rows, 1);
    let claim = after(&claim, &first);
    let second = Poll::of(&claim, 2).sees(&claim, &[("x", 1)]).remembers("x", 1, Stamp::Observed);
    assert_eq!(world.done(second).await.history_rows, 0);
    assert_eq!(world.history_rows("x").await, 1);
}

/// No orphans from the start.
pub async fn history_without_a_record_is_refused(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let poll = Poll::of(&claim, 1).sees(&claim, &[("x", 1)]).remembers("unheard of", 1, Stamp::Upstream);
    assert!(matches!(world.commit(poll).await, CommitOutcome::Poisoned(_)));
    assert!(world.record("x").await.is_none(), "the poll is refused whole");
    assert!(
        matches!(world.commit(Poll::of(&claim, 2)).await, CommitOutcome::Done(_)),
        "and may be tried again"
    );
}
