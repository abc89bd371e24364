//! Alerts: what people asked to be told, judged with each poll from the same changes as everything else.
//!
//! The engine knows the rules only by [`Alerts`]. What rings becomes an event like any other, in the commit of the poll
//! that made it ring: so it is told once, after a crash too.

mod chains;

use serde_json::Value as Json;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use chains::{Chain, ChainKey, Chains, Found, began};

use crate::judge::{Change, Effect};
use crate::{Event, Facts, Fingerprint, Record, SettingRefused, Span, TargetSpec, Time};

/// The type of the events that alerts make.
pub const EVENT_TYPE: &str = "alert.raised";
/// Before the alert's name, this is the rule of its events.
pub const RULE_PREFIX: &str = "alert:";

/// Everything that a rule may judge by.
#[derive(Clone, Debug)]
pub struct Occasion<'a> {
    /// The source's name.
    pub source: &'a str,
    /// The target that was polled; `None` when this follows from all of the source's records.
    pub target: Option<&'a TargetSpec>,
    /// When the answer was whole.
    pub at: Time,
    /// When the last complete look before this one began.
    pub looked: Option<Time>,
    /// What is known of the target before and after this poll.
    pub facts: Option<(&'a Facts, &'a Facts)>,
    /// Everything that was seen; when the answer was the same as before, what is held if [`Alerts::wants_records`], and
    /// nothing otherwise.
    pub records: &'a [Record],
    /// What changed.
    pub changes: &'a [Change<'a>],
    /// What is to be told of it.
    pub told: &'a [Told<'a>],
    /// How the poll went.
    pub went: Went,
}

/// An event that is to be told, if the commit agrees.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Its type.
    pub event_type: &'a str,
    /// The record it is about.
    pub subject: Fingerprint,
    /// Its readable key.
    pub subject_key: &'a str,
    /// The payload.
    pub data: &'a Json,
}

/// How a poll went, as far as somebody may want to hear of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Went {
    /// Polls in a row that failed, this one included.
    pub failures: u32,
    /// Polls that should have happened before this one, and did not.
    pub missed: u64,
    /// The same of the poll before this one.
    pub missed_before: u64,
}

/// A stretch of history that a rule has to see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// Whose.
    pub record: Fingerprint,
    /// Which stream.
    pub stream: String,
    /// From when on; what held at that moment is part of the answer.
    pub since: Time,
}

/// A row of history: when, and the stream's values.
pub type Moment = (Time, Json);

/// An alert that rings, if the commit agrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// The alert's name.
    pub alert: String,
    /// Rings only if this event of the occasion, by its place, comes about.
    pub follows: Option<usize>,
    /// The record it is about.
    pub subject: Fingerprint,
    /// Its readable key.
    pub subject_key: String,
    /// What must have happened to the subject.
    pub requires: Effect,
    /// Silence after the last one of this alert about this subject.
    pub quiet: Option<Span>,
    /// Rings at most once with this key.
    pub dedupe_key: Option<String>,
    /// Where it is sent, besides the dashboard.
    pub sinks: Vec<String>,
    /// Who, how bad, and in which words.
    pub data: Json,
}

/// How something that rang rings again by the clock, without a poll that would bring it about.
#[derive(Clone, Debug, PartialEq)]
pub struct Again {
    /// So long after it last rang.
    pub after: Span,
    /// Whether the rule may ring now; otherwise it is asked again later.
    pub awake: bool,
    /// As long as this holds.
    pub lasts: Lasts,
    /// What is told then, where [`Alerts::still`] does not say it.
    pub ring: Ring,
}

/// What has to be so for something to be told again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// Nobody has read any of its notifications, and it first rang at most so long ago.
    Unread(Span),
    /// Somebody holds the record it is about, and [`Alerts::still`] says so of its fields.
    Held,
    /// [`Alerts::still`] says so of what is published there, by namespace and key.
    Published(String, String),
    /// The last poll of this target came after at least so many that did not happen.
    Missed(String, u64),
}

/// Whether a type of events is this one, or begins as the pattern does that ends with a star.
pub fn is_type(event_type: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => event_type.starts_with(beginning),
        None => event_type == pattern,
    }
}

/// The places of a rule: where it looks, and where it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The type of the events that it rings about, or how it begins; nothing where it looks at something else.
    pub event_type: Option<String>,
    /// The one source that it is about; all of them without.
    pub source: Option<String>,
    /// The sinks that it names.
    pub sinks: Vec<String>,
}

/// A wish for a look: at this source or all, so long before a start, and then every so often until it, within these hours as
/// they are written.
pub type Bell = (Option<String>, Span, Option<Span>, Option<String>);

/// The rules that are in force.
pub trait Alerts: Send + Sync + 'static {
    /// Whether what the target holds has to be known to judge this, although the answer did not show it.
    fn wants_records(&self, occasion: &Occasion<'_>) -> bool;

    /// The history that has to be known to judge this.
    fn questions(&self, occasion: &Occasion<'_>) -> Vec<Question>;

    /// What rings. `answers` has the rows for each question, oldest first.
    fn judge(&self, occasion: &Occasion<'_>, answers: &[(Question, Vec<Moment>)]) -> Vec<Ring>;

    /// The next moment after `now` at which a target should be looked at for an alert's sake.
    fn bell(&self, source: &str, facts: &Facts, now: Time) -> Option<Time>;

    /// How long before a start somebody wants a look, how often from then on, in which hours, and at which source; at all of
    /// them without. When these are others, due times are.
    fn bells(&self) -> BTreeSet<Bell>;

    /// Whether any rule rings again by the clock: only then anything has to be remembered.
    fn repeats(&self) -> bool {
        false
    }

    /// How this, which an alert told, rings again; `None` when nobody asked for that, or the rule is another now.
    fn again(&self, _rung: &Event, _now: Time) -> Option<Again> {
        None
    }

    /// What rings again, if what was told is still so by what is held or published now; null when only that it is there
    /// is known.
    fn still(&self, _rung: &Event, _now: &Json) -> Option<Ring> {
        None
    }

    /// The rules of the configuration with these stored ones, by name, which go before them.
    fn configured(&self, stored: &BTreeMap<String, Json>) -> Result<Arc<dyn Alerts>, SettingRefused>;

    /// All rules in force by name, as they would be written.
    fn written(&self) -> BTreeMap<String, Json>;

    /// What a rule says about places: they must be there.
    fn places(&self, rule: &str) -> Places;

    /// Whether there is no rule at all, so that nothing has to be asked.
    fn is_empty(&self) -> bool;
}

/// Nobody asked for anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence;

impl Alerts for Silence {
    fn wants_records(&self, _: &Occasion<'_>) -> bool {
        false
    }
    fn questions(&self, _: &Occasion<'_>) -> Vec<Question> {
        Vec::new()
    }
    fn judge(&self, _: &Occasion<'_>, _: &[(Question, Vec<Moment>)]) -> Vec<Ring> {
        Vec::new()
    }
    fn bell(&self, _: &str, _: &Facts, _: Time) -> Option<Time> {
        None
    }
    fn bells(&self) -> BTreeSet<Bell> {
        BTreeSet::new()
    }
    fn configured(&self, stored: &BTreeMap<String, Json>) -> Result<Arc<dyn Alerts>, SettingRefused> {
        match stored.iter().next() {
            None => Ok(Arc::new(Silence)),
            Some((name, rule)) => Err(SettingRefused::new(name, rule, "there are no alerts here")),
        }
    }
    fn written(&self) -> BTreeMap<String, Json> {
        BTreeMap::new()
    }
    fn places(&self, _: &str) -> Places {
        Places::default()
    }
    fn is_empty(&self) -> bool {
        true
    }
}
