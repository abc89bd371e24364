//! One owner: leases and fencing tokens.

use stakeout_core::Span;

use super::Backend;
use super::story::{Poll, SOURCE, World, at, due, request, wanted};
use crate::{ClaimRequest, CommitOutcome, Wanted};

/// What is not due, disabled or never due stays where it is.
pub async fn only_due_and_enabled_targets_are_claimed_earliest_first(backend: &dyn Backend) {
    let world = World { store: backend.open().await };
    let mut never = wanted("never", 0);
    never.schedule.due = None;
    let desired = [
        wanted("third", 3),
        wanted("first", 1),
        wanted("second", 2),
        wanted("off", 1),
        wanted("later", 50),
        never,
    ];
    world.store.reconcile_roots(SOURCE, &desired, at(0)).await.expect("roots");
    world.store.set_enabled(world.row("off").await.id, false, at(0)).await.expect("off");

    assert_eq!(world.claim_keys(0).await, [] as [&str; 0], "nothing is due yet");
    let limited = ClaimRequest { limit: 2, ..request(10) };
    let claims = world.store.claim(limited).await.expect("claim");
    assert_eq!(claims.iter().map(|c| c.spec.key.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(claims[0].schedule, due(1));
    assert_eq!((claims[0].fence, claims[0].poll_no, claims[0].after_expired_lease), (1, 0, false));
    assert_eq!(claims[0].lease_until, at(70), "the lease counts from now, which is later than the due time");
    assert_eq!(world.claim_keys(10).await, ["third"]);
    let ahead = ClaimRequest { ahead: Span::secs(40), ..request(10) };
    let claims = world.store.claim(ahead).await.expect("claim");
    assert_eq!(claims.len(), 1, "due within the next 40 s");
    assert_eq!(claims[0].lease_until, at(110), "the lease counts from the due time, which is later than now");
}

/// The order of the original: (next due, priority descending).
pub async fn priority_decides_between_equal_due_times(backend: &dyn Backend) {
    let world = World { store: backend.open().await };
    let with_priority = |key: &str, priority: u8| {
        let mut wanted = wanted(key, 5);
        wanted.spec.priority = priority;
        wanted
    };
    let desired = [with_priority("idle", 10), with_priority("urgent", 100), with_priority("normal", 50)];
    world.store.reconcile_roots(SOURCE, &desired, at(0)).await.expect("roots");
    assert_eq!(world.claim_keys(5).await, ["urgent", "normal", "idle"]);
}

/// Asking for several sources gives the earliest of all.
pub async fn the_limit_counts_over_all_sources(backend: &dyn Backend) {
    let store = backend.open().await;
    for (source, secs) in [("a", [4, 1]), ("b", [2, 3])] {
        let desired: Vec<Wanted> = secs.iter().map(|s| wanted(&format!("{source}{s}"), *s)).collect();
        store.reconcile_roots(source, &desired, at(0)).await.expect("roots");
    }
    let ask =
        ClaimRequest { sources: vec!["a".into(), "b".into(), "unknown".into()], limit: 3, ..request(10) };
    let claims = store.claim(ask).await.expect("claim");
    let found: Vec<(&str, &str)> = claims.iter().map(|c| (c.source.as_str(), c.spec.key.as_str())).collect();
    assert_eq!(found, [("a", "a1"), ("b", "b2"), ("b", "b3")]);
}

/// The successor gets a higher fencing token and is told that a request may still be on its way.
pub async fn a_claimed_target_is_taken_again_only_after_its_lease(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let first = world.claim_one(0).await;
    assert!(world.claim(59).await.is_empty(), "held");
    let second = world.claim_one(60).await;
    assert!(second.fence > first.fence);
    assert!(second.after_expired_lease);
    assert_eq!(second.schedule.due, Some(at(0)), "a lost claim does not move the due time");
}

/// Claiming ahead looks at due times, never at leases.
pub async fn a_lease_that_ends_soon_is_not_taken_early(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    world.claim_one(0).await;
    let ahead = |secs| ClaimRequest { ahead: Span::secs(30), ..request(secs) };
    assert!(world.store.claim(ahead(45)).await.expect("claim").is_empty(), "15 s of the lease are left");
    assert_eq!(world.store.claim(ahead(60)).await.expect("claim").len(), 1);
}

/// As if they had never been made, but for the token.
pub async fn released_claims_leave_no_trace(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let before = world.row("a").await;
    let claim = world.claim_one(0).await;
    assert_eq!(world.row("a").await.owner.as_deref(), Some("node-1"));
    world.store.release(&[(claim.target, claim.fence)]).await.expect("release");
    let row = world.row("a").await;
    assert_eq!((row.owner, row.lease_until), (None, None));
    assert_eq!((row.schedule, row.plan_version, row.poll_no), (before.schedule, before.plan_version, 0));
    let again = world.claim_one(0).await;
    assert!(!again.after_expired_lease, "nobody had lost it");
    world.store.release(&[(again.target, claim.fence)]).await.expect("an old token frees nothing");
    assert!(world.claim(0).await.is_empty());
}

/// A holder that is late learns what it no longer holds.
pub async fn renewing_extends_and_reports_what_was_lost(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["kept", "lost"]).await;
    let mut claims = world.claim(0).await;
    claims.sort_by(|a, b| a.spec.key.cmp(&b.spec.key));
    let (kept, lost) = (&claims[0], &claims[1]);
    world.store.renew(&[(kept.target, kept.fence)], at(100)).await.expect("renew");
    assert_eq!(world.claim_keys(70).await, ["lost"], "another takes what ran out");
    let tokens = [(kept.target, kept.fence), (lost.target, lost.fence)];
    assert_eq!(world.store.renew(&tokens, at(200)).await.expect("renew"), [lost.target]);
    assert_eq!(world.row("kept").await.lease_until, Some(at(200)));
}

/// A commit may keep a claim for longer than whoever extends it knows of: then nobody else may take it before.
pub async fn renewing_shortens_nothing(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let poll = Poll::of(&claim, 0).with(|p| p.hold_until = Some(at(600)));
    assert!(matches!(world.commit(poll).await, CommitOutcome::Done(_)));
    let lost = world.store.renew(&[(claim.target, claim.fence)], at(100)).await.expect("renew");
    assert_eq!(lost, []);
    assert_eq!(world.row("a").await.lease_until, Some(at(600)));
    assert!(world.claim(300).await.is_empty(), "it is held");
}

/// So that a scheduler sleeps exactly as long as it may.
pub async fn the_next_wake_is_the_earliest_claimable_moment(backend: &dyn Backend) {
    let world = World { store: backend.open().await };
    let sources = [SOURCE.to_owned()];
    assert_eq!(world.store.next_wake(&sources).await.expect("wake"), None);
    world.store.reconcile_roots(SOURCE, &[wanted("a", 5), wanted("b", 7)], at(0)).await.expect("roots");
    assert_eq!(world.store.next_wake(&sources).await.expect("wake"), Some(at(5)));
    let claim = world.claim_one(5).await;
    assert_eq!(
        world.store.next_wake(&sources).await.expect("wake"),
        Some(at(7)),
        "held ones wait for the lease"
    );
    let poll = Poll::of(&claim, 6).with(|p| p.hold_until = Some(at(8)));
    assert!(matches!(world.commit(poll).await, CommitOutcome::Done(_)));
    world.store.set_enabled(world.row("b").await.id, false, at(6)).await.expect("off");
    assert_eq!(
        world.store.next_wake(&sources).await.expect("wake"),
        Some(at(16)),
        "a lease that ends before the due time wakes nobody"
    );
}
