//! Seeded randomness: splitmix64, small enough to read and the same on every machine.

/// A splitmix64 generator. Equal seeds give equal sequences, for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The generator that begins at `seed`.
    pub const fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        let out = mix(self.state);
        self.state = self.state.wrapping_add(GOLDEN);
        out
    }

    /// A number in `low..=high`. The bias of the multiplication is below 2⁻³² for spans under 2³², which no
    /// simulation can notice.
    ///
    /// # Panics
    /// When `low > high`.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "a range needs low <= high");
        let span = (high - low) as u128 + 1;
        low + ((self.next_u64() as u128 * span) >> 64) as u64
    }

    /// True once in `n` times on average.
    ///
    /// # Panics
    /// When `n` is 0.
    pub const fn one_in(&mut self, n: u64) -> bool {
        assert!(n > 0, "one in none is no chance");
        self.between(1, n) == 1
    }

    /// A number in `[0, 1)` with 53 random bits.
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// One splitmix64 step as a hash: random access to a sequence, where walking it would be too slow.
pub const fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The reference implementation's first outputs for seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn ranges_are_inclusive_and_filled() {
        let mut rng = SplitMix64::new(7);
        let mut hits = [0u32; 4];
        for _ in 0..4_000 {
            hits[(rng.between(10, 13) - 10) as usize] += 1;
        }
        assert!(hits.iter().all(|&n| (850..1_150).contains(&n)), "uneven: {hits:?}");
        assert_eq!(rng.between(5, 5), 5);
        assert!(rng.one_in(1));
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }
}
