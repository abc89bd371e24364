//! What a rule would have told: the past, handed to the rule as the polls would have handed it.
//!
//! `gather` reads what a rule looks at, [`replay`] judges it: no clock, no store. What the log, the history and the
//! poll log keep is enough for every sort of rule; the quiet times and the keys that ring once are kept in memory.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use stakeout_core::alert::{Alerts, Moment, Occasion, Question, Ring, Told, Went};
use stakeout_core::judge::Change;
use stakeout_core::{Event, Facts, FieldChange, Fingerprint, Record, TargetSpec, Time};

use super::looks::Look;
use super::repeats::Repeats;
use crate::schema::Instant;

/// Something that a rule may ring about.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    pub(super) source: String,
    pub(super) target: Option<TargetSpec>,
    pub(super) at: Time,
    /// When the last complete look before this one began, if this was a look.
    pub(super) looked: Option<Time>,
    pub(super) facts: Facts,
    /// What was seen.
    pub(super) records: Vec<Record>,
    /// What of it moved, by its place there.
    pub(super) moved: Vec<(usize, Vec<FieldChange>)>,
    /// What was told.
    pub(super) told: Vec<Event>,
    pub(super) went: Went,
}

/// A row of a record's history.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// When it was seen: what the upstream stamps itself is older.
    pub(super) seen: Time,
    pub(super) at: Time,
    pub(super) values: Json,
}

/// The past that a rule looks at.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    /// In order of time; from before [`Past::since`] is what may be told again later.
    pub(super) happenings: Vec<Happening>,
    /// Rows of history by record and stream, the oldest first.
    pub(super) rows: BTreeMap<(Fingerprint, String), Vec<Row>>,
    /// When what was told of a record was there no more; nothing while it is.
    pub(super) ends: BTreeMap<(String, Fingerprint), Option<Time>>,
    /// When somebody first read what this very rule told of a record, by when it began to: nothing while nobody has.
    pub(super) read: BTreeMap<(String, Fingerprint), BTreeMap<Time, Option<Time>>>,
    /// When targets were looked at whose polls were missed, by source and key.
    pub(super) looks: BTreeMap<(String, String), Vec<Look>>,
    /// Those of them that are switched off now.
    pub(super) off: BTreeSet<(String, String)>,
    /// What rang before this is not shown.
    pub(super) since: Time,
    /// Its end.
    pub(super) until: Time,
    /// Whether there was more than is looked at.
    pub(super) cut: bool,
    /// Whether something is judged at a look of which nobody knows the moment.
    pub(super) guessed: bool,
    /// Whether a price may have been seen one look later than it seems.
    pub(super) unsure: bool,
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
    /// What the past does not say about this, in words.
    pub remarks: BTreeSet<Remark>,
}

/// What the past does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remark {
    /// Nothing of it was sent, so nobody can have read it.
    Unread,
    /// When something went that came again.
    WhenItWent,
    /// Since when a target is switched off.
    WhenSwitchedOff,
    /// When a target was looked at.
    WhenLooked,
    /// Which look showed a price first.
    WhenSeen,
}

impl Remark {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Remark::Unread => "repeats are shown as if nobody had read it: it was never sent",
            Remark::WhenItWent => {
                "repeats are left out where a table came and went several times: only when it went last is kept"
            }
            Remark::WhenSwitchedOff => {
                "repeats are left out where a target is switched off: since when is not kept"
            }
            Remark::WhenLooked => {
                "repeats may be one look off: the moments of looks that saw nothing new are not kept one by one"
            }
            Remark::WhenSeen => {
                "some may have rung one look later: which look first showed a price that the upstream stamped is not kept"
            }
        }
    }
}

impl Serialize for Remark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.words())
    }
}

impl JsonSchema for Remark {
    fn schema_name() -> Cow<'static, str> {
        "Remark".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Judges the past by a rule.
pub(super) fn replay(rule: &dyn Alerts, past: &Past) -> Replayed {
    let done = Replayed { cut: past.cut, ..Replayed::default() };
    let mut replay = Replay { rule, since: past.since, done, last: BTreeMap::new(), keys: BTreeSet::new() };
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
    let mut done = replay.done;
    done.rings.sort_by_key(|ring| ring.at);
    // Where nothing rang, nothing is missing.
    if !done.rings.is_empty() {
        done.remarks = repeats.remarks;
        done.remarks.extend(past.guessed.then_some(Remark::WhenLooked));
        done.remarks.extend(past.unsure.then_some(Remark::WhenSeen));
    }
    done
}

/// A rule on its way through the past.
pub(super) struct Replay<'a> {
    pub(super) rule: &'a dyn Alerts,
    since: Time,
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
            self.done.kept_quiet += u64::from(at >= self.since);
            return None;
        }
        if ring.quiet.is_some() {
            self.last.insert(place, at);
        }
        self.keys.extend(ring.dedupe_key.clone());
        if at >= self.since {
            self.done.rings.push(would_ring(source, at, &ring));
        }
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
        looked: happening.looked,
        facts: Some((&happening.facts, &happening.facts)),
        records: &happening.records,
        changes: &changes,
        told: &told,
        went: happening.went,
    };
    let answer = |question: Question| {
        let rows = past.rows.get(&(question.record, question.stream.clone())).map_or(&[][..], Vec::as_slice);
        // What a poll brings is not history yet when the rule looks at it.
        let known: Vec<&Row> = rows.iter().filter(|row| row.seen < happening.at).collect();
        let first = known.iter().rposition(|row| row.at <= question.since).unwrap_or(0);
        let rows = known[first..].iter().map(|row| (row.at, row.values.clone())).collect();
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
