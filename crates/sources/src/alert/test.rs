//! Tests on what an event says.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

/// What a value must be: a plain value means equal, a list means one of these, a table gives bounds or what a list must
/// contain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Test {
    /// One of these.
    OneOf(Vec<Json>),
    /// Within bounds, or containing something.
    Bounds(Bounds),
    /// Just this; texts are compared without regard to case.
    Is(Json),
}

/// Bounds of a number or a text, or what a list or a text must contain.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Not less than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Json>,
    /// Not more than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Json>,
    /// A list that has this, or a text with this in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<Json>,
}

impl<'de> Deserialize<'de> for Test {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Test, D::Error> {
        Ok(match Json::deserialize(deserializer)? {
            Json::Array(list) => Test::OneOf(list),
            table @ Json::Object(_) => {
                let bounds: Bounds = serde_json::from_value(table).map_err(D::Error::custom)?;
                if bounds == Bounds::default() {
                    return Err(D::Error::custom("expected `at_least`, `at_most` or `contains`"));
                }
                Test::Bounds(bounds)
            }
            value => Test::Is(value),
        })
    }
}

impl JsonSchema for Test {
    fn schema_name() -> Cow<'static, str> {
        "Test".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bounds = generator.subschema_for::<Bounds>();
        json_schema!({
            "description": "A value that must be equal, a list of which it must be one, or bounds.",
            "anyOf": [
                { "type": ["string", "number", "boolean", "null"] },
                { "type": "array" },
                bounds,
            ],
        })
    }
}

impl Test {
    /// Whether a value is as it must be. What is not there is null.
    pub(super) fn holds(&self, value: &Json) -> bool {
        match self {
            Test::Is(wanted) => is(value, wanted),
            Test::OneOf(list) => list.iter().any(|wanted| is(value, wanted)),
            Test::Bounds(bounds) => {
                let least = bounds.at_least.as_ref().is_none_or(|least| in_order(least, value));
                let most = bounds.at_most.as_ref().is_none_or(|most| in_order(value, most));
                let has = bounds.contains.as_ref().is_none_or(|part| contains(value, part));
                least && most && has
            }
        }
    }
}

fn is(value: &Json, wanted: &Json) -> bool {
    match (value, wanted) {
        (Json::String(value), Json::String(wanted)) => same_text(value, wanted),
        (Json::Number(value), Json::Number(wanted)) => value.as_f64() == wanted.as_f64(),
        _ => value == wanted,
    }
}

/// Whether two texts are the same, without regard to case.
pub(super) fn same_text(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

/// Numbers by size, texts by their letters, so that dates and times are in order; all else is in none.
fn in_order(less: &Json, more: &Json) -> bool {
    match (less, more) {
        (Json::Number(less), Json::Number(more)) => {
            less.as_f64().zip(more.as_f64()).is_some_and(|(less, more)| less <= more)
        }
        (Json::String(less), Json::String(more)) => less <= more,
        _ => false,
    }
}

fn contains(value: &Json, part: &Json) -> bool {
    match (value, part) {
        (Json::Array(list), part) => list.iter().any(|item| is(item, part)),
        (Json::String(text), Json::String(part)) => text.to_lowercase().contains(&part.to_lowercase()),
        _ => false,
    }
}

/// What stands at a dotted path.
pub(super) fn at_path<'a>(data: &'a Json, path: &str) -> &'a Json {
    path.split('.').fold(data, |json, name| json.get(name).unwrap_or(&Json::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn test(json: Json) -> Test {
        serde_json::from_value(json).expect("a test")
    }

    #[test]
    fn a_test_is_written_as_it_is_meant() {
        let holds = |written: Json, value: Json| test(written).holds(&value);
        assert!(holds(json!("final"), json!("Final")) && !holds(json!("final"), json!("Interim")));
        assert!(holds(json!(["Final", "Interim"]), json!("interim")) && holds(json!(1), json!(1.0)));
        assert!(
            holds(json!({ "at_least": 2, "at_most": 4 }), json!(4))
                && !holds(json!({ "at_least": 2 }), json!(1))
        );
        assert!(holds(json!({ "at_least": "2026-01-10" }), json!("2026-01-11")));
        assert!(
            holds(json!({ "contains": 4 }), json!([2, 4]))
                && holds(json!({ "contains": "star" }), json!("Red Star"))
        );
        assert!(holds(json!(null), json!(null)) && !holds(json!({ "at_least": 2 }), json!(null)));
    }

    #[test]
    fn bounds_that_bind_nothing_or_are_misspelt_are_refused() {
        let refused = |json: Json| serde_json::from_value::<Test>(json).expect_err("refused").to_string();
        assert!(refused(json!({})).contains("at_least"));
        assert!(refused(json!({ "atleast": 1 })).contains("atleast"));
    }

    #[test]
    fn what_is_not_there_is_null() {
        let data = json!({ "record": { "status": "Final" } });
        assert_eq!(at_path(&data, "record.status"), "Final");
        assert_eq!(at_path(&data, "record.status.more"), &Json::Null);
    }
}
