//! What follows from all of a source's records: the focus, published values, derived fields.

use serde_json::json;
use stakeout_core::{ContentHash, EventId, TargetSpec};

use super::Backend;
use super::story::{KIND, Poll, SOURCE, World, at, due, print, wanted};
use crate::{
    DeriveCommit, DeriveDone, DeriveOutcome, DerivedRecord, Effect, EventWrite, KvWrite, Reconcile, Refocus,
    Wanted,
};

fn nothing(secs: i64) -> DeriveCommit {
    DeriveCommit {
        source: SOURCE.into(),
        now: at(secs),
        focused_before: vec![],
        create: None,
        refocus: vec![],
        kv: vec![],
        records: vec![],
        events: vec![],
        sinks: vec![],
    }
}

fn focus(key: &str, focused: bool, secs: i64) -> Refocus {
    Refocus { key: key.into(), schedule: due(secs), focused }
}

fn publish(order: i64, before: Option<i64>) -> KvWrite {
    let value = |order: i64| json!({ "order": order });
    KvWrite {
        namespace: "race".into(),
        key: "currentOrder".into(),
        value: value(order),
        before: before.map(value),
    }
}

async fn done(world: &World, derived: DeriveCommit) -> DeriveDone {
    match world.store.derive(derived).await.expect("derive") {
        DeriveOutcome::Done(done) => done,
        DeriveOutcome::Conflict => panic!("expected the derivation to be in"),
    }
}

/// The focus moves: two rows change, and nobody undoes it by a poll or a listing.
pub async fn the_focus_moves_in_two_rows(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["event", "race/1", "race/2"]).await;
    let claims = world.claim(0).await;
    let by_key = |key: &str| claims.iter().find(|claim| claim.spec.key == key).expect("claimed");
    let first = DeriveCommit { refocus: vec![focus("race/1", true, 1)], ..nothing(1) };
    assert_eq!(done(&world, first).await.touched, [by_key("race/1").target]);

    let before = backend.rows_written();
    let moved = DeriveCommit {
        focused_before: vec![by_key("race/1").target],
        refocus: vec![focus("race/1", false, 5), focus("race/2", true, 2)],
        ..nothing(2)
    };
    let touched = done(&world, moved).await.touched;
    assert_eq!(touched, [by_key("race/1").target, by_key("race/2").target]);
    if let (Some(before), Some(after)) = (before, backend.rows_written()) {
        assert_eq!(after - before, 2, "two rows, and nothing else");
    }

    let in_flight = Poll::of(by_key("race/1"), 3).with(|p| p.state.facts.focused = true);
    assert_eq!(world.done(in_flight).await.schedule, due(5));
    assert!(!world.row("race/1").await.state.facts.focused, "a poll under way did not know of the move");

    let other = TargetSpec { priority: 7, ..TargetSpec::new("race/2", "bucket") };
    let listed = Wanted { spec: other, schedule: due(99) };
    let reconcile = Reconcile { upserts: vec![listed], retire: vec![] };
    world.done(Poll::of(by_key("event"), 4).with(|p| p.reconcile = Some(reconcile))).await;
    let row = world.row("race/2").await;
    assert!(row.state.facts.focused, "no listing takes the focus away");
    assert_eq!((row.schedule, row.spec.priority), (due(2), 7));
}

/// Of targets that are due together the one with the focus goes first, whatever the others' priority.
pub async fn the_focus_is_claimed_first(backend: &dyn Backend) {
    let world = World { store: backend.open().await };
    let urgent = |key: &str, priority| {
        let mut wanted = wanted(key, 5);
        wanted.spec.priority = priority;
        wanted
    };
    world.store.reconcile_roots(SOURCE, &[urgent("a", 90), urgent("b", 10)], at(0)).await.expect("roots");
    done(&world, DeriveCommit { refocus: vec![focus("b", true, 5)], ..nothing(1) }).await;
    assert_eq!(world.claim_keys(5).await, ["b", "a"]);
}

/// A target that gets the focus before any listing named it is made; the listing takes it over.
pub async fn the_focus_makes_its_target(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["event"]).await;
    let create = || DeriveCommit {
        create: Some(wanted("race/9", 1)),
        refocus: vec![focus("race/9", true, 1)],
        ..nothing(1)
    };
    assert_eq!(done(&world, create()).await.touched.len(), 1);
    let row = world.row("race/9").await;
    assert!(row.state.facts.focused && row.enabled);
    assert_eq!(world.store.derive(create()).await.expect("derive"), DeriveOutcome::Conflict);
}

/// Whoever derived from something that is no longer so writes nothing.
pub async fn a_derivation_on_old_ground_is_a_conflict(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    let a = world.row("a").await.id;
    done(&world, DeriveCommit { refocus: vec![focus("a", true, 1)], ..nothing(1) }).await;
    done(&world, DeriveCommit { focused_before: vec![a], kv: vec![publish(1, None)], ..nothing(2) }).await;

    let before = backend.rows_written();
    let old_focus = DeriveCommit { kv: vec![publish(2, Some(1))], ..nothing(3) };
    let old_value = DeriveCommit { focused_before: vec![a], kv: vec![publish(2, None)], ..nothing(3) };
    let old_record = DeriveCommit {
        focused_before: vec![a],
        kv: vec![publish(2, Some(1))],
        records: vec![reordered("r", 1, 2)],
        ..nothing(3)
    };
    for old in [old_focus, old_value, old_record] {
        assert_eq!(world.store.derive(old).await.expect("derive"), DeriveOutcome::Conflict);
    }
    assert_eq!(backend.rows_written(), before);
    let stored = world.store.kv("race", "currentOrder").await.expect("kv").expect("published");
    assert_eq!((stored.value, stored.updated), (json!({ "order": 1 }), at(2)));
    assert_eq!(world.store.kv("race", "unknown").await.expect("kv"), None);
}

fn reordered(name: &str, base: u128, content: u128) -> DerivedRecord {
    DerivedRecord {
        fingerprint: print(name),
        base: ContentHash(base),
        content: ContentHash(content),
        body: json!({ "price": base as i64, "order": 4 }).to_string(),
    }
}

/// A derived field changes the record; the next answer about it still counts as newer, however old its question is.
pub async fn derived_fields_do_not_make_a_record_newer(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let poll = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("r", 1)]);
    world.done(poll.clone()).await;
    done(&world, DeriveCommit { records: vec![reordered("r", 1, 2)], ..nothing(50) }).await;
    let record = world.record("r").await.expect("held");
    assert_eq!((record.body, record.content), (json!({ "price": 1, "order": 4 }), ContentHash(2)));
    assert_eq!(record.last_changed, at(50));

    let claim = super::story::after(&claim, &poll);
    world.done(Poll::of(&claim, 2).holding(&claim).sees(&claim, &[("r", 7)])).await;
    assert_eq!(world.record("r").await.expect("held").content, ContentHash(7));
}

/// The whole is what is held: records of these kinds that nobody let go of, all targets, the focus, the values.
pub async fn the_whole_is_what_is_held(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["b", "a"]).await;
    let claims = world.claim(0).await;
    let claim = claims.iter().find(|claim| claim.spec.key == "a").expect("claimed");
    let poll = Poll::of(claim, 1).holding(claim).sees(claim, &[("kept", 1), ("lost", 2)]);
    world.done(poll.clone()).await;
    let claim = super::story::after(claim, &poll);
    world.done(Poll::of(&claim, 2).sees(&claim, &[("kept", 1)])).await;
    let derived =
        DeriveCommit { refocus: vec![focus("a", true, 1)], kv: vec![publish(1, None)], ..nothing(3) };
    done(&world, derived).await;

    let wanted = [("race".to_owned(), "currentOrder".to_owned()), ("race".to_owned(), "other".to_owned())];
    let whole = world.store.whole(SOURCE, &[KIND.to_owned()], &wanted).await.expect("whole");
    assert_eq!(whole.records.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), ["kept"]);
    assert_eq!(whole.targets, ["a", "b"]);
    assert_eq!(whole.focused.iter().map(|row| row.spec.key.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(whole.kv.iter().map(|row| row.value.clone()).collect::<Vec<_>>(), [json!({ "order": 1 })]);
    let nothing = world.store.whole("nobody", &[KIND.to_owned()], &[]).await.expect("whole");
    assert!(nothing.records.is_empty() && nothing.targets.is_empty() && nothing.focused.is_empty());
}

fn told(order: i64, secs: i64) -> EventWrite {
    EventWrite {
        id: EventId::of_trigger(SOURCE, "current", "r", &order.to_string()),
        event_type: "fpv.race.current_changed".into(),
        rule: "current".into(),
        subject: print("r"),
        subject_key: "r".into(),
        at: at(secs),
        dedupe_key: None,
        data: json!({ "order": order }),
        requires: Effect::Any,
        quiet: None,
        unseen_for: None,
        follows: None,
        sinks: vec![],
    }
}

/// What is told again follows from nothing but the time: one of several that mean to tell it does, in whatever words.
pub async fn what_is_told_under_one_key_is_told_once(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let again = |order: i64, secs: i64| {
        let event = EventWrite {
            dedupe_key: Some("again|x".into()),
            sinks: vec!["mail".into()],
            ..told(order, secs)
        };
        DeriveCommit { events: vec![event], ..nothing(secs) }
    };
    assert_eq!(done(&world, again(1, 1)).await.events.len(), 1);
    assert_eq!(done(&world, again(1, 2)).await.events, [], "the same words");
    assert_eq!(done(&world, again(2, 2)).await.events, [], "other words");
    assert_eq!(world.events(0).await.len(), 1);
    assert_eq!(world.store.deliveries("mail", at(3), 10).await.expect("deliveries").len(), 1);
}

/// What is told about the whole is an event like any other.
pub async fn derived_events_are_delivered(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let event = told(1, 1);
    let derived = DeriveCommit {
        kv: vec![publish(1, None)],
        events: vec![event],
        sinks: vec!["mail".into()],
        ..nothing(1)
    };
    let told = done(&world, derived).await.events;
    assert_eq!(world.events(0).await, told);
    assert_eq!((told.len(), told[0].target.as_str()), (1, DeriveCommit::TARGET));
    assert_eq!(world.store.deliveries("mail", at(2), 10).await.expect("deliveries").len(), 1);
}
