//! One poll, one transaction; older never beats newer.

use serde_json::json;
use stakeout_core::Span;
use stakeout_core::adherence::{Account, Look, Punctuality, Run, Sight};

use super::Backend;
use super::story::{Poll, World, after, at, due, late_line};
use crate::{CommitOutcome, Effect, EventWrite, PollOutcome, Sample};

/// Not a record, not an event, not a due time gets in without the newest token.
pub async fn a_stale_fence_is_refused_whole(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let stale = world.claim_one(0).await;
    let fresh = world.claim_one(60).await;
    let before = world.store.stats().await.expect("stats");
    let poll = Poll::of(&stale, 61).sees(&stale, &[("x", 1)]).tells(&stale, "drop", "x", Effect::Appeared);
    assert_eq!(world.commit(poll).await, CommitOutcome::Stale);
    assert_eq!(world.store.stats().await.expect("stats").seq, before.seq);
    assert!(world.record("x").await.is_none());
    assert_eq!(world.row("a").await.poll_no, 0);
    world.done(Poll::of(&fresh, 62).sees(&fresh, &[("x", 2)])).await;
    world.roots(&[]).await;
    let gone = Poll::of(&fresh, 63).with(|p| p.poll_no = 2);
    assert_eq!(world.commit(gone).await, CommitOutcome::Stale, "the target is gone");
}

/// A token that was given back is worth nothing, although it is still the newest.
pub async fn a_released_claim_cannot_commit(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    world.store.release(&[(claim.target, claim.fence)]).await.expect("release");
    assert_eq!(world.commit(Poll::of(&claim, 1)).await, CommitOutcome::Stale);
}

/// Whoever did not hear the answer may ask again: nothing is doubled.
pub async fn a_repeated_commit_is_already_done(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let poll = Poll::of(&claim, 1).sees(&claim, &[("x", 1)]).tells(&claim, "drop", "x", Effect::Any);
    world.done(poll.clone()).await;
    let stats = world.store.stats().await.expect("stats");
    assert_eq!(world.commit(poll).await, CommitOutcome::AlreadyDone);
    let now = world.store.stats().await.expect("stats");
    assert_eq!((now.seq, now.events, now.history), (stats.seq, stats.events, stats.history));
    assert_eq!(world.record("x").await.expect("stored").holders, 1);
}

/// Order is by poll number, whatever the clocks say.
pub async fn an_older_poll_never_beats_a_newer_one(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)]);
    world.done(first.clone()).await;
    let held = after(&claim, &first);
    world.done(Poll::of(&held, 2).holding(&held).sees(&held, &[("x", 2)])).await;
    let late = Poll::of(&claim, 99).sees(&claim, &[("x", 1)]);
    assert_eq!(world.commit(late).await, CommitOutcome::Older);
    assert_eq!(world.record("x").await.expect("stored").body["price"], 2);
}

/// Of a hundred polls in one batch, one is stale and one cannot be stored: 98 are in.
pub async fn a_poisoned_and_a_stale_poll_harm_no_other(backend: &dyn Backend) {
    let keys: Vec<String> = (0..100).map(|n| format!("t{n:03}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let world = World::with(backend.open().await, &keys).await;
    let claims = world.claim(0).await;
    assert_eq!(claims.len(), 100);
    let name = |n: usize| format!("record {n}");
    let batch: Vec<_> = claims
        .iter()
        .enumerate()
        .map(|(n, claim)| {
            let poll = Poll::of(claim, 1).sees(claim, &[(&name(n), 1)]);
            let poll = poll.tells(claim, "drop", &name(n), Effect::Appeared);
            match n {
                30 => poll.with(|p| p.fence += 1).0,
                // Fine up to its last event, which has the identity of the one before.
                60 => {
                    poll.with(|p| p.events.push(EventWrite { data: "other".into(), ..p.events[0].clone() })).0
                }
                _ => poll.0,
            }
            .into()
        })
        .collect();
    let outcomes = world.store.commit(batch).await.expect("commit");
    for (n, outcome) in outcomes.iter().enumerate() {
        match (n, outcome) {
            (30, CommitOutcome::Stale) | (60, CommitOutcome::Poisoned(_)) => {
                assert!(world.record(&name(n)).await.is_none(), "nothing of {n} is in");
            }
            (_, CommitOutcome::Done(done)) => {
                assert_eq!(done.events.len(), 1, "poll {n}");
                assert!(world.record(&name(n)).await.is_some(), "all of {n} is in");
            }
            _ => panic!("poll {n}: {outcome:?}"),
        }
    }
    let seqs: Vec<u64> = world.events(0).await.iter().map(|event| event.seq).collect();
    assert_eq!(seqs.len(), 98);
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "no number was lost on the refused ones");
}

/// A NUL is a character that not every store can hold: none takes it, wherever it stands, and the others of the batch are
/// in.
pub async fn a_nul_harms_no_other(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b", "c", "d", "e"]).await;
    let claims = world.claim(0).await;
    let polls = claims.iter().enumerate().map(|(n, claim)| {
        let poll = Poll::of(claim, 1);
        match n {
            0 => poll.with(|p| p.error = Some("before\0after".into())),
            1 => poll.sees(claim, &[("x\0y", 1)]),
            2 => {
                let body = json!({"name": "x\0y"}).to_string();
                poll.sees(claim, &[("b", 1)]).with(|p| p.records[0].body = body)
            }
            3 => poll.sees(claim, &[("v", 1)]).tells_with(claim, "drop", "v", Effect::Any, |event| {
                event.data = json!({"names": ["x\0y"]});
            }),
            // What only looks like one is none.
            _ => poll.sees(claim, &[("z", 1)]).tells_with(claim, "drop", "z", Effect::Any, |event| {
                event.data = json!({"name": "\\u0000"});
            }),
        }
    });
    let batch = polls.map(|poll| poll.0.into()).collect();
    let outcomes = world.store.commit(batch).await.expect("commit");
    for (n, outcome) in outcomes.iter().enumerate() {
        match (n, outcome) {
            (0..=3, CommitOutcome::Poisoned(reason)) => assert!(reason.contains("NUL"), "{reason}"),
            (4, CommitOutcome::Done(done)) => assert_eq!(done.events.len(), 1),
            _ => panic!("poll {n}: {outcome:?}"),
        }
    }
    assert!(world.record("b").await.is_none() && world.record("z").await.is_some());
}

/// The commonest poll must cost next to nothing.
pub async fn an_unchanged_poll_writes_only_its_schedule(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let first = Poll::of(&claim, 1).holding(&claim).sees(&claim, &[("x", 1)]);
    world.done(first.clone()).await;
    let mut held = after(&claim, &first);
    let stats = world.store.stats().await.expect("stats");
    for n in 2..5 {
        let rows = backend.rows_written();
        let poll = Poll::of(&held, n).holding(&held);
        let done = world.done(poll.clone()).await;
        assert_eq!((done.schedule, done.enabled, done.held), (due(n + 10), true, true));
        held = after(&held, &poll);
        if let (Some(before), Some(now)) = (rows, backend.rows_written()) {
            assert_eq!(now - before, 1, "exactly one row");
        }
    }
    let rows = backend.rows_written();
    assert!(!world.done(Poll::of(&held, 6)).await.held);
    if let (Some(before), Some(now)) = (rows, backend.rows_written()) {
        assert_eq!(now - before, 1, "also when the claim is given back");
    }
    let now = world.store.stats().await.expect("stats");
    assert_eq!((now.seq, now.events, now.history, now.records), (stats.seq, 0, stats.history, stats.records));
    let row = world.row("a").await;
    assert_eq!((row.poll_no, row.last_polled, row.last_changed), (5, Some(at(6)), Some(at(1))));
    assert_eq!(world.store.polls(row.id, 10).await.expect("polls"), []);
}

/// Whoever changed the plan from outside is not overruled by a poll that did not know.
pub async fn a_moved_plan_version_wins_over_the_commit(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    world.store.poll_now(claim.target, at(3)).await.expect("poll now");
    let done = world.done(Poll::of(&claim, 5).holding(&claim).sees(&claim, &[("x", 1)])).await;
    assert_eq!(done.schedule.due, Some(at(3)), "the row's due time, not the poll's");
    assert_eq!(done.plan_version, claim.plan_version + 1);
    assert!(!done.held, "what the holder has in memory is out of date");
    assert!(world.record("x").await.is_some(), "what the poll saw counts all the same");
    let again = world.claim_one(5).await;
    assert_eq!((again.schedule.due, again.poll_no), (Some(at(3)), 1));
    assert_eq!(world.done(Poll::of(&again, 6)).await.schedule, due(16), "now its own schedule counts");
}

/// The poll under way still counts, then there is silence.
pub async fn a_target_disabled_in_flight_is_not_due_again(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    world.store.set_enabled(claim.target, false, at(1)).await.expect("off");
    let done = world.done(Poll::of(&claim, 2).holding(&claim).sees(&claim, &[("x", 1)])).await;
    assert_eq!((done.enabled, done.held), (false, false));
    assert!(world.record("x").await.is_some());
    assert!(world.claim(1_000).await.is_empty());
    world.store.set_enabled(claim.target, true, at(1_001)).await.expect("on");
    assert_eq!(world.claim_one(1_001).await.schedule.due, Some(at(1_001)));
}

/// What a target remembers comes back with the next claim.
pub async fn state_and_outcome_are_remembered(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    assert_eq!(world.row("a").await.last_outcome, None);
    let poll = Poll::of(&claim, 1).sees(&claim, &[("x", 1), ("y", 2)]).with(|p| {
        p.state.facts.start = Some(at(500));
        p.state.memory.meaning = Some(u64::MAX);
        p.state.validators.etag = Some("\"abc\"".into());
        p.state.cost = 3;
    });
    world.done(poll.clone()).await;
    let again = world.claim_one(11).await;
    assert_eq!((&again.state, &again.snapshot), (&poll.0.state, poll.0.snapshot.as_ref().expect("changed")));
    assert_eq!((again.incarnation, again.poll_no), (claim.incarnation, 1));
    let row = world.row("a").await;
    assert_eq!((row.last_outcome, row.records), (Some(PollOutcome::Changed), 2));

    let failed = Poll::of(&again, 12).with(|p| {
        p.outcome = PollOutcome::Failed;
        p.error = Some("timeout: no answer".into());
    });
    world.done(failed).await;
    assert_eq!(world.row("a").await.last_error.as_deref(), Some("timeout: no answer"));
    let third = world.claim_one(22).await;
    world.done(Poll::of(&third, 23)).await;
    let row = world.row("a").await;
    assert_eq!(
        (row.last_error, row.last_outcome),
        (None, Some(PollOutcome::Unchanged)),
        "until a poll succeeds"
    );
}

fn run_from(secs: i64) -> Run {
    Run::begin(&Look {
        phase: "T-5m",
        interval: Span::secs(10),
        start: at(secs),
        end: at(secs + 50),
        sight: Sight::Complete,
        account: Account {
            lateness: Span::ms(2),
            punctuality: Punctuality::OnTime,
            missed: 0,
            missed_cause: None,
        },
    })
}

/// What is notable has a line, what is regular a run.
pub async fn notable_polls_runs_and_failures_are_logged(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let mut logs = Vec::new();
    for n in 1..=3 {
        let log = late_line(claim.poll_no + 1, n);
        let poll = Poll::of(&claim, n).holding(&claim).with(|p| {
            p.log = Some(log.clone());
            p.finished_run = Some(run_from(n * 100));
            p.sample =
                Some(Sample { at: at(n), reason: "malformed".into(), content_type: None, body: vec![0xff] });
        });
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
        logs.insert(0, log);
    }
    assert_eq!(world.store.polls(claim.target, 2).await.expect("polls"), logs[..2]);
    let runs = world.store.runs(claim.target, at(160), at(210)).await.expect("runs");
    assert_eq!(runs.iter().map(|run| run.from).collect::<Vec<_>>(), [at(200)], "those that touch the window");
    assert_eq!(world.store.runs(claim.target, at(0), at(999)).await.expect("runs").len(), 3);
}

/// The stretches of a window do not say whether there were any before it: that is asked for by itself.
pub async fn who_was_polled_before_is_known(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b", "c"]).await;
    let mut claims = world.claim(0).await;
    claims.sort_by_key(|claim| claim.spec.key.clone());
    for (claim, from) in claims.iter().zip([100, 300]) {
        world.done(Poll::of(claim, 1).with(|poll| poll.finished_run = Some(run_from(from)))).await;
    }
    let targets: Vec<_> = claims.iter().map(|claim| claim.target).collect();
    let before = async |moment: i64| {
        let mut found = world.store.polled_before(&targets, at(moment)).await.expect("runs");
        found.sort();
        found
    };
    assert_eq!(before(150).await, [], "that stretch ends then: it touches a window that begins there");
    assert_eq!(before(151).await, targets[..1]);
    assert_eq!(before(999).await, targets[..2], "the third was never polled");
    assert_eq!(world.store.polled_before(&targets[1..], at(200)).await.expect("runs"), []);
}

/// Polls of one batch that brought nothing: each has its line and its run, but for those that do not count.
pub async fn a_batch_of_late_polls_is_logged_poll_by_poll(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a", "b", "c", "d", "e"]).await;
    let mut claims = world.claim(0).await;
    claims.sort_by_key(|claim| claim.spec.key.clone());
    let late = |n: usize| {
        let line = late_line(claims[n].poll_no + 1, n as i64);
        Poll::of(&claims[n], 5).holding(&claims[n]).with(|p| p.log = Some(line))
    };
    // One somebody else has by now, one that brought something, one of which only a run is told, one that is regular.
    let batch = [
        late(0).with(|p| p.fence += 1),
        late(1).with(|p| p.finished_run = Some(run_from(100))),
        late(2).sees(&claims[2], &[("x", 1)]),
        late(3).with(|p| (p.log, p.finished_run) = (None, Some(run_from(200)))),
        late(4).with(|p| p.log = None),
    ];
    let batch: Vec<_> = batch.into_iter().rev().map(|poll| poll.0.into()).collect();
    let mut outcomes = world.store.commit(batch).await.expect("commit");
    outcomes.reverse();
    assert_eq!(outcomes.remove(0), CommitOutcome::Stale);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, CommitOutcome::Done(_))), "{outcomes:?}");
    for (n, (lines, run)) in
        [(0, None), (1, Some(100)), (1, None), (0, Some(200)), (0, None)].into_iter().enumerate()
    {
        let target = claims[n].target;
        let logged = world.store.polls(target, 9).await.expect("polls");
        assert_eq!(logged, vec![late_line(1, n as i64); lines], "{n}");
        let runs = world.store.runs(target, at(0), at(999)).await.expect("runs");
        assert_eq!(runs, run.map(run_from).into_iter().collect::<Vec<_>>(), "{n}");
        assert_eq!(world.row(&claims[n].spec.key).await.last_polled, (n > 0).then(|| at(5)), "{n}");
    }
}
