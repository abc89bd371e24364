//! Ids that look like the upstream's: UUIDs, here made from the seed.

use crate::rng::mix;

/// The same arguments give the same id, others another.
pub(crate) fn uuid(seed: u64, n: u64) -> String {
    let (a, b) = (mix(seed ^ mix(n)), mix(seed.rotate_left(17) ^ mix(n ^ 0x7575_6964)));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | ((b >> 48) & 0x3fff),
        b & 0xffff_ffff_ffff
    )
}
