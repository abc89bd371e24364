//! Dates and durations as the upstream writes them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use stakeout_core::{Span, Time};

const UNSET: &str = "0001/01/01 0:00:00";

/// Where the event is held: dates are written on its wall clock, without a zone.
#[derive(Clone, Debug)]
pub(crate) struct Venue {
    zone: TimeZone,
    name: String,
}

impl Venue {
    /// # Panics
    /// When no such zone exists.
    pub(crate) fn new(name: &str) -> Venue {
        let zone = TimeZone::get(name).expect("the zone is there because the database is bundled");
        Venue { zone, name: name.to_owned() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `yyyy/MM/dd H:mm:ss.FFF`: the hour is not padded, trailing zeros of the fraction are cut; rounded to the ms.
    pub(crate) fn date(&self, at: Option<Time>) -> String {
        at.map_or_else(|| UNSET.to_owned(), |at| self.cut(Time(at.us().saturating_add(500))))
    }

    /// The same, cut to the millisecond: a lap's start can be one less than the detection that began it.
    pub(crate) fn cut(&self, at: Time) -> String {
        let utc = jiff::Timestamp::from_microsecond(at.us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let local = utc.to_zoned(self.zone.clone());
        let whole = format!(
            "{:04}/{:02}/{:02} {}:{:02}:{:02}",
            local.year(),
            local.month(),
            local.day(),
            local.hour(),
            local.minute(),
            local.second()
        );
        match local.millisecond() {
            0 => whole,
            ms => format!("{whole}.{}", format!("{ms:03}").trim_end_matches('0')),
        }
    }

    /// The last midnight there: a day is written as its first moment.
    pub(crate) fn midnight(&self, at: Time) -> Time {
        let utc = jiff::Timestamp::from_microsecond(at.us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let day = utc.to_zoned(self.zone.clone()).start_of_day();
        day.map_or(at, |day| Time(day.timestamp().as_microsecond()))
    }

    /// Reads a date: `None` is no date, `Some(None)` the one that means "not set".
    pub(crate) fn parse(&self, text: &str) -> Option<Option<Time>> {
        let (day, clock) = text.split_once(' ')?;
        let mut day = day.split('/').map(str::parse::<i16>);
        let (year, month, date) = (day.next()?.ok()?, day.next()?.ok()?, day.next()?.ok()?);
        if year == 1 {
            return Some(None);
        }
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let mut clock = clock.split(':').map(str::parse::<i8>);
        let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
        let us: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
        let (month, date) = (i8::try_from(month).ok()?, i8::try_from(date).ok()?);
        let civil = DateTime::new(year, month, date, hour, minute, second, 0).ok()?;
        let at = civil.to_zoned(self.zone.clone()).ok()?.timestamp().as_microsecond();
        Some(Some(Time(at + us)))
    }
}

/// `hh:mm:ss`, with seven digits of a fraction if there is one.
pub(crate) fn duration(span: Span) -> String {
    let (secs, us) = (span.as_us() / 1_000_000, span.as_us() % 1_000_000);
    let whole = format!("{:02}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60);
    if us == 0 { whole } else { format!("{whole}.{us:06}0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_unpadded_hours_and_short_fractions() {
        let venue = Venue::new("Australia/Sydney");
        let check = |text: &str, expected: &str| {
            let at = Time::parse(text).expect("valid");
            assert_eq!(venue.date(Some(at)), expected);
            assert_eq!(venue.parse(expected), Some(Some(Time(at.us() / 1_000 * 1_000))));
        };
        check("2026-03-13T22:05:09Z", "2026/03/14 9:05:09");
        check("2026-03-13T22:05:09.5Z", "2026/03/14 9:05:09.5");
        check("2026-03-13T23:05:09.04Z", "2026/03/14 10:05:09.04");
        check("2026-03-13T13:05:09.123Z", "2026/03/14 0:05:09.123");
        assert_eq!(venue.date(None), "0001/01/01 0:00:00");
        assert_eq!(venue.parse("0001/01/01 0:00:00"), Some(None));
        assert_eq!(venue.parse("Race"), None);
        let between = Time::parse("2026-03-13T22:05:09.0127Z").expect("valid");
        assert_eq!(
            (venue.date(Some(between)).as_str(), venue.cut(between).as_str()),
            ("2026/03/14 9:05:09.013", "2026/03/14 9:05:09.012")
        );
    }

    #[test]
    fn durations_have_no_fraction_or_seven_digits() {
        assert_eq!(duration(Span::ms(500)), "00:00:00.5000000");
        assert_eq!(duration(Span::mins(62)), "01:02:00");
    }
}
