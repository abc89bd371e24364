//! Two clocks: the engine's, in which due times are, and the database's, which decides leases.

use std::sync::atomic::{AtomicI64, Ordering};

use stakeout_core::{Span, Time};

/// Whose clock decides whether a lease has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseClock {
    /// The database's: nodes whose clocks differ still agree on who holds what.
    Database,
    /// The caller's `now`: for engines whose time is not the world's, and for tests.
    Caller,
}

/// How far the database's clock is ahead of the engine's, as far as this node can tell.
///
/// It is measured with every claim. The way to the database makes it too large, never too small: a holder believes that
/// its lease ends a little earlier than it does. So the largest is kept, until one is much smaller, which means that a
/// clock was set. A steady value also means that a poll that keeps its lease leaves its row's wake time as it is.
#[derive(Debug)]
pub(super) struct Offset {
    clock: LeaseClock,
    us: AtomicI64,
    /// The newest measurement.
    last_us: AtomicI64,
}

/// A measurement smaller by this is no longer explained by the way to the database.
const CLOCK_WAS_SET_US: i64 = 500_000;

const UNKNOWN: i64 = i64::MIN;

impl Offset {
    pub(super) fn new(clock: LeaseClock) -> Offset {
        Offset { clock, us: AtomicI64::new(UNKNOWN), last_us: AtomicI64::new(UNKNOWN) }
    }

    pub(super) fn is_database(&self) -> bool {
        self.clock == LeaseClock::Database
    }

    /// Takes a measurement: the engine's time when it asked, the database's when it answered.
    pub(super) fn measure(&self, asked: Time, answered_us: i64) {
        if !self.is_database() {
            return;
        }
        let sample = answered_us - asked.us();
        self.last_us.store(sample, Ordering::Relaxed);
        let known = self.us.load(Ordering::Relaxed);
        if known == UNKNOWN || sample > known || sample < known - CLOCK_WAS_SET_US {
            self.us.store(sample, Ordering::Relaxed);
        }
    }

    /// The engine's clock is about to be moved by so much: what counts from then on is the newest measurement.
    pub(super) fn engine_moves(&self, by: Span) {
        let last = self.last_us.load(Ordering::Relaxed);
        if last != UNKNOWN {
            self.us.store(last.saturating_sub(by.as_us()), Ordering::Relaxed);
        }
    }

    fn now(&self) -> i64 {
        let us = self.us.load(Ordering::Relaxed);
        if us == UNKNOWN { 0 } else { us }
    }

    /// The end of a lease as it stands in the database.
    pub(super) fn to_database(&self, lease: Time) -> i64 {
        lease.us().saturating_add(self.now())
    }

    /// The end of a lease as the engine counts.
    pub(super) fn to_engine(&self, lease_us: i64) -> Time {
        Time(lease_us.saturating_sub(self.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_never_the_more_confident_one() {
        let offset = Offset::new(LeaseClock::Database);
        assert_eq!(offset.to_database(Time(5)), 5, "nothing is known yet");
        offset.measure(Time(1_000), 3_000);
        offset.measure(Time(2_000), 3_500);
        assert_eq!(offset.to_database(Time(10_000)), 12_000, "the slow answer counts");
        assert_eq!(offset.to_engine(12_000), Time(10_000));
        offset.measure(Time(10_000_000), 9_000_000);
        assert_eq!(offset.to_engine(9_000_000), Time(10_000_000), "a clock was set");
    }

    #[test]
    fn a_clock_that_is_set_moves_no_lease() {
        let offset = Offset::new(LeaseClock::Database);
        offset.engine_moves(Span(-7));
        assert_eq!(offset.to_database(Time(5)), 5, "nothing is known yet");
        // The engine is a second ahead, and is set back by it.
        offset.measure(Time(3_000_000), 2_000_000);
        let ends = offset.to_database(Time(9_000_000));
        offset.engine_moves(Span::secs(-1));
        assert_eq!(offset.to_database(Time(8_000_000)), ends, "the same moment under another name");
        assert_eq!(offset.to_engine(ends), Time(8_000_000));
    }

    #[test]
    fn the_callers_clock_needs_no_offset() {
        let offset = Offset::new(LeaseClock::Caller);
        offset.measure(Time(0), 99);
        assert_eq!((offset.to_database(Time(7)), offset.to_engine(7)), (7, Time(7)));
    }
}
