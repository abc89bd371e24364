//! What a rule would have told: the past, handed to the rule as the polls would have handed it.
//!
//! [`gather`] reads what a rule looks at, [`replay`] judges it: no clock, no store. What the log, the history and the
//! poll log keep is enough for every sort of rule; the quiet times and the keys that ring once are kept in memory.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use stakeout_core::alert::{Alerts, Moment, Occasion, Question, Ring, Told, Went};
use stakeout_core::judge::Change;
use stakeout_core::{Event, Facts, FieldChange, Fingerprint, Record, TargetSpec, Time};

use super::repeats::Repeats;
use crate::schema::Instant;

/// Something that a rule may ring about.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    pub(super) source: String,
    pub(super) target: Option<TargetSpec>,
    pub(super) at: Time,
    pub(super) facts: Facts,
    /// What was seen.
    pub(super) records: Vec<Record>,
    /// What of it moved, by its place there.
    pub(super) moved: Vec<(usize, Vec<FieldChange>)>,
    /// What was told.
    pub(super) told: Vec<Event>,
    pub(super) went: Went,
}

/// The past that a rule looks at.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// In order of time.
    pub(super) happenings: Vec<Happening>,
    /// Rows of history by record and stream, the oldest first.
    pub(super) rows: BTreeMap<(Fingerprint, String), Vec<Moment>>,
    /// When what was told of a record was there no more; nothing while it is.
    pub(super) ends: BTreeMap<(String, Fingerprint), Option<Time>>,
    /// Its end.
    pub(super) until: Time,
    /// Whether there was more than is looked at.
    pub(super) cut: bool,
}

/// A notification that would have been sent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WouldRing {
    /// When.
    #[schemars(with = "Instant")]
    pub at: Time,
    /// The source.
    pub source: String,
    /// What it is about.
    pub subject: String,
    /// In a few words.
    pub title: String,
    /// In more words.
    pub text: String,
    /// Where it would have been sent, besides the dashboard.
    pub sinks: Vec<String>,
    /// Everything that it would have said.
    pub data: Json,
}

/// What a rule would have done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Replayed {
    /// What it would have sent, the oldest first.
    pub rings: Vec<WouldRing>,
    /// How often it would have rung, had it not kept quiet.
    pub kept_quiet: u64,
    /// Whether there was more in this time than is looked at: then the beginning is left out.
    pub cut: bool,
    /// Whether it would have repeated itself, and the past does not say how often: then only what rang first is here.
    pub repeats_left_out: bool,
}

/// Judges the past by a rule.
pub fn replay(rule: &dyn Alerts, past: &Past) -> Replayed {
    let done = Replayed { cut: past.cut, ..Replayed::default() };
    let mut replay = Replay { rule, done, last: BTreeMap::new(), keys: BTreeSet::new() };
    let mut repeats = Repeats::new(past);
    for happening in &past.happenings {
        repeats.until(happening.at, &mut replay);
        repeats.see(happening);
        for ring in rings(rule, past, happening) {
            if let Some(ring) = replay.ring(&happening.source, happening.at, ring) {
                repeats.take(rule, &happening.source, happening.at, ring);
            }
        }
    }
    repeats.until(past.until, &mut replay);
    replay.done.repeats_left_out = repeats.left_out;
    replay.done.rings.sort_by_key(|ring| ring.at);
    replay.done
}

/// A rule on its way through the past.
pub(super) struct Replay<'a> {
    pub(super) rule: &'a dyn Alerts,
    done: Replayed,
    last: BTreeMap<(String, Fingerprint), Time>,
    keys: BTreeSet<String>,
}

impl Replay<'_> {
    /// Rings, unless it has to keep quiet; answers what rang. As the store decides: what is refused leaves no trace.
    pub(super) fn ring(&mut self, source: &str, at: Time, ring: Ring) -> Option<Ring> {
        let place = (source.to_owned(), ring.subject);
        let quiet = ring.quiet.zip(self.last.get(&place)).is_some_and(|(quiet, last)| *last > at - quiet);
        let known = ring.dedupe_key.as_ref().is_some_and(|key| self.keys.contains(key));
        if quiet || known {
            self.done.kept_quiet += 1;
            return None;
        }
        if ring.quiet.is_some() {
            self.last.insert(place, at);
        }
        self.keys.extend(ring.dedupe_key.clone());
        self.done.rings.push(would_ring(source, at, &ring));
        Some(ring)
    }
}

fn rings(rule: &dyn Alerts, past: &Past, happening: &Happening) -> Vec<Ring> {
    let told: Vec<Told<'_>> = happening.told.iter().map(told).collect();
    let change = |(place, fields): &(usize, Vec<FieldChange>)| Change::Changed {
        record: &happening.records[*place],
        fields: fields.clone(),
    };
    let changes: Vec<Change<'_>> = happening.moved.iter().map(change).collect();
    let occasion = Occasion {
        source: &happening.source,
        target: happening.target.as_ref(),
        at: happening.at,
        // Only moves are handed to it: what was still so at other looks is not known.
        looked: None,
        facts: Some((&happening.facts, &happening.facts)),
        records: &happening.records,
        changes: &changes,
        told: &told,
        went: happening.went,
    };
    let answer = |question: Question| {
        let rows = past.rows.get(&(question.record, question.stream.clone())).map_or(&[][..], Vec::as_slice);
        // What a poll brings is not history yet when the rule looks at it.
        let rows = &rows[..rows.partition_point(|(at, _)| *at < happening.at)];
        let first = rows.iter().rposition(|(at, _)| *at <= question.since).unwrap_or(0);
        let rows = rows[first..].to_vec();
        (question, rows)
    };
    let answers: Vec<(Question, Vec<Moment>)> = rule.questions(&occasion).into_iter().map(answer).collect();
    rule.judge(&occasion, &answers)
}

fn told(event: &Event) -> Told<'_> {
    Told {
        event_type: &event.event_type,
        subject: event.subject,
        subject_key: &event.subject_key,
        data: &event.data,
    }
}

fn would_ring(source: &str, at: Time, ring: &Ring) -> WouldRing {
    let text = |name: &str| ring.data[name].as_str().unwrap_or_default().to_owned();
    WouldRing {
        at,
        source: source.to_owned(),
        subject: ring.subject_key.clone(),
        title: text("title"),
        text: text("text"),
        sinks: ring.sinks.clone(),
        data: ring.data.clone(),
    }
}
