//! Which changes of a record become rows of its history.

use serde_json::{Map, Value as Json};

use crate::{FieldChange, Record, Value};

/// One row of a stream, to be stamped by whoever observed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The stream.
    pub stream: String,
    /// All fields of the stream.
    pub values: Map<String, Json>,
}

/// The tracked fields in which `record` differs from its stored body.
pub fn changed_fields(record: &Record, old: &Map<String, Json>) -> Vec<FieldChange> {
    let fields = record.kind.fields.iter().zip(&record.values).filter(|(field, _)| field.tracked);
    fields
        .filter_map(|(field, new)| {
            let before = old.get(&field.name).unwrap_or(&Json::Null);
            (!new.is_json(before)).then(|| FieldChange {
                field: field.name.clone(),
                old: before.clone(),
                new: new.to_json(),
            })
        })
        .collect()
}

/// The history rows that a change (or a first sight, without `old`) of `record` calls for: one per stream of which
/// any field moved, but for those whose moves the upstream itself tells. A first sight without a single value writes
/// none.
pub fn rows(record: &Record, old: Option<&Map<String, Json>>) -> Vec<Row> {
    let moved = |name: &String| {
        let before = old.and_then(|body| body.get(name)).unwrap_or(&Json::Null);
        !record.get(name).unwrap_or(&Value::Null).is_json(before) && !record.told.contains(name)
    };
    let json = |name: &String| (name.clone(), record.get(name).map_or(Json::Null, Value::to_json));
    let stream_row = |stream: &crate::Stream| {
        let values = || stream.fields.iter().map(json).collect();
        let any = stream.fields.iter().any(moved);
        any.then(|| Row { stream: stream.name.clone(), values: values() })
    };
    record.kind.streams.iter().filter_map(stream_row).collect()
}
