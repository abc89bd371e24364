//! Paths into JSON: `items.0.name`, or a JSON pointer (`/items/0/na.me`) where a name has a dot in it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

/// Where something is in a JSON document. The empty path is the document itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    text: String,
    segments: Vec<String>,
}

impl Path {
    /// Reads a dotted path, or a JSON pointer when it begins with `/`.
    pub fn new(text: &str) -> Path {
        let segments = match text.strip_prefix('/') {
            // RFC 6901: ~1 first, or ~01 would become a slash.
            Some(pointer) => pointer.split('/').map(|s| s.replace("~1", "/").replace("~0", "~")).collect(),
            None if text.is_empty() => Vec::new(),
            None => text.split('.').map(str::to_owned).collect(),
        };
        Path { text: text.to_owned(), segments }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The last segment; empty for the document itself.
    pub fn last(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }

    /// What is there.
    pub fn get<'a>(&self, json: &'a Json) -> Option<&'a Json> {
        self.segments.iter().try_fold(json, |at, segment| match at {
            Json::Object(map) => map.get(segment),
            Json::Array(items) => items.get(segment.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// What is there, to change.
    pub fn get_mut<'a>(&self, json: &'a mut Json) -> Option<&'a mut Json> {
        walk_mut(&self.segments, json)
    }

    /// Takes it out, if it is there; an array keeps its length.
    pub fn remove(&self, json: &mut Json) {
        let Some((last, parents)) = self.segments.split_last() else { return };
        match walk_mut(parents, json) {
            Some(Json::Object(map)) => {
                map.remove(last);
            }
            Some(Json::Array(items)) => {
                if let Some(item) = last.parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
                    *item = Json::Null;
                }
            }
            _ => {}
        }
    }
}

fn walk_mut<'a>(segments: &[String], json: &'a mut Json) -> Option<&'a mut Json> {
    segments.iter().try_fold(json, |at, segment| match at {
        Json::Object(map) => map.get_mut(segment),
        Json::Array(items) => items.get_mut(segment.parse::<usize>().ok()?),
        _ => None,
    })
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        String::deserialize(deserializer).map(|text| Path::new(&text))
    }
}

impl JsonSchema for Path {
    fn schema_name() -> Cow<'static, str> {
        "Path".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A path into JSON: items.0.name, or a JSON pointer such as /items/0/name.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_reach_into_objects_and_arrays() {
        let doc = json!({ "a": { "b": [10, { "c.d": 1, "e/f": 2 }] }, "": 3 });
        for (path, found) in [
            ("a.b.0", Some(json!(10))),
            ("/a/b/0", Some(json!(10))),
            ("/a/b/1/c.d", Some(json!(1))),
            ("/a/b/1/e~1f", Some(json!(2))),
            ("/", Some(json!(3))),
            ("", Some(doc.clone())),
            ("a.x", None),
            ("a.b.x", None),
            ("a.b.7", None),
            ("a.b.0.z", None),
        ] {
            assert_eq!(Path::new(path).get(&doc), found.as_ref(), "{path}");
        }
    }

    #[test]
    fn removing_what_is_not_there_does_nothing() {
        let mut doc = json!({ "a": { "b": 1, "c": [1, 2] } });
        for path in ["x", "a.x", "a.b.c", "a.c.9", ""] {
            Path::new(path).remove(&mut doc);
        }
        assert_eq!(doc, json!({ "a": { "b": 1, "c": [1, 2] } }));
        Path::new("a.b").remove(&mut doc);
        Path::new("a.c.0").remove(&mut doc);
        assert_eq!(doc, json!({ "a": { "c": [null, 2] } }));
    }
}
