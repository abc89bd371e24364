//! An event exists once, and its number is a cursor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stakeout_core::{Fingerprint, Span};

use super::Backend;
use super::story::{Poll, SOURCE, World, after, at, print, request, wanted};
use crate::{Claim, ClaimRequest, CommitOutcome, Effect, EventFilter, Lapsed};

/// Proposed again by a later poll with the same identity and content: it is the same event.
pub async fn an_event_exists_once(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).tells(&claim, "bell", "x", Effect::Any);
    let told = world.done(first.clone()).await.events;
    assert_eq!(told.len(), 1);
    let claim = after(&claim, &first);
    assert_eq!(world.done(Poll::of(&claim, 2).tells(&claim, "bell", "x", Effect::Any)).await.events, []);
    let log = world.events(0).await;
    assert_eq!(log, told, "the log says what the commit said");
    assert_eq!((log[0].source.as_str(), log[0].target.as_str()), (SOURCE, "a"));
    assert_eq!(world.store.stats().await.expect("stats").seq, log[0].seq);
}

/// Two different things under one identity are a mistake that must not be hidden.
pub async fn the_same_id_with_other_content_is_refused(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).tells(&claim, "bell", "x", Effect::Any);
    world.done(first.clone()).await;
    let claim = after(&claim, &first);
    let other = Poll::of(&claim, 2)
        .sees(&claim, &[("y", 1)])
        .with(|p| p.state.memory.version -= 1)
        .tells_with(&claim, "bell", "x", Effect::Any, |event| {
            event.data = serde_json::json!({ "other": true })
        });
    assert!(matches!(world.commit(other).await, CommitOutcome::Poisoned(_)));
    assert!(world.record("y").await.is_none(), "refused whole");
    assert_eq!(world.row("a").await.poll_no, 1);
}

/// A drop that was told under its readable key is not told again.
pub async fn a_known_dedupe_key_is_left_out(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    let mut told = Vec::new();
    for claim in world.claim(0).await {
        let poll = Poll::of(&claim, 1).tells_with(&claim, "drop", "x", Effect::Any, |event| {
            event.dedupe_key = Some("resy|x|20:30".into());
        });
        told.extend(world.done(poll).await.events);
    }
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].dedupe_key.as_deref(), Some("resy|x|20:30"));
}

/// Two sources that watch the same things tell each what they see, under the same readable key.
pub async fn a_dedupe_key_counts_within_its_source(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    world.store.reconcile_roots("boston", &[wanted("a", 0)], at(0)).await.expect("roots");
    let sources = vec![SOURCE.to_owned(), "boston".to_owned()];
    let mut told = Vec::new();
    for claim in world.store.claim(ClaimRequest { sources, ..request(0) }).await.expect("claim") {
        let poll = Poll::of(&claim, 1).tells_with(&claim, "drop", "x", Effect::Any, |event| {
            event.dedupe_key = Some("resy|x|20:30".into());
        });
        told.extend(world.done(poll).await.events.into_iter().map(|event| event.source));
    }
    told.sort_unstable();
    assert_eq!(told, ["boston", SOURCE]);
}

async fn flicker(world: &World, claim: Claim, secs: i64, present: bool) -> (Claim, usize) {
    let seen: &[(&str, i64)] = if present { &[("x", 1)] } else { &[] };
    let poll = Poll::of(&claim, secs).holding(&claim).sees(&claim, seen);
    let poll = poll.tells_with(&claim, "drop", "x", Effect::Appeared, |event| {
        event.quiet = Some(Span::secs(10));
    });
    let told = world.done(poll.clone()).await.events.len();
    (after(&claim, &poll), told)
}

/// A slot that flickers every four seconds is told every twelve, not never.
pub async fn quiet_time_is_not_extended_by_what_it_suppresses(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let mut told = Vec::new();
    for secs in [1, 5, 9, 13, 17, 21] {
        let (seen, news) = flicker(&world, claim, secs, true).await;
        told.push(news);
        (claim, _) = flicker(&world, seen, secs + 2, false).await;
    }
    assert_eq!(told, [1, 0, 0, 1, 0, 0]);
}

/// Away for a moment is not away.
pub async fn a_record_that_was_away_only_briefly_is_not_news(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let mut told = Vec::new();
    for (secs, present) in [(1, true), (2, false), (5, true), (6, false), (16, true)] {
        let seen: &[(&str, i64)] = if present { &[("x", 1)] } else { &[] };
        let poll = Poll::of(&claim, secs).holding(&claim).sees(&claim, seen);
        let poll = poll.tells_with(&claim, "drop", "x", Effect::Appeared, |event| {
            event.unseen_for = Some(Span::secs(10));
        });
        told.push(world.done(poll.clone()).await.events.len());
        claim = after(&claim, &poll);
    }
    assert_eq!(told, [1, 0, 0, 0, 1], "never held, -, away for 3 s, -, away for 10 s");
}

/// Only an event that comes about starts a quiet time.
pub async fn what_a_dedupe_key_leaves_out_claims_no_notice(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let mut told = Vec::new();
    for (n, subject, key) in [(1, "x", "one"), (2, "y", "one"), (3, "y", "two")] {
        let poll = Poll::of(&claim, n).holding(&claim).with(|p| p.state.memory.version = n as u64);
        let poll = poll.tells_with(&claim, "drop", subject, Effect::Any, |event| {
            event.dedupe_key = Some(key.into());
            event.quiet = Some(Span::hours(1));
        });
        told.push(world.done(poll.clone()).await.events.len());
        claim = after(&claim, &poll);
    }
    assert_eq!(told, [1, 0, 1]);
}

/// An alert rings with the event it follows from, or not at all; and it goes where its rule says.
pub async fn what_follows_from_an_event_comes_about_with_it(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let mut told = Vec::new();
    for secs in [1, 5, 13] {
        let seen = Poll::of(&claim, secs).holding(&claim).with(|p| p.state.memory.version += 1);
        let seen = seen.to_sinks(&["stream"]).tells_with(&claim, "drop", "x", Effect::Any, |event| {
            event.quiet = Some(Span::secs(10));
        });
        let cause = seen.0.events[0].id;
        let poll = seen.tells_with(&claim, "alert:mine", "x", Effect::Any, |event| {
            event.follows = Some(cause);
            event.sinks = vec!["mail".into(), "stream".into()];
        });
        told.push(world.done(poll.clone()).await.events.len());
        claim = after(&claim, &poll);
    }
    assert_eq!(told, [2, 0, 2], "the second is kept quiet, and the alert with it");
    let to = async |sink: &str| -> Vec<String> {
        let found = world.store.deliveries(sink, at(20), 10).await.expect("deliveries");
        found.into_iter().map(|delivery| delivery.event.rule).collect()
    };
    assert_eq!(to("mail").await, ["alert:mine", "alert:mine"]);
    assert_eq!(to("stream").await, ["drop", "alert:mine", "drop", "alert:mine"], "each once");
}

/// A drop is the first of its group; who else holds one is known only to the store.
pub async fn only_the_first_of_a_group_is_news(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    let claims = world.claim(0).await;
    let [a, b] = claims.as_slice() else { panic!("two targets") };
    let told = async |poll: Poll| -> Vec<String> {
        world.done(poll).await.events.into_iter().map(|event| event.subject_key).collect()
    };
    let family = |parent: &'static str, group: &'static str| {
        move |p: &mut crate::PollCommit| {
            for record in &mut p.records {
                (record.parent, record.group) = (Some(print(parent)), print(group));
            }
        }
    };
    let opens = |claim: &Claim, secs: i64, seen: &[(&str, i64)], news: &[&str]| {
        let poll = Poll::of(claim, secs).holding(claim).sees(claim, seen);
        news.iter().fold(poll, |poll, name| poll.tells(claim, "drop", name, Effect::AppearedFirst))
    };
    let both = opens(a, 1, &[("x", 1), ("y", 1)], &["x", "y"]).with(family("venue", "today"));
    assert_eq!(told(both.clone()).await, ["x", "y"], "what comes together comes first together");
    let other = opens(b, 2, &[("z", 1)], &["z"]).with(family("venue", "today"));
    assert_eq!(told(other.clone()).await, [""; 0], "another target holds one of the group");
    let b = after(b, &other);
    let elsewhere = opens(&b, 3, &[("z", 1), ("t", 1)], &["t"]).with(family("venue", "tomorrow"));
    assert_eq!(told(elsewhere.clone()).await, ["t"], "another group");
    let b = after(&b, &elsewhere);
    // Everything of the group goes, then one returns.
    let a = after(a, &both);
    told(opens(&a, 4, &[], &[])).await;
    let alone = opens(&b, 5, &[("t", 1)], &[]);
    told(alone.clone()).await;
    let b = after(&b, &alone);
    let again = opens(&b, 6, &[("t", 1), ("z", 1)], &["z"]).with(family("venue", "today"));
    assert_eq!(told(again).await, ["z"], "what is gone does not count");
}

/// A holder that has not looked for too long is nobody: what it alone holds appears anew, and nothing stands behind it.
pub async fn a_hold_that_lapsed_does_not_count(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b", "c"]).await;
    let claims = world.claim(0).await;
    let [a, b, c] = claims.as_slice() else { panic!("three targets") };
    let opens = |claim: &Claim, secs: i64, seen: &[(&str, i64)], lapsed: &[&str]| {
        let poll = Poll::of(claim, secs).sees(claim, seen).with(|p| {
            for record in &mut p.records {
                (record.parent, record.group) = (Some(print("venue")), print("today"));
            }
            p.lapsed = lapsed.iter().map(|name| Lapsed { fingerprint: print(name), holders: 1 }).collect();
            p.lapsed.sort_by_key(|lapsed| lapsed.fingerprint);
        });
        seen.iter().fold(poll, |poll, (name, _)| poll.tells(claim, "drop", name, Effect::AppearedFirst))
    };
    let told = async |poll: Poll| -> Vec<String> {
        world.done(poll).await.events.into_iter().map(|event| event.subject_key).collect()
    };
    assert_eq!(told(opens(a, 1, &[("x", 1), ("y", 1)], &[])).await, ["x", "y"]);
    let families = [(print("venue"), print("today"))];
    let siblings = world.store.siblings(SOURCE, &families).await.expect("siblings");
    assert_eq!(siblings.iter().map(|sibling| sibling.holders).collect::<Vec<_>>(), [1, 1]);
    let held = world.store.snapshot(a.target).await.expect("snapshot");
    assert!(held.get(print("x")).is_some() && held.len() == 2);
    assert_eq!(told(opens(b, 2, &[("x", 1), ("z", 1)], &["x"])).await, [""; 0], "somebody still holds y");
    // Had nobody looked for too long, all of it would be new; but b has just looked.
    assert_eq!(told(opens(c, 3, &[("w", 1)], &["x", "y"])).await, [""; 0], "b holds x, too");
    world.roots(&["a", "d"]).await;
    let d = world.claim_one(4).await;
    assert_eq!(told(opens(&d, 5, &[("x", 1), ("v", 1)], &["x", "y"])).await, ["x", "v"], "only a is left");
}

/// Records of a family are found when they are gone, too, with the moment when the last holder let go of them and that
/// when they are over by themselves.
pub async fn siblings_that_went_are_found(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let shown = |claim: &Claim, secs: i64, seen: &[(&str, i64)]| {
        Poll::of(claim, secs).sees(claim, seen).with(|poll| {
            for record in &mut poll.records {
                (record.parent, record.group) = (Some(print("venue")), print("today"));
                record.ends = (record.fingerprint == print("y")).then(|| at(60));
            }
        })
    };
    world.done(shown(&claim, 1, &[("x", 1), ("y", 1)])).await;
    let claim = world.claim_one(11).await;
    world.done(shown(&claim, 15, &[("x", 1)])).await;
    let families = [(print("venue"), print("today"))];
    let found = world.store.siblings(SOURCE, &families).await.expect("siblings");
    let sibling = |name: &str| found.iter().find(|sibling| sibling.fingerprint == print(name));
    let state = |name: &str| sibling(name).map(|sibling| (sibling.holders, sibling.gone, sibling.ends));
    assert_eq!(state("x"), Some((1, None, None)));
    assert_eq!(state("y"), Some((0, Some(at(15)), Some(at(60)))));
    assert_eq!(found.len(), 2);
}

/// Many commit at once while one reads along: what it has passed, it has seen.
pub async fn readers_never_find_a_lower_number_later(backend: &dyn Backend) {
    const WRITERS: usize = 8;
    const POLLS: i64 = 20;
    let keys: Vec<String> = (0..WRITERS).map(|n| format!("t{n}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = Arc::new(World::with(backend.open().await, &keys).await);
    let finished = Arc::new(AtomicBool::new(false));
    let tail = tokio::spawn({
        let (world, finished) = (Arc::clone(&world), Arc::clone(&finished));
        async move {
            let mut seen: Vec<u64> = Vec::new();
            loop {
                let last_round = finished.load(Ordering::SeqCst);
                let news = world.events(seen.last().copied().unwrap_or(0)).await;
                seen.extend(news.iter().map(|event| event.seq));
                if last_round && news.is_empty() {
                    return seen;
                }
                tokio::task::yield_now().await;
            }
        }
    });
    let mut writers = Vec::new();
    for mut claim in world.claim(0).await {
        let world = Arc::clone(&world);
        writers.push(tokio::spawn(async move {
            for n in 1..=POLLS {
                let poll = Poll::of(&claim, n).holding(&claim).with(|p| p.state.memory.version += 1);
                let poll = poll.tells(&claim, "tick", "x", Effect::Any);
                world.done(poll.clone()).await;
                claim = after(&claim, &poll);
            }
        }));
    }
    for writer in writers {
        writer.await.expect("writer");
    }
    finished.store(true, Ordering::SeqCst);
    let seen = tail.await.expect("reader");
    assert_eq!(seen.len(), WRITERS * POLLS as usize, "nothing was passed by");
    assert!(seen.is_sorted());
}

/// Each filter leaves out what it says.
pub async fn filters_choose(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b"]).await;
    for claim in world.claim(0).await {
        let poll = Poll::of(&claim, 1)
            .tells(&claim, "drop", "x", Effect::Any)
            .tells(&claim, "drop", "y", Effect::Any)
            .tells(&claim, "bell", "x", Effect::Any);
        world.done(poll).await;
    }
    let count = async |filter: EventFilter| world.store.events(0, &filter, 100).await.expect("events").len();
    let of_type = |name: &str| EventFilter { event_type: Some(name.into()), ..EventFilter::default() };
    assert_eq!(count(EventFilter::default()).await, 6);
    assert_eq!(count(of_type("tables.drop")).await, 4);
    assert_eq!(count(of_type("tables.")).await, 6, "a type that ends in a dot is a prefix");
    assert_eq!(count(of_type("tables")).await, 0);
    let subject = |subject: Fingerprint| EventFilter { subject: Some(subject), ..EventFilter::default() };
    assert_eq!(count(subject(print("x"))).await, 4);
    assert_eq!(count(EventFilter { target: Some("a".into()), ..subject(print("y")) }).await, 1);
    assert_eq!(count(EventFilter { source: Some("other".into()), ..EventFilter::default() }).await, 0);
    let page = world.store.events(0, &EventFilter::default(), 4).await.expect("events");
    assert_eq!(
        world.events(page[3].seq).await.len(),
        2,
        "the last number of a page is the next one's cursor"
    );
}
