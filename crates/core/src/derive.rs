//! What follows from all of a source's records together: which target has the focus, what is published.
//!
//! A poll sees one target; some truths need all of them, like which race is the current one. After a source's records
//! changed, and every so often to heal itself, the engine shows it everything it holds and writes what is different.

use serde_json::{Map, Value as Json};

use crate::judge::Draft;
use crate::{Record, Span, TargetSpec, Time};

/// When a source wants to look at everything it holds, and at what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derives {
    /// How often, besides after changes.
    pub every: Span,
    /// The full names of the kinds that matter; a change of any other calls for no look.
    pub kinds: Vec<String>,
    /// The values it publishes, by namespace and key.
    pub published: Vec<(String, String)>,
}

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

/// Whether the upstream answers at all, as this process has seen it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// When it last answered anything, good or bad.
    pub answered: Option<Time>,
    /// Requests without any answer since then.
    pub silent: u32,
    /// When the first of these ended.
    pub silent_since: Option<Time>,
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
    /// What is published, of what [`Derives::published`] names.
    pub published: &'a [Published],
    /// Whether the upstream answers.
    pub link: Link,
}

impl Holdings<'_> {
    /// A value as it is published now.
    pub fn value(&self, namespace: &str, key: &str) -> Option<&Json> {
        self.published.iter().find(|p| p.namespace == namespace && p.key == key).map(|p| &p.value)
    }
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

impl Published {
    /// Whether this says something else than what is stored.
    pub fn differs_from(&self, stored: Option<&Json>) -> bool {
        let plain = |value: &Json| {
            let mut value = value.clone();
            if let (Some(fields), Some(stamp)) = (value.as_object_mut(), &self.stamp) {
                fields.remove(stamp);
            }
            value
        };
        stored.map(plain) != Some(plain(&self.value))
    }
}

/// What follows from the holdings. Only differences are written.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    /// The target that should have the focus, nobody when `None`; created if it does not exist.
    pub focus: Option<TargetSpec>,
    /// Values to publish.
    pub published: Vec<Published>,
    /// Records whose derived fields are others now, with all of their fields.
    pub records: Vec<Record>,
    /// What is worth telling, if anything of the above is different.
    pub drafts: Vec<Draft>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_moment_of_computing_is_no_difference() {
        let published = |value: Json| Published {
            namespace: "race".into(),
            key: "currentOrder".into(),
            value,
            stamp: Some("computedAt".into()),
        };
        let now = published(json!({ "order": 3, "computedAt": "12:00" }));
        assert!(!now.differs_from(Some(&json!({ "order": 3, "computedAt": "11:59" }))));
        assert!(now.differs_from(Some(&json!({ "order": 2, "computedAt": "12:00" }))));
        assert!(now.differs_from(None));
    }
}
