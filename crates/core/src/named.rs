//! Named values: what a JSON object becomes.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::Value;

/// Values in the order of their names, each name once.
///
/// A poll makes thousands of them with a handful of names each, most of them known when the programme is built: a list
/// is a fraction of a tree, and such names are borrowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named(Vec<(Cow<'static, str>, Value)>);

impl Named {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).ok().map(|place| &self.0[place].1)
    }

    /// Gives a name this value, whatever it had.
    pub fn insert(&mut self, name: impl Into<Cow<'static, str>>, value: Value) {
        let name = name.into();
        match self.place(&name) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (name, value)),
        }
    }

    /// In the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name))
    }
}

/// Of a name that comes more than once, the last value counts.
impl<N: Into<Cow<'static, str>>> FromIterator<(N, Value)> for Named {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(items: I) -> Named {
        let mut items: Vec<_> = items.into_iter().map(|(name, value)| (name.into(), value)).collect();
        if !items.is_sorted_by(|(one, _), (next, _)| one < next) {
            items.reverse();
            items.sort_by(|(one, _), (other, _)| one.cmp(other));
            items.dedup_by(|(one, _), (other, _)| one == other);
        }
        Named(items)
    }
}

impl<N: Into<Cow<'static, str>>, const COUNT: usize> From<[(N, Value); COUNT]> for Named {
    fn from(items: [(N, Value); COUNT]) -> Named {
        items.into_iter().collect()
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_a_tree_would_be(items in proptest::collection::vec(("[a-d]{0,2}", 0_i64..9), 0..12)) {
            let values = || items.iter().map(|(name, n)| (name.clone(), Value::Int(*n)));
            let tree: BTreeMap<String, Value> = values().collect();
            let named: Named = values().collect();
            let mut inserted = Named::default();
            values().for_each(|(name, value)| inserted.insert(name, value));
            prop_assert_eq!(&named, &inserted);
            prop_assert!(named.iter().eq(tree.iter().map(|(name, value)| (name.as_str(), value))));
            prop_assert!(tree.iter().all(|(name, value)| named.get(name) == Some(value)));
            prop_assert_eq!((named.get("e"), named.len(), named.is_empty()), (None, tree.len(), tree.is_empty()));
        }
    }
}
