//! A runner on its way through its history.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use stakeout_core::{Field, FieldChange, FieldType, Kind, Record, Time, Value};
use stakeout_sources::racing::FAMILY as RACING;
use stakeout_store::StoredRecord;

use super::super::super::replay::Row;

/// The field that decides nothing about the past: what it says now is not what it said then.
const SCRATCHED: &str = "is_scratched";

pub(super) struct Runner {
    stored: StoredRecord,
    scratched: Option<Time>,
    /// What is known of it at the moment; nothing before its first row.
    body: Option<Map<String, Json>>,
    /// The rows of its stream, the one that was seen last first.
    rest: Vec<Row>,
}

impl Runner {
    /// A runner of whom nothing was seen yet, and when it was told to be scratched.
    pub(super) fn new(stored: StoredRecord, mut rest: Vec<Row>, scratched: Option<Time>) -> Runner {
        rest.sort_by_key(|row| std::cmp::Reverse((row.seen, row.at)));
        let stamped = || stored.body["scratch_time"].as_str().and_then(Time::parse);
        let scratched = scratched.or_else(stamped).filter(|_| stored.body[SCRATCHED] == true);
        Runner { stored, scratched, body: None, rest }
    }

    /// When something was seen of it that is still to come.
    pub(super) fn moments(&self) -> impl Iterator<Item = Time> {
        self.rest.iter().map(|row| row.seen)
    }

    /// Takes in what was seen by this moment; answers what moved.
    pub(super) fn advance(&mut self, at: Time) -> Vec<FieldChange> {
        let mut moved: BTreeMap<String, FieldChange> = BTreeMap::new();
        while let Some(row) = self.rest.pop_if(|row| row.seen <= at) {
            let is_first = self.body.is_none();
            let rest = &self.rest;
            let stored = &self.stored.body;
            let body = self.body.get_or_insert_with(|| {
                let mut body = stored.as_object().cloned().unwrap_or_default();
                // What its history has still to tell was not known yet.
                for field in rest.iter().filter_map(|row| row.values.as_object()).flat_map(Map::keys) {
                    body.insert(field.clone(), Json::Null);
                }
                body
            });
            for (field, new) in row.values.as_object().into_iter().flatten() {
                let old = body.insert(field.clone(), new.clone()).unwrap_or(Json::Null);
                if is_first {
                    continue;
                }
                // Of several moves that were seen at once only the whole is known as one.
                let change = FieldChange { field: field.clone(), old, new: new.clone() };
                moved.entry(field.clone()).or_insert(change).new = new.clone();
            }
        }
        moved.into_values().filter(|change| change.old != change.new).collect()
    }

    /// As it was seen at this moment; nothing before its first row.
    pub(super) fn seen(&self, at: Time) -> Option<Record> {
        let mut body = self.body.clone()?;
        body.insert(SCRATCHED.to_owned(), self.scratched.is_some_and(|since| since <= at).into());
        Some(record("entrants", &self.stored, body))
    }
}

/// A stored record as a poll would have seen it. Its fields are those that are stored.
pub(super) fn record(collection: &str, stored: &StoredRecord, body: Map<String, Json>) -> Record {
    let fields = body.keys().map(|name| Field::new(name, FieldType::Json)).collect();
    let kind = Arc::new(Kind {
        family: RACING.into(),
        collection: collection.into(),
        version: 1,
        fields,
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    });
    let values = body.values().map(Value::from_json).collect();
    let mut record = Record::new(&kind, &[&stored.key], values);
    record.fingerprint = stored.fingerprint;
    record.key.clone_from(&stored.key);
    record.parent = stored.parent;
    record
}
