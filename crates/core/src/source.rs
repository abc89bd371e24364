//! What the engine asks of an upstream's source. Everything here is pure: the engine does the I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::compare::DoubtPolicy;
use crate::derive::{Derived, Derives, Holdings};
use crate::judge::{Draft, Judgement};
use crate::{Facts, Failure, Kind, KnownSetting, Observation, Plan, Rule, Span, TargetSpec, Time};

/// How a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// GET, with the validators of the last answer when it is the poll's only request.
    #[default]
    Get,
    /// POST with a JSON body.
    PostJson,
}

/// One request of a poll.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// GET or POST.
    pub method: Method,
    /// The absolute URL.
    pub url: String,
    /// Extra headers. Values may be secrets: they are never logged and `Debug` hides them.
    pub headers: Vec<(String, String)>,
    /// The body of a POST.
    pub body: Bytes,
}

impl Request {
    /// A GET without extra headers.
    pub fn get(url: impl Into<String>) -> Request {
        Request { method: Method::Get, url: url.into(), headers: Vec::new(), body: Bytes::new() }
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// A successful answer: a 2xx status with its whole, decompressed body.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, 200 to 299.
    pub status: u16,
    /// The body, within the source's size limit.
    pub body: Bytes,
    /// The `Content-Type`, when given.
    pub content_type: Option<String>,
    /// How long a cache had held the answer (`Age`).
    pub age: Span,
}

/// A request and what came of it. A poll with several requests may fail in part.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What was asked.
    pub request: Request,
    /// What came back.
    pub result: Result<Response, Failure>,
    /// When the request was handed to the socket.
    pub sent: Time,
    /// When the answer was whole, or the failure known.
    pub ended: Time,
}

/// How hard a source may be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Requests per second over all its targets.
    pub requests_per_second: f64,
    /// How many requests may be sent at once before the rate binds.
    pub burst: u32,
    /// Polls in flight.
    pub concurrency: u32,
    /// The least time between two requests.
    pub min_gap: Span,
    /// The longest a request may take, connection included.
    pub timeout: Span,
    /// The longest a connection may take to open.
    pub connect_timeout: Span,
    /// The longest silence while a body is being read.
    pub read_timeout: Span,
    /// The largest body, after decompression.
    pub max_body_bytes: u64,
    /// The most requests one poll may make.
    pub max_requests_per_poll: u32,
    /// The most jitter added to a due time; also at most a tenth of the interval.
    pub max_jitter: Span,
    /// How long the upstream takes to show its own changes: a doubted answer is confirmed no sooner.
    pub refresh: Span,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            requests_per_second: 5.0,
            burst: 5,
            concurrency: 4,
            min_gap: Span::ZERO,
            timeout: Span::secs(10),
            connect_timeout: Span::secs(5),
            read_timeout: Span::secs(5),
            max_body_bytes: 8 << 20,
            max_requests_per_poll: 100,
            max_jitter: Span::ms(150),
            refresh: Span::ZERO,
        }
    }
}

/// A live setting that cannot be: the old one stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} cannot be {found}: {expected}")]
pub struct SettingRefused {
    /// The setting's name, without the source.
    pub name: String,
    /// What was given.
    pub found: String,
    /// What would be accepted.
    pub expected: String,
}

impl SettingRefused {
    /// Refuses `found` for `name`; `expected` says what would do.
    pub fn new(name: &str, found: &serde_json::Value, expected: impl Into<String>) -> SettingRefused {
        SettingRefused { name: name.to_owned(), found: found.to_string(), expected: expected.into() }
    }
}

impl Limits {
    /// Applies one of the settings that every source has; `Ok(false)` when the name is none of them.
    pub fn apply(&mut self, name: &str, value: &serde_json::Value) -> Result<bool, SettingRefused> {
        let whole = |least: u64, most: u64| {
            value.as_u64().filter(|n| (least..=most).contains(n)).ok_or_else(|| {
                SettingRefused::new(name, value, format!("give a whole number from {least} to {most}"))
            })
        };
        match name {
            "requests_per_second" => {
                let rate = value.as_f64().filter(|r| *r > 0.0 && *r <= 100_000.0);
                self.requests_per_second = rate.ok_or_else(|| {
                    SettingRefused::new(name, value, "give a number above 0, at most 100000")
                })?;
            }
            "burst" => self.burst = whole(1, 100_000)? as u32,
            "concurrency" => self.concurrency = whole(1, 10_000)? as u32,
            "min_gap_ms" => self.min_gap = Span::ms(whole(0, 3_600_000)? as i64),
            "timeout_ms" => self.timeout = Span::ms(whole(1, 600_000)? as i64),
            "jitter_ms" => self.max_jitter = Span::ms(whole(0, 60_000)? as i64),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// How a source's due targets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// The longest time between two looks, however quiet everything is.
    pub every: Span,
    /// The most targets taken per look; a look that finds as many is followed by another at once.
    pub most: u32,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks { every: Span::secs(1), most: 500 }
    }
}

/// What normalisation may know besides the answers.
#[derive(Clone, Debug)]
pub struct PollContext<'a> {
    /// When the poll began, in engine time.
    pub now: Time,
    /// The facts of the last good poll.
    pub facts: &'a Facts,
}

/// The type of the event that an upstream does not take our credentials, of sources that know ([`Source::is_refused`]).
pub fn credentials_type(family: &str) -> String {
    format!("{family}.credentials")
}

/// An upstream: what to ask, what the answers mean, how often to look, what is worth telling.
pub trait Source: Send + Sync + 'static {
    /// The name the configuration gave it.
    fn name(&self) -> &str;

    /// What sort of source it is: `racing`, `json`.
    fn family(&self) -> &str;

    /// The kinds of records it keeps.
    fn kinds(&self) -> &[Arc<Kind>];

    /// Which changes become events.
    fn rules(&self) -> &[Rule];

    /// The types of the events that it tells and no rule makes.
    fn tells(&self) -> Vec<String> {
        Vec::new()
    }

    /// The types of all events that it may tell, by name.
    fn event_types(&self) -> BTreeSet<String> {
        self.rules().iter().map(|rule| rule.event_type.clone()).chain(self.tells()).collect()
    }

    /// How hard the upstream may be asked.
    fn limits(&self) -> &Limits;

    /// Requests per second that the adaptive targets share; `None` when the source has none.
    fn budget(&self) -> Option<f64> {
        None
    }

    /// When an answer is too bad to be true.
    fn doubt(&self) -> DoubtPolicy {
        DoubtPolicy::default()
    }

    /// How long a target's hold on a shared record counts without a whole answer: after that the record is news again
    /// to whoever sees it ([`Effect::Appeared`](crate::judge::Effect::Appeared)). For ever, unless a source says
    /// otherwise.
    fn holds_for(&self) -> Option<Span> {
        None
    }

    /// Whether this failure concerns everybody who asks: then nothing more is asked until a rare probe succeeds.
    fn is_refused(&self, _failure: &Failure) -> bool {
        false
    }

    /// What a user should know about the configuration, by the answers of one look: what a budget buys, say.
    fn outlook(&self, _exchanges: &[Exchange]) -> Vec<String> {
        Vec::new()
    }

    /// The codes of warnings that only say that an answer has more parts than were asked for. Whoever asks for a few of
    /// them knows that.
    fn says_of_a_part(&self) -> &[&'static str] {
        &[]
    }

    /// The targets that exist by configuration; all others come from listings.
    fn roots(&self, now: Time) -> Vec<TargetSpec>;

    /// Whether a service looks at this root whenever it starts, whatever its due time: what a listing said before may be
    /// old by now.
    fn looked_at_first(&self, _root: &TargetSpec) -> bool {
        false
    }

    /// The next requests of this poll, given the exchanges so far (none at first); empty when it has all it
    /// needs. Paging asks again, a plain target asks once, a calendar asks never.
    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], context: &PollContext<'_>) -> Vec<Request>;

    /// What the answers say. An error is a failed poll: nothing is concluded from it.
    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        context: &PollContext<'_>,
    ) -> Result<Observation, Failure>;

    /// Whether equal answers always mean the same, whenever they come: then answers that are the same as the last good
    /// ones, byte for byte, are not even parsed, unless a record's own time has passed meanwhile. Say no when `normalize`
    /// looks at the time for anything but fields that are not tracked.
    fn repeats_mean_nothing_new(&self, _target: &TargetSpec) -> bool {
        false
    }

    /// What besides the answers decides what is read out of them: a number that moves with such live settings.
    fn reads_by(&self) -> u64 {
        0
    }

    /// How often to look at this target, as things stand.
    fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan;

    /// How due targets are looked for.
    fn looks(&self) -> Looks {
        Looks::default()
    }

    /// The key of another target that this poll makes due at once: a hint, which costs nothing when it is wrong.
    fn due_now(&self, _target: &TargetSpec, _before: &Facts, _now: &Facts) -> Option<String> {
        None
    }

    /// When to look at everything the source holds; `None` when nothing follows from it.
    fn derives(&self) -> Option<Derives> {
        None
    }

    /// What follows from everything the source holds.
    fn derive(&self, _holdings: &Holdings<'_>) -> Derived {
        Derived::default()
    }

    /// The live settings it knows, as they are now: what [`Source::configured`] takes.
    fn known_settings(&self) -> Vec<KnownSetting> {
        self.limits().settings()
    }

    /// How the names of settings begin that may also be given without the source's name: then they hold for every
    /// source that knows them, unless it has its own.
    fn open_settings(&self) -> Option<&str> {
        None
    }

    /// This source with live settings applied over its configuration, or why one of them is refused. The names are
    /// those under `source.NAME.`; [`Limits::apply`] knows the common ones.
    fn configured(
        &self,
        settings: &BTreeMap<String, serde_json::Value>,
    ) -> Result<Arc<dyn Source>, SettingRefused>;

    /// The events of a poll; the rules decide unless a source knows better.
    fn judge(&self, judgement: &Judgement<'_>) -> Vec<Draft> {
        crate::judge::by_rules(self.rules(), judgement)
    }
}
