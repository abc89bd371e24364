//! The upstream's own way of writing ids, dates and durations.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use stakeout_core::{Time, Value};

use crate::lenient::Leaf;

/// The positions of the dashes in a GUID.
const DASHES: [usize; 4] = [8, 13, 18, 23];
const GUID_BYTES: usize = 36;

/// A GUID in lower case; the all-zero one is how the upstream writes "none". What is no GUID never gets into a URL.
pub(super) fn guid(text: &str) -> Option<String> {
    let text = text.trim();
    let dash = |at: usize| DASHES.contains(&at);
    let shaped = text.len() == GUID_BYTES
        && text.bytes().enumerate().all(|(at, b)| if dash(at) { b == b'-' } else { b.is_ascii_hexdigit() });
    let none = text.bytes().all(|b| matches!(b, b'0' | b'-'));
    (shaped && !none).then(|| text.to_ascii_lowercase())
}

/// The GUID that a field holds.
pub(super) fn id(leaf: &Leaf<'_>) -> Option<String> {
    leaf.text().and_then(|text| guid(&text))
}

/// A date and time on the venue's clock: `yyyy/MM/dd H:mm:ss.FFF`, the hour not padded, up to three digits of fraction.
/// Year 1 is how the upstream writes "not set".
pub(super) fn local(leaf: &Leaf<'_>) -> Option<DateTime> {
    let text = leaf.text()?;
    let (date, clock) = text.split_once([' ', 'T'])?;
    let mut date = date.split(['/', '-']);
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.split(':');
    let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next()?);
    if date.next().is_some() || clock.next().is_some() {
        return None;
    }
    let year: i16 = year.parse().ok()?;
    let small = |text: &str| text.parse::<i8>().ok();
    let nanoseconds = if fraction.is_empty() { 0 } else { nanoseconds(fraction)? };
    let (month, day, hour) = (small(month)?, small(day)?, small(hour)?);
    let read = DateTime::new(year, month, day, hour, small(minute)?, small(second)?, nanoseconds).ok()?;
    (year > 1).then_some(read)
}

fn nanoseconds(fraction: &str) -> Option<i32> {
    let digits = fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit());
    let number: i32 = digits.then(|| fraction.parse().ok())??;
    Some(number * 10_i32.pow(9 - fraction.len() as u32))
}

/// The venue's zone by its IANA name; other names (Windows has its own) are unknown.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok()
}

/// A moment as it is kept: an instant where the zone is known, else the venue's clock as padded text, which sorts.
pub(super) fn moment(leaf: &Leaf<'_>, zone: Option<&TimeZone>) -> Value {
    let Some(local) = local(leaf) else { return Value::Null };
    let instant = zone.and_then(|zone| zone.to_ambiguous_zoned(local).compatible().ok());
    match instant {
        Some(zoned) => Time(zoned.timestamp().as_microsecond()).into(),
        None => {
            let us = local.subsec_nanosecond() / 1_000;
            let fraction = if us % 1_000 == 0 { format!("{:03}", us / 1_000) } else { format!("{us:06}") };
            Value::text(format!("{}.{fraction}", local.strftime("%Y-%m-%dT%H:%M:%S")))
        }
    }
}

/// A kept moment as microseconds. Those without a zone compare with each other as if they were UTC; one event's are
/// all of one sort.
pub(super) fn microseconds(text: &str) -> Option<i64> {
    Time::parse(text).or_else(|| Time::parse(&format!("{text}Z"))).map(Time::us)
}

/// A duration in seconds: `[-][d.]hh:mm:ss[.fffffff]`, or a plain number.
pub(super) fn seconds(leaf: &Leaf<'_>) -> Option<f64> {
    if let Some(number) = leaf.number() {
        return Some(number);
    }
    let text = leaf.text()?;
    let (sign, text) = text.strip_prefix('-').map_or((1.0, &*text), |rest| (-1.0, rest));
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if parts.next().is_some() || ![days, hours, minutes, seconds].into_iter().all(plain) {
        return None;
    }
    let number = |text: &str| text.parse::<f64>().ok();
    let whole = number(days)? * 86_400.0 + number(hours)? * 3_600.0 + number(minutes)? * 60.0;
    // Rounded to what the upstream means, so that sums of binary fractions do not show.
    let rounded = ((whole + number(seconds)?) * 1e7).round() / 1e7;
    Some(sign * rounded).filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn text(text: &str) -> Leaf<'_> {
        Leaf::Text(Cow::Borrowed(text))
    }

    #[test]
    fn dates_are_read_with_and_without_padding_and_fraction() {
        for (written, expected) in [
            ("2025/01/29 19:11:09.495", "2025-01-29T19:11:09.495"),
            ("2025/01/29 9:11:09", "2025-01-29T09:11:09.000"),
            ("2025/01/30 16:01:38.21", "2025-01-30T16:01:38.210"),
            ("2025/01/29 0:00:00", "2025-01-29T00:00:00.000"),
            ("2025/01/29 0:00:00.1234567", "2025-01-29T00:00:00.123456"),
        ] {
            assert_eq!(moment(&text(written), None), expected.into(), "{written}");
        }
        for none in [
            "0001/01/01 0:00:00",
            "",
            "soon",
            "2025/13/01 0:00:00",
            "2025/01/01 0:00",
            "2025/01/01 0:00:00.x",
        ] {
            assert_eq!(moment(&text(none), None), Value::Null, "{none}");
        }
    }

    #[test]
    fn a_known_zone_makes_an_instant_also_where_the_clock_repeats_an_hour() {
        let sydney = zone("Australia/Sydney").expect("a zone");
        for (written, expected) in [
            ("2025/01/29 19:11:09.495", "2025-01-29T08:11:09.495Z"),
            ("2025/07/29 19:11:09.495", "2025-07-29T09:11:09.495Z"),
            ("2025/04/06 2:30:00", "2025-04-05T15:30:00.000Z"),
        ] {
            assert_eq!(moment(&text(written), Some(&sydney)), expected.into(), "{written}");
        }
        assert!(zone("AUS Eastern Standard Time").is_none());
    }

    #[test]
    fn durations_come_as_clock_or_as_number() {
        for (written, expected) in [
            ("00:00:00.5000000", Some(0.5)),
            ("00:08:31.5605717", Some(511.5605717)),
            ("1.02:00:00", Some(93_600.0)),
            ("-00:00:02", Some(-2.0)),
            ("12.5", Some(12.5)),
            ("00:00", None),
            ("a:b:c", None),
            ("00:-1:00", None),
        ] {
            assert_eq!(seconds(&text(written)), expected, "{written}");
        }
    }

    #[test]
    fn ids_are_lower_case_guids_and_zero_is_none() {
        let id = "3A96B1B6-7B6B-43A8-B93E-D918F43607D2";
        assert_eq!(guid(id).as_deref(), Some("3a96b1b6-7b6b-43a8-b93e-d918f43607d2"));
        assert_eq!(
            guid("00000009-0000-0000-0000-000000000000").as_deref(),
            Some("00000009-0000-0000-0000-000000000000")
        );
        for none in ["00000000-0000-0000-0000-000000000000", "", "../../etc/passwd", "3a96b1b6"] {
            assert_eq!(guid(none), None, "{none}");
        }
    }
}
