//! The simulated upstream: endpoints, envelope, faults.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use stakeout_core::Time;

use super::day::{Day, Meeting};
use super::faults::{Fault, Faults, Twist, older_by};
use super::render_event;
use super::render_meetings;
use super::request::{Filter, Flags};
use crate::json::{Object, list, nano_time};
use crate::reply::{Answer, Reply};
use crate::rng::{SplitMix64, mix};
use crate::wire::header;

const MEETINGS: &str = "/affiliates/v1/racing/meetings";
const EVENTS: &str = "/affiliates/v1/racing/events/";

/// The racing upstream over one or more days. Without faults an answer depends on its arguments alone.
#[derive(Debug)]
pub struct Upstream {
    days: Vec<Day>,
    faults: RwLock<Faults>,
    requests: AtomicU64,
    faulted: Mutex<BTreeMap<Fault, u64>>,
}

impl Upstream {
    /// An upstream that knows these days, without faults.
    pub fn new(days: impl IntoIterator<Item = Day>) -> Upstream {
        Upstream {
            days: days.into_iter().collect(),
            faults: RwLock::new(Faults::none(0)),
            requests: AtomicU64::new(0),
            faulted: Mutex::default(),
        }
    }

    /// The days it knows.
    pub fn days(&self) -> &[Day] {
        &self.days
    }

    /// From now on, these faults.
    pub fn set_faults(&self, faults: Faults) {
        *self.faults.write().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// How many requests came in.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many of them met which fault.
    pub fn faulted(&self) -> BTreeMap<Fault, u64> {
        self.faulted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers a GET at `now`, with a fault if this request's number draws one.
    pub fn answer(&self, path_and_query: &str, headers: &[(String, String)], now: Time) -> Reply {
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        let Some(fault) = faults.pick(n) else {
            return Reply::Answer(self.honest(path_and_query, headers, now));
        };
        let mut draws = faults.details(n);
        drop(faults);
        *self.faulted.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
        self.faulty(fault, &mut draws, Asked { path_and_query, headers, now })
    }

    /// Answers a GET at `now` as if nothing could go wrong, and counts nothing.
    pub fn honest(&self, path_and_query: &str, headers: &[(String, String)], now: Time) -> Answer {
        self.route(Asked { path_and_query, headers, now }, &Twist::default())
    }

    fn faulty(&self, fault: Fault, draws: &mut SplitMix64, asked: Asked<'_>) -> Reply {
        let answer = match fault {
            Fault::Reset => return Reply::Reset,
            Fault::Timeout => return Reply::Timeout,
            Fault::Truncated => {
                return self.route(asked, &Twist::default()).truncated(draws);
            }
            Fault::TooMany => asked.refuse(429, "too many requests").with_retry_hint(draws, asked.now),
            Fault::ServerError => asked.refuse(500, "internal error"),
            Fault::Unavailable => Answer::html(503, "<html><body>Service Unavailable</body></html>"),
            Fault::UnknownStatus => self.route(asked, &Twist::unknown_status(draws)),
            Fault::MissingFields => self.route(asked, &Twist::missing(draws)),
            Fault::Older => {
                self.route(Asked { now: asked.now - older_by(draws), ..asked }, &Twist::default())
            }
            Fault::Empty => asked.envelope("Empty", |o| {
                o.raw("params", "{}").raw("data", if draws.one_in(2) { "{}" } else { "null" });
            }),
        };
        Reply::Answer(answer)
    }

    fn route(&self, asked: Asked<'_>, twist: &Twist) -> Answer {
        if let Some(missing) = asked.unidentified() {
            return asked.refuse(400, &format!("missing identification header {missing}"));
        }
        let (path, query) = asked.path_and_query.split_once('?').unwrap_or((asked.path_and_query, ""));
        if path == MEETINGS {
            return match Filter::read(query, asked.now) {
                Ok(filter) => self.listing(asked, &filter, twist),
                Err(wrong) => asked.refuse(400, &wrong),
            };
        }
        if let Some(id) = path.strip_prefix(EVENTS) {
            return self.event(asked, id, &Flags::read(query), twist);
        }
        match path.strip_prefix(MEETINGS).and_then(|rest| rest.strip_prefix('/')) {
            Some(id) => self.one_meeting(asked, id, twist),
            None => asked.refuse(404, "no such endpoint"),
        }
    }

    fn event(&self, asked: Asked<'_>, id: &str, flags: &Flags, twist: &Twist) -> Answer {
        let Some(race) = self.days.iter().find_map(|day| day.race(id)) else {
            return asked.refuse(404, "event not found");
        };
        asked.envelope(&format!("Event Details: {id}"), |o| {
            let mut params = Object::begin(o.key("params"));
            params.text("enc", "json").text("id", id).bare("with_big_bets", flags.big_bets);
            params.bare("with_money_tracker", flags.money_tracker).bare("will_pays", flags.will_pays);
            params.bare("with_tote_trends_data", flags.tote_trends).bare("bets_limit", 10);
            params.end();
            render_event::event(o.key("data"), race, race.served_at(asked.now), flags, twist);
        })
    }

    fn listing(&self, asked: Asked<'_>, filter: &Filter, twist: &Twist) -> Answer {
        let wanted = |meeting: &&Meeting| {
            filter.category.as_ref().is_none_or(|c| c == meeting.category.letter())
                && filter.country.as_ref().is_none_or(|c| c == meeting.country)
                && filter.ids.as_ref().is_none_or(|ids| ids.contains(&meeting.id))
        };
        let days = self.days.iter().filter(|day| (filter.from..=filter.to).contains(&day.date()));
        let all = days
            .flat_map(|day| day.meetings().iter().filter(wanted).map(move |meeting| (day.date(), meeting)));
        let page = all.skip(filter.offset).take(filter.limit);
        asked.envelope("Race Meetings", |o| {
            let mut params = Object::begin(o.key("params"));
            params.text("enc", "json").bare("date_from", format_args!("\"{}T00:00:00Z\"", filter.from));
            params.bare("date_to", format_args!("\"{}T00:00:00Z\"", filter.to));
            params.text("type", filter.category.as_deref().unwrap_or(" "));
            params.text("country", filter.country.as_deref().unwrap_or(" "));
            params.bare("limit", filter.limit).bare("offset", filter.offset).bare("futures", false);
            params.end();
            let mut data = Object::begin(o.key("data"));
            list(data.key("meetings"), page, |out, (date, meeting)| {
                render_meetings::meeting(out, meeting, date, asked.now, twist);
            });
            data.end();
        })
    }

    fn one_meeting(&self, asked: Asked<'_>, id: &str, twist: &Twist) -> Answer {
        let known = |day: &'_ Day| day.meetings().iter().position(|meeting| meeting.id == id);
        let Some((day, n)) = self.days.iter().find_map(|day| known(day).map(|n| (day, n))) else {
            return asked.refuse(404, "meeting not found");
        };
        asked.envelope("Get meeting by id", |o| {
            let mut params = Object::begin(o.key("params"));
            params.text("enc", "json").text("id", id);
            params.end();
            let out = o.key("data");
            out.push_str("{\"meetings\":[");
            render_meetings::meeting(out, &day.meetings()[n], day.date(), asked.now, twist);
            out.push_str("]}");
        })
    }
}

/// A request at its time.
#[derive(Clone, Copy)]
struct Asked<'a> {
    path_and_query: &'a str,
    headers: &'a [(String, String)],
    now: Time,
}

impl Asked<'_> {
    /// The identification header that is missing or empty.
    fn unidentified(&self) -> Option<&'static str> {
        let given = |name: &str| header(self.headers, name).is_some_and(|value| !value.trim().is_empty());
        if !header(self.headers, "From").is_some_and(|from| from.contains('@')) {
            return Some("From");
        }
        ["X-Partner", "X-Partner-ID"].into_iter().find(|name| !given(name))
    }

    fn envelope(&self, title: &str, fill: impl FnOnce(&mut Object<'_>)) -> Answer {
        let mut body = String::with_capacity(16 * 1024);
        let mut o = Object::begin(&mut body);
        let mut head = Object::begin(o.key("header"));
        head.text("title", title).text("generated_time", &self.stamp()).text("url", self.path_and_query);
        head.end();
        fill(&mut o);
        o.end();
        self.pack(200, body)
    }

    fn refuse(&self, status: u16, error: &str) -> Answer {
        let mut body = String::new();
        let mut o = Object::begin(&mut body);
        let mut head = Object::begin(o.key("header"));
        head.text("title", "Error").text("generated_time", &self.stamp()).text("url", self.path_and_query);
        head.text("error", error).text("error_code", &status.to_string());
        head.end();
        o.end();
        self.pack(status, body)
    }

    /// When the answer was made, to the nanosecond: it differs between any two answers.
    fn stamp(&self) -> String {
        let path = crate::script::body_hash(self.path_and_query.as_bytes());
        nano_time(self.now, (mix(path ^ self.now.us() as u64) % 1_000) as u32)
    }

    fn pack(&self, status: u16, body: String) -> Answer {
        Answer::json(status, body.into(), self.headers)
    }
}
