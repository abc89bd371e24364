//! Settings, deliveries, forgetting, restarting.

use serde_json::json;
use stakeout_core::Span;

use super::Backend;
use super::story::{Poll, World, after, at, due};
use crate::{Chosen, Claim, Effect, PollLog, PollOutcome, Retention};

/// Everything older than ten seconds goes.
const SHORT: Retention = Retention {
    events: Span::secs(10),
    history: Span::secs(10),
    polls: Span::secs(10),
    gone_records: Span::secs(10),
};

async fn prune_all(world: &World, secs: i64) -> u64 {
    let mut rows = 0;
    loop {
        let pruned = world.store.prune(&SHORT, at(secs), 100).await.expect("prune");
        rows += pruned.rows;
        if !pruned.more {
            return rows;
        }
    }
}

/// Set, changed, removed.
pub async fn settings_are_kept(backend: &dyn Backend) {
    let store = backend.open().await;
    assert_eq!(store.settings().await.expect("settings"), []);
    store.set_setting("scheduler.burst", Some(json!(2)), at(0)).await.expect("set");
    store.set_setting("budget", Some(json!({ "nyc": "60/min" })), at(0)).await.expect("set");
    store.set_setting("scheduler.burst", Some(json!(4)), at(1)).await.expect("set");
    let settings = store.settings().await.expect("settings");
    assert_eq!(
        settings,
        [("budget".into(), json!({ "nyc": "60/min" })), ("scheduler.burst".into(), json!(4))]
    );
    store.set_setting("budget", None, at(2)).await.expect("remove");
    assert_eq!(store.settings().await.expect("settings").len(), 1);
}

/// Kept, changed, removed; those beside it stay.
pub async fn values_of_no_source_are_kept(backend: &dyn Backend) {
    let store = backend.open().await;
    store.set_kv("outbox", "mail", Some(json!({ "open": [[1, 2]] })), at(0)).await.expect("kept");
    store.set_kv("outbox", "hook", Some(json!(1)), at(0)).await.expect("kept");
    store.set_kv("outbox", "mail", Some(json!({ "open": [[3]] })), at(1)).await.expect("changed");
    let row = store.kv("outbox", "mail").await.expect("read").expect("there");
    assert_eq!((row.value, row.updated), (json!({ "open": [[3]] }), at(1)));
    store.set_kv("outbox", "mail", None, at(2)).await.expect("removed");
    assert!(store.kv("outbox", "mail").await.expect("read").is_none());
    assert!(store.kv("outbox", "hook").await.expect("read").is_some());
}

/// Tells `count` events of one poll to these sinks.
async fn tell(world: &World, claim: &Claim, secs: i64, count: usize, sinks: &[&str]) -> (Claim, Vec<u64>) {
    let mut poll = Poll::of(claim, secs).holding(claim).with(|p| p.state.memory.version += 1).to_sinks(sinks);
    for n in 0..count {
        poll = poll.tells(claim, "drop", &format!("x{n}"), Effect::Any);
    }
    let seqs = world.done(poll.clone()).await.events.iter().map(|event| event.seq).collect();
    (after(claim, &poll), seqs)
}

async fn waiting(world: &World, sink: &str, secs: i64) -> Vec<(u64, u32)> {
    let found = world.store.deliveries(sink, at(secs), 100).await.expect("deliveries");
    found.iter().map(|delivery| (delivery.event.seq, delivery.attempts)).collect()
}

/// Each sink has its own list.
pub async fn deliveries_come_in_order_until_made_or_dead(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let (_, seqs) = tell(&world, &claim, 1, 3, &["hook", "mail"]).await;
    assert_eq!(waiting(&world, "hook", 1).await, seqs.iter().map(|seq| (*seq, 0)).collect::<Vec<_>>());
    assert_eq!(world.store.deliveries("hook", at(1), 2).await.expect("deliveries").len(), 2);
    world.store.delivered("hook", &seqs[..1]).await.expect("delivered");
    world.store.delivery_failed("hook", seqs[1], Some(at(30)), "503").await.expect("failed");
    assert_eq!(waiting(&world, "hook", 29).await, [(seqs[2], 0)]);
    assert_eq!(waiting(&world, "hook", 30).await, [(seqs[1], 1), (seqs[2], 0)], "again, and in order");
    world.store.delivery_failed("hook", seqs[1], None, "410").await.expect("dead");
    assert_eq!(waiting(&world, "hook", 999).await, [(seqs[2], 0)]);
    assert_eq!(waiting(&world, "mail", 1).await.len(), 3, "the other sink has its own");
    assert!(world.store.delivery_failed("hook", seqs[0], None, "too late").await.is_err());
}

/// What belongs together is found by its numbers: whatever is waiting of it, and whatever is not through.
pub async fn deliveries_are_found_by_their_events(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let (_, seqs) = tell(&world, &claim, 1, 5, &["hook", "mail"]).await;
    world.store.delivered("hook", &seqs[..1]).await.expect("delivered");
    world.store.delivery_failed("hook", seqs[1], Some(at(99)), "503").await.expect("to be tried again");
    world.store.delivery_failed("hook", seqs[2], None, "503").await.expect("dead");
    let asked = [seqs[3], seqs[2], seqs[1], seqs[0], 1_000_000];
    let found = world.store.deliveries_of("hook", &asked).await.expect("deliveries");
    let found: Vec<(u64, u32)> =
        found.iter().map(|delivery| (delivery.event.seq, delivery.attempts)).collect();
    assert_eq!(found, [(seqs[1], 1), (seqs[3], 0)], "due or not; nothing that nobody asked for");
    let left = world.store.undelivered("hook", &asked).await.expect("numbers");
    assert_eq!(left, [seqs[1], seqs[2], seqs[3]], "what was given up is not through either");
    assert!(world.store.undelivered("hook", &[]).await.expect("numbers").is_empty());
    assert_eq!(world.store.deliveries_of("mail", &asked).await.expect("deliveries").len(), 4);
}

/// What was given up is somebody's to look at, and waits for him.
pub async fn dead_deliveries_are_listed_retried_and_dropped(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let (_, seqs) = tell(&world, &claim, 1, 4, &["hook", "mail"]).await;
    let dead = async |sink: Option<&str>| -> Vec<(String, u64, u32, Option<String>)> {
        let found = world.store.dead_deliveries(sink, 10).await.expect("dead");
        found.into_iter().map(|dead| (dead.sink, dead.event.seq, dead.attempts, dead.error)).collect()
    };
    assert_eq!(dead(None).await, []);
    for (sink, seq) in [("hook", seqs[0]), ("hook", seqs[2]), ("hook", seqs[3]), ("mail", seqs[1])] {
        world.store.delivery_failed(sink, seq, None, "500").await.expect("dead");
    }
    let given_up = |sink: &str, seq: u64| (sink.to_owned(), seq, 1, Some("500".to_owned()));
    assert_eq!(dead(Some("mail")).await, [given_up("mail", seqs[1])]);
    assert_eq!(dead(None).await.len(), 4);
    assert_eq!(world.store.dead_deliveries(None, 2).await.expect("dead").len(), 2, "a page");

    assert_eq!(world.store.retry_deliveries("hook", Chosen::One(seqs[2])).await.expect("retried"), 1);
    assert_eq!(waiting(&world, "hook", 1).await, [(seqs[1], 0), (seqs[2], 0)], "as if never tried");
    assert_eq!(world.store.drop_deliveries("hook", Chosen::One(seqs[0])).await.expect("dropped"), 1);
    assert_eq!(world.store.drop_deliveries("hook", Chosen::One(seqs[0])).await.expect("dropped"), 0);
    assert_eq!(dead(Some("hook")).await, [given_up("hook", seqs[3])]);
    assert_eq!(world.store.drop_deliveries("hook", Chosen::Dead).await.expect("dropped"), 1);
    assert_eq!(waiting(&world, "hook", 1).await.len(), 2, "what waits is not dead");
    assert_eq!(world.store.drop_deliveries("hook", Chosen::Every).await.expect("dropped"), 2);
    assert_eq!(world.store.retry_deliveries("mail", Chosen::Dead).await.expect("retried"), 1);
    assert_eq!(waiting(&world, "mail", 1).await.len(), 4, "the other sink has its own");
    assert_eq!(world.events(0).await.len(), 4, "the events stay");
}

/// Retention is about what was delivered.
pub async fn undelivered_events_outlive_retention(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let (claim, first) = tell(&world, &claim, 1, 3, &["hook"]).await;
    let (_, young) = tell(&world, &claim, 100, 1, &[]).await;
    world.store.delivered("hook", &first[..1]).await.expect("delivered");
    world.store.delivery_failed("hook", first[1], None, "410").await.expect("dead");
    assert_eq!(prune_all(&world, 105).await, 1);
    let left: Vec<u64> = world.events(0).await.iter().map(|event| event.seq).collect();
    assert_eq!(left, [first[1], first[2], young[0]], "dead, waiting, young");
    assert_eq!(world.store.stats().await.expect("stats").oldest_seq, first[1]);
    world.store.delivered("hook", &first[2..]).await.expect("delivered");
    prune_all(&world, 200).await;
    let stats = world.store.stats().await.expect("stats");
    assert_eq!((stats.events, stats.seq), (1, young[0]), "numbers go on although the log is shorter");
}

/// A parent goes after its children, a record after its history, and nothing that an undelivered event is about.
pub async fn pruning_leaves_no_orphans(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let names = [("race", 1), ("runner", 1), ("slot", 1)];
    let first = Poll::of(&claim, 1).holding(&claim).sees(&claim, &names).to_sinks(&["hook"]).with(|p| {
        for record in &mut p.records {
            record.parent = (record.key == "runner").then(|| super::story::print("race"));
        }
    });
    let told = world.done(first.clone().tells(&claim, "drop", "slot", Effect::Appeared)).await.events;
    let claim = after(&claim, &first);
    // The runner stays, the race and the slot go.
    let second = Poll::of(&claim, 2).holding(&claim).sees(&claim, &[("runner", 1)]);
    world.done(second.clone()).await;
    let claim = after(&claim, &second);
    prune_all(&world, 100).await;
    assert!(world.record("race").await.is_some(), "its runner is still there");
    assert!(world.record("slot").await.is_some(), "an event about it is on its way");
    assert_eq!(world.history_rows("race").await, 0, "nobody holds it, so its history may go");

    world.store.delivered("hook", &[told[0].seq]).await.expect("delivered");
    world.done(Poll::of(&claim, 101).sees(&claim, &[])).await;
    prune_all(&world, 200).await;
    prune_all(&world, 200).await;
    for (name, _) in names {
        assert!(world.record(name).await.is_none(), "{name}");
        assert_eq!(world.history_rows(name).await, 0, "{name}");
    }
    assert_eq!(world.store.stats().await.expect("stats").events, 0);
    assert_eq!(prune_all(&world, 300).await, 0);
}

/// A price that did not change for a year is still its price.
pub async fn the_last_history_row_of_a_held_record_stays(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    for price in 1..=3 {
        let poll = Poll::of(&claim, price).holding(&claim).sees(&claim, &[("x", price)]);
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
    }
    assert_eq!(prune_all(&world, 100).await, 2);
    let left =
        world.store.history(super::story::SOURCE, super::story::print("x"), None, 9).await.expect("history");
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].values["price"], 3);
    assert_eq!(prune_all(&world, 100).await, 0);
}

/// No step removes more than it was asked to, however much has to stay.
pub async fn pruning_goes_in_small_steps(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let names: Vec<String> = (0..20).map(|n| format!("r{n}")).collect();
    for n in 1..=3 {
        let prices: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), n)).collect();
        let log = PollLog {
            poll_no: n as u64,
            due: at(n),
            sent: at(n),
            ended: at(n),
            phase: "idle".into(),
            outcome: PollOutcome::Changed,
            late: None,
            missed: 0,
            missed_cause: None,
            requests: 1,
            bytes: 1,
            changes: 20,
            events: 0,
            error_class: None,
            detail: None,
        };
        let poll = Poll::of(&claim, n).holding(&claim).sees(&claim, &prices).with(|p| p.log = Some(log));
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
    }
    let (mut steps, mut rows) = (0, 0);
    loop {
        let pruned = world.store.prune(&SHORT, at(100), 7).await.expect("prune");
        assert!(pruned.rows <= 7);
        (steps, rows) = (steps + 1, rows + pruned.rows);
        assert!(steps < 100, "a pass ends");
        if !pruned.more {
            break;
        }
    }
    assert_eq!(rows, 43, "three lines of the log and 40 old prices");
    assert_eq!(world.store.polls(claim.target, 9).await.expect("polls"), []);
    assert_eq!(world.store.stats().await.expect("stats").history, 20);
}

/// Everything is there, claims of the dead process are free, numbers go on.
pub async fn everything_survives_a_restart(backend: &dyn Backend) {
    if !backend.survives_restart() {
        return;
    }
    let world = World::with(backend.open().await, &["a", "b"]).await;
    let claims = world.claim(0).await;
    let a = claims.iter().find(|claim| claim.spec.key == "a").expect("claimed");
    let poll = Poll::of(a, 1).with(|p| p.schedule = due(500)).sees(a, &[("x", 1)]).to_sinks(&["hook"]);
    world.done(poll.tells(a, "drop", "x", Effect::Appeared)).await;
    world.store.set_setting("key", Some(json!("value")), at(1)).await.expect("set");
    let before =
        (world.events(0).await, world.record("x").await, world.store.settings().await.expect("settings"));
    let stats = world.store.stats().await.expect("stats");
    drop(world);

    let world = World { store: backend.open().await };
    let now =
        (world.events(0).await, world.record("x").await, world.store.settings().await.expect("settings"));
    assert_eq!(before, now);
    assert_eq!(world.store.stats().await.expect("stats").seq, stats.seq);
    assert_eq!(waiting(&world, "hook", 1).await.len(), 1);
    assert_eq!(world.row("a").await.schedule, due(500));
    let b = world.claim_one(2).await;
    assert_eq!((b.spec.key.as_str(), b.fence), ("b", 2), "free again, and the token keeps rising");
    assert_eq!(world.roots(&["a", "b", "c"]).await.created, 1);
    assert!(world.row("c").await.incarnation > stats.seq);
}
