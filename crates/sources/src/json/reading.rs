//! A configuration made ready for reading answers: the kind of record, the paths in the order of its fields.

use std::collections::BTreeSet;
use std::sync::Arc;

use stakeout_core::judge::{Gate, Trigger};
use stakeout_core::{Field, FieldType, Kind, Rule, Stream, spread};

use super::config::{EventsConfig, FieldConfig, Fields, JsonConfig};
use super::path::Path;
use crate::ConfigRefused;

/// The kinds' family, and the first part of the events' type names.
pub(super) const FAMILY: &str = "json";

/// The one field of a source that names none.
const WHOLE: &str = "value";

/// The key part that stands for the target's own id.
const TARGET_ID: &str = "{id}";

/// How to read a record.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) kind: Arc<Kind>,
    /// In the order of the kind's fields.
    pub(super) fields: Vec<FieldConfig>,
    pub(super) records: Option<Path>,
    /// Empty when a document is one record.
    pub(super) key: Vec<KeyPart>,
    pub(super) ignore: Vec<Path>,
    pub(super) group: Option<Path>,
    pub(super) as_of: Option<Path>,
    /// The namespace of the groups' fingerprints.
    pub(super) group_space: String,
}

/// A part of a record's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyPart {
    TargetId,
    At(Path),
}

impl Reading {
    pub(super) fn new(name: &str, config: &JsonConfig) -> Result<Reading, ConfigRefused> {
        let fields = named_fields(&config.fields)?;
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        for (key, wanted) in [("history", &config.history), ("events.fields", &config.events.fields)] {
            if let Some(unknown) = wanted.iter().find(|w| !names.contains(&w.as_str())) {
                return Err(ConfigRefused::new(
                    key,
                    format!("`{unknown}` is not one of the fields: {}", names.join(", ")),
                ));
            }
        }
        let collection = match &config.collection {
            Some(given) if is_name(given) => given.clone(),
            Some(given) => {
                let message = format!("expected a name in snake_case such as `prices`, found {given:?}");
                return Err(ConfigRefused::new("collection", message));
            }
            None => snake_case(name),
        };
        let streams = match config.history.is_empty() {
            true => vec![],
            // With the collection's name in it: the stream's view must not meet that of another source.
            false => vec![Stream { name: format!("{collection}_history"), fields: config.history.clone() }],
        };
        let field = |(name, config): &(String, FieldConfig)| Field {
            derived: false,
            gathered: false,
            name: name.clone(),
            // A column of text takes whatever an untyped field turns out to hold.
            ty: match config.holds {
                Some(holds) => holds.into(),
                None if name == WHOLE && config.path.as_str().is_empty() => FieldType::Json,
                None => FieldType::Text,
            },
            tracked: config.track,
        };
        let kind = Kind {
            family: FAMILY.to_owned(),
            collection,
            version: 1,
            fields: fields.iter().map(field).collect(),
            streams,
            merges: false,
            views: vec![],
            layout: Default::default(),
        };
        Ok(Reading {
            group_space: format!("{}/group", kind.full_name()),
            kind: Arc::new(kind),
            fields: fields.into_iter().map(|(_, config)| config).collect(),
            records: config.records.clone(),
            key: config.key.0.iter().map(key_part).collect(),
            ignore: config.ignore.clone(),
            group: config.group.clone(),
            as_of: config.as_of.clone(),
        })
    }

    /// A number that moves whenever the same answer would be read differently.
    pub(super) fn meaning(&self, url: &str) -> u64 {
        let mut parts = vec![url.to_owned(), format!("{:?}", (&self.records, &self.key, &self.ignore))];
        parts.push(format!("{:?} {:?}", self.group, self.fields));
        parts.push(format!("{:?}", self.kind.fields));
        spread(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// The rules of the events that are wanted.
pub(super) fn rules(events: &EventsConfig, kind: &Kind) -> Vec<Rule> {
    let changed = Trigger::Changed { fields: events.fields.clone() };
    let all = [
        (events.added, "added", Trigger::Added),
        (events.changed, "changed", changed),
        (events.removed, "removed", Trigger::Removed { natural: None }),
    ];
    let wanted = all.into_iter().filter(|(wanted, ..)| *wanted);
    let rule = |(_, name, on): (bool, &str, Trigger)| {
        let appears = on == Trigger::Added;
        let mut rule = Rule::new(name, &format!("{FAMILY}.{name}"), &kind.full_name(), on);
        rule.quiet = events.quiet.map(|d| d.0);
        // The key is unique over all types, so each gets its own space.
        rule.dedupe = events.dedupe.as_ref().map(|template| format!("{name}:{template}"));
        if appears {
            rule.unseen_for = events.unseen_for.map(|d| d.0);
            rule.gate = if events.first_of_group { Gate::GroupWasEmpty } else { Gate::Open };
        }
        rule
    };
    wanted.map(rule).collect()
}

fn key_part(path: &Path) -> KeyPart {
    if path.as_str() == TARGET_ID { KeyPart::TargetId } else { KeyPart::At(path.clone()) }
}

fn named_fields(fields: &Fields) -> Result<Vec<(String, FieldConfig)>, ConfigRefused> {
    let named: Vec<(String, FieldConfig)> = match fields {
        Fields::Paths(paths) if paths.is_empty() => {
            vec![(WHOLE.to_owned(), FieldConfig::at(Path::default()))]
        }
        Fields::Paths(paths) => {
            paths.iter().map(|path| (snake_case(path.last()), FieldConfig::at(path.clone()))).collect()
        }
        Fields::Named(map) => map.iter().map(|(name, field)| (name.clone(), field.clone())).collect(),
    };
    let mut seen = BTreeSet::new();
    for (name, field) in &named {
        if !is_name(name) {
            return Err(ConfigRefused::new(
                "fields",
                format!(
                    "expected a name in snake_case for the path `{}`, found {name:?}: give it one with a table, such as fields = {{ price = \"{0}\" }}",
                    field.path
                ),
            ));
        }
        if !seen.insert(name) {
            let message =
                format!("two fields are named `{name}`: give them names with a table of name = \"path\"");
            return Err(ConfigRefused::new("fields", message));
        }
    }
    Ok(named)
}

/// Letters, digits and underscores, not beginning with a digit, short enough for a column's name.
fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && name.len() <= 60
}

/// `lastPrice` and `Last-Price` become `last_price`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut previous_small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && previous_small {
            snake.push('_');
        }
        previous_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        match c {
            '-' | ' ' => snake.push('_'),
            _ => snake.push(c.to_ascii_lowercase()),
        }
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_snake_case() {
        for (name, snake) in
            [("lastPrice", "last_price"), ("Last-Price", "last_price"), ("id", "id"), ("URL", "url")]
        {
            assert_eq!(snake_case(name), snake);
        }
    }
}
