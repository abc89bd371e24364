//! Dates in New Zealand, where the upstream's racing day begins and ends.

use std::fmt;

use stakeout_core::Time;

const DAY: i64 = 86_400;
const STANDARD_OFFSET: i64 = 12 * 3_600;
const SUMMER_OFFSET: i64 = 13 * 3_600;
/// Both changes happen at 14:00 UTC on the day before the Sunday they are named after.
const CHANGE_BEFORE_SUNDAY: i64 = 10 * 3_600;

/// A civil date, as days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Date(i64);

impl Date {
    /// The date in Pacific/Auckland. The rule has been the same since 2007: summer time from the last Sunday of
    /// September to the first Sunday of April.
    pub(super) fn in_new_zealand(now: Time) -> Date {
        let seconds = now.us().div_euclid(1_000_000);
        let offset = if is_summer(seconds) { SUMMER_OFFSET } else { STANDARD_OFFSET };
        Date((seconds + offset).div_euclid(DAY))
    }

    /// From `YYYY-MM-DD`, or the same with a time behind it, which is not looked at.
    pub(super) fn parse(text: &str) -> Option<Date> {
        let date = text.get(..10)?;
        let time = Time::parse(&format!("{date}T00:00:00Z"))?;
        Some(Date(time.us().div_euclid(1_000_000).div_euclid(DAY)))
    }

    pub(super) fn yesterday(self) -> Date {
        Date(self.0 - 1)
    }

    /// When this date is older than yesterday, everywhere in New Zealand's year.
    pub(super) fn leaves_the_listing(self) -> Time {
        Time::from_secs((self.0 + 2) * DAY - SUMMER_OFFSET)
    }

    fn midnight_utc(self) -> Time {
        Time::from_secs(self.0 * DAY)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.midnight_utc().to_string();
        f.write_str(text.get(..10).unwrap_or(&text))
    }
}

fn is_summer(seconds: i64) -> bool {
    let year = Date((seconds + STANDARD_OFFSET).div_euclid(DAY)).to_string();
    let year = year.get(..4).unwrap_or("1970").to_owned();
    let change = |month_day: &str| {
        let from = Date::parse(&format!("{year}-{month_day}")).map_or(0, |date| date.0);
        // 1970-01-01 was a Thursday: days + 4 counts from a Sunday.
        let sunday = from + (7 - (from + 4).rem_euclid(7)) % 7;
        sunday * DAY - CHANGE_BEFORE_SUNDAY
    };
    // The last Sunday of September is the first one from the 24th on.
    seconds < change("04-01") || seconds >= change("09-24")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(at: &str) -> String {
        Date::in_new_zealand(Time::parse(at).expect("a time")).to_string()
    }

    #[test]
    fn the_day_begins_at_midnight_in_auckland() {
        for (at, expected) in [
            // Winter, UTC+12: the morning falls on the previous UTC date.
            ("2025-07-16T11:59:59Z", "2025-07-16"),
            ("2025-07-16T12:00:00Z", "2025-07-17"),
            ("2025-07-17T11:59:59Z", "2025-07-17"),
            // Summer, UTC+13.
            ("2026-01-10T10:59:59Z", "2026-01-10"),
            ("2026-01-10T11:00:00Z", "2026-01-11"),
            ("2025-12-31T11:00:00Z", "2026-01-01"),
            // Around the changes of 2025: 6 April 03:00 and 28 September 02:00 local.
            ("2025-04-05T10:59:59Z", "2025-04-05"),
            ("2025-04-05T11:00:00Z", "2025-04-06"),
            ("2025-04-06T11:30:00Z", "2025-04-06"),
            ("2025-04-06T12:00:00Z", "2025-04-07"),
            ("2025-09-27T11:30:00Z", "2025-09-27"),
            ("2025-09-27T12:00:00Z", "2025-09-28"),
            ("2025-09-28T11:00:00Z", "2025-09-29"),
            ("2024-02-28T11:00:00Z", "2024-02-29"),
        ] {
            assert_eq!(date(at), expected, "{at}");
        }
    }

    #[test]
    fn a_date_is_read_with_or_without_a_time() {
        for text in ["2025-07-17", "2025-07-17T00:00:00Z"] {
            assert_eq!(Date::parse(text).map(|d| d.to_string()).as_deref(), Some("2025-07-17"));
        }
        assert_eq!(Date::parse("17/07/2025"), None);
        assert_eq!(Date::parse("2025-02-30"), None);
        let date = Date::parse("2025-07-17").expect("a date");
        assert_eq!(date.yesterday().to_string(), "2025-07-16");
        assert_eq!(Some(date.leaves_the_listing()), Time::parse("2025-07-18T11:00:00Z"));
    }
}
