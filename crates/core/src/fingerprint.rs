//! 128-bit hashes: who a record is ([`Fingerprint`]), what it says ([`ContentHash`]), which event this is ([`EventId`]).
//!
//! All of them are stable across versions, platforms and nodes: they are stored, compared between
//! machines and shown to users. The golden values in the tests must never change.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hasher as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use siphasher::sip128::{Hasher128, SipHasher24};
use xxhash_rust::xxh3::xxh3_128;

use crate::{Kind, Time, Value};

macro_rules! hash_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u128);

        impl $name {
            /// Big-endian bytes: their order is the order of the hashes, in memory and in SQL.
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }
            /// The inverse of `to_bytes`.
            pub const fn from_bytes(bytes: [u8; 16]) -> $name {
                $name(u128::from_be_bytes(bytes))
            }
            /// Parses the 32 hex digits that `Display` writes.
            pub fn parse(text: &str) -> Option<$name> {
                (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok().map($name))?
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:032x}", self.0)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<$name, D::Error> {
                let text = String::deserialize(d)?;
                $name::parse(&text).ok_or_else(|| de::Error::custom("expected 32 hex digits"))
            }
        }
    };
}

hash_type! {
    /// The identity of a record: a hash of its kind and key.
    Fingerprint
}
hash_type! {
    /// A hash of a record's tracked fields in canonical form.
    ContentHash
}
hash_type! {
    /// The identity of an event: the same on every node and after every crash.
    EventId
}

// The hash is keyed so that identities and event ids live in different spaces; the keys are part of
// the stored format, not secrets.
const IDENTITY_KEY: &[u8; 16] = b"stakeout-ident-1";
const EVENT_KEY: &[u8; 16] = b"stakeout-event-1";
const SPREAD_KEY: &[u8; 16] = b"stakeout-spread1";

impl Fingerprint {
    /// The text that `Display` writes, as the value of a field.
    pub fn text(self) -> Value {
        Value::text(std::str::from_utf8(&self.hex()).expect("text, because it is made of digits"))
    }

    fn hex(self) -> [u8; 32] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 32];
        for (byte, digits) in self.to_bytes().iter().zip(hex.as_chunks_mut::<2>().0) {
            *digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        hex
    }

    /// The same as [`Fingerprint::of`] the kind's full name, without making that name.
    pub(crate) fn of_kind(kind: &Kind, key: &[&str]) -> Fingerprint {
        let mut hasher = SipHasher24::new_with_key(IDENTITY_KEY);
        let mut pieces = Pieces::of(&mut hasher);
        let name = [kind.family.as_str(), "_", kind.collection.as_str()];
        pieces.add(&(name.iter().map(|part| part.len()).sum::<usize>() as u64).to_le_bytes());
        name.iter().for_each(|part| pieces.add(part.as_bytes()));
        for part in key {
            pieces.add(&(part.len() as u64).to_le_bytes());
            pieces.add(part.as_bytes());
        }
        pieces.hash();
        Fingerprint(hasher.finish128().as_u128())
    }

    /// The identity of the record of `kind` with this `key`; every part is length-prefixed, so
    /// `("ab","c")` and `("a","bc")` differ.
    pub fn of(kind: &str, key: &[&str]) -> Fingerprint {
        let mut hasher = SipHasher24::new_with_key(IDENTITY_KEY);
        parts(&mut hasher, std::iter::once(kind).chain(key.iter().copied()));
        Fingerprint(hasher.finish128().as_u128())
    }
}

impl EventId {
    /// The identity of an event that a poll brought about.
    pub fn of_poll(
        source: &str,
        incarnation: u64,
        rule: &str,
        subject: Fingerprint,
        snapshot_version: u64,
        ordinal: u32,
    ) -> EventId {
        let mut hasher = SipHasher24::new_with_key(EVENT_KEY);
        parts(&mut hasher, ["poll", source, rule].into_iter());
        hasher.write(&incarnation.to_le_bytes());
        hasher.write(&subject.to_bytes());
        hasher.write(&snapshot_version.to_le_bytes());
        hasher.write(&ordinal.to_le_bytes());
        EventId(hasher.finish128().as_u128())
    }

    /// The identity of an event that no poll brought about: a bell, a missed schedule.
    pub fn of_trigger(source: &str, rule: &str, subject: &str, trigger: &str) -> EventId {
        let mut hasher = SipHasher24::new_with_key(EVENT_KEY);
        parts(&mut hasher, ["trigger", source, rule, subject, trigger].into_iter());
        EventId(hasher.finish128().as_u128())
    }
}

impl ContentHash {
    /// A hash of bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> ContentHash {
        ContentHash(xxh3_128(bytes))
    }
}

/// A stable 64-bit number for a target, from which its phase, jitter and spread are drawn.
pub fn spread(parts_of: &[&str]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(SPREAD_KEY);
    parts(&mut hasher, parts_of.iter().copied());
    hasher.finish128().h1
}

fn parts<'a>(hasher: &mut SipHasher24, items: impl Iterator<Item = &'a str>) {
    let mut pieces = Pieces::of(hasher);
    for item in items {
        pieces.add(&(item.len() as u64).to_le_bytes());
        pieces.add(item.as_bytes());
    }
    pieces.hash();
}

/// Collects pieces on their way to a hasher: it takes one that is long sooner than many that are short.
struct Pieces<'a> {
    hasher: &'a mut SipHasher24,
    bytes: [u8; 192],
    filled: usize,
}

impl Pieces<'_> {
    fn of(hasher: &mut SipHasher24) -> Pieces<'_> {
        Pieces { hasher, bytes: [0; 192], filled: 0 }
    }

    fn add(&mut self, piece: &[u8]) {
        let end = self.filled + piece.len();
        match self.bytes.get_mut(self.filled..end) {
            Some(room) => {
                room.copy_from_slice(piece);
                self.filled = end;
            }
            None => {
                self.hasher.write(&self.bytes[..self.filled]);
                self.hasher.write(piece);
                self.filled = 0;
            }
        }
    }

    fn hash(self) {
        self.hasher.write(&self.bytes[..self.filled]);
    }
}

impl ContentHash {
    /// The mark of this content where it may be only a part of what there is; no content is its own mark.
    pub(crate) fn in_part(self) -> ContentHash {
        ContentHash(!self.0)
    }
}

/// Hashes field values in canonical form: equal values give equal hashes, whatever their spelling.
///
/// What is hashed is collected first: a record is many tiny pieces, and hashing them one by one costs more than
/// copying them together.
#[derive(Default)]
pub struct ContentHasher {
    bytes: Vec<u8>,
    /// Times as they are written: many records of an answer end at few different times.
    times: BTreeMap<Time, String>,
}

/// Room for most records, so that the pieces are collected without growing.
const MOST_RECORDS_BYTES: usize = 1_024;
/// Times that are kept as they are written; then they begin anew.
const TIMES_MAX: usize = 64;

impl ContentHasher {
    /// A hasher that has seen nothing.
    pub fn new() -> ContentHasher {
        ContentHasher { bytes: Vec::with_capacity(MOST_RECORDS_BYTES), times: BTreeMap::new() }
    }

    /// Adds a name or another piece of text.
    pub fn text(&mut self, text: &str) {
        self.tagged(b's', text.as_bytes());
    }

    /// Adds an identity, as the text that it is written as; none is empty text.
    pub fn print(&mut self, print: Option<Fingerprint>) {
        match print {
            Some(print) => self.tagged(b's', &print.hex()),
            None => self.text(""),
        }
    }

    /// Adds a time, as the text that it is written as.
    pub fn time(&mut self, time: Time) {
        if self.times.len() >= TIMES_MAX && !self.times.contains_key(&time) {
            self.times.clear();
        }
        let text = self.times.entry(time).or_insert_with(|| time.to_string());
        tagged(&mut self.bytes, b's', text.as_bytes());
    }

    /// Adds a value; every value is tagged with its type and prefixed with its length.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes.push(b'n'),
            Value::Bool(b) => self.bytes.push(if *b { b't' } else { b'f' }),
            Value::Int(i) => self.int(*i),
            Value::Float(x) => match Value::number(*x) {
                Value::Int(i) => self.int(i),
                Value::Float(x) => {
                    self.bytes.push(b'd');
                    self.bytes.extend_from_slice(&x.to_bits().to_le_bytes());
                }
                _ => self.bytes.push(b'n'),
            },
            Value::Text(s) => self.text(s),
            Value::List(items) => {
                self.tagged(b'l', &(items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Map(map) => {
                self.tagged(b'm', &(map.len() as u64).to_le_bytes());
                for (name, value) in map.iter() {
                    self.text(name);
                    self.value(value);
                }
            }
        }
    }

    /// Forgets what was added and keeps the room for it.
    pub fn restart(&mut self) {
        self.bytes.clear();
    }

    /// The hash of everything added.
    pub fn finish(&self) -> ContentHash {
        ContentHash(xxh3_128(&self.bytes))
    }

    fn int(&mut self, i: i64) {
        let mut tagged = [b'i'; 9];
        tagged[1..].copy_from_slice(&i.to_le_bytes());
        self.bytes.extend_from_slice(&tagged);
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        tagged(&mut self.bytes, tag, bytes);
    }
}

fn tagged(all: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    let mut head = [tag; 9];
    head[1..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    all.extend_from_slice(&head);
    all.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    // Golden values: a change here means that every stored database and every dedupe key is wrong.
    #[test]
    fn golden_values_never_change() {
        let slot = Fingerprint::of("tables_slots", &["resy", "123", "2026-02-28T20:30"]);
        let event = EventId::of_poll("nyc", 7, "drop", slot, 3, 0);
        let bell = EventId::of_trigger("nz", "bell", "race-1", "2026-01-10T02:00:00Z");
        let mut content = ContentHasher::new();
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::Int(-5),
            Value::number(12.5),
            Value::text("Café"),
            Value::List(vec![Value::Int(1), Value::Null]),
        ] {
            content.value(&value);
        }
        assert_eq!(slot.to_string(), "338dacf713c8e81011c7aef53f95d186");
        assert_eq!(event.to_string(), "4cb2ad195c2c7a872bac6cd6cb336d35");
        assert_eq!(bell.to_string(), "b721719702b5e164156dfaf78d3309de");
        assert_eq!(content.finish().to_string(), "4e9f9b0bea19668bce6647f25ffce460");
        assert_eq!(spread(&["nz", "race-1"]), 0x1898_6c32_5e89_a662);
    }

    #[test]
    fn an_identity_is_hashed_as_it_is_written() {
        let hash = |add: &dyn Fn(&mut ContentHasher)| {
            let mut hasher = ContentHasher::new();
            add(&mut hasher);
            hasher.finish()
        };
        let print = Fingerprint::of("k", &["x"]);
        assert_eq!(hash(&|h| h.print(Some(print))), hash(&|h| h.text(&print.to_string())));
        assert_eq!(hash(&|h| h.print(None)), hash(&|h| h.text("")));
        assert_eq!(print.text(), Value::text(print.to_string()));
    }

    #[test]
    fn a_time_is_hashed_as_it_is_written() {
        for time in [Time(0), Time(1), Time(1_771_995_600_123_000), Time(i64::MAX)] {
            let [mut written, mut straight] = [ContentHasher::new(), ContentHasher::new()];
            written.value(&Value::from(time));
            straight.text("of another record");
            straight.restart();
            straight.time(time);
            assert_eq!(straight.finish(), written.finish(), "{time}");
        }
    }

    #[test]
    fn any_number_of_times_is_hashed_as_it_is_written() {
        let mut hasher = ContentHasher::new();
        for time in (0..3 * TIMES_MAX as i64).chain(0..5).map(Time::from_secs) {
            hasher.restart();
            hasher.time(time);
            let mut written = ContentHasher::new();
            written.text(&time.to_string());
            assert_eq!(hasher.finish(), written.finish(), "{time}");
            assert!(hasher.times.len() <= TIMES_MAX);
        }
    }

    #[test]
    fn parts_of_any_length_are_hashed_as_if_piece_by_piece() {
        let by_pieces = |items: &[&str]| {
            let mut hasher = SipHasher24::new_with_key(IDENTITY_KEY);
            for item in items {
                hasher.write(&(item.len() as u64).to_le_bytes());
                hasher.write(item.as_bytes());
            }
            Fingerprint(hasher.finish128().as_u128())
        };
        for length in (0..400).chain([5_000]) {
            let long = "x".repeat(length);
            let items = ["kind", long.as_str(), "y", long.as_str(), "z"];
            assert_eq!(Fingerprint::of(items[0], &items[1..]), by_pieces(&items), "{length}");
        }
    }

    #[test]
    fn parts_are_length_prefixed() {
        assert_ne!(Fingerprint::of("k", &["ab", "c"]), Fingerprint::of("k", &["a", "bc"]));
        assert_ne!(Fingerprint::of("k", &["a"]), Fingerprint::of("k", &["a", ""]));
        assert_ne!(Fingerprint::of("ka", &[]), Fingerprint::of("k", &["a"]));
    }

    #[test]
    fn hex_round_trips() {
        let print = Fingerprint::of("k", &["x"]);
        assert_eq!(Fingerprint::parse(&print.to_string()), Some(print));
        assert_eq!(Fingerprint::parse("xyz"), None);
        assert_eq!(Fingerprint::from_bytes(print.to_bytes()), print);
    }
}
