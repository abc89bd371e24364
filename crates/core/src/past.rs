//! What was known of a record before: as it is stored, or as whoever wrote it last remembers it.

use serde_json::{Map, Value as Json};

use crate::{Kind, Record, Value};

/// A record's fields as they were. A field is asked for by its kind and its place there, which is at hand wherever
/// fields are gone through: looking each of them up by its name would compare all names with each other.
pub trait Past {
    /// Whether the field had this value.
    fn is(&self, kind: &Kind, place: usize, value: &Value) -> bool;

    /// What the field had; `None` when that was nothing.
    fn value(&self, kind: &Kind, place: usize) -> Option<Value>;

    /// The same as JSON; null when it was nothing.
    fn json(&self, kind: &Kind, place: usize) -> Json;
}

/// A stored body.
impl Past for Map<String, Json> {
    fn is(&self, kind: &Kind, place: usize, value: &Value) -> bool {
        value.is_json(self.get(&kind.fields[place].name).unwrap_or(&Json::Null))
    }

    fn value(&self, kind: &Kind, place: usize) -> Option<Value> {
        self.get(&kind.fields[place].name).filter(|known| !known.is_null()).map(Value::from_json)
    }

    fn json(&self, kind: &Kind, place: usize) -> Json {
        self.get(&kind.fields[place].name).cloned().unwrap_or_default()
    }
}

impl Past for Record {
    fn is(&self, kind: &Kind, place: usize, value: &Value) -> bool {
        self.at(kind, place).unwrap_or(&Value::Null) == value
    }

    fn value(&self, kind: &Kind, place: usize) -> Option<Value> {
        self.at(kind, place).filter(|known| !known.is_null()).cloned()
    }

    fn json(&self, kind: &Kind, place: usize) -> Json {
        self.at(kind, place).map(Value::to_json).unwrap_or_default()
    }
}

impl Record {
    /// The value of a field of `kind`, which may be another version of this record's own.
    fn at(&self, kind: &Kind, place: usize) -> Option<&Value> {
        match std::ptr::eq(&*self.kind, kind) {
            true => self.values.get(place),
            false => self.get(&kind.fields[place].name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Field, FieldType};

    #[test]
    fn a_record_and_its_body_say_the_same() {
        let names = ["whole", "part", "text", "list", "none"];
        let kind_of = |names: &[&str]| {
            Arc::new(Kind {
                family: "test".into(),
                collection: "things".into(),
                version: 1,
                fields: names.iter().map(|name| Field::new(name, FieldType::Json)).collect(),
                streams: vec![],
                merges: false,
                views: vec![],
                layout: Default::default(),
            })
        };
        let own = kind_of(&names);
        // Another version of it, with other places and a field more.
        let later = kind_of(&["none", "list", "no_such_field", "text", "part", "whole"]);
        let list = Value::List(vec![Value::Int(1), Value::Float(f64::NAN)]);
        let values = vec![Value::Float(2.0), Value::Float(2.5), "a".into(), list, Value::Float(f64::NAN)];
        let record = Record::new(&own, &["a"], values.clone());
        let stored: Map<String, Json> = serde_json::from_str(&record.body_text()).expect("an object");
        let both: [&dyn Past; 2] = [&record, &stored];
        for kind in [&own, &later] {
            for (place, Field { name, .. }) in kind.fields.iter().enumerate() {
                for value in values.iter().chain([&Value::Null, &Value::Int(2)]) {
                    let [one, other] = both.map(|past| past.is(kind, place, value));
                    assert_eq!(one, other, "{name} is {value:?}");
                }
                let said =
                    |past: &dyn Past| (past.value(kind, place).unwrap_or_default(), past.json(kind, place));
                let [one, other] = both.map(said);
                assert_eq!(one, other, "{name}");
            }
        }
    }
}
