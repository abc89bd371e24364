//! Looking around: pages, windows of history, the ends of the event log, tokens.

use serde_json::json;
use stakeout_core::Span;
use stakeout_core::adherence::{Account, Look, Punctuality, Run, Sight};

use super::Backend;
use super::story::{KIND, Poll, SOURCE, STREAM, World, after, at, due, print, wanted};
use crate::{
    Effect, EventFilter, HistoryWindow, KvSet, PollLog, PollOutcome, RecordFilter, Retention, Schedule,
    TargetFilter, TargetOrder, TokenRow, Wanted,
};

/// Page after page, by kind and by what they hang on; the gone ones only when asked for.
pub async fn records_are_listed_in_pages(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let names = ["p", "q", "r", "s"];
    let seen: Vec<(&str, i64)> = names.iter().map(|name| (*name, 1)).collect();
    let poll = Poll::of(&claim, 1).holding(&claim).sees(&claim, &seen).with(|poll| {
        for record in poll.records.iter_mut().filter(|record| record.key != "p") {
            record.parent = Some(print("p"));
        }
    });
    world.done(poll.clone()).await;
    let claim = after(&claim, &poll);
    world.done(Poll::of(&claim, 2).sees(&claim, &seen[..3])).await;

    let base = RecordFilter { source: SOURCE.into(), limit: 100, ..RecordFilter::default() };
    let keys = async |filter: RecordFilter| {
        let listed = world.store.list_records(&filter).await.expect("records");
        assert!(listed.is_sorted_by_key(|listed| listed.row));
        let mut keys: Vec<String> = listed.into_iter().map(|listed| listed.record.key).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(base.clone()).await, ["p", "q", "r"]);
    assert_eq!(keys(RecordFilter { gone: true, ..base.clone() }).await, names);
    assert_eq!(keys(RecordFilter { kind: Some(KIND.into()), ..base.clone() }).await, ["p", "q", "r"]);
    assert!(keys(RecordFilter { kind: Some("other".into()), ..base.clone() }).await.is_empty());
    let below = RecordFilter { parent: Some(print("p")), ..base.clone() };
    assert_eq!(keys(below.clone()).await, ["q", "r"]);
    assert_eq!(keys(RecordFilter { kind: Some(KIND.into()), ..below.clone() }).await, ["q", "r"]);
    assert!(keys(RecordFilter { kind: Some("other".into()), ..below }).await.is_empty());
    let first = world.store.list_records(&RecordFilter { limit: 2, ..base.clone() }).await.expect("page");
    let rest = RecordFilter { after: Some(first[1].row), ..base.clone() };
    assert_eq!(
        (first.len(), keys(rest).await.len()),
        (2, 1),
        "the last row of a page is the next one's cursor"
    );
    assert!(keys(RecordFilter { source: "unknown".into(), ..base }).await.is_empty());
}

/// A window of history, whole or thinned out, and the values at one moment.
pub async fn history_is_read_by_window_and_moment(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    for n in 0..20 {
        let poll = Poll::of(&claim, n).holding(&claim).sees(&claim, &[("x", n)]);
        world.done(poll.clone()).await;
        claim = after(&claim, &poll);
    }
    let prices = |rows: Vec<crate::HistoryRow>| -> Vec<i64> {
        rows.iter().map(|row| row.values["price"].as_i64().expect("a price")).collect()
    };
    let window = HistoryWindow {
        source: SOURCE.into(),
        record: print("x"),
        stream: Some(STREAM.into()),
        from: at(5),
        to: at(15),
    };
    let between = world.store.history_between(&window, 4).await.expect("history");
    assert_eq!(prices(between), [5, 6, 7, 8], "from then on, that moment included, the oldest first");
    let all = HistoryWindow { stream: None, ..window.clone() };
    let all = world.store.history_between(&all, 100).await.expect("history");
    assert_eq!(prices(all), [5, 6, 7, 8, 9, 10, 11, 12, 13, 14], "the end is not in it");
    let points = world.store.history_points(&window, 5).await.expect("history");
    assert_eq!(prices(points), [6, 8, 10, 12, 14], "the last row of each part");
    let moment = async |secs: i64| {
        prices(world.store.history_at(SOURCE, print("x"), at(secs)).await.expect("history"))
    };
    assert_eq!(moment(7).await, [7]);
    assert_eq!(moment(700).await, [19], "a value holds until the next");
    assert!(moment(-1).await.is_empty(), "nothing was known before the first");
    assert!(world.store.history_at(SOURCE, print("y"), at(7)).await.expect("history").is_empty());
}

/// Backwards through the log, and what pruning took.
pub async fn the_event_log_has_two_ends(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let mut claim = world.claim_one(0).await;
    let before = world.store.log_ends().await.expect("ends");
    assert_eq!(before.pruned, 0);
    let mut seqs = Vec::new();
    for n in [1, 2, 30] {
        let poll = Poll::of(&claim, n)
            .holding(&claim)
            .with(|poll| poll.state.memory.version = n as u64)
            .tells(&claim, "drop", "x", Effect::Any);
        seqs.extend(world.done(poll.clone()).await.events.iter().map(|event| event.seq));
        claim = after(&claim, &poll);
    }
    assert_eq!(world.store.log_ends().await.expect("ends").newest, seqs[2]);
    let back = async |before: u64, limit: u32| {
        let found = world.store.newest_events(before, &EventFilter::default(), limit).await.expect("events");
        found.iter().map(|event| event.seq).collect::<Vec<u64>>()
    };
    assert_eq!(back(u64::MAX, 2).await, [seqs[2], seqs[1]]);
    assert_eq!(back(seqs[1], 2).await, [seqs[0]]);
    let other = EventFilter { source: Some("other".into()), ..EventFilter::default() };
    assert!(world.store.newest_events(u64::MAX, &other, 9).await.expect("events").is_empty());

    let keep = Retention {
        events: Span::secs(10),
        history: Span::hours(1),
        polls: Span::hours(1),
        gone_records: Span::hours(1),
    };
    while world.store.prune(&keep, at(30), 100).await.expect("prune").more {}
    let ends = world.store.log_ends().await.expect("ends");
    assert_eq!((ends.newest, ends.pruned), (seqs[2], seqs[1]), "the highest number that is no longer there");
    assert_eq!(back(u64::MAX, 9).await, [seqs[2]]);
}

/// By due time and by key, page after page, within what is filtered.
pub async fn targets_are_listed_in_other_orders(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &[]).await;
    let never = Wanted { schedule: Schedule { due: None, ..due(0) }, ..wanted("never", 0) };
    let desired = [wanted("c", 30), wanted("a", 20), never, wanted("b", 10), wanted("d", 20)];
    world.store.reconcile_roots(SOURCE, &desired, at(0)).await.expect("targets");
    let off = world.row("b").await.id;
    world.store.set_enabled(off, false, at(0)).await.expect("off");
    let pages = async |filter: TargetFilter| {
        let mut keys: Vec<String> = Vec::new();
        let mut after = None;
        loop {
            let filter = TargetFilter { source: Some(SOURCE.into()), after, limit: 2, ..filter.clone() };
            let page = world.store.targets(&filter).await.expect("targets");
            let Some(last) = page.last() else { return keys.join(" ") };
            after = Some(last.id);
            keys.extend(page.into_iter().map(|row| row.spec.key));
        }
    };
    let by = |order: TargetOrder| TargetFilter { order, ..TargetFilter::default() };
    assert_eq!(pages(by(TargetOrder::Created)).await, "c a never b d");
    assert_eq!(pages(by(TargetOrder::Due)).await, "a d c never b", "those that are never due come last");
    assert_eq!(pages(by(TargetOrder::Key)).await, "a b c d never");
    let on = |enabled: bool| TargetFilter { enabled: Some(enabled), ..by(TargetOrder::Due) };
    assert_eq!(pages(on(true)).await, "a d c never");
    assert_eq!(pages(on(false)).await, "b");
    let failing = |failing: bool| TargetFilter { failing: Some(failing), ..by(TargetOrder::Key) };
    let claim = world.claim(20).await.remove(0);
    world.done(Poll::of(&claim, 20).with(|poll| poll.error = Some("timeout".into()))).await;
    assert_eq!(pages(failing(true)).await, claim.spec.key);
    assert!(!pages(failing(false)).await.contains(&claim.spec.key));
    let role = |role: &str| TargetFilter { role: Some(role.into()), ..TargetFilter::default() };
    assert_eq!((pages(role("bucket")).await.len(), pages(role("race")).await.len()), (13, 0));
}

fn run(from: i64) -> Run {
    let account =
        Account { lateness: Span::ms(2), punctuality: Punctuality::OnTime, missed: 0, missed_cause: None };
    let (start, end) = (at(from), at(from + 5));
    Run::begin(&Look { phase: "T-5m", interval: Span::secs(10), start, end, sight: Sight::Complete, account })
}

/// What was proved about a target stays proved when it is gone.
pub async fn runs_of_a_source_outlive_their_targets(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let poll = Poll::of(&claim, 1).with(|poll| {
        poll.finished_run = Some(run(0));
        poll.state.run = Some(run(100));
        poll.log = Some(PollLog {
            poll_no: 1,
            due: at(0),
            sent: at(0),
            ended: at(1),
            phase: "T-5m".into(),
            outcome: PollOutcome::Changed,
            late: None,
            missed: 0,
            missed_cause: None,
            requests: 1,
            bytes: 2,
            changes: 3,
            events: 0,
            error_class: None,
            detail: None,
        });
    });
    world.done(poll).await;
    let runs = async |from: i64, to: i64, after: Option<u64>| {
        world.store.source_runs(SOURCE, at(from), at(to), after, 10).await.expect("runs")
    };
    assert_eq!(runs(0, 999, None).await.len(), 1, "the one that goes on is in the target's state");
    let polls = world.store.newest_polls(None, 10).await.expect("polls");
    assert_eq!((polls[0].source.as_deref(), polls[0].target.as_deref()), (Some(SOURCE), Some("a")));
    assert!(world.store.newest_polls(Some(polls[0].row), 10).await.expect("polls").is_empty());
    let sent = async |from: i64, to: i64, before: Option<u64>| {
        let found = world.store.polls_between(claim.target, at(from), at(to), before, 10).await;
        found.expect("polls").iter().map(|poll| poll.poll_no).collect::<Vec<_>>()
    };
    assert_eq!(sent(0, 999, None).await, [1]);
    assert_eq!(sent(0, 999, Some(2)).await, [1]);
    assert!(sent(0, 999, Some(1)).await.is_empty(), "it is on the page before");
    assert!(sent(1, 999, None).await.is_empty(), "what counts is when it was sent");

    world.roots(&["b"]).await;
    let found = runs(0, 999, None).await;
    assert_eq!(found.iter().map(|run| run.run.from).collect::<Vec<_>>(), [at(0), at(100)]);
    assert!(found.iter().all(|run| run.key == "a"));
    assert_eq!(runs(50, 999, None).await.len(), 1, "those that touch the window");
    assert_eq!(runs(0, 999, Some(found[0].row)).await.len(), 1);
    let gone = world.store.newest_polls(None, 10).await.expect("polls").remove(0);
    assert_eq!(
        (gone.source.as_deref(), gone.target.as_deref(), gone.gone),
        (Some(SOURCE), Some("a"), true),
        "its runs know whose it was"
    );
}

/// All published values, or those of one namespace.
pub async fn published_values_are_listed(backend: &dyn Backend) {
    let world = World::with(backend.open().await, &["a"]).await;
    let claim = world.claim_one(0).await;
    let names = [("race", "next"), ("event", "name"), ("race", "current")];
    let poll = Poll::of(&claim, 1).with(|poll| {
        let write = |(namespace, key): (&str, &str)| KvSet {
            namespace: namespace.into(),
            key: key.into(),
            value: json!({ "of": key }),
        };
        poll.kv = names.map(write).into();
    });
    world.done(poll).await;
    let listed = async |namespace: Option<&str>, after: Option<(&str, &str)>, limit: u32| {
        let rows = world.store.list_kv(namespace, after, limit).await.expect("kv");
        assert!(rows.iter().all(|row| row.updated == at(1) && row.value["of"] == row.key.as_str()));
        rows.iter().map(|row| format!("{}/{}", row.namespace, row.key)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed(None, None, 9).await, "event/name race/current race/next");
    assert_eq!(listed(Some("race"), None, 1).await, "race/current");
    assert_eq!(listed(Some("other"), None, 9).await, "");
    assert_eq!(listed(None, Some(("event", "name")), 1).await, "race/current");
    assert_eq!(listed(None, Some(("event", "zzz")), 9).await, "race/current race/next", "it may be gone");
    assert_eq!(listed(Some("race"), Some(("race", "current")), 9).await, "race/next");
    assert_eq!(listed(Some("event"), Some(("race", "current")), 9).await, "");
}

/// A revoked token stays known, and stays revoked.
pub async fn tokens_are_kept_and_revoked(backend: &dyn Backend) {
    let store = backend.open().await;
    let token = |id: &str, secs: i64| TokenRow {
        id: id.into(),
        name: "grafana".into(),
        scope: "read".into(),
        hash: [secs as u8; 32],
        created: at(secs),
        revoked: None,
    };
    let (first, second) = (token("b", 1), token("a", 2));
    store.add_token(&first).await.expect("added");
    store.add_token(&second).await.expect("added");
    assert!(store.add_token(&first).await.is_err(), "an id is used once");
    assert_eq!(store.tokens().await.expect("tokens"), [first.clone(), second]);
    assert!(store.revoke_token("b", at(5)).await.expect("revoked"));
    assert!(!store.revoke_token("b", at(6)).await.expect("once"));
    assert!(!store.revoke_token("c", at(6)).await.expect("unknown"));
    let revoked = store.token("b").await.expect("token");
    assert_eq!(revoked, Some(TokenRow { revoked: Some(at(5)), ..first }));
    assert_eq!(store.token("c").await.expect("token"), None);
}
