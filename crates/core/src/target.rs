//! A target: one thing that is polled.

use serde::{Deserialize, Serialize};

use crate::{ContentHash, ContentHasher, Time, Value, spread};

/// What a source says should be polled. The store adds its life: due time, lease, history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Unique within the source, readable: `race/d3ade44c`.
    pub key: String,
    /// What the source means by it: `race`, `catalogue`, `bucket`.
    pub role: String,
    /// What the source needs to build requests.
    pub params: serde_json::Value,
    /// 0 (whenever) to 100 (now); decides the slack of a due poll.
    pub priority: u8,
    /// The parameters that decide what is seen, hashed with the kinds' versions: when it changes, the next
    /// complete answer is a new baseline without events.
    pub meaning: u64,
    /// A first start time, where the listing knows one, so that the first due time is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// When its own time is over: that a listing drops it afterwards is no cause for doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Time>,
}

impl TargetSpec {
    /// A target with no parameters, middle priority.
    pub fn new(key: impl Into<String>, role: impl Into<String>) -> TargetSpec {
        TargetSpec {
            key: key.into(),
            role: role.into(),
            params: serde_json::Value::Null,
            priority: 50,
            meaning: 0,
            start: None,
            ends: None,
        }
    }

    /// The number from which phase, jitter and backoff of this target are drawn.
    pub fn spread(&self, source: &str) -> u64 {
        spread(&[source, &self.key])
    }

    /// A hash of everything a listing may change, so that a reconcile writes only differences.
    pub fn content(&self) -> ContentHash {
        let mut hasher = ContentHasher::new();
        hasher.text(&self.key);
        hasher.text(&self.role);
        hasher.value(&Value::from_json(&self.params));
        hasher.value(&Value::Int(i64::from(self.priority)));
        hasher.value(&Value::Int(self.meaning as i64));
        hasher.value(&Value::from(self.start));
        hasher.value(&Value::from(self.ends));
        hasher.finish()
    }
}
