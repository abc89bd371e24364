//! What the comparison remembers of a target: its baseline, what is doubted, which mass removals are awaited.

use serde::{Deserialize, Serialize};

use super::removal::Removal;
use crate::{Fingerprint, Time};

/// What the comparison remembers of a target, besides the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Counts the snapshots of this target's life; part of every event id, never restarts.
    pub version: u64,
    /// What the baseline meant; `None` until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<u64>,
    /// The next complete answer is a new baseline.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rebaseline: bool,
    /// An answer that waits for a second one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Confirmed mass removals that are still awaited, in order: a record that went with one of them may return without
    /// being told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<Removal>,
    /// Whole answers believed since the baseline, itself included, where records accompany others; counted to two.
    #[serde(skip_serializing_if = "is_zero")]
    pub answers: u8,
    /// Companions that the last whole answer no longer had, in order: they have been absent only once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Fingerprint>,
    /// Groups of which the last whole answer had nothing, though not everything of them was shown or understood, in
    /// order: that proves nothing about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<Fingerprint>,
}

fn is_zero(n: &u8) -> bool {
    *n == 0
}

/// A doubted answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// When it was asked for.
    pub at: Time,
    /// What it still had of the snapshot; a total outage keeps nothing, so this is short when it matters.
    pub kept: Vec<Fingerprint>,
}
