//! What one poll saw: records, how much of the truth they cover, and facts that steer the cadence.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Fingerprint, Record, TargetSpec, Time, Value};

/// How much an observation proves. Only proven absence removes records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Everything the target stands for was seen: what is missing is gone.
    Complete,
    /// Everything was looked at, but of these groups perhaps only a part was shown: whoever is missing from one of them
    /// may still be there.
    CompleteBut(Scope),
    /// Something was seen; absence is proof only within the scope.
    Partial(Scope),
    /// Nothing may be concluded from absence.
    None,
}

/// Some groups of an observation: those seen whole in a partial one, those not seen whole in a complete one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(pub BTreeSet<Fingerprint>);

impl Coverage {
    /// Whether the absence of a record of this group proves that it is gone.
    pub fn proves_absence(&self, group: Fingerprint) -> bool {
        match self {
            Coverage::Complete => true,
            Coverage::CompleteBut(scope) => !scope.0.contains(&group),
            Coverage::Partial(scope) => scope.0.contains(&group),
            Coverage::None => false,
        }
    }

    /// Whether every group was looked at: only such an answer can be a baseline or prove what was served.
    pub fn is_whole(&self) -> bool {
        matches!(self, Coverage::Complete | Coverage::CompleteBut(_))
    }

    /// The word stored and shown.
    pub fn name(&self) -> &'static str {
        match self {
            Coverage::Complete => "complete",
            Coverage::CompleteBut(_) | Coverage::Partial(_) => "partial",
            Coverage::None => "none",
        }
    }
}

/// Where a target with a start time is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not started, as far as anyone knows.
    #[default]
    Pending,
    /// The start is confirmed.
    Started,
    /// Terminal: nothing more will happen.
    Over,
}

/// What is known about a target that decides when to look again. Stored with the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The start time, T.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// Where it is in its life.
    pub stage: Stage,
    /// The grid time of the poll that first saw the present stage; the engine keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_since: Option<Time>,
    /// Whether this target has its group's focus.
    pub focused: bool,
    /// Whatever else the source wants to remember.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, Value>,
}

/// Something odd that the normalisation left out or repaired; counted, shown, never fatal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A stable word: `bad_runner`, `unknown_status`.
    pub code: &'static str,
    /// What was found, without secrets.
    pub detail: String,
}

/// What one poll saw.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The records, in any order.
    pub records: Vec<Record>,
    /// What their absence would prove.
    pub coverage: Coverage,
    /// What decides the next due time.
    pub facts: Facts,
    /// Present when this poll was a listing: the targets that should exist because of it.
    pub targets: Option<Vec<TargetSpec>>,
    /// The upstream's own stamp of this answer; an older one than the last is dropped.
    pub as_of: Option<Time>,
    /// Groups whose records were seen to be reset: their removal is no cause for doubt.
    pub reset_groups: BTreeSet<Fingerprint>,
    /// What was odd.
    pub warnings: Vec<Warning>,
}

impl Observation {
    /// A complete observation of these records and nothing else.
    pub fn complete(records: Vec<Record>) -> Observation {
        Observation {
            records,
            coverage: Coverage::Complete,
            facts: Facts::default(),
            targets: None,
            as_of: None,
            reset_groups: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }
}
