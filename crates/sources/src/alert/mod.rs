//! Alerts as people write them, and the book of rules that is made of them.
//!
//! A rule says *when* it rings ([`When`]), for whom, how loudly, where it is sent, and when it keeps silent. [`RuleBook`]
//! judges all of them with each poll, from what the poll saw and from history; it never asks anything itself.

mod again;
mod check;
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
        /// Not before this date, as `2026-01-10`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_date: Option<String>,
        /// Not after this date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_date: Option<String>,
        /// Not before this time of day, as `18:00`; after `to_time` it goes over midnight.
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

/// Silence after an alert of a source's health, unless it says otherwise.
const HEALTH_QUIET: Span = Span::hours(1);
/// Silence after an alert of missed polls of one target, unless it says otherwise.
const MISSED_QUIET: Span = Span::mins(10);
/// Silence after an indicator's alert, unless it says otherwise: the longest column of the timeline that changes while
/// people bet.
const COLUMN_QUIET: Span = Span::mins(5);

impl AlertConfig {
    /// The type of the events that it rings about, or how it begins; nothing where it looks at something else.
    pub fn event_type(&self) -> Option<&str> {
        match &self.when {
            When::Event { event_type, .. } => Some(event_type),
            _ => None,
        }
    }

    /// How long after it rang it rings again while it lasts; never within the quiet time that the rule gives.
    fn again(&self) -> Option<Span> {
        let Duration(repeat) = self.repeat?;
        Some(self.quiet.map_or(repeat, |Duration(quiet)| repeat.max(quiet)))
    }

    /// The silence after it rang about something before it rings anew about the same.
    fn silence(&self) -> Span {
        self.quiet.map_or_else(|| self.when.usual_silence(), |Duration(quiet)| quiet)
    }

    /// The bells of a race with this start that come after a moment; none for any other sort of alert.
    pub fn bells(&self, start: Time, after: Time) -> impl Iterator<Item = Time> {
        let first = self.when.before().map(|before| start - before);
        let again = self.again();
        first.into_iter().flat_map(move |first| again::bells(first, start, again, after))
    }

    /// How long before a moment it may have rung so that it is told again then, or keeps silent.
    pub fn reaches_back(&self) -> Span {
        let repeats = match self.again() {
            None => Span::ZERO,
            Some(again) if self.when.is_looked_at() => again,
            // What the clock repeats may go on for longer, but an event does not.
            Some(again) => again.max(again::UNREAD_AT_MOST),
        };
        let once = match &self.when {
            // A race is called for once, and may be put off until the next day.
            When::Pilot { .. } => Span::hours(48),
            When::Start { before } => before.0,
            _ => Span::ZERO,
        };
        // What kept silent depends on what rang before, and that on what rang before it.
        repeats.max(once).max(self.silence().times(3))
    }

    /// Whether it may ring for a source at this moment.
    fn is_awake(&self, source: &str, at: Time) -> bool {
        let meant = self.source.as_deref().is_none_or(|wanted| wanted == source);
        self.enabled && meant && self.hours.as_ref().is_none_or(|hours| hours.hold(at))
    }
}

impl When {
    /// Whether the polls themselves show if it still lasts: then they repeat it, and no clock has to.
    fn is_looked_at(&self) -> bool {
        matches!(
            self,
            When::Odds { .. } | When::Money { .. } | When::Indicator { .. } | When::Unhealthy { .. }
        )
    }

    /// The silence after it rang, where a rule gives none.
    fn usual_silence(&self) -> Span {
        match self {
            When::Odds { within, .. } | When::Money { within, .. } => within.0,
            When::Indicator { .. } => COLUMN_QUIET,
            When::Unhealthy { .. } => HEALTH_QUIET,
            When::Missed { .. } => MISSED_QUIET,
            When::Event { .. } | When::Drop { .. } | When::Pilot { .. } | When::Start { .. } => Span::ZERO,
        }
    }

    /// How long before a start it wants a look.
    fn before(&self) -> Option<Span> {
        match self {
            When::Start { before } => Some(before.0),
            _ => None,
        }
    }
}
