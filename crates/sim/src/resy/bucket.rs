//! What a watcher asks about, and what it finds there.

use std::fmt;

use jiff::civil::{Date, DateTime, Time as Clock};

/// One date and one time of day that is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// The date, in the market's zone.
    pub day: Date,
    /// The time that tables are wanted around.
    pub time: Clock,
}

impl Bucket {
    /// The bucket of that date and time.
    pub fn new(day: Date, time: Clock) -> Bucket {
        Bucket { day, time }
    }

    /// Reads `2026-02-28_20:30`.
    pub fn parse(text: &str) -> Option<Bucket> {
        let (day, time) = text.split_once('_')?;
        Some(Bucket { day: day.parse().ok()?, time: time.parse().ok()? })
    }

    /// The time in minutes since midnight.
    pub(crate) fn minute(self) -> u16 {
        minute_of(self.time)
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{:02}:{:02}", self.day, self.time.hour(), self.time.minute())
    }
}

pub(crate) fn minute_of(time: Clock) -> u16 {
    time.hour() as u16 * 60 + time.minute() as u16
}

/// A venue and a start, which is what can be booked; several tables may be behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The venue's id.
    pub venue: u64,
    /// When one would sit down, in the market's zone.
    pub start: DateTime,
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "venue {} at {}", self.venue, self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_reads_as_it_is_written() {
        let bucket = Bucket::parse("2026-02-28_20:30").expect("valid");
        assert_eq!(bucket.to_string(), "2026-02-28_20:30");
        assert_eq!(bucket.minute(), 1_230);
        assert_eq!(Bucket::parse("2026-02-30_20:30"), None);
        assert_eq!(Bucket::parse("20:30"), None);
    }
}
