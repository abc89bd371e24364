//! One look at a race, and what a book of rules makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Alerts, Moment, Occasion, Question, Ring, Told, Went};
use stakeout_core::judge::Change;
use stakeout_core::{
    Event, EventId, Facts, Field, FieldChange, FieldType, Fingerprint, Kind, Record, Span, TargetSpec, Time,
    Value,
};
use stakeout_sources::alert::{AlertConfig, RuleBook};

const START: &str = "2026-01-10T02:00:00Z";

pub(crate) fn at(secs: i64) -> Time {
    Time::parse(START).expect("a time") + Span::secs(secs)
}

pub(crate) fn book(rule: Json) -> RuleBook {
    let rule: AlertConfig = serde_json::from_value(rule).expect("a rule");
    RuleBook::new(BTreeMap::from([("mine".to_owned(), rule)])).expect("a book")
}

pub(crate) fn refused(rule: Json) -> String {
    let rule: AlertConfig = serde_json::from_value(rule).expect("a rule");
    RuleBook::new(BTreeMap::from([("mine".to_owned(), rule)])).expect_err("refused").to_string()
}

fn entrants() -> Arc<Kind> {
    let number = |name: &str| Field::new(name, FieldType::Float);
    Arc::new(Kind {
        family: "racing".into(),
        collection: "entrants".into(),
        version: 1,
        fields: vec![
            Field::new("name", FieldType::Text),
            Field::new("is_scratched", FieldType::Bool),
            number("runner_number"),
            number("win_odds"),
            number("hold_percentage"),
            number("win_pool_amount"),
        ],
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    })
}

/// Runner 3 with this price, share and money.
pub(crate) fn runner(price: f64, share: f64, pool: f64) -> Record {
    let values = vec!["Fast".into(), false.into(), 3.0.into(), price.into(), share.into(), pool.into()];
    Record::new(&entrants(), &["e3"], values)
}

fn race() -> TargetSpec {
    TargetSpec::new("race/r", "race")
}

/// One look at a race.
pub(crate) struct Look {
    at: Time,
    /// When the look before it was.
    before: Time,
    pub(crate) facts: Facts,
    pub(crate) record: Record,
    fields: Vec<FieldChange>,
    told: Vec<(String, Json)>,
    pub(crate) went: Went,
    history: Vec<Moment>,
}

impl Look {
    pub(crate) fn at(secs: i64) -> Look {
        Look {
            at: at(secs),
            before: at(secs - 1),
            facts: Facts { start: Some(at(0)), ..Facts::default() },
            record: runner(7.0, 20.0, 0.0),
            fields: Vec::new(),
            told: Vec::new(),
            went: Went::default(),
            history: Vec::new(),
        }
    }

    /// A field of the runner moved.
    pub(crate) fn moved(mut self, field: &str, old: f64, new: f64) -> Look {
        let position = self.record.kind.position(field).expect("a field");
        self.record.values[position] = Value::number(new);
        self.fields.push(FieldChange { field: field.into(), old: json!(old), new: json!(new) });
        self
    }

    pub(crate) fn knowing(mut self, field: &str, rows: &[(i64, f64)]) -> Look {
        self.history = rows.iter().map(|(secs, value)| (at(*secs), json!({ field: value }))).collect();
        self
    }

    pub(crate) fn after(mut self, secs: i64) -> Look {
        self.before = at(secs);
        self
    }

    pub(crate) fn telling(mut self, event_type: &str, data: Json) -> Look {
        self.told.push((event_type.to_owned(), data));
        self
    }

    pub(crate) fn rings(&self, book: &RuleBook) -> Vec<Ring> {
        let changes = match self.fields.is_empty() {
            true => vec![],
            false => vec![Change::Changed { record: &self.record, fields: self.fields.clone() }],
        };
        let target = race();
        let before = Facts::default();
        let told: Vec<Told<'_>> = self
            .told
            .iter()
            .map(|(event_type, data)| Told {
                event_type,
                subject: Fingerprint::default(),
                subject_key: "s",
                data,
            })
            .collect();
        let occasion = Occasion {
            source: "nz",
            target: Some(&target),
            at: self.at,
            looked: Some(self.before),
            facts: Some((&before, &self.facts)),
            records: std::slice::from_ref(&self.record),
            changes: &changes,
            told: &told,
            went: self.went,
        };
        let questions = book.questions(&occasion);
        let answers: Vec<(Question, Vec<Moment>)> =
            questions.into_iter().map(|question| (question, self.history.clone())).collect();
        book.judge(&occasion, &answers)
    }

    pub(crate) fn titles(&self, book: &RuleBook) -> Vec<String> {
        self.rings(book).iter().map(|ring| ring.data["title"].as_str().expect("words").to_owned()).collect()
    }
}

/// What a rule told, as it stands in the log.
pub(crate) fn logged(ring: &Ring) -> Event {
    Event {
        seq: 1,
        id: EventId::of_trigger("nz", "alert:test", "s", "t"),
        event_type: "alert.raised".into(),
        source: "nz".into(),
        target: "t".into(),
        rule: format!("alert:{}", ring.alert),
        subject: ring.subject,
        subject_key: ring.subject_key.clone(),
        at: at(0),
        dedupe_key: ring.dedupe_key.clone(),
        data: ring.data.clone(),
    }
}
