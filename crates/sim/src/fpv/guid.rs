//! Ids as the upstream writes them.

use std::fmt;

use crate::rng::mix;

/// A GUID, written in lower case. All zeros means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub u128);

impl Guid {
    /// All zeros: no pilot, no round, no track.
    pub const NONE: Guid = Guid(0);

    /// The same arguments give the same id, others another.
    pub(crate) fn made(seed: u64, n: u64) -> Guid {
        let (high, low) = (mix(seed ^ mix(n)), mix(seed.rotate_left(17) ^ mix(n ^ 0x6775_6964)));
        let (version, variant) = (0x4000, 0x8000_0000_0000_0000);
        let high = (high & !0xf000) | version;
        let low = (low & !0xc000_0000_0000_0000) | variant;
        Guid((u128::from(high) << 64) | u128::from(low))
    }

    /// A channel's id: its number in the first group, zeros after it.
    pub(crate) const fn channel(number: u32) -> Guid {
        Guid((number as u128) << 96)
    }

    /// Whether it names something.
    pub fn is_some(self) -> bool {
        self != Guid::NONE
    }

    /// Reads the hyphenated form, in any case.
    pub fn parse(text: &str) -> Option<Guid> {
        let groups: Vec<&str> = text.split('-').collect();
        if groups.iter().map(|group| group.len()).ne([8, 4, 4, 4, 12]) {
            return None;
        }
        let digits = groups.concat();
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(&digits, 16).ok().map(Guid)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            id >> 96,
            (id >> 80) & 0xffff,
            (id >> 64) & 0xffff,
            (id >> 48) & 0xffff,
            id & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = Guid::made(1, 2);
        assert_eq!(Guid::parse(&id.to_string()), Some(id));
        assert_eq!(Guid::parse(&id.to_string().to_uppercase()), Some(id));
        assert_eq!(Guid::NONE.to_string(), "00000000-0000-0000-0000-000000000000");
        assert_eq!(Guid::channel(0x0a).to_string(), "0000000a-0000-0000-0000-000000000000");
        for wrong in ["", "x", "0000000a-0000-0000-0000-00000000000g", "0000000a00000000000000000000000000"] {
            assert_eq!(Guid::parse(wrong), None, "{wrong}");
        }
    }
}
