//! The values of record fields, equal when they mean the same: 1, 1.0 and 1e0 are one value.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Named;

/// A field's value. Build numbers with [`Value::number`] so that they are canonical from the start.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Unknown, missing or null.
    #[default]
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other finite number.
    Float(f64),
    /// Text, times included (RFC 3339). Shared, because the records of an answer say much of the same: where they are,
    /// when they were seen.
    Text(Arc<str>),
    /// An ordered list.
    List(Vec<Value>),
    /// Named values; the order of names means nothing.
    Map(Named),
}

/// Whole floats up to here are exactly representable and become [`Value::Int`].
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Value {
    /// A number in canonical form: whole floats become integers, minus zero is zero, NaN and infinities are null.
    pub fn number(n: f64) -> Value {
        if !n.is_finite() {
            Value::Null
        } else if n.fract() == 0.0 && n.abs() <= EXACT {
            Value::Int(n as i64)
        } else {
            Value::Float(n)
        }
    }

    /// Text.
    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Text(text.as_ref().into())
    }

    /// From parsed JSON; numbers become canonical, integers beyond 64 bits become floats.
    pub fn from_json(json: &serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => match n.as_i64() {
                Some(i) => Value::Int(i),
                None => n.as_f64().map_or(Value::Null, Value::number),
            },
            Json::String(s) => Value::text(s.as_str()),
            Json::Array(items) => Value::List(items.iter().map(Value::from_json).collect()),
            Json::Object(map) => {
                Value::Map(map.iter().map(|(k, v)| (k.clone(), Value::from_json(v))).collect())
            }
        }
    }

    /// As JSON, for storage and for people.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self.canonical_number() {
            Some(Value::Int(i)) => Json::from(i),
            Some(Value::Float(x)) => Json::from(x),
            _ => match self {
                Value::Bool(b) => Json::Bool(*b),
                Value::Text(s) => Json::String(s.to_string()),
                Value::List(items) => Json::Array(items.iter().map(Value::to_json).collect()),
                Value::Map(map) => {
                    Json::Object(map.iter().map(|(k, v)| (k.to_owned(), v.to_json())).collect())
                }
                Value::Null | Value::Int(_) | Value::Float(_) => Json::Null,
            },
        }
    }

    /// Whether this is what the JSON says: the same as comparing with [`Value::from_json`] of it, without making one.
    pub fn is_json(&self, json: &serde_json::Value) -> bool {
        match (self, json) {
            (Value::Text(text), serde_json::Value::String(other)) => **text == **other,
            _ => *self == Value::from_json(json),
        }
    }

    /// This list with everything that `newer` has besides; where either is no list, the newer one. Entries with names
    /// are the same when all but their own lists are equal, and those are put together, too.
    pub(crate) fn gathered_with(&self, newer: &Value) -> Value {
        let (Value::List(known), Value::List(newer)) = (self, newer) else { return newer.clone() };
        let mut all = known.clone();
        for item in newer {
            match all.iter_mut().find(|known| known.is_entry_of(item)) {
                Some(known) => *known = known.entry_with(item),
                None => all.push(item.clone()),
            }
        }
        let whole_number = |value: &Value| match value {
            Value::Int(n) => Some(*n),
            _ => None,
        };
        // Numbers have an order of their own, whoever was first.
        if all.iter().all(|value| whole_number(value).is_some()) {
            all.sort_by_key(whole_number);
        }
        Value::List(all)
    }

    fn is_entry_of(&self, other: &Value) -> bool {
        let (Value::Map(one), Value::Map(other)) = (self, other) else { return self == other };
        fn plain(map: &Named) -> impl Iterator<Item = (&str, &Value)> {
            map.iter().filter(|(_, value)| !matches!(value, Value::List(_)))
        }
        plain(one).eq(plain(other))
    }

    fn entry_with(&self, newer: &Value) -> Value {
        let (Value::Map(known), Value::Map(newer)) = (self, newer) else { return newer.clone() };
        let mut all = known.clone();
        for (name, value) in newer.iter() {
            let value = known.get(name).map_or_else(|| value.clone(), |known| known.gathered_with(value));
            all.insert(name.to_owned(), value);
        }
        Value::Map(all)
    }

    /// The number this value is, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(*i as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }

    /// The text this value is, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(s) => Some(s),
            _ => None,
        }
    }

    /// True for [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// This number in the one form that equality and hashing use; `None` when it is no number.
    pub(crate) fn canonical_number(&self) -> Option<Value> {
        match self {
            Value::Int(i) => Some(Value::Int(*i)),
            Value::Float(x) => Some(Value::number(*x)),
            _ => None,
        }
    }
}

/// The JSON of [`Value::to_json`], without making one.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => s.serialize_unit(),
            Value::Bool(b) => s.serialize_bool(*b),
            Value::Int(i) => s.serialize_i64(*i),
            Value::Float(x) => match Value::number(*x) {
                Value::Int(i) => s.serialize_i64(i),
                Value::Float(x) => s.serialize_f64(x),
                _ => s.serialize_unit(),
            },
            Value::Text(text) => s.serialize_str(text),
            Value::List(items) => s.collect_seq(items),
            Value::Map(map) => map.serialize(s),
        }
    }
}

/// The same as [`Value::from_json`] of the parsed JSON, without making one.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Value, D::Error> {
        d.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }
    fn visit_i64<E>(self, i: i64) -> Result<Value, E> {
        Ok(Value::Int(i))
    }
    fn visit_u64<E>(self, u: u64) -> Result<Value, E> {
        Ok(i64::try_from(u).map_or_else(|_| Value::number(u as f64), Value::Int))
    }
    fn visit_f64<E>(self, x: f64) -> Result<Value, E> {
        Ok(Value::number(x))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }
    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::text(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut named: Vec<(String, Value)> = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            named.push(entry);
        }
        Ok(Value::Map(named.into_iter().collect()))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => {
                matches!(Value::number(*b), Value::Int(c) if c == *a)
            }
            (Value::Float(a), Value::Float(b)) => a == b || !(a.is_finite() || b.is_finite()),
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            // A float that is not a number is stored and hashed as null.
            (Value::Null, Value::Float(x)) | (Value::Float(x), Value::Null) => !x.is_finite(),
            _ => false,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::text(text)
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::text(text)
    }
}
impl From<&Arc<str>> for Value {
    fn from(text: &Arc<str>) -> Value {
        Value::Text(Arc::clone(text))
    }
}
impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}
impl From<i64> for Value {
    fn from(i: i64) -> Value {
        Value::Int(i)
    }
}
impl From<f64> for Value {
    fn from(n: f64) -> Value {
        Value::number(n)
    }
}
impl From<crate::Time> for Value {
    fn from(time: crate::Time) -> Value {
        Value::text(time.to_string())
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_however_they_are_written() {
        let parse = |s: &str| Value::from_json(&serde_json::from_str(s).expect("json"));
        for same in ["1", "1.0", "1e0", "10e-1"] {
            assert_eq!(parse(same), Value::Int(1), "{same}");
        }
        assert_eq!(parse("-0.0"), Value::Int(0));
        assert_ne!(parse("1.01"), Value::Int(1));
        assert_eq!(Value::Float(2.0), Value::Int(2));
        assert!(
            parse("1.0").is_json(&serde_json::json!(1)) && Value::text("a").is_json(&serde_json::json!("a"))
        );
        assert!(!Value::text("1").is_json(&serde_json::json!(1)));
        assert_eq!(parse("18446744073709551615").as_f64(), Some(18446744073709551615.0));
    }

    #[test]
    fn text_is_read_as_its_json_would_be() {
        let text = r#"[null, true, 1, 1.0, -0.0, 2.5, 18446744073709551615, "a\"b", {"b": [], "a": {}}]"#;
        let json: serde_json::Value = serde_json::from_str(text).expect("json");
        let read: Value = serde_json::from_str(text).expect("value");
        assert_eq!(read, Value::from_json(&json));
        assert!(matches!(&read, Value::List(items) if matches!(items[3..5], [Value::Int(1), Value::Int(0)])));
    }

    #[test]
    fn values_are_written_as_their_json() {
        let odd = [Value::Float(2.0), Value::Float(-0.0), Value::Float(f64::NAN), Value::Float(1e300)];
        let list = Value::List(odd.into_iter().chain([Value::Null, "a\"b".into(), true.into()]).collect());
        let map = Value::Map(Named::from([("b", list), ("a", Value::Int(1))]));
        assert_eq!(serde_json::to_string(&map).expect("text"), map.to_json().to_string());
    }
}
