//! What nodes say to each other, and what they find out where nothing is heard.

use stakeout_store::conformance::story::{Poll, World, at};
use stakeout_store::{Effect, Hint, Store};

use crate::support::{database, open, raw};

#[tokio::test]
async fn other_nodes_hear_of_changes() {
    let url = database!();
    let (speaker, listener) = (World { store: open(&url).await }, open(&url).await);
    let (mut own, mut hints) = (speaker.store.hints().expect("listens"), listener.hints().expect("listens"));
    speaker.roots(&["a"]).await;
    assert_eq!(hints.recv().await, Ok(Hint::Plans(vec![])));
    let id = speaker.row("a").await.id;
    let claim = speaker.claim_one(0).await;
    let told = speaker.done(Poll::of(&claim, 1).tells(&claim, "drop", "x", Effect::Any)).await.events;
    assert_eq!(hints.recv().await, Ok(Hint::Events(told[0].seq)));
    speaker.store.poll_now(id, at(2)).await.expect("due");
    assert_eq!(hints.recv().await, Ok(Hint::Plans(vec![id])));
    speaker.store.set_enabled(id, false, at(3)).await.expect("off");
    assert_eq!(hints.recv().await, Ok(Hint::Plans(vec![id])));
    speaker.store.set_setting("k", Some(1.into()), at(3)).await.expect("set");
    assert_eq!(hints.recv().await, Ok(Hint::Settings));
    listener.set_setting("k", None, at(4)).await.expect("unset");
    assert_eq!(own.recv().await, Ok(Hint::Settings), "nobody hears himself");
}

/// More targets are re-planned at once than fit into one word: every one of them is named.
#[tokio::test]
async fn no_word_is_cut_short() {
    const MANY: usize = 700;
    let url = database!();
    let keys: Vec<String> = (0..MANY).map(|n| format!("t{n:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(open(&url).await, &keys).await;
    let listener = open(&url).await;
    let mut hints = listener.hints().expect("a shared store");
    let raw = raw(&url).await;
    raw.batch_execute("SELECT stakeout_hint('plans', ARRAY(SELECT id FROM targets))").await.expect("said");
    let mut named = std::collections::BTreeSet::new();
    while named.len() < MANY {
        match hints.recv().await.expect("words") {
            Hint::Plans(targets) => named.extend(targets),
            other => panic!("{other:?}"),
        }
    }
    drop(world);
}

/// A node that hears what it says itself knows that it hears others.
#[tokio::test]
async fn whoever_listens_hears_himself() {
    let url = database!();
    let store = open(&url).await;
    let began = std::time::Instant::now();
    while !store.hears_hints().await.expect("asked") {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "nothing was heard");
        tokio::task::yield_now().await;
    }
}

/// Behind a pooler words may never arrive: whoever holds targets finds out which of them moved on.
#[tokio::test]
async fn plans_that_moved_on_are_found_by_comparing() {
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b", "c"]).await;
    let claims = world.claim(0).await;
    let held: Vec<_> = claims.iter().map(|claim| (claim.target, claim.plan_version)).collect();
    assert_eq!(world.store.moved_on(&held).await.expect("compared"), []);
    world.store.poll_now(held[1].0, at(1)).await.expect("asked for");
    world.store.set_enabled(held[2].0, false, at(1)).await.expect("switched off");
    let mut moved = world.store.moved_on(&held).await.expect("compared");
    moved.sort_unstable();
    assert_eq!(moved, [held[1].0, held[2].0]);
}
