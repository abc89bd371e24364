//! Times for people: RFC 3339 in UTC, and how far away that is.

use stakeout_core::{Span, Time};

/// `2026-01-10T02:00:00.000Z (in 12 s)`.
pub(crate) fn at(time: Time, now: Time) -> String {
    format!("{time} ({})", relative(time, now))
}

/// `in 12 s`, `18 s ago`, `now`.
pub(crate) fn relative(time: Time, now: Time) -> String {
    let away = time - now;
    // Nobody reads more digits than these.
    let round = |span: Span| match span {
        span if span >= Span::secs(10) => Span::secs(span.as_us() / 1_000_000),
        span if span >= Span::secs(1) => Span::ms(span.as_ms() / 100 * 100),
        span => Span::ms(span.as_ms()),
    };
    match away {
        Span(us) if us.abs() < 1_000 => "now".to_owned(),
        away if away > Span::ZERO => format!("in {}", round(away)),
        away => format!("{} ago", round(-away)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_say_how_far_away_they_are() {
        let now = Time::from_secs(1_000);
        for (span, text) in [
            (Span::ZERO, "now"),
            (Span::ms(12_345), "in 12 s"),
            (Span::ms(1_590), "in 1.5 s"),
            (Span::us(141_900), "in 141 ms"),
            (-Span::secs(18), "18 s ago"),
            (-Span::mins(90), "1 h 30 min ago"),
        ] {
            assert_eq!(relative(now + span, now), text);
        }
        assert_eq!(at(now + Span::secs(5), now), "1970-01-01T00:16:45.000Z (in 5 s)");
    }
}
