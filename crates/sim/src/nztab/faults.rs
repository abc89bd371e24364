//! The faults of this upstream.

use stakeout_core::Span;

use crate::faults::FaultKind;
use crate::rng::SplitMix64;

/// One way an answer goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 429, with `Retry-After` in seconds, as a date, or without.
    TooMany,
    /// 500 with the upstream's error envelope.
    ServerError,
    /// 503, not JSON.
    Unavailable,
    /// No answer ever.
    Timeout,
    /// The connection is reset.
    Reset,
    /// The body ends early.
    Truncated,
    /// A race status nobody has heard of.
    UnknownStatus,
    /// A field that is usually there is not.
    MissingFields,
    /// The state of some time ago, stamped so: it may come after a newer answer.
    Older,
    /// An envelope with nothing in it.
    Empty,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 10] = [
        Fault::TooMany,
        Fault::ServerError,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::Reset,
        Fault::Truncated,
        Fault::UnknownStatus,
        Fault::MissingFields,
        Fault::Older,
        Fault::Empty,
    ];
}

impl FaultKind for Fault {
    const KINDS: &'static [Fault] = &Fault::ALL;
}

/// How often each fault happens. At most one per request.
pub type Faults = crate::faults::Faults<Fault>;

/// A field, or family of fields, that an answer can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Status,
    AdvertisedStart,
    ActualStart,
    Odds,
    Flucs,
    Money,
    Pools,
}

const CAN_MISS: [Missing; 7] = [
    Missing::Status,
    Missing::AdvertisedStart,
    Missing::ActualStart,
    Missing::Odds,
    Missing::Flucs,
    Missing::Money,
    Missing::Pools,
];
const UNKNOWN: [&str; 4] = ["Suspended", "Resulting", "PHOTO", "Void Pending"];

/// How a rendered answer departs from the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Twist {
    pub(crate) status: Option<&'static str>,
    pub(crate) missing: Option<Missing>,
}

impl Twist {
    pub(crate) fn lacks(&self, what: Missing) -> bool {
        self.missing == Some(what)
    }

    pub(crate) fn unknown_status(draws: &mut SplitMix64) -> Twist {
        Twist { status: Some(UNKNOWN[draws.between(0, 3) as usize]), missing: None }
    }

    pub(crate) fn missing(draws: &mut SplitMix64) -> Twist {
        Twist { status: None, missing: Some(CAN_MISS[draws.between(0, 6) as usize]) }
    }
}

/// How much older an old answer is.
pub(crate) fn older_by(draws: &mut SplitMix64) -> Span {
    Span::secs(draws.between(20, 240) as i64)
}
