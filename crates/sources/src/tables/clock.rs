//! Times on a venue's clock: every way of writing one is the same time.

use jiff::civil::{Date, DateTime, Time as Clock};
use jiff::tz::TimeZone;
use stakeout_core::{Span, Time};

/// A date and a time on the venue's clock, with `T` or a space between them, with seconds or without. What carries a
/// zone is not the venue's clock and is refused.
pub(super) fn local(text: &str) -> Option<DateTime> {
    plain(text.as_bytes()).or_else(|| free(text))
}

/// The way in which the upstream writes them, by the place of every digit: a bucket has tens of thousands of times.
fn plain(text: &[u8]) -> Option<DateTime> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T' | b' ', h0, h1, b':', n0, n1, rest @ ..] = text
    else {
        return None;
    };
    let second = match rest {
        [] => 0,
        [b':', s0, s1] => two(*s0, *s1)?,
        _ => return None,
    };
    let year = i16::from(two(*y0, *y1)?) * 100 + i16::from(two(*y2, *y3)?);
    let (month, day) = (two(*m0, *m1)?, two(*d0, *d1)?);
    DateTime::new(year, month, day, two(*h0, *h1)?, two(*n0, *n1)?, second, 0).ok()
}

fn two(tens: u8, ones: u8) -> Option<i8> {
    let digit = |byte: u8| Some(byte.wrapping_sub(b'0')).filter(|digit| *digit < 10);
    Some((digit(tens)? * 10 + digit(ones)?) as i8)
}

/// Every other way.
fn free(text: &str) -> Option<DateTime> {
    let (date, clock) = text.trim().split_once(['T', 't', ' '])?;
    let date = date_of(date)?;
    // A fraction of zero is only another way of writing the second.
    let clock = match clock.trim_start().split_once('.') {
        Some((clock, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => clock,
        Some(_) => return None,
        None => clock.trim_start(),
    };
    Some(date.to_datetime(clock_of(clock)?))
}

/// `YYYY-MM-DD`
pub(super) fn date_of(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let exact = parts.next().is_none() && year.len() == 4 && month.len() == 2 && day.len() == 2;
    exact.then(|| Date::new(number(year)?, number(month)? as i8, number(day)? as i8).ok())?
}

/// `HH:MM` or `HH:MM:SS`; the hour may have one digit.
pub(super) fn clock_of(text: &str) -> Option<Clock> {
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next().unwrap_or("00"));
    if parts.next().is_some() || minute.len() != 2 || second.len() != 2 {
        return None;
    }
    Clock::new(number(hour)? as i8, number(minute)? as i8, number(second)? as i8, 0).ok()
}

/// At most four digits and nothing else: no signs, no spaces.
fn number(text: &str) -> Option<i16> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?.filter(|n| text.len() == 4 || *n < 100)
}

/// The one way in which a time is written here and hashed: `2026-02-28T20:30`, with seconds only if there are any.
pub(super) fn canonical(time: DateTime) -> String {
    let format = if time.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" };
    time.strftime(format).to_string()
}

/// The moment that a venue's clock means. A time that the clock jumps over is the one as long after the jump, one that
/// it shows twice is the first.
pub(super) fn instant(time: DateTime, zone: &TimeZone) -> Option<Time> {
    let zoned = zone.to_ambiguous_zoned(time).compatible().ok()?;
    Some(Time(zoned.timestamp().as_microsecond()))
}

/// The date on the clocks of a zone.
pub(super) fn date_at(now: Time, zone: &TimeZone) -> Option<Date> {
    let moment = jiff::Timestamp::from_microsecond(now.us()).ok()?;
    Some(zone.to_datetime(moment).date())
}

/// When a date begins there. Not every date begins at 00:00: where the clock jumps over midnight, it begins after it.
pub(super) fn begins(date: Date, zone: &TimeZone) -> Option<Time> {
    instant(date.to_datetime(Clock::midnight()), zone)
}

/// How often the window is looked at: every offset from UTC is a whole number of these, so local midnight is one.
pub(super) const WINDOW_EVERY: Span = Span::mins(1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn zone() -> TimeZone {
        TimeZone::get("America/New_York").expect("bundled")
    }

    #[test]
    fn every_way_of_writing_a_time_is_the_same_time() {
        for text in [
            "2026-02-28 20:30:00",
            "2026-02-28T20:30:00",
            "2026-02-28 20:30",
            "2026-02-28T20:30",
            " 2026-02-28t20:30:00.000 ",
        ] {
            assert_eq!(local(text).map(canonical).as_deref(), Some("2026-02-28T20:30"), "{text}");
        }
        assert_eq!(local("2026-02-28 20:30:15").map(canonical).as_deref(), Some("2026-02-28T20:30:15"));
        assert_eq!(local("2026-02-28 9:05").map(canonical).as_deref(), Some("2026-02-28T09:05"));
        for bad in [
            "",
            "20:30",
            "2026-02-28",
            "2026-02-30 20:30",
            "2026-02-28 24:30",
            "2026-02-28 20:30Z",
            "2026-02-28T20:30:00+01:00",
            "2026-2-28 20:30",
            "2026-02-28 +9:30",
            "2026-02-28 20:30:00.5",
        ] {
            assert_eq!(local(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn days_begin_at_local_midnight_on_the_days_the_clocks_change_too() {
        for (date, begins_at) in [
            ("2026-03-08", "2026-03-08T05:00:00Z"),
            ("2026-03-09", "2026-03-09T04:00:00Z"),
            ("2026-11-01", "2026-11-01T04:00:00Z"),
            ("2026-11-02", "2026-11-02T05:00:00Z"),
        ] {
            let date = date_of(date).expect("a date");
            let start = begins(date, &zone()).expect("begins");
            assert_eq!(Some(start), Time::parse(begins_at));
            assert_eq!(date_at(start, &zone()), Some(date));
            assert_eq!(date_at(start - Span::us(1), &zone()), Some(date.yesterday().expect("a day")));
            assert_eq!(start.us() % WINDOW_EVERY.as_us(), 0, "the window is looked at then");
        }
        // 02:30 does not exist on 8 March, and comes twice on 1 November.
        let at = |text: &str| instant(local(text).expect("a time"), &zone());
        assert_eq!(at("2026-03-08 02:30"), Time::parse("2026-03-08T07:30:00Z"));
        assert_eq!(at("2026-11-01 01:30"), Time::parse("2026-11-01T05:30:00Z"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            year in 2000_i16..2100, month in 1_i8..=12, day in 1_i8..=28,
            hour in 0_i8..24, minute in 0_i8..60, second in prop_oneof![Just(0_i8), 0_i8..60],
            space in any::<bool>(),
        ) {
            let time = DateTime::new(year, month, day, hour, minute, second, 0).expect("valid");
            let text = canonical(time);
            let text = if space { text.replace('T', " ") } else { text };
            prop_assert_eq!(local(&text), Some(time));
        }

        #[test]
        fn nothing_panics(text in "\\PC{0,40}") {
            let _ = local(&text);
        }

        #[test]
        fn the_short_way_reads_what_the_long_way_does(
            text in "[0-9]{3,4}-[0-9]{2}-[0-3][0-9][T tx][0-2][0-9]:[0-6][0-9](:[0-6][0-9])?[Z.]?",
        ) {
            let short = plain(text.as_bytes());
            prop_assert!(short.is_none() || short == free(&text));
        }
    }
}
