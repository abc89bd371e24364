//! What the tests of sinks share: events, a receiver's own view of a signature, a mail server, a broker and one that
//! misbehaves, certificates and somebody who knows names.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

pub mod broker;
pub mod mail_server;
pub mod names;
pub mod rogue;
pub mod standard_webhooks;

use serde_json::json;
use stakeout_core::{Event, EventId, Fingerprint, Time};
use stakeout_engine::{Sink, SinkError};
use stakeout_sinks::nats::NatsSink;

/// An alert.
pub fn event(n: u64) -> Event {
    Event {
        seq: n,
        id: EventId(u128::from(n) << 64 | 0xabcd),
        event_type: "alert.raised".to_owned(),
        source: "nz".to_owned(),
        target: "race".to_owned(),
        rule: "alert:shorter".to_owned(),
        subject: Fingerprint(2),
        subject_key: "Night Owl".to_owned(),
        at: Time::from_secs(1_800_000_000),
        dedupe_key: None,
        data: json!({"title": format!("Odds fell {n}"), "text": "4.2 → 3.1", "severity": "warning"}),
    }
}

/// What became of an event, once the broker is there at all; `None` if it was taken.
pub async fn delivered(sink: &NatsSink) -> Option<String> {
    loop {
        match sink.deliver(&event(1)).await {
            Ok(()) => return None,
            Err(SinkError::Down(words)) if words.contains("refused (os error") => {}
            Err(error) => return Some(error.to_string()),
        }
        tokio::task::yield_now().await;
    }
}
