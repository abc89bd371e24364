//! The simulated drone racing upstream: what it serves is what is true, in the real one's shapes and habits.

mod demo;
mod faults;
mod incidents;
mod matches;
mod payloads;
mod replay;
mod server;
mod story;

use bytes::Bytes;
use serde_json::Value;
use stakeout_core::Time;
use stakeout_sim::fpv::{Event, EventConfig, Guid, Reply, Upstream};

/// An ordinary small event.
fn small(seed: u64) -> EventConfig {
    EventConfig::new(seed).with_races(18)
}

#[track_caller]
fn body(reply: Reply) -> Bytes {
    match reply {
        Reply::Answer(answer) => {
            assert_eq!(answer.status, 200, "there are no error statuses");
            answer.body
        }
        other => panic!("expected an answer, got {other:?}"),
    }
}

/// The JSON list at a path of the open event, if that is what is answered.
fn list(upstream: &Upstream, file: &str, now: Time) -> Option<Vec<Value>> {
    let path = format!("/events/{}/{file}", upstream.event().id(now));
    let Reply::Answer(answer) = upstream.honest(&path, now) else { return None };
    let list: Vec<Value> = serde_json::from_slice(&answer.body).ok()?;
    (!list.is_empty()).then_some(list)
}

#[track_caller]
fn race(upstream: &Upstream, race: Guid, now: Time) -> Value {
    let mut races = list(upstream, &format!("{race}/Race.json"), now).expect("the race is served");
    assert_eq!(races.len(), 1);
    races.remove(0)
}

/// Moments worth looking at: around every `step`th change, and between.
fn moments(event: &Event, step: usize) -> Vec<Time> {
    let changes = event.truth().changes().iter().step_by(step);
    changes.flat_map(|change| [Time(change.at.us() - 1), change.at]).collect()
}
