//! How late polls were, in few bytes.

use serde::{Deserialize, Serialize};

use crate::Span;

/// The upper bounds of the buckets, each inclusive; one more bucket holds what is beyond the last.
const BOUNDS_MS: [i64; 14] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000];
const BUCKETS: usize = BOUNDS_MS.len() + 1;
/// The last bound.
const LONGEST: Span = Span::ms(BOUNDS_MS[BOUNDS_MS.len() - 1]);

/// Where a quantile lies: all that fixed buckets can say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Not above this.
    AtMost(Span),
    /// Above this, the last bound, by who knows how much.
    Above(Span),
}

impl Quantile {
    /// What it does not exceed, where that is known.
    pub fn at_most(self) -> Option<Span> {
        match self {
            Quantile::AtMost(span) => Some(span),
            Quantile::Above(_) => None,
        }
    }

    /// What it exceeds, where nothing else is known.
    pub fn above(self) -> Option<Span> {
        match self {
            Quantile::AtMost(_) => None,
            Quantile::Above(span) => Some(span),
        }
    }
}

/// Counts of lateness in fixed buckets from 1 ms to a minute; they stop counting at `u64::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatenessHistogram([u64; BUCKETS]);

impl LatenessHistogram {
    /// Counts one poll.
    pub fn record(&mut self, lateness: Span) {
        let bucket = BOUNDS_MS.partition_point(|&bound| Span::ms(bound) < lateness);
        self.0[bucket] = self.0[bucket].saturating_add(1);
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &LatenessHistogram) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// How many polls were counted.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// The buckets: upper bound (`None` beyond the last) and count, for a metrics page.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Span>, u64)> + '_ {
        let bounds = BOUNDS_MS.iter().map(|&ms| Some(Span::ms(ms))).chain([None]);
        bounds.zip(self.0.iter().copied())
    }

    /// A lateness that at least the share `q` (0 to 1) of the polls did not exceed: the upper bound of the bucket
    /// in which the quantile lies, or that it is beyond a minute. `None` when nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bound, in_bucket) in self.buckets() {
            seen = in_bucket.saturating_add(seen);
            if seen >= rank {
                return Some(bound.map_or(Quantile::Above(LONGEST), Quantile::AtMost));
            }
        }
        None
    }

    /// A bit set of the filled buckets, then their counts as variable-length numbers: mostly 3 to 8 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let filled = |(mask, bit): (u16, usize)| if self.0[bit] > 0 { mask | 1 << bit } else { mask };
        let mask = (0..BUCKETS).fold(0_u16, |mask, bit| filled((mask, bit)));
        let mut bytes = mask.to_le_bytes().to_vec();
        for mut count in self.0.iter().copied().filter(|&count| count > 0) {
            while count >= 0x80 {
                bytes.push((count & 0x7F) as u8 | 0x80);
                count >>= 7;
            }
            bytes.push(count as u8);
        }
        bytes
    }

    /// Reads what [`LatenessHistogram::to_bytes`] wrote; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<LatenessHistogram> {
        let (mask, mut rest) = bytes.split_first_chunk::<2>()?;
        let mask = u16::from_le_bytes(*mask);
        if usize::from(mask.checked_ilog2().unwrap_or(0) as u16) >= BUCKETS {
            return None;
        }
        let mut histogram = LatenessHistogram::default();
        for bucket in (0..BUCKETS).filter(|bit| mask & 1 << bit != 0) {
            let (count, left) = number(rest)?;
            histogram.0[bucket] = count;
            rest = left;
        }
        rest.is_empty().then_some(histogram)
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u128;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u128::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            let value = u64::try_from(value).ok().filter(|&value| value > 0)?;
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quantile_is_an_upper_bound() {
        let mut histogram = LatenessHistogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for ms in 1..=100 {
            histogram.record(Span::ms(ms));
        }
        for (q, ms) in [(0.0, 1), (0.01, 1), (0.05, 5), (0.5, 50), (0.51, 100), (1.0, 100)] {
            assert_eq!(histogram.quantile(q), Some(Quantile::AtMost(Span::ms(ms))), "q {q}");
        }
        histogram.record(Span::hours(2));
        assert_eq!(histogram.quantile(1.0), Some(Quantile::Above(Span::mins(1))));
        assert_eq!(histogram.count(), 101);
    }

    #[test]
    fn counts_saturate_instead_of_wrapping() {
        let mut full = LatenessHistogram([u64::MAX; BUCKETS]);
        full.record(Span::ZERO);
        full.merge(&full.clone());
        assert_eq!(full, LatenessHistogram([u64::MAX; BUCKETS]));
        assert_eq!(LatenessHistogram::from_bytes(&full.to_bytes()), Some(full));
    }

    #[test]
    fn totals_of_years_are_counted() {
        let mut total = LatenessHistogram([0; BUCKETS]);
        total.0[0] = u64::from(u32::MAX);
        total.record(Span::ZERO);
        assert_eq!(total.count(), u64::from(u32::MAX) + 1);
        assert_eq!(LatenessHistogram::from_bytes(&total.to_bytes()), Some(total));
    }

    #[test]
    fn a_punctual_run_takes_three_bytes() {
        let mut histogram = LatenessHistogram::default();
        (0..100).for_each(|_| histogram.record(Span::us(700)));
        assert_eq!(histogram.to_bytes().len(), 3);
        assert_eq!(LatenessHistogram::default().to_bytes(), [0, 0]);
    }

    proptest! {
        #[test]
        fn bytes_round_trip_and_never_panic(
            counts in prop::array::uniform15(prop_oneof![Just(0), any::<u64>(), 0_u64..300]),
            noise in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let histogram = LatenessHistogram(counts);
            let bytes = histogram.to_bytes();
            prop_assert_eq!(LatenessHistogram::from_bytes(&bytes), Some(histogram));
            prop_assert_eq!(LatenessHistogram::from_bytes(&bytes[..bytes.len() - 1]), None);
            let _ = LatenessHistogram::from_bytes(&noise);
        }
    }
}
