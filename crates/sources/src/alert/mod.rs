//! Alerts as people write them, and the book of rules that is made of them.
//!
//! A rule says *when* it rings ([`When`]), for whom, how loudly, where it is sent, and when it keeps silent. [`RuleBook`]
//! judges all of them with each poll, from what the poll saw and from history; it never asks anything itself.

mod again;
mod hours;
mod look;
mod moves;
mod rules;
mod seen;
mod test;
mod told;
mod words;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::{Span, Time};

pub use hours::Hours;
pub use rules::RuleBook;
pub use test::Test;

use crate::ConfigRefused;
use crate::fpv::SOON;
use crate::written::Duration;

/// An alert.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertConfig {
    /// When it rings.
    pub when: When,
    /// Whose it is; everybody's without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only for this source, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How loudly.
    #[serde(default)]
    pub severity: Severity,
    /// Where it is sent besides the dashboard, by the sinks' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<String>,
    /// Silence after it rang about the same runner, slot, race or source. Without it each sort of alert has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Duration>,
    /// Rings again so long after it rang while what it tells of lasts, whether anything moves or not: a price, a band or a
    /// failure stands, a table is open, a pilot is still to fly, a race has not started, polls are still missed. An event
    /// lasts until somebody has read its notification, at most 24 hours. Without it, it rings again only when it had ceased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Duration>,
    /// Rings only within these hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
    /// Whether it rings at all.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

fn is_true(yes: &bool) -> bool {
    *yes
}

/// How loudly an alert rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    #[default]
    Info,
    /// Somebody should look.
    Warning,
    /// Somebody must look now.
    Critical,
}

impl Severity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// When an alert rings.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "on", rename_all = "snake_case", deny_unknown_fields)]
pub enum When {
    /// An event of this type is told: `racing.race.final`, or `racing.*` for all that begin so.
    Event {
        /// The type, or its beginning and `*`.
        #[serde(rename = "type")]
        event_type: String,
        /// What the event's data must say, by the names in it: `record.status = "Final"`.
        #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
        filters: BTreeMap<String, Test>,
    },
    /// A runner's fixed win price moved by so many percent within a time.
    Odds {
        /// Shorter or longer.
        direction: Direction,
        /// At least so many percent of what it was.
        percent: f64,
        /// Within this time.
        within: Duration,
    },
    /// A runner's share of the money grew by so many points within a time.
    Money {
        /// At least so many percentage points.
        points: f64,
        /// Within this time.
        within: Duration,
    },
    /// A runner's cell of the timeline reached a coloured band.
    Indicator {
        /// Of its price, or of its share of the money.
        of: IndicatorOf,
        /// The band's lower edge: 5, 10, 15, 20, 25 or 50.
        percent: u8,
    },
    /// A race starts in so long, and has not started yet.
    Start {
        /// How long before the advertised start.
        before: Duration,
    },
    /// A table opened.
    Drop {
        /// At one of these venues, by id or name; anywhere without.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        venues: Vec<String>,
        /// Only at venues that are followed.
        #[serde(default)]
        followed: bool,
        /// Not before this date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_date: Option<String>,
        /// Not after this date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_date: Option<String>,
        /// Not before this time of day, as `18:00`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_time: Option<String>,
        /// Not after this time of day.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_time: Option<String>,
        /// For one of these party sizes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        party: Vec<u32>,
    },
    /// A pilot flies soon.
    Pilot {
        /// By name or id.
        pilot: String,
        /// At most so many races away; 0 is the current race.
        within: u32,
    },
    /// A source does not answer as it should.
    Unhealthy {
        /// So many polls of one target failed in a row.
        #[serde(default = "three")]
        failures: u32,
    },
    /// Polls did not happen when they should have.
    Missed {
        /// At least so many at once.
        #[serde(default = "one")]
        polls: u64,
    },
}

fn three() -> u32 {
    3
}

fn one() -> u64 {
    1
}

/// Which way a price moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The runner is liked more.
    Shortened,
    /// The runner is liked less.
    Lengthened,
}

/// What an indicator is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IndicatorOf {
    /// The fixed win price.
    Odds,
    /// The share of the money.
    Money,
}

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

    /// How long after it rang it rings again while it lasts; never within the quiet time that the rule gives.
    fn again(&self) -> Option<Span> {
        let Duration(repeat) = self.repeat?;
        Some(self.quiet.map_or(repeat, |Duration(quiet)| repeat.max(quiet)))
    }

    /// The bells of a race with this start that come after a moment; none for any other sort of alert.
    pub fn bells(&self, start: Time, after: Time) -> impl Iterator<Item = Time> {
        let first = self.when.before().map(|before| start - before);
        let again = self.again();
        first.into_iter().flat_map(move |first| again::bells(first, start, again, after))
    }

    /// How long before a moment it may have rung about something that it tells again then.
    pub fn reaches_back(&self) -> Span {
        match self.again() {
            None => Span::ZERO,
            Some(again) if self.when.is_looked_at() => again,
            // What the clock repeats may go on for longer, but an event does not.
            Some(again) => again.max(again::UNREAD_AT_MOST),
        }
    }

    /// Whether it may ring for a source at this moment.
    fn is_awake(&self, source: &str, at: Time) -> bool {
        let meant = self.source.as_deref().is_none_or(|wanted| wanted == source);
        self.enabled && meant && self.hours.as_ref().is_none_or(|hours| hours.hold(at))
    }
}

impl When {
    fn check(&self) -> Result<(), ConfigRefused> {
        let positive = |key: &str, number: f64| match number.is_finite() && number > 0.0 {
            true => Ok(()),
            false => Err(ConfigRefused::new(
                format!("when.{key}"),
                format!("expected a number above 0, found {number}"),
            )),
        };
        let window = |key: &str, Duration(span): Duration| match span > Span::ZERO && span <= LONGEST_WINDOW {
            true => Ok(()),
            false => Err(ConfigRefused::new(
                format!("when.{key}"),
                format!("expected a duration of at most {LONGEST_WINDOW}, found {span}"),
            )),
        };
        match self {
            When::Event { event_type, .. } if event_type.is_empty() => Err(ConfigRefused::new(
                "when.type",
                "expected an event's type such as \"racing.race.final\", or \"racing.*\"",
            )),
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
                for (key, date) in [("from_date", from_date), ("to_date", to_date)] {
                    check_text(key, date.as_deref(), "a date such as \"2026-01-10\"", |text| {
                        text.parse::<jiff::civil::Date>().is_ok()
                    })?;
                }
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

    /// Whether the polls themselves show if it still lasts: then they repeat it, and no clock has to.
    fn is_looked_at(&self) -> bool {
        matches!(
            self,
            When::Odds { .. } | When::Money { .. } | When::Indicator { .. } | When::Unhealthy { .. }
        )
    }

    /// How long before a start it wants a look.
    fn before(&self) -> Option<Span> {
        match self {
            When::Start { before } => Some(before.0),
            _ => None,
        }
    }
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
