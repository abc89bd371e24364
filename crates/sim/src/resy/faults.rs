//! The faults of this upstream.

use stakeout_core::Span;

use super::render::{TimeForm, Twist};
use crate::faults::FaultKind;
use crate::rng::SplitMix64;

/// One way an answer goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// 302 to the login page: the token has expired.
    Redirect,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 429, with `Retry-After` in seconds, as a date, or without.
    TooMany,
    /// 500.
    ServerError,
    /// 503, not JSON.
    Unavailable,
    /// No answer ever.
    Timeout,
    /// The connection is reset.
    Reset,
    /// The body ends early, and the connection with it.
    Truncated,
    /// 200 with a part of the body, as if it were all.
    Malformed,
    /// 200 with the login page.
    LoginPage,
    /// 200 without a single venue.
    Empty,
    /// 200 with every venue, none of which has a table.
    NoSlots,
    /// Some venues of the page are left out; the total counts them.
    ShortPage,
    /// The page begins some venues too early or too late.
    Shifted,
    /// The total is another than on the other pages.
    OtherTotal,
    /// The state of some time ago: it may come after a newer answer.
    Older,
    /// Times in another form: with a `T`, without seconds, or both.
    TimeDrift,
    /// Numbers where objects were, and objects where numbers were, as ids.
    IdDrift,
    /// A venue without an id, or with another's.
    BadIds,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 20] = [
        Fault::Redirect,
        Fault::Unauthorized,
        Fault::Forbidden,
        Fault::TooMany,
        Fault::ServerError,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::Reset,
        Fault::Truncated,
        Fault::Malformed,
        Fault::LoginPage,
        Fault::Empty,
        Fault::NoSlots,
        Fault::ShortPage,
        Fault::Shifted,
        Fault::OtherTotal,
        Fault::Older,
        Fault::TimeDrift,
        Fault::IdDrift,
        Fault::BadIds,
    ];

    /// Whether the answer still tells the truth, in other words.
    pub fn is_harmless(self) -> bool {
        matches!(self, Fault::TimeDrift | Fault::IdDrift)
    }
}

impl FaultKind for Fault {
    const KINDS: &'static [Fault] = &Fault::ALL;
}

/// How often each fault happens. At most one per request.
pub type Faults = crate::faults::Faults<Fault>;

/// How a page departs from the truth by that fault; nothing for faults that are not of the page.
pub(crate) fn twist(fault: Fault, draws: &mut SplitMix64) -> Option<Twist> {
    let few = |draws: &mut SplitMix64| draws.between(1, 3) as i64;
    let plain = Twist::default();
    Some(match fault {
        Fault::NoSlots => Twist { no_slots: true, ..plain },
        Fault::ShortPage => Twist { left_out: few(draws) as usize, ..plain },
        Fault::Shifted if draws.one_in(2) => Twist { shift: few(draws), ..plain },
        Fault::Shifted => Twist { shift: -few(draws), ..plain },
        Fault::OtherTotal => Twist { more: few(draws), ..plain },
        Fault::TimeDrift => {
            const FORMS: [TimeForm; 3] = [TimeForm::T, TimeForm::Short, TimeForm::ShortT];
            Twist { times: FORMS[draws.between(0, 2) as usize], ..plain }
        }
        Fault::IdDrift => Twist { other_ids: true, ..plain },
        Fault::BadIds => Twist { bad_id: Some((draws.between(0, 74) as usize, draws.one_in(2))), ..plain },
        _ => return None,
    })
}

/// How much older an old answer is.
pub(crate) fn older_by(draws: &mut SplitMix64) -> Span {
    Span::secs(draws.between(20, 240) as i64)
}
