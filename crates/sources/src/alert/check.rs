//! Whether a rule can ring at all.

use stakeout_core::Span;

use super::{AlertConfig, When, hours};
use crate::ConfigRefused;
use crate::fpv::SOON;
use crate::written::Duration;

/// The longest stretch of history that a rule may look back on.
const LONGEST_WINDOW: Span = Span::hours(24);
/// A repeat costs a look or a notification each time, so it is not more frequent than this,
const SHORTEST_REPEAT: Span = Span::secs(10);
/// and not so rare that what rang would have to be remembered for longer than a day.
const LONGEST_REPEAT: Span = Span::hours(24);
/// The most characters of a name.
const LONGEST_NAME: usize = 64;

impl AlertConfig {
    /// Whether this can ring at all; says what would do otherwise.
    pub fn check(&self, name: &str) -> Result<(), ConfigRefused> {
        let refuse = |key: &str, message: String| Err(ConfigRefused::new(key, message));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
            let message = format!(
                "expected up to {LONGEST_NAME} letters, digits, `-` or `_` as a name, found {name:?}"
            );
            return refuse("name", message);
        }
        if let Some(hours) = &self.hours {
            hours.check()?;
        }
        for (key, span) in [("quiet", self.quiet), ("repeat", self.repeat)] {
            if let Some(Duration(span)) = span.filter(|Duration(span)| *span <= Span::ZERO) {
                return refuse(key, format!("expected more than nothing, found {span}"));
            }
        }
        let often = |span: &Span| !(SHORTEST_REPEAT..=LONGEST_REPEAT).contains(span);
        if let Some(span) =
            self.repeat.map(|repeat| repeat.0).filter(often).filter(|_| !self.when.is_looked_at())
        {
            let message = format!("expected {SHORTEST_REPEAT} to {LONGEST_REPEAT}, found {span}");
            return refuse("repeat", message);
        }
        self.when.check()
    }
}

impl When {
    fn check(&self) -> Result<(), ConfigRefused> {
        match self {
            When::Event { event_type, .. } => check_type(event_type),
            When::Odds { percent, within, .. } => {
                positive("percent", *percent).and_then(|()| window("within", *within))
            }
            When::Money { points, within } => {
                positive("points", *points).and_then(|()| window("within", *within))
            }
            When::Indicator { percent, .. } if ![5, 10, 15, 20, 25, 50].contains(percent) => {
                let message = format!("expected one of 5, 10, 15, 20, 25 and 50, found {percent}");
                Err(ConfigRefused::new("when.percent", message))
            }
            When::Start { before } => window("before", *before),
            When::Drop { from_date, to_date, from_time, to_time, .. } => {
                check_dates(from_date.as_deref(), to_date.as_deref())?;
                for (key, time) in [("from_time", from_time), ("to_time", to_time)] {
                    check_text(key, time.as_deref(), "a time of day such as \"18:00\"", |text| {
                        hours::minutes(text).is_some()
                    })?;
                }
                Ok(())
            }
            When::Pilot { within, .. } if u64::from(*within) > SOON => {
                let message =
                    format!("expected at most {SOON} races, found {within}: so far ahead nobody knows");
                Err(ConfigRefused::new("when.within", message))
            }
            When::Unhealthy { failures: 0 } => {
                Err(ConfigRefused::new("when.failures", "expected at least 1, found 0"))
            }
            When::Missed { polls: 0 } => {
                Err(ConfigRefused::new("when.polls", "expected at least 1, found 0"))
            }
            _ => Ok(()),
        }
    }
}

fn positive(key: &str, number: f64) -> Result<(), ConfigRefused> {
    match number.is_finite() && number > 0.0 {
        true => Ok(()),
        false => Err(ConfigRefused::new(
            format!("when.{key}"),
            format!("expected a number above 0, found {number}"),
        )),
    }
}

fn window(key: &str, Duration(span): Duration) -> Result<(), ConfigRefused> {
    match span > Span::ZERO && span <= LONGEST_WINDOW {
        true => Ok(()),
        false => Err(ConfigRefused::new(
            format!("when.{key}"),
            format!("expected a duration of at most {LONGEST_WINDOW}, found {span}"),
        )),
    }
}

/// A star stands at the end or nowhere: anywhere else it would mean itself, and no type has one.
fn check_type(pattern: &str) -> Result<(), ConfigRefused> {
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    match pattern.is_empty() || beginning.contains('*') {
        false => Ok(()),
        true => {
            let message = format!(
                "expected an event's type such as \"racing.race.final\", or \"racing.*\", found {pattern:?}"
            );
            Err(ConfigRefused::new("when.type", message))
        }
    }
}

/// Dates are compared as they are written, so there is one way to write them.
fn check_dates(from: Option<&str>, to: Option<&str>) -> Result<(), ConfigRefused> {
    for (key, date) in [("from_date", from), ("to_date", to)] {
        check_text(key, date, "a date such as \"2026-01-10\"", |text| {
            text.parse::<jiff::civil::Date>().is_ok_and(|date| date.to_string() == text)
        })?;
    }
    let expected = format!("a date not before from_date, {}", from.unwrap_or_default());
    check_text("to_date", to, &expected, |to| from.is_none_or(|from| from <= to))
}

fn check_text(
    key: &str,
    text: Option<&str>,
    expected: &str,
    fits: impl Fn(&str) -> bool,
) -> Result<(), ConfigRefused> {
    match text {
        Some(text) if !fits(text) => {
            Err(ConfigRefused::new(format!("when.{key}"), format!("expected {expected}, found {text:?}")))
        }
        _ => Ok(()),
    }
}
