//! A table at a time, and when it can be booked.

use stakeout_core::{Span, Time};

/// How long before its time a table is taken off the market.
pub(crate) const OFF_MARKET: Span = Span::mins(30);

/// A table of one room at one time.
#[derive(Clone, Debug)]
pub(crate) struct Seating {
    /// When one would sit down, in minutes since midnight.
    pub(crate) minute: u16,
    pub(crate) minutes: u16,
    pub(crate) room: u8,
    /// The smallest and largest party it takes.
    pub(crate) parties: (u8, u8),
    /// When it can be booked: from, and the first moment after; in order, never touching.
    pub(crate) open: Vec<(Time, Time)>,
}

impl Seating {
    pub(crate) fn takes(&self, party: u8) -> bool {
        (self.parties.0..=self.parties.1).contains(&party)
    }

    /// Adds a time during which it can be booked; it may overlap others.
    pub(crate) fn add(&mut self, from: Time, until: Time) {
        if from < until {
            self.open.push((from, until));
        }
    }

    /// Brings its times into order, joined where they meet, and ends them when it goes off the market.
    pub(crate) fn settle(&mut self, off_market: Time) {
        self.open.sort_unstable();
        let mut joined: Vec<(Time, Time)> = Vec::with_capacity(self.open.len());
        for (from, until) in self.open.drain(..) {
            let until = until.min(off_market);
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ if from < until => joined.push((from, until)),
                _ => {}
            }
        }
        self.open = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_joined_and_end_when_the_table_goes_off_the_market() {
        let t = Time::from_secs;
        let mut seating = Seating { minute: 0, minutes: 90, room: 0, parties: (1, 2), open: Vec::new() };
        for (from, until) in [(50, 60), (10, 20), (15, 30), (30, 35), (90, 200), (150, 160), (40, 40)] {
            seating.add(t(from), t(until));
        }
        seating.settle(t(100));
        assert_eq!(seating.open, [(t(10), t(35)), (t(50), t(60)), (t(90), t(100))]);
    }
}
