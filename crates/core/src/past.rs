//! What was known of a record before: as it is stored, or as whoever wrote it last remembers it.

use serde_json::{Map, Value as Json};

use crate::{Record, Value};

/// A record's fields as they were.
pub trait Past {
    /// Whether the field had this value.
    fn is(&self, field: &str, value: &Value) -> bool;

    /// What the field had; `None` when that was nothing.
    fn value(&self, field: &str) -> Option<Value>;

    /// The same as JSON; null when it was nothing.
    fn json(&self, field: &str) -> Json;
}

/// A stored body.
impl Past for Map<String, Json> {
    fn is(&self, field: &str, value: &Value) -> bool {
        value.is_json(self.get(field).unwrap_or(&Json::Null))
    }

    fn value(&self, field: &str) -> Option<Value> {
        self.get(field).filter(|known| !known.is_null()).map(Value::from_json)
    }

    fn json(&self, field: &str) -> Json {
        self.get(field).cloned().unwrap_or_default()
    }
}

impl Past for Record {
    fn is(&self, field: &str, value: &Value) -> bool {
        self.get(field).unwrap_or(&Value::Null) == value
    }

    fn value(&self, field: &str) -> Option<Value> {
        self.get(field).filter(|known| !known.is_null()).cloned()
    }

    fn json(&self, field: &str) -> Json {
        self.get(field).map(Value::to_json).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Field, FieldType, Kind};

    #[test]
    fn a_record_and_its_body_say_the_same() {
        let fields = ["whole", "part", "text", "list", "none"].map(|name| Field::new(name, FieldType::Json));
        let kind = Arc::new(Kind {
            family: "test".into(),
            collection: "things".into(),
            version: 1,
            fields: fields.to_vec(),
            streams: vec![],
            merges: false,
            views: vec![],
        });
        let list = Value::List(vec![Value::Int(1), Value::Float(f64::NAN)]);
        let values = vec![Value::Float(2.0), Value::Float(2.5), "a".into(), list, Value::Float(f64::NAN)];
        let record = Record::new(&kind, &["a"], values.clone());
        let stored: Map<String, Json> = serde_json::from_str(&record.body_text()).expect("an object");
        let both: [&dyn Past; 2] = [&record, &stored];
        for name in ["whole", "part", "text", "list", "none", "no_such_field"] {
            for value in values.iter().chain([&Value::Null, &Value::Int(2)]) {
                let [one, other] = both.map(|past| past.is(name, value));
                assert_eq!(one, other, "{name} is {value:?}");
            }
            let [one, other] = both.map(|past| (past.value(name).unwrap_or_default(), past.json(name)));
            assert_eq!(one, other, "{name}");
        }
    }
}
