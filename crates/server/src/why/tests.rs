//! Silence has a reason.

use stakeout_core::TargetSpec;
use stakeout_core::adherence::{Account, Look, Punctuality, Sight};
use stakeout_core::compare::Doubt;
use stakeout_store::{Schedule, TargetId, TargetState};

use super::*;

const NOW: Time = Time::from_secs(1_000_000);

fn evidence() -> Evidence {
    let row = TargetRow {
        id: TargetId(1),
        source: "shop".into(),
        spec: TargetSpec::new("main", "document"),
        listed_by: None,
        incarnation: 1,
        enabled: true,
        schedule: Schedule {
            due: Some(NOW + Span::secs(12)),
            interval: Span::secs(30),
            phase: "fixed".into(),
            reason: "every 30 s".into(),
            slack: Span::ZERO,
        },
        owner: None,
        lease_until: None,
        poll_no: 7,
        plan_version: 1,
        last_outcome: Some(PollOutcome::Unchanged),
        last_polled: Some(NOW - Span::secs(18)),
        last_changed: None,
        last_error: None,
        state: TargetState::default(),
        records: 120,
    };
    let mut evidence = Evidence {
        row,
        polls: vec![],
        runs: vec![],
        before: false,
        events: vec![],
        refresh: Span::ZERO,
        rules: Some(3),
        now: NOW,
        window: Span::hours(24),
    };
    evidence.row.state.memory.meaning = Some(1);
    evidence
}

fn changed_poll(changes: u32, events: u32) -> PollLog {
    PollLog {
        poll_no: 6,
        due: NOW - Span::secs(48),
        sent: NOW - Span::ms(47_998),
        ended: NOW - Span::ms(47_900),
        phase: "fixed".into(),
        outcome: PollOutcome::Changed,
        late: None,
        missed: 2,
        missed_cause: Some(stakeout_core::adherence::Cause::Downtime),
        requests: 1,
        bytes: 10,
        changes,
        events,
        error_class: None,
        detail: None,
    }
}

fn events_of(change: impl FnOnce(&mut Evidence)) -> Vec<String> {
    let mut evidence = evidence();
    change(&mut evidence);
    explain(&evidence).events
}

#[test]
fn silence_has_a_reason() {
    let first = |change: fn(&mut Evidence)| events_of(change).remove(0);
    assert_eq!(first(|_| {}), "the last poll saw what was known already");
    assert_eq!(first(|e| e.row.enabled = false), "it is switched off: `stakeout targets enable shop/main`");
    assert_eq!(
        first(|e| e.row.state.memory.doubt = Some(Doubt { at: NOW - Span::secs(18), kept: vec![] })),
        "the answer of 1970-01-12T13:46:22.000Z lacked most of the 120 records it holds; it counts only when a second one agrees"
    );
    assert_eq!(
        first(|e| e.row.state.memory.meaning = None),
        "there is no baseline yet: the first complete answer is stored, not told"
    );
    assert_eq!(
        first(|e| e.row.state.memory.rebaseline = true),
        "the next complete answer is a new baseline: stored, not told"
    );
    assert_eq!(first(|e| e.rules = Some(0)), "the configuration wants no events of this source");
    assert_eq!(
        first(|e| e.row.last_outcome = Some(PollOutcome::Baseline)),
        "the last poll set the baseline: everything is stored, nothing told"
    );
}

#[test]
fn an_event_belongs_to_the_poll_in_which_its_page_was_read() {
    let poll = changed_poll(4, 3);
    let event = |at: Time| Event {
        seq: 1,
        id: stakeout_core::EventId::of_trigger("shop", "drop", "a", "once"),
        event_type: "tables.drop".into(),
        source: "shop".into(),
        target: "main".into(),
        rule: "drop".into(),
        subject: stakeout_core::Fingerprint::of("k", &["a"]),
        subject_key: "a".into(),
        at,
        dedupe_key: None,
        data: serde_json::Value::Null,
    };
    let told = |times: &[Time]| {
        events_of(|e| {
            e.row.last_outcome = Some(PollOutcome::Changed);
            e.polls = vec![poll.clone()];
            e.events = times.iter().copied().map(event).collect();
        })
        .remove(0)
    };
    let pages = [poll.sent + Span::ms(10), poll.sent + Span::ms(40), poll.ended];
    assert_eq!(told(&pages), "the last poll saw 4 changes and told 3 events");
    let before = [poll.sent - Span::ms(1), pages[0], pages[1]];
    assert!(told(&before).contains("told 2 of 3 events"), "what was told before is another poll's");
}

#[test]
fn held_back_events_are_counted() {
    let told = |changes: u32, events: u32| {
        events_of(|e| {
            e.row.last_outcome = Some(PollOutcome::Changed);
            e.polls = vec![changed_poll(changes, events)];
        })
        .remove(0)
    };
    assert_eq!(told(4, 0), "the last poll saw 4 changes, none of which a rule tells");
    assert!(
        told(4, 3)
            .starts_with("the last poll saw 4 changes and told 0 of 3 events: 3 were held back (quiet time")
    );
}

#[test]
fn a_day_that_begins_in_an_outage_is_dark_until_the_first_look() {
    let account =
        Account { lateness: Span::ZERO, punctuality: Punctuality::OnTime, missed: 0, missed_cause: None };
    let (start, sight) = (NOW - Span::hours(1), Sight::Complete);
    let look = Look { phase: "fixed", interval: Span::hours(1), start, end: start, sight, account };
    let unseen = |before: bool| {
        let why = explain(&Evidence { runs: vec![Run::begin(&look)], before, ..evidence() });
        (why.unseen_ms, why.unseen_from)
    };
    assert_eq!(unseen(false), (Some(Span::hours(1).as_ms()), Some(start)), "its first look ever");
    assert_eq!(unseen(true), (Some(Span::hours(23).as_ms()), Some(NOW - Span::hours(24))));
}
