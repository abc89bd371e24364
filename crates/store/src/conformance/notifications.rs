//! What alerts told: listed, read, counted.

use std::collections::BTreeMap;

use serde_json::json;
use stakeout_core::Span;
use stakeout_core::alert::EVENT_TYPE;

use super::Backend;
use super::story::{Poll, World, at};
use crate::{Effect, NotificationFilter, ReadMark, Retention};

/// A world in which alerts rang for these users in one poll, with an event of another sort between each two.
async fn rung(backend: &dyn Backend, users: &[Option<&str>]) -> (World, Vec<u64>) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let mut poll = Poll::of(&claim, 1).holding(&claim);
    for (n, user) in users.iter().enumerate() {
        poll = poll.tells(&claim, "drop", &format!("x{n}"), Effect::Any);
        poll = poll.tells_with(&claim, "alert:bell", &format!("x{n}"), Effect::Any, |event| {
            event.event_type = EVENT_TYPE.into();
            event.data = json!({ "alert": "bell", "user": user, "title": format!("ring {n}") });
        });
    }
    let told = world.done(poll).await.events;
    let alerts = told.iter().filter(|event| event.event_type == EVENT_TYPE);
    let seqs = alerts.map(|event| event.seq).collect();
    (world, seqs)
}

async fn listed(world: &World, before: u64, filter: &NotificationFilter, limit: u32) -> Vec<u64> {
    let found = world.store.notifications(before, filter, limit).await.expect("notifications");
    found.iter().map(|notification| notification.event.seq).collect()
}

/// The newest first, in pages; what was read says since when, and that stays.
pub async fn what_alerts_told_is_read_once(backend: &dyn Backend) {
    let (world, seqs) = rung(backend, &[None; 3]).await;
    let (all, unread) =
        (NotificationFilter::default(), NotificationFilter { unread: true, ..NotificationFilter::default() });
    assert_eq!(listed(&world, u64::MAX, &all, 10).await, [seqs[2], seqs[1], seqs[0]], "only alerts");
    assert_eq!(listed(&world, u64::MAX, &all, 1).await, [seqs[2]]);
    assert_eq!(listed(&world, seqs[2], &all, 10).await, [seqs[1], seqs[0]]);
    assert_eq!(world.store.unread_notifications(None).await.expect("counted"), 3);

    let mark =
        async |mark: ReadMark, secs: i64| world.store.mark_read(&mark, at(secs)).await.expect("marked");
    assert_eq!(mark(ReadMark::One(seqs[1]), 5).await, 1);
    assert_eq!(mark(ReadMark::One(seqs[1]), 6).await, 0, "it was read");
    assert_eq!(mark(ReadMark::One(seqs[1] - 1), 6).await, 0, "that is no alert");
    assert_eq!(mark(ReadMark::One(9_999), 6).await, 0, "there is none");
    assert_eq!(listed(&world, u64::MAX, &unread, 10).await, [seqs[2], seqs[0]]);
    assert_eq!(mark(ReadMark::UpTo(seqs[1], None), 7).await, 1, "the one before it");
    assert_eq!(world.store.unread_notifications(None).await.expect("counted"), 1);
    let read: Vec<_> = world.store.notifications(u64::MAX, &all, 10).await.expect("notifications");
    let read: Vec<_> = read.into_iter().map(|notification| notification.read).collect();
    assert_eq!(read, [None, Some(at(5)), Some(at(7))], "when it was read first");
    assert_eq!(mark(ReadMark::UpTo(u64::MAX, None), 8).await, 1);
    assert_eq!(listed(&world, u64::MAX, &unread, 10).await, [0_u64; 0]);
}

/// A rule without a user is for everybody.
pub async fn a_user_sees_their_own_and_everybodys(backend: &dyn Backend) {
    let (world, seqs) = rung(backend, &[Some("anna"), None, Some("bert")]).await;
    let of = |user: &str| NotificationFilter { unread: true, user: Some(user.into()) };
    assert_eq!(listed(&world, u64::MAX, &of("anna"), 10).await, [seqs[1], seqs[0]]);
    assert_eq!(listed(&world, u64::MAX, &of("bert"), 10).await, [seqs[2], seqs[1]]);
    assert_eq!(listed(&world, u64::MAX, &of("carl"), 10).await, [seqs[1]]);
    assert_eq!(world.store.unread_notifications(Some("anna")).await.expect("counted"), 2);
    let mark = ReadMark::UpTo(u64::MAX, Some("anna".into()));
    assert_eq!(world.store.mark_read(&mark, at(5)).await.expect("marked"), 2);
    assert_eq!(
        listed(&world, u64::MAX, &of("bert"), 10).await,
        [seqs[2]],
        "what is everybody's is read for all"
    );
}

/// Nothing is left of a notification that was pruned.
pub async fn a_mark_goes_with_its_event(backend: &dyn Backend) {
    let (world, seqs) = rung(backend, &[None; 2]).await;
    world.store.mark_read(&ReadMark::One(seqs[0]), at(5)).await.expect("marked");
    let short = Span::secs(10);
    let keep = Retention { events: short, history: short, polls: short, gone_records: short };
    while world.store.prune(&keep, at(100), 100).await.expect("pruned").more {}
    let all = NotificationFilter::default();
    assert_eq!(listed(&world, u64::MAX, &all, 10).await, [0_u64; 0]);
    assert_eq!(world.store.unread_notifications(None).await.expect("counted"), 0);
}

/// What waits, and what was given up; a sink with nothing is not listed.
pub async fn outboxes_are_counted_by_sink(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    assert_eq!(world.store.outboxes().await.expect("counted"), []);
    let claim = world.claim_one(0).await;
    let mut poll = Poll::of(&claim, 1).holding(&claim).to_sinks(&["hook", "mail"]);
    for name in ["x", "y", "z"] {
        poll = poll.tells(&claim, "drop", name, Effect::Any);
    }
    let told = world.done(poll).await.events;
    let seqs: Vec<u64> = told.iter().map(|event| event.seq).collect();
    world.store.delivery_failed("hook", seqs[0], None, "500").await.expect("dead");
    world.store.delivery_failed("hook", seqs[1], Some(at(60)), "500").await.expect("to be tried again");
    world.store.delivered("mail", &seqs).await.expect("delivered");
    let counted = world.store.outboxes().await.expect("counted");
    assert_eq!(counted.len(), 1, "{counted:?}");
    assert_eq!((counted[0].sink.as_str(), counted[0].waiting, counted[0].dead), ("hook", 2, 1));
}

/// Whoever reads the database sees them; those that left the file go.
pub async fn the_alerts_of_the_file_are_kept(backend: &dyn Backend) {
    let store = backend.open().await;
    let rules = |names: &[&str]| -> BTreeMap<String, serde_json::Value> {
        names.iter().map(|name| ((*name).to_owned(), json!({ "when": { "on": "missed" } }))).collect()
    };
    store.set_filed_alerts(&rules(&["a", "b"]), at(0)).await.expect("kept");
    let before = backend.rows_written();
    store.set_filed_alerts(&rules(&["a", "b"]), at(1)).await.expect("kept");
    assert_eq!(backend.rows_written(), before, "as it was: nothing is written");
    store.set_filed_alerts(&rules(&["b"]), at(2)).await.expect("kept");
    store.set_filed_alerts(&BTreeMap::new(), at(3)).await.expect("kept");
}
