//! What the comparison remembers of a target: its baseline, what is doubted, what went with a mass removal.

use serde::{Deserialize, Serialize};

use super::DoubtPolicy;
use crate::{Fingerprint, Span, Time};

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
    /// When a confirmed mass removal was answered: a record that went then may return without being told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<Time>,
    /// How many records went with that removal.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub went: u32,
    /// Whole answers since that removal, counted to [`SINGLY_AFTER`].
    #[serde(skip_serializing_if = "is_zero")]
    pub since: u8,
    /// How far the mass is back.
    #[serde(skip_serializing_if = "Return::is_awaited")]
    pub back: Return,
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

/// After so many whole answers without a mass removal's records…
pub const SINGLY_AFTER: u8 = 6;
/// …and this long after it, whatever returns alone is news again. Upstreams that answer with nothing do so for minutes.
const SINGLY: Span = Span::hours(1);
/// A handful is taken for real more often than it is lost in an outage, so it is not waited for as long.
const SINGLY_OF_FEW: Span = Span::mins(15);

impl Memory {
    /// Whether a record that went with the mass removal, and returns at `at` without the mass, is still taken for what
    /// the removal lost.
    pub fn awaits_singly(&self, policy: &DoubtPolicy, at: Time) -> bool {
        let Some(cleared) = self.cleared else { return false };
        match (self.went as usize) < policy.at_least {
            true => at - cleared < SINGLY_OF_FEW,
            false => self.since < SINGLY_AFTER || at - cleared < SINGLY,
        }
    }
}

fn is_zero(n: &u8) -> bool {
    *n == 0
}

fn is_none_of_them(n: &u32) -> bool {
    *n == 0
}

/// How far what went with a mass removal is back. What two whole answers after its return do not have was really taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Return {
    /// Not yet.
    #[default]
    Awaited,
    /// An answer that was not whole had much of it.
    InPart,
    /// One whole answer has come since, or brought it.
    Once,
    /// Two have.
    Twice,
}

impl Return {
    fn is_awaited(&self) -> bool {
        *self == Return::Awaited
    }
}

/// A doubted answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// When it was asked for.
    pub at: Time,
    /// What it still had of the snapshot; a total outage keeps nothing, so this is short when it matters.
    pub kept: Vec<Fingerprint>,
}
