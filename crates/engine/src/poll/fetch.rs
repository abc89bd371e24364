//! Fetch: asks the upstream what the source wants to know.

use bytes::Bytes;
use stakeout_core::{ContentHash, Entry, Exchange, Failure, FailureClass, Method, Request, Span, Time};
use stakeout_store::Validators;

use super::Job;
use crate::fetch::{Answer, FetchLimits};

/// What came of a poll's requests.
pub(super) struct Fetched {
    pub(super) exchanges: Vec<Exchange>,
    /// The upstream said that what we have is current.
    pub(super) not_modified: bool,
    /// The poll could not even be made: nothing was concluded and nothing may be.
    pub(super) failure: Option<Failure>,
    /// A hash of the answers, where equal ones mean the same.
    pub(super) body: Option<ContentHash>,
    /// The validators of the only answer, when there was one.
    pub(super) validators: Validators,
    pub(super) sent: Time,
    pub(super) ended: Time,
    pub(super) requests: u32,
    pub(super) bytes: u64,
    pub(super) max_age: Span,
    /// Whether this poll learned something about the source's credentials.
    pub(super) standing: Standing,
}

/// What a poll learned about the source's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing new.
    Same,
    /// They are refused, for this reason, and that is not stored yet.
    Refused(Failure),
    /// They work again, and what is stored says that they are refused.
    Restored,
}

/// What is kept of a large body once it is understood: enough for a sample.
const BODY_BYTES: usize = 16 << 10;

impl Fetched {
    /// Lets go of large bodies: polls may wait for the disk, and there can be thousands of them.
    pub(super) fn forget_bodies(&mut self) {
        for exchange in &mut self.exchanges {
            if let Ok(response) = &mut exchange.result
                && response.body.len() > BODY_BYTES
            {
                response.body = Bytes::copy_from_slice(&response.body[..BODY_BYTES]);
            }
        }
    }
}

pub(super) async fn fetch(job: &Job<'_>) -> Fetched {
    let began = job.shared.clock.now();
    let mut fetched = Fetched {
        exchanges: Vec::new(),
        not_modified: false,
        failure: None,
        body: None,
        validators: Validators::default(),
        sent: began,
        ended: began,
        requests: 0,
        bytes: 0,
        max_age: Span::ZERO,
        standing: Standing::Same,
    };
    let context = job.context(began);
    let limits = job.source.limits();
    loop {
        let requests = job.source.requests(&job.claim.spec, &fetched.exchanges, &context);
        if requests.is_empty() {
            recognise_repeat(job, &mut fetched);
            return fetched;
        }
        let alone = fetched.exchanges.is_empty() && requests.len() == 1;
        for request in requests {
            if fetched.requests >= limits.max_requests_per_poll {
                let most = limits.max_requests_per_poll;
                let message =
                    format!("the poll wants more than {most} requests: raise the limit or narrow the target");
                fetched.failure = Some(Failure::new(FailureClass::TooManyRequests, message));
                return fetched;
            }
            if !exchange(job, request, alone, &mut fetched).await {
                return fetched;
            }
        }
    }
}

/// Makes one request; answers whether the poll should go on.
async fn exchange(job: &Job<'_>, request: Request, alone: bool, fetched: &mut Fetched) -> bool {
    let clock = &job.shared.clock;
    // The dispatcher admitted the first request; the others wait for their turn here.
    if fetched.requests > 0 {
        job.lane.admitted(clock).await;
    }
    let Some(limits) = limits(job) else {
        let message = "the lease ran out before the request could be sent";
        fetched.failure = Some(Failure::new(FailureClass::Timeout, message));
        return false;
    };
    let validators = match alone && request.method == Method::Get && job.has_settled() {
        true => job.claim.state.validators.clone(),
        false => Validators::default(),
    };
    let sent = clock.now();
    if fetched.requests == 0 {
        fetched.sent = sent;
    }
    fetched.requests += 1;
    let answer = job.shared.fetch.fetch(&request, &validators, &limits, clock).await;
    let ended = clock.now();
    fetched.ended = ended;
    job.lane.took(&job.claim.spec.role, ended - sent);
    let result = match answer {
        Ok(Answer::NotModified) => {
            job.lane.heard(None, ended);
            fetched.not_modified = true;
            fetched.validators = validators;
            rewarded(job, ended, fetched);
            return false;
        }
        Ok(Answer::Full(response, validators)) => {
            rewarded(job, ended, fetched);
            fetched.bytes += response.body.len() as u64;
            fetched.max_age = fetched.max_age.max(response.age);
            if alone {
                fetched.validators = validators;
            }
            Ok(response)
        }
        Err(failure) => Err(failure),
    };
    job.lane.heard(result.as_ref().err(), ended);
    let complaint = result.as_ref().err().filter(|failure| failure.class.slows_source());
    if let Some(failure) = complaint {
        job.lane.penalise(ended, failure.retry_after);
    }
    let refused = result.as_ref().err().filter(|failure| job.source.is_refused(failure));
    match (&result, refused) {
        // What was restored a page ago is not.
        (_, Some(failure)) => {
            let untold = job.lane.refuse(ended);
            fetched.standing = if untold { Standing::Refused(failure.clone()) } else { Standing::Same };
        }
        (Err(_), None) => job.lane.failed(ended),
        _ => {}
    }
    let go_on = complaint.is_none() && refused.is_none();
    fetched.exchanges.push(Exchange { request, result, sent, ended });
    go_on
}

fn rewarded(job: &Job<'_>, ended: Time, fetched: &mut Fetched) {
    if job.lane.reward(ended) {
        fetched.standing = Standing::Restored;
    }
}

/// A request's time limit never exceeds what is left of the lease, on the target as on the source: whoever takes it over
/// waits for no ghost.
fn limits(job: &Job<'_>) -> Option<FetchLimits> {
    let limits = job.source.limits();
    let until = job.lane.tenure().until().map_or(job.lease_until(), |until| until.min(job.lease_until()));
    let left = job.shared.clock.real(until - job.shared.clock.now());
    (!left.is_zero()).then(|| FetchLimits {
        total: limits.timeout.to_std().min(left),
        connect: limits.connect_timeout.to_std(),
        read: limits.read_timeout.to_std(),
        max_body_bytes: limits.max_body_bytes,
    })
}

/// Answers that are the last good ones over again need no parsing, unless something has ended by itself meanwhile.
fn recognise_repeat(job: &Job<'_>, fetched: &mut Fetched) {
    if !job.source.repeats_mean_nothing_new(&job.claim.spec) {
        return;
    }
    let Some(body) = content(&fetched.exchanges, job.source.reads_by()) else { return };
    let ended = |entry: &Entry| entry.ends.is_some_and(|ends| ends <= fetched.sent);
    fetched.not_modified = job.claim.state.body == Some(body)
        && job.has_settled()
        && !job.claim.snapshot.entries().iter().any(ended);
    fetched.body = Some(body);
}

/// A hash of everything that was answered; `None` unless all of it was. An only answer's is that of its body.
fn content(exchanges: &[Exchange], reads_by: u64) -> Option<ContentHash> {
    let answered = |exchange: &Exchange| Some(ContentHash::of_bytes(&exchange.result.as_ref().ok()?.body));
    match exchanges {
        [] => None,
        [alone] if reads_by == 0 => answered(alone),
        several => {
            let mut all = reads_by.to_le_bytes().to_vec();
            for exchange in several {
                all.extend(ContentHash::of_bytes(&exchange.request.body).to_bytes());
                all.extend(answered(exchange)?.to_bytes());
            }
            Some(ContentHash::of_bytes(&all))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stakeout_core::Response;

    fn exchange(asked: &str, body: Option<&str>) -> Exchange {
        let response = |body: &str| Response {
            status: 200,
            body: Bytes::from(body.to_owned()),
            content_type: None,
            age: Span::ZERO,
        };
        Exchange {
            request: Request { body: Bytes::from(asked.to_owned()), ..Request::get("http://a/") },
            result: body.map(response).ok_or_else(|| Failure::new(FailureClass::Timeout, "late")),
            sent: Time(0),
            ended: Time(1),
        }
    }

    #[test]
    fn answers_are_the_same_when_all_of_them_are_and_mean_the_same() {
        let pages = [exchange("1", Some("a")), exchange("2", Some("b"))];
        let same = content(&pages, 7);
        assert!(same.is_some());
        assert_eq!(content(&pages.clone(), 7), same);
        assert_ne!(content(&pages, 8), same, "a live setting decides what is read out of it");
        assert_ne!(content(&[exchange("1", Some("a")), exchange("2", Some("c"))], 7), same);
        assert_ne!(content(&[exchange("1", Some("b")), exchange("2", Some("a"))], 7), same);
        assert_ne!(content(&[exchange("2", Some("a")), exchange("1", Some("b"))], 7), same);
        assert_ne!(content(&pages[..1], 7), same);
        assert_eq!(content(&[exchange("1", Some("a")), exchange("2", None)], 7), None, "a part of an answer");
        assert_eq!(content(&[], 7), None);
        assert_eq!(
            content(&pages[..1], 0),
            Some(ContentHash::of_bytes(b"a")),
            "as it is kept for one answer"
        );
    }
}
