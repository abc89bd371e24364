//! The set of targets: what configuration, listings and people want.

use stakeout_core::TargetSpec;

use super::Backend;
use super::story::{Poll, SOURCE, World, at, due, wanted};
use crate::{NewPlan, Reconcile, Reconciled, StoreError, TargetFilter, TargetRow, Wanted};

fn listing(upserts: Vec<Wanted>, retire: &[&str]) -> impl FnOnce(&mut crate::PollCommit) {
    let retire = retire.iter().map(|key| (*key).to_owned()).collect();
    move |poll| poll.reconcile = Some(Reconcile { upserts, retire })
}

/// Nothing is written for what is as it should be.
pub async fn roots_are_reconciled_by_difference(backend: &dyn Backend) {
    let world = World { store: backend.open().await };
    assert_eq!(world.roots(&["a", "b"]).await, Reconciled { created: 2, updated: 0, retired: 0 });
    let rows = backend.rows_written();
    assert_eq!(world.roots(&["a", "b"]).await, Reconciled::default());
    assert_eq!(backend.rows_written(), rows, "nothing differs, nothing is written");
    let mut changed = wanted("a", 99);
    changed.spec.params = serde_json::json!({ "party": 4 });
    let desired = [changed, wanted("c", 0)];
    let result = world.store.reconcile_roots(SOURCE, &desired, at(5)).await.expect("roots");
    assert_eq!(result, Reconciled { created: 1, updated: 1, retired: 1 });
    let row = world.row("a").await;
    assert_eq!(
        (row.spec.params["party"].as_i64(), row.schedule),
        (Some(4), due(0)),
        "new parameters, old due time"
    );
    assert!(world.store.target(SOURCE, "b").await.expect("target").is_none());
    let other = world.store.reconcile_roots("other", &[wanted("a", 0)], at(5)).await.expect("roots");
    assert_eq!(other.created, 1, "each source has its own");
    assert_eq!(world.claim_keys(10).await.len(), 2);
}

/// What a listing found becomes targets; what it no longer finds goes.
pub async fn a_listing_creates_and_retires(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["catalogue"]).await;
    let claim = world.claim_one(0).await;
    let races = vec![wanted("race/1", 20), wanted("race/2", 30)];
    let done = world.done(Poll::of(&claim, 1).with(listing(races.clone(), &[]))).await;
    let one = world.row("race/1").await;
    assert_eq!(done.touched, [one.id, world.row("race/2").await.id]);
    assert_eq!((one.listed_by, one.schedule.clone()), (Some(claim.target), due(20)));
    assert!(one.incarnation > claim.incarnation);
    let listed = TargetFilter { listed_by: Some(claim.target), limit: 10, ..TargetFilter::default() };
    assert_eq!(world.store.targets(&listed).await.expect("targets").len(), 2);

    let claim = world.claim_one(11).await;
    let done = world.done(Poll::of(&claim, 12).with(listing(races, &["race/2", "race/unknown"]))).await;
    assert_eq!(done.touched, [], "race/1 is as it was");
    assert!(world.store.target(SOURCE, "race/2").await.expect("target").is_none());
    world.roots(&["catalogue"]).await;
    assert_eq!(world.row("race/1").await.id, one.id, "configuration does not retire what a listing made");
}

/// What the configuration wants, no listing takes away.
pub async fn a_listing_never_retires_a_root(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["catalogue", "fixed"]).await;
    let claims = world.claim(0).await;
    let catalogue = claims.iter().find(|claim| claim.spec.key == "catalogue").expect("claimed");
    world.done(Poll::of(catalogue, 1).with(listing(vec![wanted("fixed", 0)], &[]))).await;
    let catalogue = world.claim_one(11).await;
    world.done(Poll::of(&catalogue, 12).with(listing(vec![], &["fixed"]))).await;
    assert_eq!(world.row("fixed").await.listed_by, None);
    let catalogue = world.claim_one(22).await;
    let own = Poll::of(&catalogue, 23).with(listing(vec![], &["catalogue"]));
    assert!(matches!(world.commit(own).await, crate::CommitOutcome::Poisoned(_)), "not even itself");
}

/// With a target goes its hold on records, and everything that it listed itself.
pub async fn retiring_lets_go_of_records_and_cascades(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["calendar", "other"]).await;
    let claims = world.claim(0).await;
    let by_key = |key: &str| claims.iter().find(|claim| claim.spec.key == key).expect("claimed");
    let (calendar, other) = (by_key("calendar"), by_key("other"));
    world.done(Poll::of(other, 1).with(|p| p.schedule = due(900)).sees(other, &[("shared", 1)])).await;
    world
        .done(
            Poll::of(calendar, 1).with(|p| p.schedule = due(900)).with(listing(vec![wanted("day", 2)], &[])),
        )
        .await;
    let day = world.claim_one(2).await;
    let found = Poll::of(&day, 3).with(|p| p.schedule = due(900)).with(listing(vec![wanted("race", 4)], &[]));
    world.done(found.sees(&day, &[("meeting", 1)])).await;
    let race = world.claim_one(4).await;
    world.done(Poll::of(&race, 5).sees(&race, &[("runner", 1), ("shared", 1)])).await;
    assert_eq!(world.record("shared").await.expect("stored").holders, 2);

    let retired = world.store.reconcile_roots(SOURCE, &[wanted("other", 0)], at(50)).await.expect("roots");
    assert_eq!(retired.retired, 3, "calendar, day and race");
    for name in ["meeting", "runner"] {
        assert_eq!(world.record(name).await.expect("known").gone, Some(at(50)), "{name}");
    }
    let shared = world.record("shared").await.expect("stored");
    assert_eq!((shared.holders, shared.gone), (1, None), "somebody else still holds it");
    assert_eq!(world.store.stats().await.expect("stats").targets, 1);
    assert_eq!(world.history_rows("runner").await, 1, "history stays");
}

/// So that its events never have the identity of events of its earlier life.
pub async fn a_target_that_returns_is_another_incarnation(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let before = world.row("a").await;
    world.roots(&[]).await;
    world.roots(&["a"]).await;
    let now = world.row("a").await;
    assert!(now.incarnation > before.incarnation);
    assert_ne!(now.id, before.id);
}

/// T is itself polled: when it moves, so does the due time, in the same transaction.
pub async fn a_moved_start_time_replans_the_target(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["catalogue"]).await;
    let race = |start: i64, secs: i64| Wanted {
        spec: TargetSpec { start: Some(at(start)), ..TargetSpec::new("race", "race") },
        schedule: due(secs),
    };
    let claim = world.claim_one(0).await;
    world.done(Poll::of(&claim, 1).with(listing(vec![race(1_000, 500)], &[]))).await;
    let before = world.row("race").await;
    let claim = world.claim_one(11).await;
    let done = world.done(Poll::of(&claim, 12).with(listing(vec![race(800, 300)], &[]))).await;
    let now = world.row("race").await;
    assert_eq!((done.touched, now.schedule), (vec![now.id], due(300)));
    assert!(now.plan_version > before.plan_version);

    let claims = world.claim(300).await;
    let by_key = |key: &str| claims.iter().find(|claim| claim.spec.key == key).expect("claimed");
    let (catalogue, held) = (by_key("catalogue"), by_key("race"));
    world.done(Poll::of(catalogue, 301).with(listing(vec![race(700, 200)], &[]))).await;
    assert_eq!(
        world.claim_keys(311).await,
        ["catalogue"],
        "a re-planned target is not taken from its holder"
    );
    assert_eq!(
        world.done(Poll::of(held, 312)).await.schedule,
        due(200),
        "who takes the new due time instead"
    );
}

/// A person's switch is stronger than a listing's wish.
pub async fn disabled_stays_disabled_through_listings(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let id = world.row("a").await.id;
    world.store.set_enabled(id, false, at(0)).await.expect("off");
    let mut moved = wanted("a", 1);
    moved.spec.start = Some(at(77));
    world.store.reconcile_roots(SOURCE, &[moved], at(1)).await.expect("roots");
    assert!(!world.row("a").await.enabled);
    assert!(world.claim(1_000).await.is_empty());
    assert!(matches!(world.store.poll_now(id, at(2)).await, Err(StoreError::SwitchedOff(off)) if off == id));
    world.store.set_enabled(id, true, at(5)).await.expect("on");
    assert_eq!(world.row("a").await.schedule.due, Some(at(5)));
    assert_eq!(world.claim_keys(5).await, ["a"]);
    let unknown = crate::TargetId(999_999);
    assert!(matches!(world.store.set_enabled(unknown, true, at(5)).await, Err(StoreError::NotFound(_))));
}

/// Now, and then by its schedule again.
pub async fn poll_now_makes_due_once(backend: &dyn Backend) {
    let world = World { store: backend.open().await };
    world.store.reconcile_roots(SOURCE, &[wanted("a", 500)], at(0)).await.expect("roots");
    let before = world.row("a").await;
    world.store.poll_now(before.id, at(5)).await.expect("poll now");
    assert!(world.row("a").await.plan_version > before.plan_version);
    let claim = world.claim_one(5).await;
    world.done(Poll::of(&claim, 6).with(|p| p.schedule = due(500))).await;
    assert!(world.claim(499).await.is_empty());
}

/// A setting changed: the due times follow, whoever is gone is passed over.
pub async fn replans_from_settings_move_the_due_time(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    let (a, b) = (world.row("a").await, world.row("b").await);
    world.roots(&["a"]).await;
    let plan = |row: &TargetRow, second: i64| NewPlan {
        target: row.id,
        plan_version: row.plan_version,
        poll_no: row.poll_no,
        schedule: due(second),
    };
    world.store.replan(&[plan(&a, 40), plan(&b, 40)]).await.expect("replan");
    let row = world.row("a").await;
    assert_eq!((&row.schedule, row.plan_version), (&due(40), a.plan_version + 1));
    world.store.replan(&[plan(&a, 20)]).await.expect("replan");
    assert_eq!(
        world.row("a").await.schedule,
        due(40),
        "what was read before the last change no longer counts"
    );
    assert!(world.claim(39).await.is_empty());
    assert_eq!(world.claim_keys(40).await, ["a"]);
}

/// Asking for a new baseline is not lost on a poll that was sent before.
pub async fn a_new_baseline_is_asked_for_even_in_flight(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    assert!(!claim.state.memory.rebaseline);
    world.store.rebaseline(claim.target).await.expect("rebaseline");
    world.done(Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)])).await;
    let again = world.claim_one(20).await;
    assert!(again.state.memory.rebaseline, "the poll under way did not know");
    assert_eq!(again.state.memory.version, 1, "the version never restarts");
    world.done(Poll::of(&again, 21).with(|p| p.state.memory.rebaseline = false)).await;
    assert!(!world.row("a").await.state.memory.rebaseline, "the next one did");
}

/// Pages follow each other by row.
pub async fn lists_are_filtered_and_paged(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["race/1", "race/2", "catalogue", "100%_race"]).await;
    world.store.reconcile_roots("other", &[wanted("race/1", 0)], at(0)).await.expect("roots");
    let keys = async |filter: TargetFilter| -> Vec<String> {
        let rows = world.store.targets(&filter).await.expect("targets");
        rows.into_iter().map(|row| row.spec.key).collect()
    };
    let all = TargetFilter { source: Some(SOURCE.into()), limit: 10, ..TargetFilter::default() };
    assert_eq!(keys(all.clone()).await.len(), 4);
    assert_eq!(keys(TargetFilter { source: None, ..all.clone() }).await.len(), 5);
    let containing = |part: &str| TargetFilter { key_contains: Some(part.into()), ..all.clone() };
    assert_eq!(keys(containing("race/")).await, ["race/1", "race/2"]);
    assert_eq!(keys(containing("0%_")).await, ["100%_race"], "taken literally");
    let phase = world.row("race/1").await.schedule.phase;
    let in_phase = |phase: &str| TargetFilter { phase: Some(phase.into()), ..all.clone() };
    assert_eq!(keys(in_phase(&phase)).await.len(), 4);
    assert_eq!(keys(in_phase("another")).await, [] as [&str; 0]);
    assert_eq!(keys(TargetFilter { limit: 1, ..all.clone() }).await, ["race/1"]);
    let after = Some(world.row("race/2").await.id);
    assert_eq!(keys(TargetFilter { after, ..all.clone() }).await, ["catalogue", "100%_race"]);
    assert_eq!(keys(TargetFilter { source: Some("unknown".into()), ..all }).await, [] as [&str; 0]);
}
