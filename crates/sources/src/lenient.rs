//! Reading JSON that may be anything: a field of the wrong type is a field that says nothing, never a lost document.
//!
//! serde's derived structs fail as a whole on the first surprise, and once lost a race all of its entrants. Here only
//! broken JSON fails. Nothing is buffered: what is not used is skipped in the bytes, text is borrowed from them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use stakeout_core::{Time, Value};

/// Beyond this, a number is milliseconds since 1970 and not seconds: as seconds it would be the year 5138.
const SECONDS_MAX: f64 = 1e11;

/// One value of whatever type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Leaf<'a> {
    /// Absent or null.
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'a, str>),
    /// A list or an object where a value was expected.
    Other,
}

impl<'a> Leaf<'a> {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Leaf::Null)
    }

    /// Text without surrounding space, or a number as text; `None` when there is nothing to read.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Leaf::Text(text) => {
                let text = text.trim();
                // No database takes a NUL in text.
                let clean = || match text.as_bytes().contains(&0) {
                    true => Cow::Owned(text.replace('\0', "\u{fffd}")),
                    false => Cow::Borrowed(text),
                };
                (!text.is_empty()).then(clean)
            }
            Leaf::Int(n) => Some(Cow::Owned(n.to_string())),
            Leaf::Float(n) => Some(Cow::Owned(n.to_string())),
            Leaf::Null | Leaf::Bool(_) | Leaf::Other => None,
        }
    }

    /// The same, still borrowed from the bytes it was read from where it was.
    pub(crate) fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Leaf::Text(Cow::Borrowed(text)) if !text.as_bytes().contains(&0) => {
                Some(text.trim()).filter(|text| !text.is_empty()).map(Cow::Borrowed)
            }
            other => other.text().map(|text| Cow::Owned(text.into_owned())),
        }
    }

    /// The text as a field's value.
    pub(crate) fn text_value(&self) -> Value {
        self.text().map(Cow::into_owned).into()
    }

    /// A finite number, also when written as text.
    pub(crate) fn number(&self) -> Option<f64> {
        let number = match self {
            Leaf::Int(n) => Some(*n as f64),
            Leaf::Float(n) => Some(*n),
            Leaf::Text(text) => text.trim().parse().ok(),
            Leaf::Null | Leaf::Bool(_) | Leaf::Other => None,
        };
        number.filter(|n| n.is_finite())
    }

    /// A whole number, also when written as text or as `5.0`.
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Leaf::Int(n) => Some(*n),
            _ => self.number().filter(|n| n.fract() == 0.0 && n.abs() < 9e15).map(|n| n as i64),
        }
    }

    /// Yes or no, also as 1 and 0 or as text.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self {
            Leaf::Bool(flag) => Some(*flag),
            Leaf::Int(0) => Some(false),
            Leaf::Int(1) => Some(true),
            Leaf::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Leaf::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }

    /// An instant after 1970: RFC 3339, or seconds (milliseconds beyond the year 5138); 0, and the first second of the year 1,
    /// are how upstreams write "none".
    pub(crate) fn time(&self) -> Option<Time> {
        if let Leaf::Text(text) = self
            && let Some(time) = Time::parse(text.trim())
        {
            return (time > Time(0)).then_some(time);
        }
        let seconds = match self.number()? {
            n if n <= 0.0 || n > SECONDS_MAX * 1_000.0 => return None,
            n if n > SECONDS_MAX => n / 1_000.0,
            n => n,
        };
        Some(Time((seconds * 1e6).round() as i64))
    }
}

impl<'de> Deserialize<'de> for Leaf<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Leaf<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Leaf<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E: Error>(self) -> Result<Leaf<'de>, E> {
                Ok(Leaf::Null)
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Leaf<'de>, E> {
                Ok(Leaf::Bool(flag))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Leaf<'de>, E> {
                Ok(Leaf::Int(n))
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<Leaf<'de>, E> {
                Ok(i64::try_from(n).map_or(Leaf::Float(n as f64), Leaf::Int))
            }
            fn visit_f64<E: Error>(self, n: f64) -> Result<Leaf<'de>, E> {
                Ok(Leaf::Float(n))
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Leaf<'de>, E> {
                Ok(Leaf::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Leaf<'de>, E> {
                Ok(Leaf::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Leaf<'de>, A::Error> {
                drain_list(list).map(|()| Leaf::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Leaf<'de>, A::Error> {
                drain_map(map).map(|()| Leaf::Other)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// A list; `None` when there is none, or something that is no list.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Option<Vec<T>>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(None)
    }
}

impl<T> List<T> {
    pub(crate) fn items(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(List(Some(items)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<List<T>, A::Error> {
                drain_map(map).map(|()| List(None))
            }
            scalars!(List(None));
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// The first of a list, without keeping the others; nothing when there is no list, or none in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct First<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First<T>, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = First<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
                let first = list.next_element()?;
                drain_list(list).map(|()| First(first))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<First<T>, A::Error> {
                drain_map(map).map(|()| First(None))
            }
            scalars!(First(None));
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// An object whose known fields read themselves; what is no object has none of them.
pub(crate) trait Fields<'de>: Default {
    /// Reads the value of `key` if it is one of the fields; of a key that comes twice the last value counts.
    fn read<A: MapAccess<'de>>(&mut self, key: &[u8], map: &mut A) -> Result<bool, A::Error>;

    /// The object as a whole.
    fn object<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Fields<'de>> Visitor<'de> for Read<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
                let mut object = T::default();
                while let Some(Name(key)) = map.next_key()? {
                    if !object.read(&key, &mut map)? {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(object)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
                drain_list(list).map(|()| T::default())
            }
            scalars!(T::default());
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// A key as bytes, borrowed unless it has escapes: most keys are not ours, and need not be proven to be text.
struct Name<'a>(Cow<'a, [u8]>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_bytes<E: Error>(self, key: &'de [u8]) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(key)))
            }
            fn visit_bytes<E: Error>(self, key: &[u8]) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(key.to_owned())))
            }
            fn visit_str<E: Error>(self, key: &str) -> Result<Name<'de>, E> {
                self.visit_bytes(key.as_bytes())
            }
        }
        deserializer.deserialize_bytes(Read)
    }
}

fn drain_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn drain_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// The visits of values that are neither list nor object, all with one answer.
macro_rules! scalars {
    ($answer:expr) => {
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($answer)
        }
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($answer)
        }
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok($answer)
        }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok($answer)
        }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($answer)
        }
        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok($answer)
        }
    };
}
use scalars;

/// Declares an object of the upstream by the fields that are used.
macro_rules! upstream_object {
    ($(#[$doc:meta])* $name:ident { $( $key:literal => $field:ident : $ty:ty, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name<'a> {
            $( pub(crate) $field: $ty, )*
        }

        impl<'a> Fields<'a> for $name<'a> {
            fn read<A: MapAccess<'a>>(&mut self, key: &[u8], map: &mut A) -> Result<bool, A::Error> {
                match key {
                    $( key if key == $key.as_bytes() => self.$field = map.next_value()?, )*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }

        impl<'de> Deserialize<'de> for $name<'de> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name<'de>, D::Error> {
                $name::object(deserializer)
            }
        }
    };
}
pub(crate) use upstream_object;

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(json: &str) -> Leaf<'_> {
        serde_json::from_str(json).expect("json")
    }

    #[test]
    fn anything_is_read_as_far_as_it_goes() {
        for (json, text, number, flag) in [
            ("null", None, None, None),
            ("true", None, None, Some(true)),
            ("0", Some("0"), Some(0.0), Some(false)),
            ("4.60", Some("4.6"), Some(4.6), None),
            ("\" 12.5 \"", Some("12.5"), Some(12.5), None),
            ("\"False\"", Some("False"), None, Some(false)),
            ("\"  \"", None, None, None),
            ("\"NaN\"", Some("NaN"), None, None),
            ("\"a\\u0000b\"", Some("a\u{fffd}b"), None, None),
            ("[1,[2]]", None, None, None),
            ("{\"a\":{\"b\":1}}", None, None, None),
        ] {
            let leaf = leaf(json);
            assert_eq!((leaf.text().as_deref(), leaf.number(), leaf.flag()), (text, number, flag), "{json}");
            assert_eq!(leaf.into_text().as_deref(), text, "{json}");
        }
        assert_eq!((leaf("5.0").int(), leaf("5.5").int(), leaf("\"7\"").int()), (Some(5), None, Some(7)));
    }

    #[test]
    fn times_come_in_every_dress() {
        let expected = Time::parse("2025-07-17T00:50:00Z");
        for json in [
            "1752713400",
            "1752713400.0",
            "\"1752713400\"",
            "1752713400000",
            "\"2025-07-17T00:50:00Z\"",
            "\"2025-07-17T12:50:00+12:00\"",
        ] {
            assert_eq!(leaf(json).time(), expected, "{json}");
        }
        for json in [
            "0",
            "-5",
            "null",
            "\"soon\"",
            "1e300",
            "[]",
            "\"0001-01-01T00:00:00Z\"",
            "\"1970-01-01T00:00:00Z\"",
        ] {
            assert_eq!(leaf(json).time(), None, "{json}");
        }
        let fluc = leaf("\"2025-07-15T04:30:44.920959949Z\"").time();
        assert_eq!(fluc, Time::parse("2025-07-15T04:30:44.920959Z"), "truncated, not rounded");
    }
}
