//! Which changes of a record become rows of its history.

use serde_json::{Map, Value as Json};

use crate::record::object_text;
use crate::{FieldChange, Record, Value};

/// One row of a stream, to be stamped by whoever observed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// The stream.
    pub stream: &'a str,
    /// All fields of the stream.
    pub values: Vec<(&'a str, &'a Value)>,
}

impl Row<'_> {
    /// The values as a JSON object, as stored.
    pub fn text(self) -> String {
        object_text(self.values)
    }
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
pub fn rows<'a>(record: &'a Record, old: Option<&Map<String, Json>>) -> Vec<Row<'a>> {
    let moved = |name: &String| {
        let before = old.and_then(|body| body.get(name)).unwrap_or(&Json::Null);
        !record.get(name).unwrap_or(&Value::Null).is_json(before) && !record.told.contains(name)
    };
    let named = |name: &'a String| (name.as_str(), record.get(name).unwrap_or(&Value::Null));
    let stream_row = |stream: &'a crate::Stream| {
        let any = stream.fields.iter().any(moved);
        any.then(|| Row { stream: &stream.name, values: stream.fields.iter().map(named).collect() })
    };
    record.kind.streams.iter().filter_map(stream_row).collect()
}
