//! What a `json` source can be told in the configuration.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use stakeout_core::compare::DoubtPolicy;
use stakeout_core::{FieldType, Limits, Span};

use super::path::Path;
use crate::written::{Duration, Secret, Size};

/// Watches anything that answers JSON.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonConfig {
    /// What to GET. With `ids`, `{id}` in it stands for each of them in turn.
    pub url: String,
    /// One target per id; without it there is one target, named `main`.
    #[serde(default)]
    pub ids: Vec<String>,
    /// How often to look at each target.
    #[serde(default = "default_every")]
    pub every: Duration,
    /// Where the records are: an array of them, or one. Without it, the document itself.
    #[serde(default)]
    pub records: Option<Path>,
    /// What identifies a record: a path, or a list of them; `{id}` stands for the target's id. Without it, a document
    /// is one record, identified by its target.
    #[serde(default)]
    pub key: Key,
    /// What to track of a record: a list of paths, each named after its last segment in snake_case, or a table
    /// `name = "path"` or `name = { path = "…", type = "…", track = false }`. Without it, the whole record as one
    /// field, `value`.
    #[serde(default)]
    pub fields: Fields,
    /// Paths within a record that are left out before anything is compared: timestamps, counters.
    #[serde(default)]
    pub ignore: Vec<Path>,
    /// The path of what groups records, for `events.first_of_group`.
    #[serde(default)]
    pub group: Option<Path>,
    /// The fields to keep a history of, in the stream (and SQL view, after `json_`) `COLLECTION_history`.
    #[serde(default)]
    pub history: Vec<String>,
    /// Headers sent with every request.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Where the document says how old it is: RFC 3339, or seconds or milliseconds since 1970. An older answer than
    /// the last is dropped.
    #[serde(default)]
    pub as_of: Option<Path>,
    /// The name of the SQL view, after `json_`. Without it, the source's own name.
    #[serde(default)]
    pub collection: Option<String>,
    /// Which of several polls due at the same time comes first: 0 (whenever) to 100 (now).
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// Which changes become events.
    #[serde(default)]
    pub events: EventsConfig,
    /// When an answer is too bad to be true.
    #[serde(default)]
    pub doubt: DoubtConfig,
    /// How hard the upstream may be asked.
    #[serde(default)]
    pub limits: LimitsConfig,
}

fn default_every() -> Duration {
    Duration(Span::secs(60))
}

fn default_priority() -> u8 {
    50
}

/// The paths that identify a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key(pub Vec<Path>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path such as \"id\", or a list of paths")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
                Ok(Key(vec![Path::new(text)]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Key, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Key)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Key {
    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

/// What to track of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Named after the paths' last segments.
    Paths(Vec<Path>),
    /// With their names.
    Named(BTreeMap<String, FieldConfig>),
}

impl Default for Fields {
    fn default() -> Fields {
        Fields::Paths(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of paths, or a table of name = \"path\"")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Fields, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Fields::Paths)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fields, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(Fields::Named)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Fields {
    fn schema_name() -> Cow<'static, str> {
        "Fields".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let field = generator.subschema_for::<FieldConfig>();
        json_schema!({ "anyOf": [
            { "type": "array", "items": { "type": "string" } },
            { "type": "object", "additionalProperties": field },
        ] })
    }
}

/// One field: its path, or a table with more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConfig {
    /// Where it is in the record.
    pub path: Path,
    /// What it holds, when that is known.
    pub holds: Option<Holds>,
    /// Whether a difference in it is a change.
    pub track: bool,
}

impl FieldConfig {
    /// A tracked field of any type.
    pub fn at(path: Path) -> FieldConfig {
        FieldConfig { path, holds: None, track: true }
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Yes or no.
    Bool,
    /// A whole number; text that is one counts.
    Int,
    /// Any number; text that is one counts.
    Float,
    /// Text.
    Text,
    /// An instant: RFC 3339, or seconds or milliseconds since 1970.
    Time,
    /// A list or an object.
    Json,
}

impl From<Holds> for FieldType {
    fn from(holds: Holds) -> FieldType {
        match holds {
            Holds::Bool => FieldType::Bool,
            Holds::Int => FieldType::Int,
            Holds::Float => FieldType::Float,
            Holds::Text => FieldType::Text,
            Holds::Time => FieldType::Time,
            Holds::Json => FieldType::Json,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FieldTable {
    /// Where it is in the record.
    path: Path,
    /// What it holds; decides the column of the SQL view. A value that is something else counts as unknown.
    #[serde(default, rename = "type")]
    holds: Option<Holds>,
    /// Whether a difference in it is a change. Without tracking it is only stored along.
    #[serde(default = "yes")]
    track: bool,
}

fn yes() -> bool {
    true
}

impl<'de> Deserialize<'de> for FieldConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldConfig, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = FieldConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path such as \"price\", or { path = \"price\", type = \"float\" }")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<FieldConfig, E> {
                Ok(FieldConfig::at(Path::new(text)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FieldConfig, A::Error> {
                let FieldTable { path, holds, track } =
                    FieldTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(FieldConfig { path, holds, track })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for FieldConfig {
    fn schema_name() -> Cow<'static, str> {
        "Field".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<FieldTable>();
        json_schema!({ "anyOf": [{ "type": "string" }, table] })
    }
}

/// Which changes become events.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventsConfig {
    /// Tell of new records, as `json.added`.
    pub added: bool,
    /// Tell of records that changed, as `json.changed`.
    pub changed: bool,
    /// Tell of records that are gone, as `json.removed`.
    pub removed: bool,
    /// Only changes of these fields are told; all, when there are none.
    pub fields: Vec<String>,
    /// Tell of a new record only when there was none of its group before.
    pub first_of_group: bool,
    /// Silence after an event of the same type about the same record.
    pub quiet: Option<Duration>,
    /// Stay silent about a new record that was there less than this ago.
    pub unseen_for: Option<Duration>,
    /// A readable unique key of an event, with `{target}`, `{key}`, `{fingerprint}` and `{minute}` filled in; of two
    /// events of one type with the same key the second is left out.
    pub dedupe: Option<String>,
}

impl Default for EventsConfig {
    fn default() -> EventsConfig {
        EventsConfig {
            added: true,
            changed: true,
            removed: true,
            fields: Vec::new(),
            first_of_group: false,
            quiet: None,
            unseen_for: None,
            dedupe: None,
        }
    }
}

/// When an answer is too bad to be true: it counts only when a second one agrees.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DoubtConfig {
    /// Doubt an answer that lacks more than this share of the known records, 0 to 1…
    pub share: f64,
    /// …and at least so many of them.
    pub at_least: u32,
    /// Whether an empty first answer needs a second one.
    pub confirm_empty_baseline: bool,
}

impl Default for DoubtConfig {
    fn default() -> DoubtConfig {
        let policy = DoubtPolicy::default();
        DoubtConfig {
            share: policy.share,
            at_least: policy.at_least as u32,
            confirm_empty_baseline: policy.confirm_empty_baseline,
        }
    }
}

impl DoubtConfig {
    /// As the comparison uses it.
    pub fn policy(&self) -> DoubtPolicy {
        DoubtPolicy {
            companions: false,
            emptiness: false,
            share: self.share,
            at_least: self.at_least as usize,
            confirm_empty_baseline: self.confirm_empty_baseline,
        }
    }
}

/// How hard an upstream may be asked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Requests per second over all targets of the source; 5 by default.
    pub requests_per_second: Option<f64>,
    /// How many requests may be sent at once before the rate binds; 5 by default.
    pub burst: Option<u32>,
    /// Polls in flight; 4 by default.
    pub concurrency: Option<u32>,
    /// The least time between two requests; none by default.
    pub min_gap: Option<Duration>,
    /// The longest a request may take; 10s by default.
    pub timeout: Option<Duration>,
    /// The longest a connection may take to open; 5s by default.
    pub connect_timeout: Option<Duration>,
    /// The largest body, after decompression; 8MB by default.
    pub max_body: Option<Size>,
    /// The most jitter added to a due time, and at most a tenth of the interval; 150ms by default.
    pub jitter: Option<Duration>,
    /// How long the upstream takes to show its own changes; none by default.
    pub refresh: Option<Duration>,
}

impl LimitsConfig {
    /// These limits over the defaults.
    pub fn over(&self, mut limits: Limits) -> Limits {
        let spans = [
            (self.min_gap, &mut limits.min_gap),
            (self.timeout, &mut limits.timeout),
            (self.connect_timeout, &mut limits.connect_timeout),
            (self.jitter, &mut limits.max_jitter),
            (self.refresh, &mut limits.refresh),
        ];
        for (given, limit) in spans {
            if let Some(Duration(span)) = given {
                *limit = span;
            }
        }
        limits.requests_per_second = self.requests_per_second.unwrap_or(limits.requests_per_second);
        limits.burst = self.burst.unwrap_or(limits.burst);
        limits.concurrency = self.concurrency.unwrap_or(limits.concurrency);
        limits.max_body_bytes = self.max_body.map_or(limits.max_body_bytes, |size| size.0);
        limits
    }
}
