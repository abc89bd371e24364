//! Events that a test tells by hand, without a poll.
#![allow(dead_code, unreachable_pub, reason = "test files of several crates use it")]

use serde_json::json;
use stakeout_core::judge::Effect;
use stakeout_core::{EventId, Fingerprint, Time};
use stakeout_store::{DeriveCommit, DeriveOutcome, EventWrite, Store};

/// An event about something, for whoever takes its type.
pub fn event(source: &str, subject: &str, at: Time) -> EventWrite {
    EventWrite {
        id: EventId::of_trigger(source, "r", subject, &at.to_string()),
        event_type: "json.changed".to_owned(),
        rule: "r".to_owned(),
        subject: Fingerprint::of(source, &[subject]),
        subject_key: subject.to_owned(),
        at,
        dedupe_key: None,
        data: json!({}),
        requires: Effect::Any,
        quiet: None,
        unseen_for: None,
        follows: None,
        sinks: vec![],
    }
}

/// Tells them in one commit; their numbers.
pub async fn tell(store: &dyn Store, source: &str, at: Time, events: Vec<EventWrite>) -> Vec<u64> {
    let commit = DeriveCommit {
        source: source.to_owned(),
        now: at,
        focused_before: vec![],
        create: None,
        refocus: vec![],
        kv: vec![],
        records: vec![],
        events,
        sinks: vec![],
    };
    match store.derive(commit).await.expect("told") {
        DeriveOutcome::Done(done) => done.events.iter().map(|event| event.seq).collect(),
        DeriveOutcome::Conflict => panic!("nobody else is here"),
    }
}
