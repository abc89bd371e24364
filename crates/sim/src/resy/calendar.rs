//! A date's clock: which moment each of its minutes is.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use stakeout_core::Time;

/// Tables are seated at quarters of an hour, but scripts may be finer.
const QUARTERS: usize = 96;

/// A date with the moments of its quarters of an hour, daylight saving included.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    pub(crate) date: Date,
    quarters: Vec<Time>,
}

impl Calendar {
    pub(crate) fn new(date: Date, zone: &TimeZone) -> Calendar {
        let at = |quarter: usize| moment(date.at((quarter / 4) as i8, (quarter % 4 * 15) as i8, 0, 0), zone);
        Calendar { date, quarters: (0..QUARTERS).map(at).collect() }
    }

    /// When the clock shows that minute of the day.
    pub(crate) fn at(&self, minute: u16) -> Time {
        let quarter = usize::from(minute / 15).min(QUARTERS - 1);
        self.quarters[quarter] + stakeout_core::Span::mins(i64::from(minute) - quarter as i64 * 15)
    }

    pub(crate) fn midnight(&self) -> Time {
        self.quarters[0]
    }

    /// The date and time of that minute, as a clock on the wall shows it.
    pub(crate) fn clock(&self, minute: u16) -> DateTime {
        self.date.at((minute / 60 % 24) as i8, (minute % 60) as i8, 0, 0)
    }
}

fn moment(at: DateTime, zone: &TimeZone) -> Time {
    let zoned = at.to_zoned(zone.clone()).expect("a table is for a day of this era");
    Time(zoned.timestamp().as_microsecond())
}

/// The date on the wall at that moment.
pub(crate) fn date_at(at: Time, zone: &TimeZone) -> Date {
    let utc = jiff::Timestamp::from_microsecond(at.us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    utc.to_zoned(zone.clone()).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenings_are_right_on_the_days_the_clocks_change() {
        let zone = TimeZone::get("America/New_York").expect("bundled");
        let evening = |month, day| Calendar::new(Date::constant(2026, month, day), &zone).at(20 * 60 + 40);
        assert_eq!(evening(3, 7).to_string(), "2026-03-08T01:40:00.000Z");
        assert_eq!(evening(3, 8).to_string(), "2026-03-09T00:40:00.000Z");
        assert_eq!(evening(11, 1).to_string(), "2026-11-02T01:40:00.000Z");
    }
}
