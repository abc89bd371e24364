//! Normalize: turns answers into an observation, or into a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stakeout_core::{Exchange, Failure, FailureClass, Observation, Span, Time, Warning};

use super::Job;
use super::fetch::Fetched;

/// An answer that claims to be from later than this after now is mistaken.
const CLOCKS_DIFFER: Span = Span::hours(1);
/// Shorter values are words like `json` or `gzip`, not secrets.
const SHORTEST_SECRET: usize = 6;

/// What the answers amount to.
pub(super) enum Seen {
    /// An observation.
    Observation(Box<Observation>),
    /// What we have is current.
    NotModified,
    /// An answer older than one that was accepted before.
    Stale(Time),
    /// Nothing may be concluded.
    Failed(Failure),
}

pub(super) fn normalize(job: &Job<'_>, fetched: &Fetched) -> Seen {
    if let Some(failure) = &fetched.failure {
        return Seen::Failed(failure.clone());
    }
    if fetched.not_modified {
        return Seen::NotModified;
    }
    // When nothing at all was answered there is nothing to understand; a part of the answers may be worth something.
    let answered = fetched.exchanges.iter().any(|exchange| exchange.result.is_ok());
    if let (false, Some(Err(failure))) = (answered, fetched.exchanges.first().map(|e| e.result.as_ref())) {
        return Seen::Failed(failure.clone());
    }
    let context = job.context(fetched.sent);
    // A source that panics on some upstream's whim must not take the others down.
    let result = catch_unwind(AssertUnwindSafe(|| {
        job.source.normalize(&job.claim.spec, &fetched.exchanges, &context)
    }));
    match result {
        Ok(Ok(mut observation)) => {
            match (believable(&mut observation, fetched.ended), newest(job, fetched)) {
                (Some(as_of), Some(newest)) if as_of < newest => Seen::Stale(as_of),
                _ => {
                    for warning in &mut observation.warnings {
                        warning.detail = redact(&warning.detail, &fetched.exchanges);
                    }
                    Seen::Observation(Box::new(observation))
                }
            }
        }
        Ok(Err(failure)) => Seen::Failed(redacted(failure, &fetched.exchanges)),
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Seen::Failed(Failure::new(FailureClass::Internal, format!("the source panicked: {words}")))
        }
    }
}

/// The answer's own time, unless that cannot be: taken at its word it would make every later answer an old one.
fn believable(observation: &mut Observation, now: Time) -> Option<Time> {
    if let Some(ahead) = observation.as_of.take_if(|as_of| *as_of > now + CLOCKS_DIFFER) {
        let detail = format!("expected the time of the answer, found {ahead}, which is yet to come");
        observation.warnings.push(Warning { code: "bad_time", detail });
    }
    observation.as_of
}

/// The time of the newest answer that was accepted. One that is yet to come is from before the clock was set back.
fn newest(job: &Job<'_>, fetched: &Fetched) -> Option<Time> {
    job.claim.state.as_of.filter(|as_of| *as_of <= fetched.ended + CLOCKS_DIFFER)
}

fn redacted(failure: Failure, exchanges: &[Exchange]) -> Failure {
    Failure { message: redact(&failure.message, exchanges), ..failure }
}

/// Upstreams like to repeat what they were sent: whatever secret went out with a request must not come back into logs,
/// rows or samples.
pub(super) fn redact(words: &str, exchanges: &[Exchange]) -> String {
    let mut words = words.to_owned();
    for exchange in exchanges {
        let headers = exchange.request.headers.iter().map(|(_, value)| value.as_str());
        let query = exchange.request.url.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        for secret in headers.chain(query).filter(|value| value.len() >= SHORTEST_SECRET) {
            if words.contains(secret) {
                words = words.replace(secret, "[redacted]");
            }
        }
    }
    words
}
