//! Which changes are worth telling: rules turn changes into event drafts.
//!
//! A rule never sees a raw diff of bytes, only added, changed and removed records. Whether a draft becomes an event
//! is settled in the commit, where shared records and the memory of what was told are under lock.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use crate::compare::Memory;
use crate::{Facts, FieldChange, Fingerprint, Record, Snapshot, Span, TargetSpec, Time, Value};

/// What must have happened to an event's subject in the very commit that proposes it. Shared records are decided
/// there: what one target saw appear may have been held by another all along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing in particular.
    Any,
    /// Nobody held it before, now somebody does.
    Appeared,
    /// The same, and nobody held any other record of its group and parent before. Holders that have not looked for too
    /// long are nobody here ([`Source::holds_for`](crate::Source::holds_for)).
    AppearedFirst,
    /// Its content is another than before.
    Changed,
    /// The last holder let go of it.
    Vanished,
}

/// Which sort of change a rule looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A record that was not there.
    Added,
    /// A record whose fields moved: any of these, or any at all when none is named.
    Changed {
        /// The fields.
        fields: Vec<String>,
    },
    /// A record that is gone.
    Removed {
        /// Only those that were taken away (`Some(false)`) or ended by themselves (`Some(true)`).
        natural: Option<bool>,
    },
}

/// A test on one field of the record (of its last known body when it is gone).
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The field.
    pub field: String,
    /// The test.
    pub test: Test,
}

/// What a field must be or do.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// It has this value.
    Is(Value),
    /// It has another value.
    IsNot(Value),
    /// It has one of these values.
    OneOf(Vec<Value>),
    /// It is a number at least this large.
    AtLeast(f64),
    /// It is a number at most this large.
    AtMost(f64),
    /// It has this value now and had another before.
    Became(Value),
    /// It rose by at least so much.
    RoseBy(Step),
    /// It fell by at least so much.
    FellBy(Step),
}

/// How much a number moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// By so much.
    Absolute(f64),
    /// By so many percent of the old value.
    Percent(f64),
}

/// What must have been true of the record's group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// Nothing.
    #[default]
    Open,
    /// The target held no record of the same group before.
    GroupWasEmpty,
    /// The same, with proof: the record's parent was there without any, or it was absent from the last two whole
    /// answers; and the last one left nothing open about the group. Nor did another target hold one.
    GroupWasZero,
}

/// Turns some changes of one kind into events of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Unique within the source; part of every event id.
    pub name: String,
    /// The stable type name: `racing.race.final`.
    pub event_type: String,
    /// The kind's full name: `racing_races`.
    pub kind: String,
    /// Which sort of change.
    pub on: Trigger,
    /// All of these must hold.
    pub when: Vec<Condition>,
    /// What must have been true of the group.
    pub gate: Gate,
    /// Silence after an event of this rule about the same record; a suppressed one does not extend it.
    pub quiet: Option<Span>,
    /// For [`Trigger::Added`]: silent if the record was last held less than this ago.
    pub unseen_for: Option<Span>,
    /// A readable unique key with `{target}`, `{key}`, `{fingerprint}`, `{minute}` (UTC) filled in.
    pub dedupe: Option<String>,
}

impl Rule {
    /// A rule without conditions.
    pub fn new(name: &str, event_type: &str, kind: &str, on: Trigger) -> Rule {
        Rule {
            name: name.to_owned(),
            event_type: event_type.to_owned(),
            kind: kind.to_owned(),
            on,
            when: vec![],
            gate: Gate::Open,
            quiet: None,
            unseen_for: None,
            dedupe: None,
        }
    }
}

/// A change, with what is needed to judge it.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// A new record.
    Added(&'a Record),
    /// A record with other content.
    Changed {
        /// As it is now.
        record: &'a Record,
        /// The fields that moved. Empty when only the upstream's own history did.
        fields: Vec<FieldChange>,
    },
    /// A record that is gone.
    Removed {
        /// Who it was.
        fingerprint: Fingerprint,
        /// Its kind's full name.
        kind: String,
        /// Its readable key.
        key: String,
        /// Its last known fields.
        body: Map<String, Json>,
        /// Whether its own time had passed.
        natural: bool,
    },
}

/// Everything a poll's judge may know.
#[derive(Clone, Debug)]
pub struct Judgement<'a> {
    /// The source's name.
    pub source: &'a str,
    /// The target.
    pub target: &'a TargetSpec,
    /// When the answer was whole.
    pub at: Time,
    /// The facts before this poll.
    pub facts_before: &'a Facts,
    /// The facts it brought.
    pub facts: &'a Facts,
    /// What the target held before.
    pub before: &'a Snapshot,
    /// What the comparison remembered before.
    pub memory: &'a Memory,
    /// What changed.
    pub changes: &'a [Change<'a>],
}

impl Judgement<'_> {
    /// Whether it is known that the record's parent had nothing to show: it was there, or it has been absent from two
    /// whole answers. Absent once may be a page that shifted while it was read.
    fn parent_was_seen_or_long_absent(&self, record: &Record) -> bool {
        let Some(parent) = record.parent else { return true };
        let absent_once = || self.memory.answers < 2 || self.memory.left.binary_search(&parent).is_ok();
        self.before.get(parent).is_some() || !absent_once()
    }
}

/// A proposed event; the engine gives it an id, the commit decides whether it comes about.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The rule that proposes it.
    pub rule: String,
    /// The type name.
    pub event_type: String,
    /// The record it is about.
    pub subject: Fingerprint,
    /// Its readable key.
    pub subject_key: String,
    /// When it was seen, if that was before the answer was whole: a quiet time begins here.
    pub at: Option<Time>,
    /// The payload.
    pub data: Json,
    /// A readable unique key.
    pub dedupe_key: Option<String>,
    /// What must have happened to the subject.
    pub requires: Effect,
    /// Silence after an event of the same rule and subject.
    pub quiet: Option<Span>,
    /// Silence if the record was last held less than this ago.
    pub unseen_for: Option<Span>,
}

/// The drafts that the rules make of the changes, in rule order, then in the order of the changes.
pub fn by_rules(rules: &[Rule], judgement: &Judgement<'_>) -> Vec<Draft> {
    let gated = rules.iter().any(|r| r.gate != Gate::Open);
    let groups: BTreeSet<Fingerprint> =
        if gated { judgement.before.entries().iter().map(|e| e.group).collect() } else { BTreeSet::new() };
    let mut drafts = Vec::new();
    for rule in rules {
        for change in judgement.changes {
            if change.kind_is(&rule.kind) && rule.applies(change, &groups, judgement) {
                drafts.push(rule.draft(change, judgement));
            }
        }
    }
    drafts
}

impl Rule {
    fn applies(
        &self,
        change: &Change<'_>,
        groups_before: &BTreeSet<Fingerprint>,
        judgement: &Judgement<'_>,
    ) -> bool {
        let triggered = match (&self.on, change) {
            (Trigger::Added, Change::Added(record)) => match self.gate {
                Gate::Open => true,
                Gate::GroupWasEmpty => !groups_before.contains(&record.group),
                Gate::GroupWasZero => {
                    !groups_before.contains(&record.group)
                        && judgement.memory.unsure.binary_search(&record.group).is_err()
                        && judgement.parent_was_seen_or_long_absent(record)
                }
            },
            (Trigger::Changed { fields }, Change::Changed { fields: moved, .. }) => {
                !moved.is_empty() && (fields.is_empty() || moved.iter().any(|m| fields.contains(&m.field)))
            }
            (Trigger::Removed { natural }, Change::Removed { natural: was, .. }) => {
                natural.is_none_or(|wanted| wanted == *was)
            }
            _ => false,
        };
        triggered && self.when.iter().all(|condition| condition.holds(change))
    }

    fn draft(&self, change: &Change<'_>, judgement: &Judgement<'_>) -> Draft {
        let (subject, key) = change.subject();
        let requires = match self.on {
            Trigger::Added if self.gate == Gate::GroupWasZero => Effect::AppearedFirst,
            Trigger::Added => Effect::Appeared,
            Trigger::Changed { .. } => Effect::Changed,
            Trigger::Removed { .. } => Effect::Vanished,
        };
        let dedupe_key = self.dedupe.as_ref().map(|template| {
            let at = judgement.at.to_string();
            template
                .replace("{target}", &judgement.target.key)
                .replace("{key}", key)
                .replace("{fingerprint}", &subject.to_string())
                .replace("{minute}", at.get(..16).unwrap_or(&at))
        });
        Draft {
            rule: self.name.clone(),
            event_type: self.event_type.clone(),
            subject,
            subject_key: key.to_owned(),
            at: None,
            data: change.data(),
            dedupe_key,
            requires,
            quiet: self.quiet,
            unseen_for: self.unseen_for,
        }
    }
}

impl Change<'_> {
    /// Who it is about, with the readable key.
    pub fn subject(&self) -> (Fingerprint, &str) {
        match self {
            Change::Added(record) | Change::Changed { record, .. } => (record.fingerprint, &record.key),
            Change::Removed { fingerprint, key, .. } => (*fingerprint, key),
        }
    }

    /// The payload of an event about this change.
    pub fn data(&self) -> Json {
        match self {
            Change::Added(record) => json!({ "record": record.body() }),
            Change::Changed { record, fields } => json!({ "record": record.body(), "changes": fields }),
            Change::Removed { body, natural, .. } => json!({ "record": body, "natural": natural }),
        }
    }

    fn kind_is(&self, full_name: &str) -> bool {
        match self {
            Change::Added(record) | Change::Changed { record, .. } => {
                full_name.strip_prefix(record.kind.family.as_str()).and_then(|rest| rest.strip_prefix('_'))
                    == Some(record.kind.collection.as_str())
            }
            Change::Removed { kind, .. } => kind == full_name,
        }
    }

    /// The field's value now (its last known one when the record is gone).
    fn now(&self, field: &str) -> Value {
        match self {
            Change::Added(record) | Change::Changed { record, .. } => {
                record.get(field).cloned().unwrap_or_default()
            }
            Change::Removed { body, .. } => body.get(field).map_or(Value::Null, Value::from_json),
        }
    }

    /// The field's value before, if it moved.
    fn before(&self, field: &str) -> Option<Value> {
        match self {
            Change::Changed { fields, .. } => {
                fields.iter().find(|c| c.field == field).map(|c| Value::from_json(&c.old))
            }
            _ => None,
        }
    }
}

impl Condition {
    fn holds(&self, change: &Change<'_>) -> bool {
        let now = change.now(&self.field);
        let moved = || {
            let before = change.before(&self.field)?.as_f64()?;
            Some((before, now.as_f64()? - before))
        };
        match &self.test {
            Test::Is(value) => now == *value,
            Test::IsNot(value) => now != *value,
            Test::OneOf(values) => values.contains(&now),
            Test::AtLeast(least) => now.as_f64().is_some_and(|n| n >= *least),
            Test::AtMost(most) => now.as_f64().is_some_and(|n| n <= *most),
            Test::Became(value) => now == *value && change.before(&self.field).is_some_and(|old| old != now),
            Test::RoseBy(step) => moved().is_some_and(|(old, by)| by > 0.0 && step.reached(old, by)),
            Test::FellBy(step) => moved().is_some_and(|(old, by)| by < 0.0 && step.reached(old, by)),
        }
    }
}

impl Step {
    fn reached(self, old: f64, by: f64) -> bool {
        match self {
            Step::Absolute(least) => by.abs() >= least,
            // From zero any move is infinitely large.
            Step::Percent(least) => old == 0.0 || by.abs() / old.abs() * 100.0 >= least,
        }
    }
}

#[cfg(test)]
mod tests;
