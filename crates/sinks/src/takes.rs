//! Which events a sink takes besides those that name it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Refused;

/// Types of events: `racing.race.final` is one of them, `racing.*` all that begin so, `*` all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Takes(pub Vec<String>);

impl Takes {
    /// Every event.
    pub fn all() -> Takes {
        Takes(vec!["*".to_owned()])
    }

    /// Whether events of this type are among them.
    pub fn includes(&self, event_type: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => event_type.starts_with(beginning),
            None => pattern == event_type,
        })
    }

    /// Whether all of them can be.
    pub fn check(&self) -> Result<(), Refused> {
        let can_be = |pattern: &str| match pattern.strip_suffix('*') {
            Some(beginning) => beginning.is_empty() || (beginning.ends_with('.') && !beginning.contains('*')),
            None => !pattern.is_empty() && !pattern.contains('*'),
        };
        match self.0.iter().find(|pattern| !can_be(pattern)) {
            None => Ok(()),
            Some(found) => Err(Refused::new(
                "events",
                format!("expected a type such as alert.raised, racing.* or *, found {found:?}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(patterns: &[&str]) -> Takes {
        Takes(patterns.iter().map(|pattern| (*pattern).to_owned()).collect())
    }

    #[test]
    fn a_pattern_is_a_type_or_how_it_begins() {
        let some = takes(&["racing.*", "alert.raised"]);
        assert!(some.includes("racing.race.final") && some.includes("alert.raised"));
        assert!(
            !some.includes("tables.drop") && !some.includes("alert.raised.again") && !some.includes("racing")
        );
        assert!(Takes::all().includes("anything.at.all"));
        assert!(!Takes::default().includes("anything.at.all"));
    }

    #[test]
    fn a_pattern_that_cannot_be_is_refused() {
        assert!(takes(&["*", "racing.*", "alert.raised"]).check().is_ok());
        for bad in ["", "rac*", "*.race", "racing.*.final", "**"] {
            assert_eq!(takes(&[bad]).check().expect_err(bad).key, "events");
        }
    }
}
