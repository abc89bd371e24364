//! A rate as people write it: `60/min`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most and the fewest requests per minute that make sense.
const PER_MINUTE: (f64, f64) = (0.1, 60_000.0);

/// Requests per minute, written `"60/min"`, `"2/s"` or `"600/h"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(f64);

impl Rate {
    /// So many requests per minute.
    pub const fn per_minute(requests: f64) -> Rate {
        Rate(requests)
    }

    /// Requests per second.
    pub fn per_second(self) -> f64 {
        self.0 / 60.0
    }

    /// Parses a number, a slash and one of `s`, `min` and `h`.
    pub fn parse(text: &str) -> Option<Rate> {
        let (number, unit) = text.split_once('/')?;
        let per_minute = match unit.trim() {
            "s" | "sec" => 60.0,
            "m" | "min" => 1.0,
            "h" => 1.0 / 60.0,
            _ => return None,
        };
        let number = number.trim();
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let rate = plain.then(|| number.parse::<f64>().ok())?? * per_minute;
        (PER_MINUTE.0..=PER_MINUTE.1).contains(&rate).then_some(Rate(rate))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/min", self.0)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Rate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a rate from \"0.1/min\" to \"60000/min\", such as \"60/min\", \"2/s\" or \"600/h\"",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Rate, E> {
                Rate::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Requests in a time: 60/min, 2/s, 600/h.",
            "pattern": r"^\s*[0-9.]+\s*/\s*(s|sec|m|min|h)\s*$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_a_unit_and_sense() {
        for (text, per_minute) in [("60/min", 60.0), ("2/s", 120.0), (" 600 / h ", 10.0), ("0.5/min", 0.5)] {
            assert_eq!(Rate::parse(text), Some(Rate::per_minute(per_minute)), "{text}");
        }
        for bad in
            ["", "60", "/min", "60/fortnight", "-5/min", "0/min", "1e9/min", "nan/min", "inf/s", "999999/s"]
        {
            assert_eq!(Rate::parse(bad), None, "{bad:?}");
        }
        assert_eq!(Rate::per_minute(60.0).to_string(), "60/min");
    }
}
