//! What one poll is to blame for harms no other, whatever the database says about it.

use std::sync::Arc;
use std::time::Duration;

use stakeout_store::conformance::story::{Poll, World, after, at, wanted};
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::{Claim, CommitOutcome, PollCommit, Reconcile, Store};

use crate::support::{database, open, raw};

async fn committed(world: &World, polls: &[Poll]) -> Vec<CommitOutcome> {
    let batch: Vec<Arc<PollCommit>> = polls.iter().map(|poll| Arc::new(poll.0.clone())).collect();
    world.store.commit(batch).await.expect("the store is well")
}

/// All but one are in, and that one says why.
fn only_one_is_poisoned(outcomes: &[CommitOutcome], bad: usize, because: &str) {
    for (n, outcome) in outcomes.iter().enumerate() {
        match outcome {
            CommitOutcome::Poisoned(reason) if n == bad => assert!(reason.contains(because), "{reason}"),
            CommitOutcome::Done(_) if n != bad => {}
            _ => panic!("poll {n}: {outcome:?}"),
        }
    }
}

fn each_sees(claims: &[Claim]) -> Vec<Poll> {
    let each = claims.iter().enumerate();
    each.map(|(n, claim)| Poll::of(claim, 20).sees(claim, &[(format!("record {n}").as_str(), 1)])).collect()
}

/// A listing retires a target whose stored snapshot is damaged: no savepoint saves the others from that, so the batch is
/// halved until it is alone.
#[tokio::test]
async fn a_poll_that_stumbles_over_damage_is_poisoned_alone() {
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b", "c", "d", "e", "f", "g"]).await;
    let claims = world.claim(0).await;
    let first = Poll::of(&claims[4], 1).holding(&claims[4]);
    let upserts = vec![wanted("child", 15)];
    let first = first.with(|p| p.reconcile = Some(Reconcile { upserts, retire: vec![] }));
    world.done(first.clone()).await;
    let child = world.claim_one(15).await;
    world.done(Poll::of(&child, 16).sees(&child, &[("x", 1)])).await;
    let damage = "UPDATE snapshots SET body = body || 'x'::bytea";
    raw(&url).await.batch_execute(damage).await.expect("damaged");

    let mut polls = each_sees(&claims);
    let lister = after(&claims[4], &first);
    let retire = Some(Reconcile { upserts: vec![], retire: vec!["child".into()] });
    polls[4] = Poll::of(&lister, 20).sees(&lister, &[("record 4", 1)]).with(|p| p.reconcile = retire);
    only_one_is_poisoned(&committed(&world, &polls).await, 4, "damaged");
    assert!(world.record("record 4").await.is_none() && world.record("record 6").await.is_some());
}

/// What cannot be read of one target keeps no other from being polled.
#[tokio::test]
async fn a_target_with_a_damaged_snapshot_is_left_alone_and_the_others_are_claimed() {
    let url = database!();
    let world = World::with(open(&url).await, &["a", "b", "c"]).await;
    for claim in world.claim(0).await {
        world.done(Poll::of(&claim, 1).sees(&claim, &[("x", 1)])).await;
    }
    let damage = "UPDATE snapshots SET body = body || 'x'::bytea
        WHERE target_id = (SELECT id FROM targets WHERE key = 'b')";
    let raw = raw(&url).await;
    raw.batch_execute(damage).await.expect("damaged");
    assert_eq!(world.claim_keys(20).await, ["a", "c"]);
    assert_eq!(
        world.claim_keys(21).await,
        NONE,
        "it is looked at again when its lease is over, not at every look"
    );
    let mended = "UPDATE snapshots SET body = substr(body, 1, length(body) - 1)
        WHERE target_id = (SELECT id FROM targets WHERE key = 'b')";
    raw.batch_execute(mended).await.expect("mended");
    assert_eq!(world.claim_keys(500).await, ["a", "b", "c"]);
}

const NONE: [&str; 0] = [];

/// A server that lets no statement take longer than so long ends one that does; the same work offered again would take as
/// long again.
#[tokio::test]
async fn a_poll_that_takes_longer_than_the_server_allows_is_poisoned_alone() {
    let url = database!();
    let raw = raw(&url).await;
    let world = World::with(open(&url).await, &["a", "b", "c"]).await;
    let slow = "
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.key = 'record 1' THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION slow();
        DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = %L', current_database(), '1s'); END $$";
    raw.batch_execute(slow).await.expect("slow");
    let claims = world.claim(0).await;
    // Connections that are made from now on have the limit.
    let world = World { store: open(&url).await };
    only_one_is_poisoned(&committed(&world, &each_sees(&claims)).await, 1, "57014");
}

/// A batch that is not answered in time is not offered whole again, but in smaller parts.
#[tokio::test]
async fn what_is_not_answered_in_time_is_offered_in_smaller_parts() {
    let url = database!();
    let raw = raw(&url).await;
    let patience = Duration::from_secs(3);
    let options = PgOptions { clock: LeaseClock::Caller, patience, ..PgOptions::default() };
    let store = Arc::new(PgStore::open(&url, options).await.expect("opens"));
    let world = World::with(store, &["a", "b", "c", "d"]).await;
    // Two take longer together than anybody waits for one answer.
    let slow = "
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION slow()";
    raw.batch_execute(slow).await.expect("slow");
    let claims = world.claim(0).await;
    let batch: Vec<Arc<PollCommit>> = each_sees(&claims).into_iter().map(|poll| Arc::new(poll.0)).collect();
    // What nobody waited for would still get in, whole, after a while.
    let end_them = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%stakeout_commit%'";
    let mut tries = 0;
    let outcomes = loop {
        tries += 1;
        match world.store.commit(batch.clone()).await {
            Ok(outcomes) => break outcomes,
            Err(error) => assert!(error.to_string().contains("no answer within 3s") && tries < 4, "{error}"),
        }
        raw.batch_execute(end_them).await.expect("ended");
    };
    assert_eq!(tries, 3, "four at once, then two, then each alone");
    assert!(outcomes.iter().all(|outcome| matches!(outcome, CommitOutcome::Done(_))), "{outcomes:?}");
    assert_eq!(world.row("d").await.last_polled, Some(at(20)));
}

/// Whoever reads everything a source holds waits no longer than for any other answer.
#[tokio::test]
async fn reading_everything_is_given_up_like_everything_else() {
    let url = database!();
    let options = PgOptions { patience: Duration::from_millis(300), ..PgOptions::default() };
    let store = PgStore::open(&url, options).await.expect("opens");
    let holder = raw(&url).await;
    holder.batch_execute("BEGIN; LOCK TABLE kv").await.expect("held");
    let published = [("n".to_owned(), "k".to_owned())];
    let read = tokio::time::timeout(Duration::from_secs(20), store.whole("nyc", &[], &published));
    let refused = read.await.expect("it gives up").expect_err("nobody answers");
    assert!(refused.to_string().contains("no answer within"), "{refused}");
}
