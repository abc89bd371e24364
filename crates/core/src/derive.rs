//! What follows from all of a source's records together: which target has the focus, what is published.
//!
//! A poll sees one target; some truths need all of them, like which race is the current one. After a source's records
//! changed, and every so often to heal itself, the engine shows it everything it holds and writes what is different.

use serde_json::{Map, Value as Json};

use crate::judge::Draft;
use crate::{Record, Span, TargetSpec, Time};

/// A record as it is held.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The kind's full name.
    pub kind: String,
    /// The readable key.
    pub key: String,
    /// All fields.
    pub body: Map<String, Json>,
}

/// Everything a source holds at a moment.
#[derive(Clone, Debug)]
pub struct Holdings<'a> {
    /// The moment.
    pub now: Time,
    /// The records that somebody holds, by kind and key.
    pub records: &'a [Held],
    /// The keys of all targets.
    pub targets: &'a [String],
    /// The key of the target that has the focus, if one has.
    pub focused: Option<&'a str>,
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// `race`
    pub namespace: String,
    /// `currentOrder`
    pub key: String,
    /// Any JSON object. Written only if it differs from what is stored, leaving out the field in `stamp`.
    pub value: Json,
    /// A field that says when it was computed: alone it is no difference.
    pub stamp: Option<String>,
}

/// What follows from the holdings. Only differences are written.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    /// The target that should have the focus; created if it does not exist.
    pub focus: Option<TargetSpec>,
    /// Values to publish.
    pub published: Vec<Published>,
    /// Records whose fields follow from others (an order, a rank): merged into what is held.
    pub records: Vec<Record>,
    /// What is worth telling, if anything of the above is different.
    pub drafts: Vec<Draft>,
}

/// How often a source's holdings are looked at, besides after changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeriveEvery(pub Span);
