//! How the words of the model look in JSON, for the description of the interface.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A moment: RFC 3339 in UTC.
pub(crate) struct Instant;

impl JsonSchema for Instant {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// A fingerprint or another 128-bit hash: 32 hex digits.
pub(crate) struct Print;

impl JsonSchema for Print {
    fn schema_name() -> Cow<'static, str> {
        "Print".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{32}$" })
    }
}
