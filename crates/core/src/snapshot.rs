//! What a target held at its last good poll: a sorted list, compared by merging, never by re-reading JSON.

use crate::{ContentHash, ContentHasher, Fingerprint, Record, Time};

/// One record in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub fingerprint: Fingerprint,
    /// Its group; zero when none.
    pub group: Fingerprint,
    /// What it said.
    pub content: ContentHash,
    /// When its own time is over.
    pub ends: Option<Time>,
}

impl Entry {
    /// The entry of a record.
    pub fn of(record: &Record) -> Entry {
        Entry::by(record, &mut ContentHasher::new())
    }

    /// The same, by a hasher that serves one record after the other.
    pub fn by(record: &Record, hasher: &mut ContentHasher) -> Entry {
        Entry {
            fingerprint: record.fingerprint,
            group: record.group,
            content: record.content_by(hasher),
            ends: record.ends,
        }
    }
}

/// The entries of one target, sorted by fingerprint, each fingerprint once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(Vec<Entry>);

/// Stored bytes that are no snapshot.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "a stored snapshot of {found} bytes is damaged: expected a multiple of {ENTRY_BYTES} in fingerprint order"
)]
pub struct DamagedSnapshot {
    /// How many bytes were found.
    pub found: usize,
}

/// The bytes of one stored entry: fingerprint, group, content and end.
pub const ENTRY_BYTES: usize = 56;

impl Snapshot {
    /// Sorts the entries; of two with one fingerprint the later wins.
    pub fn new(mut entries: Vec<Entry>) -> Snapshot {
        entries.reverse();
        entries.sort_by_key(|e| e.fingerprint);
        entries.dedup_by_key(|e| e.fingerprint);
        Snapshot(entries)
    }

    /// The entries in fingerprint order.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry of a record.
    pub fn get(&self, fingerprint: Fingerprint) -> Option<&Entry> {
        let found = self.0.binary_search_by_key(&fingerprint, |e| e.fingerprint).ok()?;
        Some(&self.0[found])
    }

    /// The stored form: fixed-size entries, big-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * ENTRY_BYTES);
        for entry in &self.0 {
            bytes.extend_from_slice(&entry.fingerprint.to_bytes());
            bytes.extend_from_slice(&entry.group.to_bytes());
            bytes.extend_from_slice(&entry.content.to_bytes());
            bytes.extend_from_slice(&entry.ends.map_or(i64::MAX, Time::us).to_be_bytes());
        }
        bytes
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, DamagedSnapshot> {
        let damaged = DamagedSnapshot { found: bytes.len() };
        let (chunks, []) = bytes.as_chunks::<ENTRY_BYTES>() else { return Err(damaged) };
        let hash = |chunk: &[u8; ENTRY_BYTES], at: usize| {
            u128::from_be_bytes(chunk[at..at + 16].try_into().expect("16 bytes, because the chunk has 56"))
        };
        let entries: Vec<Entry> = chunks
            .iter()
            .map(|chunk| {
                let ends =
                    i64::from_be_bytes(chunk[48..].try_into().expect("8 bytes, because the chunk has 56"));
                Entry {
                    fingerprint: Fingerprint(hash(chunk, 0)),
                    group: Fingerprint(hash(chunk, 16)),
                    content: ContentHash(hash(chunk, 32)),
                    ends: (ends != i64::MAX).then_some(Time(ends)),
                }
            })
            .collect();
        let sorted = entries.is_sorted_by(|a, b| a.fingerprint < b.fingerprint);
        if sorted { Ok(Snapshot(entries)) } else { Err(damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u128) -> Entry {
        Entry {
            fingerprint: Fingerprint(n),
            group: Fingerprint(n % 3),
            content: ContentHash(n * 7),
            ends: n.is_multiple_of(2).then_some(Time(n as i64)),
        }
    }

    #[test]
    fn bytes_round_trip_and_damage_is_seen() {
        let snapshot = Snapshot::new(vec![entry(9), entry(2), entry(5)]);
        let bytes = snapshot.to_bytes();
        assert_eq!(Snapshot::from_bytes(&bytes), Ok(snapshot.clone()));
        assert!(Snapshot::from_bytes(&bytes[1..]).is_err(), "torn");
        let mut swapped = bytes.clone();
        swapped.rotate_left(ENTRY_BYTES);
        assert!(Snapshot::from_bytes(&swapped).is_err(), "out of order");
        assert_eq!(snapshot.get(Fingerprint(5)), Some(&entry(5)));
        assert_eq!(snapshot.get(Fingerprint(6)), None);
    }
}
