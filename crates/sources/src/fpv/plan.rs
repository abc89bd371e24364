//! What is polled, what is asked, and how often.
//!
//! The page and `/current` are asked by configuration. The page names the event and lists its fixed targets; the event's
//! own file lists one target per race. When the page names another event, the old event's targets go, and with them the
//! races they listed.

use serde_json::{Value as Json, json};
use stakeout_core::cadence::{Fixed, Focus};
use stakeout_core::{Facts, Plan, Request, Span, TargetSpec, Value, spread};

use super::settings::Settings;

/// The page: which event is open.
pub(super) const PAGE: &str = "page";
/// The upstream's own word on the current race.
pub(super) const CURRENT: &str = "current";
/// The event's own file: which races there are.
pub(super) const EVENT: &str = "event";
/// The event's pilots.
pub(super) const PILOTS: &str = "pilots";
/// All channels.
pub(super) const CHANNELS: &str = "channels";
/// The event's rounds.
pub(super) const ROUNDS: &str = "rounds";
/// The event's results.
pub(super) const RESULTS: &str = "results";
/// One race.
pub(super) const RACE: &str = "race";

/// The priority of the races that do not have the focus.
pub(super) const RACE_PRIORITY: u8 = 10;
/// The priority of everything else.
const OTHER_PRIORITY: u8 = 20;

/// How often `/current` is asked of an upstream that does not know it: it may be updated while we watch.
const UNSUPPORTED_EVERY: Span = Span::secs(60);
/// The interval of what is switched off. Due times stay dates that everything can show.
pub(super) const OFF: Span = Span::hours(24 * 365 * 1_000);

/// The note of the `current` target: whether the upstream knows `/current`.
pub(super) const SUPPORTED: &str = "supported";

/// The key of a race's target.
pub(super) fn race_key(race: &str) -> String {
    format!("{RACE}/{race}")
}

/// The race that a target's key stands for.
pub(super) fn race_of_key(key: &str) -> Option<&str> {
    key.strip_prefix(RACE)?.strip_prefix('/')
}

/// Where the upstream is asked.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) url: String,
    /// The zone of events that do not say theirs.
    pub(super) zone: Option<String>,
}

impl Asking {
    fn target(&self, key: String, role: &str, params: Json, priority: u8) -> TargetSpec {
        // What decides what is seen: the place, and the zone in which its clock is read.
        let zone = self.zone.as_deref().unwrap_or_default();
        let meaning = spread(&[role, &self.url, zone, &params.to_string()]);
        TargetSpec { params, priority, meaning, ..TargetSpec::new(key, role) }
    }

    pub(super) fn roots(&self) -> Vec<TargetSpec> {
        [PAGE, CURRENT].map(|role| self.target(role.to_owned(), role, Json::Null, OTHER_PRIORITY)).to_vec()
    }

    /// The fixed targets of an event. The channels are the upstream's own and outlive it.
    pub(super) fn of_event(&self, event: &str) -> Vec<TargetSpec> {
        let of_event = [EVENT, PILOTS, ROUNDS, RESULTS].map(|role| {
            self.target(format!("{role}/{event}"), role, json!({ "event": event }), OTHER_PRIORITY)
        });
        let channels = self.target(CHANNELS.to_owned(), CHANNELS, Json::Null, OTHER_PRIORITY);
        of_event.into_iter().chain([channels]).collect()
    }

    /// The target of a race. The listing and the focus make the same one.
    pub(super) fn race(&self, event: &str, race: &str, zone: Option<&str>) -> TargetSpec {
        let params = json!({ "event": event, "race": race, "zone": zone });
        self.target(race_key(race), RACE, params, RACE_PRIORITY)
    }

    /// The one request of a poll.
    pub(super) fn request(&self, target: &TargetSpec) -> Request {
        let event = param(target, "event").unwrap_or_default();
        let path = match target.role.as_str() {
            CURRENT => CURRENT.to_owned(),
            CHANNELS => "httpfiles/Channels.json".to_owned(),
            EVENT => format!("events/{event}/Event.json"),
            PILOTS => format!("events/{event}/Pilots.json"),
            ROUNDS => format!("events/{event}/Rounds.json"),
            RESULTS => format!("events/{event}/Results.json"),
            RACE => format!("events/{event}/{}/Race.json", param(target, "race").unwrap_or_default()),
            _ => String::new(),
        };
        Request::get(format!("{}/{path}", self.url))
    }
}

/// A parameter of a target.
pub(super) fn param<'a>(target: &'a TargetSpec, name: &str) -> Option<&'a str> {
    target.params.get(name).and_then(Json::as_str)
}

impl Settings {
    /// How often to look at this target.
    pub(super) fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan {
        let every = match target.role.as_str() {
            // What is off is not even looked at when it gains the focus.
            RACE if facts.focused && self.or_off(self.race_active) == OFF => Span::ZERO,
            RACE => {
                return Plan::Focus(Focus {
                    active: self.or_off(self.race_active),
                    idle: self.or_off(self.race_idle),
                });
            }
            RESULTS => self.results,
            CHANNELS => self.channels_interval(),
            CURRENT if facts.notes.get(SUPPORTED) == Some(&Value::Bool(false)) => {
                if self.active_check > Span::ZERO { UNSUPPORTED_EVERY } else { Span::ZERO }
            }
            CURRENT => self.active_check,
            _ => self.full_interval,
        };
        match self.or_off(every) {
            OFF => Plan::Fixed(Fixed { every: OFF, eager: false, place: Some(Span::ZERO) }),
            every => Plan::Fixed(Fixed { every, eager: true, place: None }),
        }
    }

    /// What is off keeps its target and its records: only nobody asks any more.
    fn or_off(&self, every: Span) -> Span {
        if self.enabled && every > Span::ZERO { every } else { OFF }
    }
}
