//! Records: normalised things with an identity, and the kinds that describe their fields.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};

use crate::{ContentHash, ContentHasher, Fingerprint, Past, Time, Value};

/// Room for what most records have to say.
const BODY_BYTES_USUALLY: usize = 512;

/// What a field holds; decides the column of the kind's SQL view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Yes or no.
    Bool,
    /// A whole number.
    Int,
    /// Any number.
    Float,
    /// Text.
    Text,
    /// An instant, as RFC 3339 text.
    Time,
    /// A list or a map, as JSON text.
    Json,
}

/// One named field of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// In snake_case: the name in JSON, in SQL and in rules.
    pub name: String,
    /// What it holds.
    pub ty: FieldType,
    /// Whether a difference in it is a change. Untracked fields are stored along, never compared.
    pub tracked: bool,
    /// Whether it follows from other records (an order, a rank): no answer says it, so polls leave it as it is.
    pub derived: bool,
    /// Whether it is a list that several answers make up together: one that does not show its group whole adds to what
    /// is known, and takes nothing away.
    pub gathered: bool,
}

impl Field {
    /// A tracked field.
    pub fn new(name: &str, ty: FieldType) -> Field {
        Field { name: name.to_owned(), ty, tracked: true, derived: false, gathered: false }
    }

    /// The same field, stored but not compared.
    pub fn untracked(mut self) -> Field {
        self.tracked = false;
        self
    }

    /// The same field, a list that answers make up together.
    pub fn gathered(mut self) -> Field {
        self.gathered = true;
        self
    }

    /// The same field, known from other records only.
    pub fn derived(mut self) -> Field {
        self.derived = true;
        self
    }
}

/// A history of some fields of a kind: one row per real change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The stream's name and, with the source kind as prefix, its view's: `odds_history`.
    pub name: String,
    /// The names of the fields whose change writes a row; every row carries all of them.
    pub fields: Vec<String>,
}

/// A kind of record: its fields in order and the streams kept of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The source kind it belongs to: `racing`.
    pub family: String,
    /// The plural name people query: `entrants`. The full name is `racing_entrants`.
    pub collection: String,
    /// Raised whenever the meaning of the fields changes; a new version is a new baseline without events.
    pub version: u32,
    /// Field order is the order of [`Record::values`].
    pub fields: Vec<Field>,
    /// Histories kept.
    pub streams: Vec<Stream>,
    /// Whether several targets see different parts of such a record: then a null says nothing, and what another
    /// target knows stays.
    pub merges: bool,
    /// What is shown of it besides the records that somebody holds.
    pub views: Vec<KindView>,
    /// How its records are written.
    pub layout: Layout,
}

/// How records of a kind are written: each field as `"name":`, in the order of the names, and where its value stands.
/// Found out once, not with every record.
#[derive(Debug, Default)]
pub struct Layout(OnceLock<Vec<(String, usize)>>);

impl Layout {
    fn of(&self, fields: &[Field]) -> &[(String, usize)] {
        self.0.get_or_init(|| {
            let mut places: Vec<usize> = (0..fields.len()).collect();
            places.sort_unstable_by_key(|place| &fields[*place].name);
            let quoted = |name: &str| serde_json::Value::from(name).to_string() + ":";
            places.into_iter().map(|place| (quoted(&fields[place].name), place)).collect()
        })
    }
}

/// The fields of a copy may be changed before it is used.
impl Clone for Layout {
    fn clone(&self) -> Layout {
        Layout::default()
    }
}

/// It follows from the fields, whether it was found out or not.
impl PartialEq for Layout {
    fn eq(&self, _: &Layout) -> bool {
        true
    }
}
impl Eq for Layout {}

/// One more SQL view about a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindView {
    /// Its name and, with the source kind as prefix, its full one: `drop_events`. One of the collection's own name takes
    /// the place of the view of what is held.
    pub name: String,
    /// What it shows.
    pub shows: Shows,
}

/// What a [`KindView`] shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Records of the past, too, with the time since when nobody holds them (`gone_at`): for things that are over rather
    /// than gone, like last week's races.
    Past {
        /// Also those that were taken away while what they hang on was still there: a runner whose history refers to it,
        /// but not a placing that was corrected.
        withdrawn: bool,
    },
    /// All records, also those that are gone, with their `state`: `open`, `closed` (taken away) or `passed` (its own
    /// time was over).
    Life,
    /// The events of one type about such records.
    Events {
        /// The type: `tables.drop`.
        event_type: String,
        /// What the column with the target's key is called.
        target: String,
        /// What the column with the record's fingerprint is called.
        subject: String,
        /// Columns taken from the top of the event's data.
        fields: Vec<Field>,
    },
    /// The targets of one role, with the fingerprints of what they hold.
    Targets {
        /// The role: `bucket`.
        role: String,
        /// What the column with the target's key is called.
        target: String,
        /// What a held record is called in the columns' names: `slot` makes `prev_slot_ids_json`.
        member: String,
    },
}

impl Kind {
    /// `family_collection`: the name in SQL and events, unique across sources.
    pub fn full_name(&self) -> String {
        [&*self.family, "_", &*self.collection].concat()
    }

    /// Whether a record's content hash stands for all that is stored of it: two of the same content are the same.
    pub fn content_says_all(&self) -> bool {
        self.fields.iter().all(|field| field.tracked && !field.derived && !field.gathered)
    }

    /// The position of a field.
    pub fn position(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == field)
    }
}

/// A row of history that the upstream stamped itself, finer than any polling.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The stream it belongs to. Answers repeat their latest points, so most are made only to be found known: the name
    /// is borrowed where it can be.
    pub stream: Cow<'static, str>,
    /// The upstream's own time; (record, stream, time) is unique.
    pub at: Time,
    /// One value per field of the stream, in its order; null carries the value before forward.
    pub values: Vec<Value>,
    /// The upstream has forgotten older ones: if this row is new to us, some before it are lost, and it is marked.
    pub oldest_known: bool,
}

/// A normalised thing: who it is, where it belongs and what is known about it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// The readable key, parts joined by `|`; people see it, identity uses the fingerprint.
    pub key: String,
    /// Who it is.
    pub fingerprint: Fingerprint,
    /// The record it hangs on (an entrant's race).
    pub parent: Option<Fingerprint>,
    /// The group it is judged with (a slot's venue); zero when none.
    pub group: Fingerprint,
    /// When its own time is over: a later absence is natural, not a removal to doubt.
    pub ends: Option<Time>,
    /// When the part of the answer was read that shows it, where a poll takes its time; otherwise the poll's own.
    pub seen: Option<Time>,
    /// One value per field of the kind, in its order.
    pub values: Vec<Value>,
    /// History rows stamped by the upstream.
    pub points: Vec<Point>,
    /// Fields whose moves the points tell: on their own they call for no row stamped by us.
    pub told: Vec<String>,
    /// Fields that are null because there is nothing, not because nothing is said: what was known of them goes.
    pub cleared: Vec<&'static str>,
}

impl Record {
    /// A record of `kind`; `values` in the order of the kind's fields.
    ///
    /// # Panics
    /// When the number of values is not the number of fields: a mistake in the source's code.
    pub fn new(kind: &Arc<Kind>, key: &[&str], values: Vec<Value>) -> Record {
        assert_eq!(values.len(), kind.fields.len(), "{}: one value per field", kind.full_name());
        Record {
            fingerprint: Fingerprint::of_kind(kind, key),
            kind: Arc::clone(kind),
            key: key.join("|"),
            parent: None,
            group: Fingerprint::default(),
            ends: None,
            seen: None,
            values,
            points: Vec::new(),
            told: Vec::new(),
            cleared: Vec::new(),
        }
    }

    /// The same record, in a group.
    pub fn in_group(mut self, group: Fingerprint) -> Record {
        self.group = group;
        self
    }

    /// The same record, under a parent.
    pub fn under(mut self, parent: Fingerprint) -> Record {
        self.parent = Some(parent);
        self
    }

    /// The same record, over at `time`.
    pub fn ending(mut self, time: Time) -> Record {
        self.ends = Some(time);
        self
    }

    /// This record as it is to be stored: where the kind merges, nulls are filled from what is known, and derived
    /// fields always are; but what is cleared stays so. Borrowed when there was nothing to fill.
    pub fn merged_with<P: Past + ?Sized>(&self, old: Option<&P>) -> Cow<'_, Record> {
        let mut record = Cow::Borrowed(self);
        let Some(old) = old else { return record };
        for (i, (field, value)) in self.kind.fields.iter().zip(&self.values).enumerate() {
            let fills = field.derived || (self.kind.merges && !self.cleared.contains(&field.name.as_str()));
            let asks = value.is_null() && fills;
            if asks && let Some(known) = old.value(&self.kind, i) {
                record.to_mut().values[i] = known;
            }
        }
        record
    }

    /// This record with what `old` has besides in the lists that answers make up together: for an answer that does not
    /// show this record's group whole.
    pub fn gathered_with(&self, old: &serde_json::Map<String, serde_json::Value>) -> Cow<'_, Record> {
        let mut record = Cow::Borrowed(self);
        let named = self.kind.fields.iter().zip(&self.values).enumerate();
        for (i, (field, value)) in named.filter(|(_, (field, _))| field.gathered) {
            let Some(known) = old.get(&field.name).map(Value::from_json) else { continue };
            let all = known.gathered_with(value);
            if all != *value {
                record.to_mut().values[i] = all;
            }
        }
        record
    }

    /// The hash of the tracked fields, of where the record belongs, and of the upstream's own history points.
    pub fn content(&self) -> ContentHash {
        self.content_by(&mut ContentHasher::new())
    }

    /// The same, by a hasher that serves one record after the other.
    pub fn content_by(&self, hasher: &mut ContentHasher) -> ContentHash {
        hasher.restart();
        for (field, value) in self.kind.fields.iter().zip(&self.values) {
            // Names are part of the content, so that inserting a field never makes two different records look alike.
            if field.tracked && !value.is_null() {
                hasher.text(&field.name);
                hasher.value(value);
            }
        }
        // Where it belongs is part of what it is.
        match self.ends {
            Some(ends) => hasher.time(ends),
            None => hasher.value(&Value::Null),
        }
        for print in [Some(self.group), self.parent] {
            hasher.print(print);
        }
        for point in &self.points {
            hasher.text(&point.stream);
            hasher.value(&Value::Int(point.at.us()));
            point.values.iter().for_each(|value| hasher.value(value));
        }
        hasher.finish()
    }

    /// The value of a field, if the kind has it.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.kind.position(field).map(|i| &self.values[i])
    }

    /// All fields as a JSON object, as stored.
    pub fn body(&self) -> serde_json::Map<String, serde_json::Value> {
        let named = self.kind.fields.iter().zip(&self.values);
        named.map(|(field, value)| (field.name.clone(), value.to_json())).collect()
    }

    /// The text of [`body`](Record::body), without making one.
    pub fn body_text(&self) -> String {
        let mut text = Vec::with_capacity(BODY_BYTES_USUALLY);
        text.push(b'{');
        for (n, (name, place)) in self.kind.layout.of(&self.kind.fields).iter().enumerate() {
            if n > 0 {
                text.push(b',');
            }
            text.extend_from_slice(name.as_bytes());
            serde_json::to_writer(&mut text, &self.values[*place])
                .expect("JSON, because values are, and room is made");
        }
        text.push(b'}');
        String::from_utf8(text).expect("text, because JSON is")
    }
}

/// The text of a JSON object with these names, which come in any order and stand in theirs: as in any object of ours.
pub fn object_text<V: Serialize>(mut named: Vec<(&str, V)>) -> String {
    struct Named<'a, V>(Vec<(&'a str, V)>);
    impl<V: Serialize> Serialize for Named<'_, V> {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            s.collect_map(self.0.iter().map(|(name, value)| (name, value)))
        }
    }
    named.sort_unstable_by_key(|(name, _)| *name);
    serde_json::to_string(&Named(named)).expect("text, because names are text and values are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Arc<Kind> {
        Arc::new(Kind {
            family: "test".into(),
            collection: "things".into(),
            version: 1,
            fields: vec![
                Field::new("price", FieldType::Float),
                Field::new("name", FieldType::Text),
                Field::new("seen", FieldType::Int).untracked(),
            ],
            streams: vec![],
            merges: false,
            views: vec![],
            layout: Default::default(),
        })
    }

    #[test]
    fn a_record_is_known_by_its_kinds_full_name() {
        let kind = kind();
        let record = Record::new(&kind, &["a", "b"], vec![Value::Null, Value::Null, Value::Null]);
        assert_eq!(record.fingerprint, Fingerprint::of(&kind.full_name(), &["a", "b"]));
    }

    #[test]
    fn a_merging_kind_keeps_what_another_target_knows() {
        let merging = Arc::new(Kind { merges: true, ..(*kind()).clone() });
        let known = Record::new(&merging, &["a"], vec![Value::Int(5), "x".into(), Value::Null]).body();
        let seen = Record::new(&merging, &["a"], vec![Value::Null, "y".into(), Value::Null]);
        let merged = seen.merged_with(Some(&known));
        assert_eq!((merged.get("price"), merged.get("name")), (Some(&Value::Int(5)), Some(&"y".into())));
        let body = serde_json::Value::Object(merged.body());
        assert_eq!(merged.body_text(), body.to_string(), "written as it is");
        let cleared = Record { cleared: vec!["price"], ..seen.clone() };
        assert_eq!(
            cleared.merged_with(Some(&known)).get("price"),
            Some(&Value::Null),
            "it has none any more"
        );
        let plain = Record::new(&kind(), &["a"], vec![Value::Null, "y".into(), Value::Null]);
        assert_eq!(plain.merged_with(Some(&known)).get("price"), Some(&Value::Null));
    }

    #[test]
    fn a_gathered_list_loses_nothing_to_an_answer_that_shows_a_part() {
        let mut seats = (*kind()).clone();
        seats.fields[0] = Field::new("sizes", FieldType::Json).gathered();
        seats.fields[1] = Field::new("rooms", FieldType::Json).gathered();
        let seats = Arc::new(seats);
        let list = |text: &str| Value::from_json(&serde_json::from_str(text).expect("json"));
        let record = |sizes: &str, rooms: &str| {
            Record::new(&seats, &["a"], vec![list(sizes), list(rooms), Value::Null])
        };
        let known = record("[2, 4]", r#"[{"room": "bar", "sizes": [2]}, {"room": "hall", "sizes": [2, 4]}]"#);
        let part = record("[2]", r#"[{"room": "hall", "sizes": [2]}, {"room": "yard", "sizes": [2]}]"#);
        let all = part.gathered_with(&known.body());
        assert_eq!(all.get("sizes"), Some(&list("[2, 4]")));
        let rooms = r#"[{"room": "bar", "sizes": [2]}, {"room": "hall", "sizes": [2, 4]}, {"room": "yard", "sizes": [2]}]"#;
        assert_eq!(all.get("rooms"), Some(&list(rooms)));
        let more = record("[1, 6]", "[]");
        assert_eq!(more.gathered_with(&known.body()).get("sizes"), Some(&list("[1, 2, 4, 6]")), "in order");
        assert!(matches!(known.gathered_with(&part.body()), Cow::Owned(_)));
        assert!(matches!(known.gathered_with(&known.body()), Cow::Borrowed(_)), "nothing to add");
    }

    #[test]
    fn a_derived_field_survives_every_poll() {
        let mut ranked = (*kind()).clone();
        ranked.fields.push(Field::new("rank", FieldType::Int).derived());
        let ranked = Arc::new(ranked);
        let known = Record::new(&ranked, &["a"], vec![Value::Int(5), "x".into(), Value::Null, Value::Int(3)]);
        let seen = Record::new(&ranked, &["a"], vec![Value::Null, "x".into(), Value::Null, Value::Null]);
        let merged = seen.merged_with(Some(&known.body())).into_owned();
        assert_eq!((merged.get("rank"), merged.get("price")), (Some(&Value::Int(3)), Some(&Value::Null)));
    }

    #[test]
    fn content_ignores_spelling_and_untracked_fields() {
        let record = |price: Value, seen: i64| {
            Record::new(&kind(), &["a"], vec![price, "x".into(), Value::Int(seen)]).content()
        };
        assert_eq!(record(Value::Int(1), 1), record(Value::Float(1.0), 2));
        assert_ne!(record(Value::Int(1), 1), record(Value::Float(1.01), 1));
        assert_ne!(record(Value::Null, 1), record(Value::Int(0), 1));
    }
}
