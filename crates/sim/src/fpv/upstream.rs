//! The simulated upstream: what each path answers, and when it does not.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use bytes::Bytes;
use stakeout_core::{Span, Time};

use super::blind::{Instead, hiding};
use super::channels;
use super::config::Version;
use super::event::Event;
use super::faults::{Fault, Faults, torn_at};
use super::guid::Guid;
use super::state::File;

/// Where the channels are served.
pub(crate) const CHANNELS: &str = "/httpfiles/Channels.json";
const CURRENT: &str = "/current";
/// What no file name may hold: asking for it makes the real one's handler throw.
const THROWS: [&str; 6] = ["..", "|", "*", "<", "\"", "%00"];

/// An answer that arrives whole. Its status is 200: there is no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Headers, without a length: the type, nothing else.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
}

/// What a client gets: an answer, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A whole answer, right or wrong.
    Answer(Answer),
    /// The connection is reset.
    Reset,
    /// Nothing, ever.
    Timeout,
    /// The connection is refused: the program is not running.
    Refused,
}

/// The upstream over an event. Without faults an answer depends on its arguments alone.
#[derive(Debug)]
pub struct Upstream {
    event: Event,
    faults: RwLock<Faults>,
    requests: AtomicU64,
    faulted: Mutex<BTreeMap<Fault, u64>>,
    latency_us: AtomicU64,
    /// The last body written of each file, by the number of its save: a file is asked for more often than saved.
    written: Mutex<HashMap<(Guid, File), (usize, Bytes)>>,
}

impl Upstream {
    /// An upstream that serves this event, without faults.
    pub fn new(event: Event) -> Upstream {
        Upstream {
            event,
            faults: RwLock::new(Faults::none(0)),
            requests: AtomicU64::new(0),
            faulted: Mutex::default(),
            latency_us: AtomicU64::new(0),
            written: Mutex::default(),
        }
    }

    /// The event it serves.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// From now on, these faults.
    pub fn set_faults(&self, faults: Faults) {
        *self.faults.write().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// From now on, a server takes so long for each request, one after another, in real time.
    pub fn set_latency(&self, latency: Span) {
        self.latency_us.store(latency.as_us().max(0) as u64, Ordering::Relaxed);
    }

    /// How long a server takes for each request.
    pub fn latency(&self) -> Span {
        Span::us(self.latency_us.load(Ordering::Relaxed) as i64)
    }

    /// How many requests came in; not those refused.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many of them met which fault.
    pub fn faulted(&self) -> BTreeMap<Fault, u64> {
        self.faulted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers a GET at `now`, with a fault if this request's number draws one.
    pub fn answer(&self, path: &str, now: Time) -> Reply {
        if self.event.truth().is_off(now) {
            return Reply::Refused;
        }
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        let Some(fault) = faults.pick(n) else { return self.honest(path, now) };
        *self.faulted.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
        match fault {
            Fault::Reset => Reply::Reset,
            Fault::Timeout => Reply::Timeout,
            Fault::Empty => json(Bytes::new()),
            Fault::EmptyList => json(Bytes::from_static(b"[]")),
            Fault::Html => self.page(now),
            Fault::Torn => match self.honest(path, now) {
                Reply::Answer(mut answer) => {
                    answer.body.truncate(torn_at(&mut faults.details(n), answer.body.len()));
                    Reply::Answer(answer)
                }
                other => other,
            },
        }
    }

    /// Answers a GET at `now` without drawn faults (the incidents of the event are part of it), and counts nothing.
    pub fn honest(&self, path: &str, now: Time) -> Reply {
        if self.event.truth().is_off(now) {
            return Reply::Refused;
        }
        let path = path.split('?').next().unwrap_or(path);
        if THROWS.iter().any(|text| path.contains(text)) {
            return Reply::Reset;
        }
        if let Some((event, file)) = File::read(path) {
            return self.file(event, file, now);
        }
        match path {
            CHANNELS if self.event.channels.at(now) == Some(&true) => {
                json(self.event.recorded_channels.clone().unwrap_or_else(|| channels::body().into()))
            }
            CURRENT if self.event.version == Version::New => json(self.current(now).into()),
            // A file of an event's directory that nobody writes is missing like any other.
            _ if path.starts_with("/events/") && path.ends_with(".json") => json(Bytes::new()),
            _ => self.page(now),
        }
    }

    fn file(&self, event: Guid, file: File, now: Time) -> Reply {
        let body = self.body(event, file, now);
        match hiding(&self.event.blinds, event, file, now).map(|blind| blind.instead) {
            None => json(body),
            Some(Instead::Off) => Reply::Refused,
            Some(Instead::Nothing) => json(Bytes::new()),
            Some(Instead::EmptyList) => json(Bytes::from_static(b"[]")),
            Some(Instead::Page) => self.page(now),
            Some(Instead::Half) => json(body.slice(..body.len() / 2)),
        }
    }

    fn body(&self, event: Guid, file: File, now: Time) -> Bytes {
        let Some(line) = self.event.files.get(&(event, file)) else { return Bytes::new() };
        let (Some(index), Some(saved)) = (line.index(now), line.at(now)) else { return Bytes::new() };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        match written.get(&(event, file)) {
            Some((of, body)) if *of == index => body.clone(),
            _ => {
                let body = self.event.body(saved);
                written.insert((event, file), (index, body.clone()));
                body
            }
        }
    }

    fn current(&self, now: Time) -> String {
        match self.event.truth().hint(now) {
            Some(race) => format!("{{\"CurrentRace\":\"{race}\"}}"),
            None => "{\"CurrentRace\":null}".to_owned(),
        }
    }

    /// The page that answers whatever is not known. The open event is in its script.
    fn page(&self, now: Time) -> Reply {
        let event = self.event.id(now);
        let body = format!(
            "<html><head><title>FPVTrackside</title><link rel=\"stylesheet\" href=\"/httpfiles/style.css\">\
             <script src=\"/httpfiles/scripts/EventManager.js\"></script></head><body><div id=\"content\"></div>\
             <script>\nvar eventManager = new EventManager(\"events/{event}\", accessor);\n</script></body></html>\n"
        );
        answer("text/html", body.into())
    }
}

fn json(body: Bytes) -> Reply {
    answer("application/json", body)
}

fn answer(content_type: &str, body: Bytes) -> Reply {
    let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
    Reply::Answer(Answer { status: 200, headers, body })
}
