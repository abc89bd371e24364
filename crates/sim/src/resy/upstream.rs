//! The simulated upstream: the venue search, and when it goes wrong.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use bytes::Bytes;
use stakeout_core::Time;

use super::faults::{Fault, Faults, older_by, twist};
use super::incident::Incident;
use super::market::Market;
use super::page::Pages;
use super::request::{Asked, Search};
use crate::reply::{Answer, Reply};
use crate::rng::SplitMix64;
use crate::wire::header;

const SEARCH: &str = "/3/venuesearch/search";
const LOGIN: &str =
    "<!doctype html><html><head><title>Log in</title></head><body><form></form></body></html>";
const DOWN: &str = "<html><body>Service Unavailable</body></html>";

/// The upstream over a market. Without faults an answer depends on its arguments alone.
#[derive(Debug)]
pub struct Upstream {
    market: Market,
    pages: Pages,
    faults: RwLock<(Faults, Vec<Incident>)>,
    requests: AtomicU64,
    faulted: Mutex<BTreeMap<Fault, u64>>,
}

impl Upstream {
    /// An upstream that serves this market, without faults.
    pub fn new(market: Market) -> Upstream {
        Upstream {
            market,
            pages: Pages::default(),
            faults: RwLock::new((Faults::none(0), Vec::new())),
            requests: AtomicU64::new(0),
            faulted: Mutex::default(),
        }
    }

    /// The market it serves.
    pub fn market(&self) -> &Market {
        &self.market
    }

    /// From now on, these faults by rates.
    pub fn set_faults(&self, faults: Faults) {
        self.faults.write().unwrap_or_else(PoisonError::into_inner).0 = faults;
    }

    /// From now on, these faults by script. They come before the drawn ones; of several the first counts.
    pub fn set_incidents(&self, incidents: Vec<Incident>) {
        self.faults.write().unwrap_or_else(PoisonError::into_inner).1 = incidents;
    }

    /// How many requests came in.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many of them met which fault.
    pub fn faulted(&self) -> BTreeMap<Fault, u64> {
        self.faulted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers a POST at `now`, with a fault if the script or this request's number calls for one.
    pub fn answer(&self, asked: Asked<'_>, now: Time) -> Reply {
        self.answer_and_tell(asked, now).0
    }

    /// The same, and which fault it met.
    pub fn answer_and_tell(&self, asked: Asked<'_>, now: Time) -> (Reply, Option<Fault>) {
        let n = self.requests.fetch_add(1, Ordering::Relaxed);
        let search = Search::read(asked.body);
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        let (rates, script) = &*faults;
        let scripted = script.iter().find(|incident| incident.concerns(search.as_ref().ok(), now));
        let Some(fault) = scripted.map(|incident| incident.fault).or_else(|| rates.pick(n)) else {
            return (Reply::Answer(self.route(asked, search, now)), None);
        };
        let mut draws = rates.details(n);
        drop(faults);
        *self.faulted.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
        (self.faulty(fault, &mut draws, asked, search, now), Some(fault))
    }

    /// Answers a POST at `now` as if nothing could go wrong, and counts nothing.
    pub fn honest(&self, asked: Asked<'_>, now: Time) -> Answer {
        self.route(asked, Search::read(asked.body), now)
    }

    fn faulty(
        &self,
        fault: Fault,
        draws: &mut SplitMix64,
        asked: Asked<'_>,
        search: Result<Search, String>,
        now: Time,
    ) -> Reply {
        if let (Some(twist), Ok(search)) = (twist(fault, draws), &search) {
            let body = self.pages.twisted(&self.market, search, now, &twist);
            return Reply::Answer(Answer::json(200, body, asked.headers));
        }
        Reply::Answer(match fault {
            Fault::Reset => return Reply::Reset,
            Fault::Timeout => return Reply::Timeout,
            Fault::Truncated => return self.route(asked, search, now).truncated(draws),
            Fault::Malformed => {
                // Cut before it is packed, so that what arrives unpacks.
                let whole =
                    self.route(Asked { headers: &unpacked(asked.headers), ..asked }, search, now).body;
                Answer::json(
                    200,
                    whole.slice(..whole.len() * draws.between(1, 9) as usize / 10),
                    asked.headers,
                )
            }
            Fault::Redirect => {
                let headers = vec![("Location".to_owned(), "/login?expired=1".to_owned())];
                Answer { status: 302, headers, body: Bytes::new() }
            }
            Fault::Unauthorized => refuse(401, "Unauthorized", asked),
            Fault::Forbidden => refuse(403, "Forbidden", asked),
            Fault::TooMany => refuse(429, "Rate limit exceeded", asked).with_retry_hint(draws, now),
            Fault::ServerError => refuse(500, "Internal Server Error", asked),
            Fault::Unavailable => Answer::html(503, DOWN),
            Fault::LoginPage => Answer::html(200, LOGIN),
            Fault::Empty => empty(asked),
            Fault::Older => self.route(asked, search, now - older_by(draws)),
            // The others twist a page; there is none when the request is wrong.
            _ => self.route(asked, search, now),
        })
    }

    fn route(&self, asked: Asked<'_>, search: Result<Search, String>, now: Time) -> Answer {
        let given = |name: &str| header(asked.headers, name).is_some_and(|value| !value.trim().is_empty());
        if !given("User-Agent") {
            return refuse(500, "Internal Server Error", asked);
        }
        if !header(asked.headers, "Authorization").is_some_and(|key| key.starts_with("ResyAPI api_key=")) {
            return refuse(401, "Unauthorized", asked);
        }
        if asked.path.split('?').next() != Some(SEARCH) {
            return refuse(404, "Not Found", asked);
        }
        match search {
            Ok(search) => Answer::json(200, self.pages.honest(&self.market, &search, now), asked.headers),
            Err(wrong) => refuse(400, &wrong, asked),
        }
    }
}

fn refuse(status: u16, message: &str, asked: Asked<'_>) -> Answer {
    let body = serde_json::json!({ "status": status, "message": message }).to_string();
    Answer::json(status, body.into(), asked.headers)
}

/// What the real one answers for minutes when its index is away: all is well, and there is nothing.
fn empty(asked: Asked<'_>) -> Answer {
    const NOTHING: &str = concat!(
        r#"{"meta":{"engine":"ELASTIC","total":0,"page":1,"per_page":75,"total_pages":0},"#,
        r#""search":{"nbPages":0,"cuisines":[],"hitsPerPage":75,"hits":[],"page":1,"nbHits":0},"suggestions":[]}"#
    );
    Answer::json(200, Bytes::from_static(NOTHING.as_bytes()), asked.headers)
}

fn unpacked(headers: &[(String, String)]) -> Vec<(String, String)> {
    let other = headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("Accept-Encoding"));
    other.cloned().collect()
}
