//! Which changes of a record become rows of its history.

use crate::record::object_text;
use crate::{Field, FieldChange, Past, Point, Record, Value};

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

/// The tracked fields in which `record` differs from what was known of it.
pub fn changed_fields(record: &Record, old: &dyn Past) -> Vec<FieldChange> {
    let kind = &*record.kind;
    let fields = kind.fields.iter().zip(&record.values).enumerate();
    let moved = fields.filter(|(place, (field, new))| field.tracked && !old.is(kind, *place, new));
    let change = |(place, (field, new)): (usize, (&Field, &Value))| FieldChange {
        field: field.name.clone(),
        old: old.json(kind, place),
        new: new.to_json(),
    };
    moved.map(change).collect()
}

/// The history rows that a change (or a first sight, without `old`) of `record` calls for: one per stream of which
/// any field moved, but for those whose moves the upstream itself tells, now: where none of its points is news, as when
/// a price is back at what it last told, nobody else would write the row. A first sight without a single value writes
/// none.
pub fn rows<'a>(
    record: &'a Record,
    old: Option<&dyn Past>,
    is_news: impl Fn(&Point) -> bool,
) -> Vec<Row<'a>> {
    let kind = &*record.kind;
    let tells =
        |stream: &str| record.points.iter().rev().any(|point| point.stream == stream && is_news(point));
    let moved = |(_, place): &(&'a String, usize)| {
        let now = &record.values[*place];
        let stands =
            old.map_or_else(|| now.is_json(&serde_json::Value::Null), |old| old.is(kind, *place, now));
        !stands
    };
    let stream_row = |stream: &'a crate::Stream| {
        let places = stream.fields.iter().filter_map(|name| Some((name, kind.position(name)?)));
        let fields: Vec<(&String, usize)> = places.collect();
        let named = |(name, place): &(&'a String, usize)| (name.as_str(), &record.values[*place]);
        let mut moves = fields.iter().filter(|field| moved(field));
        let any = moves.any(|(name, _)| !record.told.contains(name) || !tells(&stream.name));
        any.then(|| Row { stream: &stream.name, values: fields.iter().map(named).collect() })
    };
    kind.streams.iter().filter_map(stream_row).collect()
}
