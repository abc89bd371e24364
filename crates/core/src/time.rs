//! Instants and durations in whole microseconds: one unit everywhere, so none is ever guessed.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An instant: microseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

/// A signed duration in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub i64);

impl Time {
    /// The instant `ms` milliseconds after the Unix epoch.
    pub const fn from_ms(ms: i64) -> Time {
        Time(ms.saturating_mul(1_000))
    }

    /// The instant `secs` seconds after the Unix epoch.
    pub const fn from_secs(secs: i64) -> Time {
        Time(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn us(self) -> i64 {
        self.0
    }

    /// Parses RFC 3339 (any offset); digits beyond microseconds are truncated, not rounded.
    pub fn parse(text: &str) -> Option<Time> {
        if let Some(time) = parse_plain(text.as_bytes()) {
            return Some(time);
        }
        let ts: jiff::Timestamp = text.parse().ok()?;
        Some(Time(ts.as_nanosecond().div_euclid(1_000) as i64))
    }
}

/// The one form that nearly all upstreams write, `2026-01-10T02:00:00.123456789Z`: answers are full of it, and the
/// general parser takes ten times as long. `None` leaves it to that one.
fn parse_plain(text: &[u8]) -> Option<Time> {
    let number = |digits: &[u8]| {
        let digit = |n: Option<i64>, c: &u8| Some(n? * 10 + i64::from(c.is_ascii_digit().then(|| c - b'0')?));
        digits.iter().fold(Some(0), digit)
    };
    let (date_time, fraction) = text.strip_suffix(b"Z")?.split_at_checked(19)?;
    let marks = [date_time[4], date_time[7], date_time[10], date_time[13], date_time[16]];
    let part = |from: usize, to: usize| number(&date_time[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    // The last days of months and leap seconds are for those who know them.
    let plain = marks == *b"--T::"
        && (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=28).contains(&day)
        && (hour < 24 && minute < 60 && second < 60);
    let us = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            let kept = &digits[..digits.len().min(6)];
            number(digits)?;
            number(kept)? * 10_i64.pow(6 - kept.len() as u32)
        }
        _ => return None,
    };
    // Years begin in March, so that the day that leap years add is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    plain.then(|| Time((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + us))
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `n` microseconds.
    pub const fn us(n: i64) -> Span {
        Span(n)
    }
    /// A span of `n` milliseconds.
    pub const fn ms(n: i64) -> Span {
        Span(n.saturating_mul(1_000))
    }
    /// A span of `n` seconds.
    pub const fn secs(n: i64) -> Span {
        Span(n.saturating_mul(1_000_000))
    }
    /// A span of `n` minutes.
    pub const fn mins(n: i64) -> Span {
        Span(n.saturating_mul(60_000_000))
    }
    /// A span of `n` hours.
    pub const fn hours(n: i64) -> Span {
        Span(n.saturating_mul(3_600_000_000))
    }

    /// Whole microseconds.
    pub const fn as_us(self) -> i64 {
        self.0
    }
    /// Whole milliseconds, truncated.
    pub const fn as_ms(self) -> i64 {
        self.0 / 1_000
    }
    /// Seconds as a float, for arithmetic on rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The span of `secs` seconds, saturating at the ends.
    pub fn from_secs_f64(secs: f64) -> Span {
        Span((secs * 1e6) as i64)
    }
    /// As a standard duration; a negative span is zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0.max(0) as u64)
    }
    /// From a standard duration, saturating.
    pub fn from_std(d: std::time::Duration) -> Span {
        Span(i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
    }
    /// `self × n`, saturating.
    pub const fn times(self, n: i64) -> Span {
        Span(self.0.saturating_mul(n))
    }
    /// `self ÷ n`, truncated.
    pub const fn over(self, n: i64) -> Span {
        Span(self.0 / n)
    }

    /// Parses `250ms`, `15s`, `2m`/`2min`, `1h`, `7d`, or sums such as `1h30m`; no sign, no bare number.
    pub fn parse(text: &str) -> Option<Span> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        let mut total = 0_i64;
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number: i64 = rest[..digits].parse().ok()?;
            rest = rest[digits..].trim_start();
            let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_alphabetic()).len();
            let unit = match &rest[..letters] {
                "us" | "µs" => 1,
                "ms" => 1_000,
                "s" | "sec" => 1_000_000,
                "m" | "min" => 60_000_000,
                "h" => 3_600_000_000,
                "d" => 86_400_000_000_i64,
                _ => return None,
            };
            total = total.checked_add(number.checked_mul(unit)?)?;
            rest = rest[letters..].trim_start();
        }
        Some(Span(total))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Sub for Time {
    type Output = Span;
    fn sub(self, other: Time) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}
impl Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span(self.0.saturating_neg())
    }
}

/// RFC 3339 in UTC with milliseconds, or microseconds when there are any.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(ts) if self.0 % 1_000 == 0 => write!(f, "{ts:.3}"),
            Ok(ts) => write!(f, "{ts:.6}"),
            Err(_) => write!(f, "{}µs", self.0),
        }
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The largest unit that reads well: `200 ms`, `15 s`, `5 min`, `1 h 30 min`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            write!(f, "-")?;
        }
        let us = self.0.unsigned_abs();
        match us {
            0 => write!(f, "0 s"),
            1..1_000 => write!(f, "{us} µs"),
            1_000..1_000_000 => decimal(f, us, 1_000, "ms"),
            1_000_000..60_000_000 => decimal(f, us, 1_000_000, "s"),
            60_000_000..3_600_000_000 => {
                write!(f, "{} min", us / 60_000_000)?;
                rest(f, us % 60_000_000 / 1_000_000, "s")
            }
            3_600_000_000..172_800_000_000 => {
                write!(f, "{} h", us / 3_600_000_000)?;
                rest(f, us % 3_600_000_000 / 60_000_000, "min")
            }
            _ => {
                write!(f, "{} d", us / 86_400_000_000)?;
                rest(f, us % 86_400_000_000 / 3_600_000_000, "h")
            }
        }
    }
}

fn decimal(f: &mut fmt::Formatter<'_>, us: u64, unit: u64, name: &str) -> fmt::Result {
    match us % unit * 1_000 / unit {
        0 => write!(f, "{} {name}", us / unit),
        _ => write!(f, "{:.1} {name}", us as f64 / unit as f64),
    }
}

fn rest(f: &mut fmt::Formatter<'_>, n: u64, name: &str) -> fmt::Result {
    if n == 0 { Ok(()) } else { write!(f, " {n} {name}") }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Time, D::Error> {
        let text = String::deserialize(d)?;
        Time::parse(&text)
            .ok_or_else(|| de::Error::custom(format!("expected an RFC 3339 time, got {text:?}")))
    }
}

/// As whole microseconds: spans in stored JSON are read by programs, not people.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_i64(self.0)
    }
}
impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Span, D::Error> {
        i64::deserialize(d).map(Span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_people_say_them() {
        for (span, text) in [
            (Span::ZERO, "0 s"),
            (Span::ms(200), "200 ms"),
            (Span::us(1_500), "1.5 ms"),
            (Span::secs(15), "15 s"),
            (Span::mins(5), "5 min"),
            (Span::secs(68), "1 min 8 s"),
            (Span::mins(90), "1 h 30 min"),
            (Span::hours(72), "3 d"),
            (-Span::secs(2), "-2 s"),
        ] {
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn spans_parse_units_and_refuse_guesses() {
        assert_eq!(Span::parse("250ms"), Some(Span::ms(250)));
        assert_eq!(Span::parse("1h30m"), Some(Span::mins(90)));
        assert_eq!(Span::parse("5 min"), Some(Span::mins(5)));
        for bad in ["", "5", "-5s", "5 parsecs", "s", "99999999999999999d"] {
            assert_eq!(Span::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn times_truncate_nanoseconds_and_round_trip() {
        let time = Time::parse("2026-01-10T02:00:00.123456789Z").expect("valid");
        assert_eq!(time.to_string(), "2026-01-10T02:00:00.123456Z");
        assert_eq!(Time::parse("2026-01-10T15:00:00+13:00"), Time::parse("2026-01-10T02:00:00Z"));
        assert_eq!(Time::from_secs(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn the_plain_form_reads_as_the_general_parser_reads_it() {
        let general = |text: &str| {
            let ts: jiff::Timestamp = text.parse().ok()?;
            Some(Time(ts.as_nanosecond().div_euclid(1_000) as i64))
        };
        // Every 30 hours and a bit, over five centuries.
        let mut plain = 0;
        for n in 0..150_000_i64 {
            let text = Time(n * 108_000_000_000 + n * 1_234_567).to_string();
            let read = parse_plain(text.as_bytes());
            plain += i64::from(read.is_some());
            assert!(read.is_none_or(|time| Some(time) == general(&text)), "{text}: {read:?}");
        }
        assert!(plain > 130_000, "only the last days of months are left to the general parser: {plain}");
        for text in [
            "2026-01-10T02:00:00Z",
            "2026-01-10T02:00:00.1Z",
            "2026-01-10T02:00:00.123456789Z",
            "2026-01-10T02:00:00.1234567891Z",
            "2026-01-10T02:00:00.Z",
            "2026-01-10T02:00:00.12x4567Z",
            "2026-01-10T02:00:00.123456xZ",
            "2026-01-10T24:00:00Z",
            "2026-01-10T02:00:60Z",
            "2026-02-30T02:00:00Z",
            "2026-13-10T02:00:00Z",
            "2026-00-10T02:00:00Z",
            "2026-01-00T02:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-01-10 02:00:00Z",
            "2026-01-10T02:00:00",
            "2026-01-10T02:00:00+13:00",
            "2026-01-1éT02:00:00Z",
            "+026-01-10T02:00:00Z",
            "Z",
            "",
        ] {
            assert_eq!(Time::parse(text), general(text), "{text}");
        }
    }
}
