//! Normalize: turns answers into an observation, or into a failure.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stakeout_core::{Failure, FailureClass, Observation, Span, Time, Warning};

use super::Job;
use super::fetch::Fetched;
use crate::redact::redact;

/// An answer that claims to be from later than this after now is mistaken.
const CLOCKS_DIFFER: Span = Span::hours(1);

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
        return failed(failure.clone(), fetched);
    }
    if fetched.not_modified {
        return Seen::NotModified;
    }
    // When nothing at all was answered there is nothing to understand; a part of the answers may be worth something.
    let answered = fetched.exchanges.iter().any(|exchange| exchange.result.is_ok());
    if let (false, Some(Err(failure))) = (answered, fetched.exchanges.first().map(|e| e.result.as_ref())) {
        return failed(failure.clone(), fetched);
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
        Ok(Err(failure)) => failed(failure, fetched),
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            failed(Failure::new(FailureClass::Internal, format!("the source panicked: {words}")), fetched)
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

fn failed(failure: Failure, fetched: &Fetched) -> Seen {
    Seen::Failed(Failure { message: redact(&failure.message, &fetched.exchanges), ..failure })
}
