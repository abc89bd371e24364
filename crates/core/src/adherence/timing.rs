//! One poll against its due time: how late, and whose fault.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Span, Time};

/// Why a poll was late or missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Our own work was in the way.
    Queue,
    /// The source's rate or minimum gap bound.
    RateLimit,
    /// Slow answers held every slot, or the poll itself outlasted its interval.
    UpstreamSlow,
    /// The target was backing off after failures.
    Backoff,
    /// No process was there to claim it.
    Downtime,
    /// Its owner lost the lease and another had to take over.
    LeaseLost,
}

impl Cause {
    /// All causes, in the order of declaration.
    pub const ALL: [Cause; 6] = [
        Cause::Queue,
        Cause::RateLimit,
        Cause::UpstreamSlow,
        Cause::Backoff,
        Cause::Downtime,
        Cause::LeaseLost,
    ];

    /// The word in logs, SQL and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Queue => "queue",
            Cause::RateLimit => "rate_limit",
            Cause::UpstreamSlow => "upstream_slow",
            Cause::Backoff => "backoff",
            Cause::Downtime => "downtime",
            Cause::LeaseLost => "lease_lost",
        }
    }

    /// Parses what [`Cause::name`] gives.
    pub fn parse(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The moments of one poll from due to sent, in the order they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When it was due, jitter included.
    pub due: Time,
    /// When this process claimed the target; usually ahead of the due time.
    pub claimed: Time,
    /// When its timer fired.
    pub ready: Time,
    /// When the source's limits let it pass.
    pub admitted: Time,
    /// When the first request was handed to the socket.
    pub sent: Time,
    /// What held it between ready and admitted, if anything did.
    pub limited_by: Option<Cause>,
}

impl Timing {
    /// How long after the due time the request was sent; never negative.
    pub fn lateness(&self) -> Span {
        (self.sent - self.due).max(Span::ZERO)
    }

    /// The largest contributor to the lateness. A late claim is blamed on `late_claim`.
    fn culprit(&self, late_claim: Cause) -> Cause {
        // Only time after the due time counts: a claim ahead of time cost nothing.
        let part = |from: Time, to: Time| (to - from.max(self.due)).max(Span::ZERO);
        let claim = part(self.due, self.claimed);
        let limits = part(self.ready, self.admitted);
        let own = part(self.claimed, self.ready) + part(self.admitted, self.sent);
        let (limits, own) = match self.limited_by {
            Some(_) => (limits, own),
            None => (Span::ZERO, own + limits),
        };
        match self.limited_by {
            _ if claim >= limits && claim >= own && claim > Span::ZERO => late_claim,
            Some(cause) if limits >= own => cause,
            _ => Cause::Queue,
        }
    }
}

/// How late a poll may be and still be on time: a tenth of its interval, at least 10 ms (what timers and sockets
/// cost anyway), at most 1 s (what people notice).
pub fn tolerance(interval: Span) -> Span {
    interval.over(10).max(Span::ms(10)).min(Span::secs(1))
}

/// On time, or late through this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctuality {
    /// Within the [`tolerance`].
    OnTime,
    /// Beyond it.
    Late(Cause),
}

/// What is said about one poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Request handed to the socket − due.
    pub lateness: Span,
    /// Whether that is on time.
    pub punctuality: Punctuality,
    /// Due polls that went by and collapsed into this one ([`crate::cadence::expired`]).
    pub missed: u64,
    /// Why they were missed; present when any was.
    pub missed_cause: Option<Cause>,
}

impl Account {
    /// Why the poll was late, if it was.
    pub fn late(&self) -> Option<Cause> {
        match self.punctuality {
            Punctuality::OnTime => None,
            Punctuality::Late(cause) => Some(cause),
        }
    }

    /// Whether the poll was late.
    pub fn is_late(&self) -> bool {
        self.late().is_some()
    }

    /// Whether anything about it is worth a row in the poll log.
    pub fn is_notable(&self) -> bool {
        self.is_late() || self.missed > 0
    }
}

/// Accounts for a poll: `missed` due polls collapsed into it; a late claim is blamed on `late_claim`
/// (`Downtime`, or `LeaseLost` when it was taken over from an owner whose lease ran out).
///
/// What was missed by a late poll has the same cause; a poll that was sent on time and still missed others
/// outlasted its own interval, which is the upstream's doing.
pub fn judge_timing(timing: &Timing, interval: Span, missed: u64, late_claim: Cause) -> Account {
    let lateness = timing.lateness();
    let punctuality = match lateness <= tolerance(interval) {
        true => Punctuality::OnTime,
        false => Punctuality::Late(timing.culprit(late_claim)),
    };
    let missed_cause = (missed > 0).then_some(match punctuality {
        Punctuality::OnTime => Cause::UpstreamSlow,
        Punctuality::Late(cause) => cause,
    });
    Account { lateness, punctuality, missed, missed_cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments in ms relative to the due time: claimed, ready, admitted, sent.
    fn timing(ms: [i64; 4], limited_by: Option<Cause>) -> Timing {
        let at = |ms: i64| Time::from_secs(1_000) + Span::ms(ms);
        Timing {
            due: at(0),
            claimed: at(ms[0]),
            ready: at(ms[1]),
            admitted: at(ms[2]),
            sent: at(ms[3]),
            limited_by,
        }
    }

    #[test]
    fn causes_keep_their_names() {
        for cause in Cause::ALL {
            assert_eq!(Cause::parse(cause.name()), Some(cause));
            assert_eq!(serde_json::to_value(cause).expect("a string"), cause.name());
        }
        assert_eq!(Cause::parse("Queue"), None);
    }

    #[test]
    fn the_tolerance_is_a_tenth_within_bounds() {
        for (interval, expected) in [
            (Span::ms(50), Span::ms(10)),
            (Span::ms(200), Span::ms(20)),
            (Span::secs(5), Span::ms(500)),
            (Span::mins(5), Span::secs(1)),
        ] {
            assert_eq!(tolerance(interval), expected);
        }
    }

    #[test]
    fn lateness_is_blamed_on_its_largest_part() {
        use Cause::*;
        for (ms, limited_by, cause) in [
            ([-50, 0, 0, 30], None, Queue),
            ([-50, 25, 25, 26], None, Queue),
            ([-50, 1, 90, 91], Some(RateLimit), RateLimit),
            ([-50, 1, 90, 91], Some(UpstreamSlow), UpstreamSlow),
            ([-50, 1, 90, 91], None, Queue),
            ([-50, 60, 90, 91], Some(RateLimit), Queue),
            ([5_000, 5_001, 5_090, 5_091], Some(RateLimit), Downtime),
            ([100, 101, 5_090, 5_091], Some(RateLimit), RateLimit),
        ] {
            let account = judge_timing(&timing(ms, limited_by), Span::ms(200), 0, Downtime);
            assert_eq!(account.punctuality, Punctuality::Late(cause), "{ms:?} {limited_by:?}");
            assert_eq!(account.lateness, Span::ms(ms[3]));
            assert_eq!(account.missed_cause, None);
        }
    }

    #[test]
    fn a_takeover_is_told_from_a_downtime() {
        let account = judge_timing(&timing([900, 901, 901, 902], None), Span::ms(200), 4, Cause::LeaseLost);
        assert_eq!(account.punctuality, Punctuality::Late(Cause::LeaseLost));
        assert_eq!((account.missed, account.missed_cause), (4, Some(Cause::LeaseLost)));
    }

    #[test]
    fn on_time_is_on_time_and_what_it_missed_was_the_upstreams_doing() {
        let account = judge_timing(&timing([-50, 0, 1, 20], None), Span::ms(200), 3, Cause::Downtime);
        assert_eq!(account.punctuality, Punctuality::OnTime);
        assert_eq!(account.missed_cause, Some(Cause::UpstreamSlow));
        assert!(account.is_notable() && !account.is_late());
        let early = judge_timing(&timing([-50, -5, -5, -4], None), Span::ms(200), 0, Cause::Downtime);
        assert_eq!(early.lateness, Span::ZERO);
        assert!(!early.is_notable());
    }
}
