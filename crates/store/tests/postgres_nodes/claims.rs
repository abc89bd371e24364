//! Who holds a target, by whose clock, and for how long.

use std::sync::Arc;

use stakeout_core::{Span, Time};
use stakeout_store::conformance::story::{Poll, SOURCE, World, after, at, request, wanted};
use stakeout_store::postgres::{PgOptions, PgStore};
use stakeout_store::{ClaimRequest, CommitOutcome, PollCommit, Store};

use crate::support::{busy, database, number, open, raw};

/// Two nodes claim at once: every target goes to exactly one, and nobody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_claimed_by_one_node() {
    let url = database!();
    let keys: Vec<String> = (0..200).map(|n| format!("t{n:03}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let mut claiming = tokio::task::JoinSet::new();
    for n in 0..4 {
        let store = if n == 0 { Arc::clone(&world.store) } else { open(&url).await as Arc<dyn Store> };
        claiming.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let ask = ClaimRequest { node: format!("node-{n}"), limit: 7, ..request(1) };
                let claims = store.claim(ask).await.expect("claim");
                if claims.is_empty() {
                    return taken;
                }
                taken.extend(claims.into_iter().map(|claim| claim.spec.key));
            }
        });
    }
    let mut taken: Vec<String> = claiming.join_all().await.into_iter().flatten().collect();
    // A row that somebody had locked for a moment was skipped by the others, who may have gone by then.
    taken.extend(world.claim_keys(1).await);
    taken.sort();
    assert_eq!(taken, keys, "each once");
}

/// Clocks that are ten minutes off take nothing from a holder, and lose nothing of their own.
#[tokio::test]
async fn the_databases_clock_decides_leases() {
    let url = database!();
    let open = async || Arc::new(PgStore::open(&url, PgOptions::default()).await.expect("opens"));
    let (right, ahead, behind) = (open().await, open().await, open().await);
    let now = Time::from_secs(number(&raw(&url).await, "SELECT extract(epoch FROM now())::bigint").await);
    let off = Span::mins(10);
    right.reconcile_roots(SOURCE, &[wanted("a", 0)], now).await.expect("roots");
    let row = right.target(SOURCE, "a").await.expect("reads").expect("exists");
    right.poll_now(row.id, now - Span::hours(1)).await.expect("due");
    let ask = |now: Time| ClaimRequest { now, ..request(0) };
    let claim = right.claim(ask(now)).await.expect("claim").remove(0);
    assert!(claim.lease_until >= now + Span::secs(59) && claim.lease_until <= now + Span::secs(61));
    assert!(ahead.claim(ask(now + off)).await.expect("claim").is_empty(), "a fast clock takes nothing");

    let lapse = "UPDATE targets SET lease_until_us = 1, wake_us = 1";
    raw(&url).await.batch_execute(lapse).await.expect("the lease runs out");
    let theirs = behind.claim(ask(now - off)).await.expect("claim").remove(0);
    assert!(theirs.after_expired_lease);
    assert!(theirs.lease_until <= now - off + Span::secs(61), "as its own clock counts");
    assert!(
        right.claim(ask(now + Span::secs(30))).await.expect("claim").is_empty(),
        "held by the database's clock"
    );
    let poll = Poll::of(&claim, 0).with(|p| p.now = now);
    assert_eq!(right.commit(vec![poll.0.into()]).await.expect("commit"), [CommitOutcome::Stale]);
}

/// A holder renews everything it holds while its own commits and another node's are under way, in another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewing_beside_commits_loses_no_claim_and_waits_in_no_circle() {
    const ROUNDS: i64 = 30;
    let url = database!();
    let keys: Vec<String> = (0..16).map(|n| format!("t{n:02}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let mut claims = world.claim(0).await;
    let tokens: Vec<_> = claims.iter().rev().map(|claim| (claim.target, claim.fence)).collect();
    let renewer = open(&url).await;
    let (done, is_done) = tokio::sync::watch::channel(false);
    let renewing = tokio::spawn(async move {
        let mut renewed = 0;
        while !*is_done.borrow() {
            let lost = renewer.renew(&tokens, at(1_000 + renewed)).await.expect("renewed");
            assert_eq!(lost, [], "nothing was lost");
            renewed += 1;
        }
        renewed
    });
    for round in 1..=ROUNDS {
        let polls: Vec<Poll> = claims.iter().enumerate().map(|(k, claim)| busy(claim, round, k)).collect();
        let batch: Vec<Arc<PollCommit>> = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
        for outcome in world.store.commit(batch).await.expect("commit") {
            assert!(matches!(outcome, CommitOutcome::Done(_)), "{outcome:?}");
        }
        claims = claims.iter().zip(&polls).map(|(claim, poll)| after(claim, poll)).collect();
    }
    done.send_replace(true);
    assert!(renewing.await.expect("done") >= 5, "both were at work");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(number(&raw(&url).await, deadlocks).await, 0);
    for key in keys {
        let until = world.row(key).await.lease_until;
        assert!(until >= Some(at(600)), "{key} is held until {until:?}");
    }
}
