//! Numbers that look random and are not: the same target, slot and purpose always draw the same.

use crate::{Span, Time};

/// The delay added to the due time of a slot: from zero to `min(cap, interval / 10)`, never negative.
pub fn jitter(spread: u64, slot: Time, interval: Span, cap: Span) -> Span {
    let most = cap.min(interval.over(10)).max(Span::ZERO);
    Span(below(draw(spread, slot, 0), most.0))
}

/// A number in `0..=most` from a uniform 64-bit draw.
pub(super) fn below(draw: u64, most: i64) -> i64 {
    let choices = u128::from(most.max(0).unsigned_abs()) + 1;
    ((u128::from(draw) * choices) >> 64) as i64
}

/// 64 well mixed bits of a target's number, a slot and a purpose (0 for jitter, the count of failures for
/// backoff).
pub(super) fn draw(spread: u64, slot: Time, purpose: u32) -> u64 {
    mix(mix(spread ^ mix(slot.0 as u64)).wrapping_add(u64::from(purpose)))
}

/// The finaliser of splitmix64: cheap, and every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_fills_its_range_and_never_leaves_it() {
        let cap = Span::ms(150);
        let drawn: Vec<Span> =
            (0..2_000).map(|n| jitter(7, Time::from_ms(n * 200), Span::ms(200), cap)).collect();
        assert!(drawn.iter().all(|&j| j >= Span::ZERO && j <= Span::ms(20)));
        assert!(drawn.iter().any(|&j| j < Span::ms(1)) && drawn.iter().any(|&j| j > Span::ms(19)));
        let mean = drawn.iter().map(|j| j.0).sum::<i64>() / 2_000;
        assert!((9_000..11_000).contains(&mean), "mean {mean} µs");
    }

    #[test]
    fn jitter_is_capped_repeatable_and_can_be_switched_off() {
        let slot = Time::from_secs(1_000);
        for spread in 0..500 {
            assert!(jitter(spread, slot, Span::mins(5), Span::ms(150)) <= Span::ms(150));
            assert_eq!(jitter(spread, slot, Span::mins(5), Span::ZERO), Span::ZERO);
            assert_eq!(jitter(spread, slot, Span::mins(5), -Span::secs(1)), Span::ZERO);
        }
        assert_eq!(
            jitter(1, slot, Span::secs(1), Span::secs(1)),
            jitter(1, slot, Span::secs(1), Span::secs(1))
        );
        assert_ne!(
            jitter(1, slot, Span::secs(1), Span::secs(1)),
            jitter(2, slot, Span::secs(1), Span::secs(1))
        );
    }
}
