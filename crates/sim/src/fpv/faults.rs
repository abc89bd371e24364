//! The faults of this upstream.

use crate::faults::FaultKind;
use crate::rng::SplitMix64;

/// One way an answer goes wrong. There are no error statuses among them: the real one has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 200 with no bytes.
    Empty,
    /// 200 with `[]`.
    EmptyList,
    /// 200 with the page.
    Html,
    /// 200 with the first part of the file: it was read while it was written.
    Torn,
    /// The connection is reset.
    Reset,
    /// No answer ever.
    Timeout,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 6] =
        [Fault::Empty, Fault::EmptyList, Fault::Html, Fault::Torn, Fault::Reset, Fault::Timeout];
}

impl FaultKind for Fault {
    const KINDS: &'static [Fault] = &Fault::ALL;
}

/// How often each fault happens. At most one per request.
pub type Faults = crate::faults::Faults<Fault>;

/// How much of a torn file of that size comes: some of it, never all.
pub(crate) fn torn_at(draws: &mut SplitMix64, size: usize) -> usize {
    size * draws.between(1, 9) as usize / 10
}
