//! The simulated FPVTrackside as the engine's upstream, in process: one thread, one request after another, each of which
//! takes its time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use stakeout_core::{ContentHash, Failure, FailureClass, Request, Response, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, Fetch};
use stakeout_sim::fpv::{Reply, Upstream};
use stakeout_sim::mix;
use stakeout_store::Validators;

/// How long it takes to be refused.
const REFUSED_AFTER: Span = Span::ms(1);

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Look {
    /// The path.
    pub path: Arc<str>,
    /// When the upstream read the file.
    pub read: Time,
    /// When the answer was whole.
    pub ended: Time,
    /// Whether it was what the file said, and not nothing, a page or half of it.
    pub whole: bool,
    /// Whether it differed from the look before.
    pub differs: bool,
}

/// What was asked, and how.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Every answer, in order.
    pub looks: Vec<Look>,
    /// Requests, refused ones included.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// The most requests at the upstream at once.
    pub most_at_once: u32,
    /// The shortest time between two requests.
    pub least_gap: Option<Span>,
}

#[derive(Default)]
struct State {
    asked: Asked,
    in_flight: u32,
    last_sent: Option<Time>,
    /// When the one thread is free again.
    free: Option<Time>,
    paths: HashMap<String, (Arc<str>, ContentHash)>,
}

/// Answers the engine's requests from a simulated event.
pub struct Trackside {
    upstream: Arc<Upstream>,
    seed: u64,
    /// The shortest and the longest time that a request takes.
    latency: (Span, Span),
    state: Mutex<State>,
}

impl Trackside {
    /// An upstream that has been asked nothing yet.
    pub fn new(upstream: Arc<Upstream>, seed: u64, latency: (Span, Span)) -> Trackside {
        Trackside { upstream, seed, latency, state: Mutex::default() }
    }

    /// What was asked so far.
    pub fn asked(&self) -> Asked {
        self.state().asked.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("never poisoned, because nothing panics while it is held")
    }

    fn latency(&self, n: u64) -> Span {
        let (least, most) = (self.latency.0.as_us(), self.latency.1.as_us());
        Span::us(least + (mix(self.seed ^ mix(n)) % (most - least + 1).max(1) as u64) as i64)
    }

    /// Takes the request in; answers when its turn comes and when it is over.
    fn arrive(&self, now: Time) -> (Time, Time) {
        let mut state = self.state();
        let took = self.latency(state.asked.requests);
        state.asked.requests += 1;
        state.in_flight += 1;
        state.asked.most_at_once = state.asked.most_at_once.max(state.in_flight);
        if let Some(gap) = state.last_sent.replace(now).map(|last| now - last) {
            state.asked.least_gap = Some(state.asked.least_gap.map_or(gap, |least| least.min(gap)));
        }
        let turn = state.free.map_or(now, |free| free.max(now));
        state.free = Some(turn + took);
        (turn, turn + took)
    }

    fn note(&self, path: &str, body: &[u8], read: Time, ended: Time) {
        let hash = ContentHash::of_bytes(body);
        let mut state = self.state();
        let known = state.paths.get(path).cloned();
        let differs = known.as_ref().is_none_or(|(_, before)| *before != hash);
        let path = known.map_or_else(|| Arc::from(path), |(path, _)| path);
        state.paths.insert(path.to_string(), (Arc::clone(&path), hash));
        let whole = !path.ends_with(".json") || (body.len() > 2 && body.trim_ascii_end().ends_with(b"]"));
        state.asked.looks.push(Look { path, read, ended, whole, differs });
    }
}

/// Leaves the upstream, also when the poll is abandoned.
struct InFlight<'a>(&'a Trackside);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
    }
}

#[async_trait]
impl Fetch for Trackside {
    async fn fetch(
        &self,
        request: &Request,
        _: &Validators,
        limits: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let sent = clock.now();
        let rest = request.url.split_once("://").map_or(request.url.as_str(), |(_, rest)| rest);
        let path = &rest[rest.find('/').unwrap_or(rest.len())..];
        let (turn, over) = self.arrive(sent);
        let _in_flight = InFlight(self);
        let latest = sent + Span::from_std(limits.total);
        if turn >= latest {
            clock.sleep_until(latest).await;
            return Err(Failure::new(FailureClass::Timeout, "operation timed out"));
        }
        clock.sleep_until(turn).await;
        let reply = self.upstream.answer(path, turn);
        let ended = match reply {
            Reply::Refused => turn + REFUSED_AFTER,
            Reply::Timeout => latest,
            _ => over.min(latest),
        };
        clock.sleep_until(ended).await;
        match reply {
            Reply::Refused => {
                self.state().asked.refused += 1;
                Err(Failure::new(FailureClass::Refused, "connection refused"))
            }
            Reply::Reset => Err(Failure::new(FailureClass::Reset, "connection reset")),
            Reply::Timeout => Err(Failure::new(FailureClass::Timeout, "operation timed out")),
            Reply::Answer(_) if over > latest => {
                Err(Failure::new(FailureClass::Timeout, "operation timed out"))
            }
            Reply::Answer(answer) => {
                self.note(path, &answer.body, turn, ended);
                let response = Response {
                    status: answer.status,
                    body: answer.body,
                    content_type: Some("application/json".to_owned()),
                    age: Span::ZERO,
                };
                Ok(Answer::Full(response, Validators::default()))
            }
        }
    }
}
