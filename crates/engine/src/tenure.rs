//! Tenure: what this node may do with a source that other nodes know, too.
//!
//! A source that is asked one request at a time, with a gap, or without bursts, is asked by one node: it leases the
//! whole source. The limits of every other source are divided; a node asks within its part. Both run out when the node
//! is not heard of, and no request may take longer than they last.

use stakeout_core::{Limits, Span, Time};
use stakeout_store::Allowance;

/// What a node has of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tenure {
    /// All of it, always: nobody else is there.
    Sole,
    /// All of it for a while: one node at a time.
    Whole {
        /// Until when.
        until: Time,
    },
    /// A part of its limits for a while.
    Part {
        /// Until when.
        until: Time,
        /// How fast it may be asked.
        allowance: Allowance,
    },
    /// Nothing: others have it.
    None,
}

impl Tenure {
    /// Until when the source may be asked; `None` is for ever.
    pub(crate) fn until(self) -> Option<Time> {
        match self {
            Tenure::Sole => None,
            Tenure::Whole { until } | Tenure::Part { until, .. } => Some(until),
            Tenure::None => Some(Time(i64::MIN)),
        }
    }

    /// The same under a clock that was moved.
    pub(crate) fn moved(self, by: Span) -> Tenure {
        match self {
            Tenure::Whole { until } => Tenure::Whole { until: until + by },
            Tenure::Part { until, allowance } => Tenure::Part { until: until + by, allowance },
            Tenure::Sole | Tenure::None => self,
        }
    }

    /// Whether the source may be asked now.
    pub(crate) fn holds(self, now: Time) -> bool {
        let usable = match self {
            Tenure::Part { allowance, .. } => allowance.concurrency > 0 && allowance.burst > 0,
            _ => true,
        };
        usable && self.until().is_none_or(|until| now < until)
    }

    /// What of the limits this node may use.
    pub(crate) fn of(self, limits: &Limits) -> Limits {
        let mut own = limits.clone();
        if let Tenure::Part { allowance, .. } = self {
            own.requests_per_second = own.requests_per_second.min(allowance.requests_per_second);
            own.burst = own.burst.min(allowance.burst);
            own.concurrency = own.concurrency.min(allowance.concurrency);
        }
        own
    }
}

/// Whether only one node at a time can ask a source with these limits: a single request, a gap between two of them, or
/// a burst of one cannot be divided.
pub(crate) fn is_alone(limits: &Limits) -> bool {
    limits.concurrency <= 1 || limits.burst <= 1 || limits.min_gap > Span::ZERO
}

/// How long a tenure lasts: longer than any request, so that none is cut short because of it.
pub(crate) fn lasts(limits: &Limits) -> Span {
    (limits.timeout + Span::secs(3)).max(Span::secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_never_more_than_the_whole() {
        let limits = Limits { requests_per_second: 10.0, burst: 4, concurrency: 2, ..Limits::default() };
        let allowance = Allowance { requests_per_second: 2.5, burst: 9, concurrency: 1 };
        let part = Tenure::Part { until: Time(10), allowance };
        let own = part.of(&limits);
        assert_eq!((own.requests_per_second, own.burst, own.concurrency), (2.5, 4, 1));
        assert!(part.holds(Time(9)) && !part.holds(Time(10)));
        assert!(
            part.moved(Span(-3)).holds(Time(6)) && !part.moved(Span(-3)).holds(Time(7)),
            "under a clock set back"
        );
        let nothing = Tenure::Part { until: Time(10), allowance: Allowance { concurrency: 0, ..allowance } };
        assert!(!nothing.holds(Time(9)) && !Tenure::None.holds(Time(0)) && Tenure::Sole.holds(Time(0)));
    }

    #[test]
    fn what_cannot_be_divided_is_one_nodes() {
        let shared = Limits::default();
        assert!(!is_alone(&shared));
        assert!(is_alone(&Limits { concurrency: 1, ..shared.clone() }));
        assert!(is_alone(&Limits { burst: 1, ..shared.clone() }));
        assert!(is_alone(&Limits { min_gap: Span::ms(5), ..shared }));
        assert_eq!(lasts(&Limits { timeout: Span::secs(10), ..Limits::default() }), Span::secs(13));
    }
}
