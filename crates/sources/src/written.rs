//! Values as people write them in a configuration: durations, sizes, secrets.
//!
//! Each reads itself with a message that says what would do; serde's own enums would only say that nothing matched.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stakeout_core::Span;

/// A duration such as `"5s"`, `"250ms"`, `"2min"` or `"1h30m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub Span);

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Duration;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a duration with its unit in quotes, such as \"250ms\", \"5s\", \"2min\" or \"1h30m\"",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                let refused = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                Span::parse(text).map(Duration).ok_or_else(refused)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// As it would be written, for the defaults in the schema.
impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string().replace(' ', ""))
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration with its unit: 250ms, 5s, 2min, 1h30m, 7d.",
            "pattern": r"^\s*(\d+\s*(us|µs|ms|s|sec|m|min|h|d)\s*)+$",
        })
    }
}

/// A size in bytes, such as `"8MB"`, `"512KB"` or `"1000B"`. Units are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    /// Parses a whole number with one of `B`, `KB`, `MB`, `GB`.
    pub fn parse(text: &str) -> Option<Size> {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit: u64 = match unit.trim() {
            "B" => 1,
            "KB" => 1 << 10,
            "MB" => 1 << 20,
            "GB" => 1 << 30,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(unit).map(Size)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size with its unit in quotes, such as \"512KB\" or \"8MB\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                let refused = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                Size::parse(text).ok_or_else(refused)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A size with its unit: 1000B, 512KB, 8MB, 1GB (powers of 1024).",
            "pattern": r"^\s*\d+\s*(B|KB|MB|GB)\s*$",
        })
    }
}

/// A value that is written down, or fetched from the environment or a file at start, so that it need not be.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// Written in the configuration.
    Text(String),
    /// The value of this environment variable.
    Env(String),
    /// The content of this file, without the line end.
    File(String),
}

// Even a value written in the configuration may be a key: none of them reaches a log.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Text(_) => f.write_str("Secret::Text(…)"),
            Secret::Env(name) => write!(f, "Secret::Env({name})"),
            Secret::File(path) => write!(f, "Secret::File({path})"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretTable {
    env: Option<String>,
    file: Option<String>,
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Secret;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, { env = \"VARIABLE\" } or { file = \"path\" }")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Secret, A::Error> {
                match SecretTable::deserialize(MapAccessDeserializer::new(map))? {
                    SecretTable { env: Some(name), file: None } => Ok(Secret::Env(name)),
                    SecretTable { env: None, file: Some(path) } => Ok(Secret::File(path)),
                    _ => Err(A::Error::custom(
                        "expected exactly one of `env` and `file`: { env = \"VARIABLE\" } or { file = \"path\" }",
                    )),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |name: &str, says: &str| {
            serde_json::json!({
                "type": "object",
                "properties": { name: { "type": "string", "description": says } },
                "required": [name],
                "additionalProperties": false,
            })
        };
        json_schema!({
            "description": "Text, or where to find it at start.",
            "anyOf": [
                { "type": "string" },
                one("env", "The environment variable that holds it."),
                one("file", "The file that holds it; a line end at its end is dropped."),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_unit() {
        assert_eq!(Size::parse("8MB"), Some(Size(8 << 20)));
        assert_eq!(Size::parse("512 KB"), Some(Size(512 << 10)));
        for bad in ["", "8", "MB", "-1MB", "8mb", "99999999999999GB"] {
            assert_eq!(Size::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn secrets_never_show_their_text() {
        assert_eq!(format!("{:?}", Secret::Text("s3cret".into())), "Secret::Text(…)");
    }
}
