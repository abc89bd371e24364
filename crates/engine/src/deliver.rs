//! Deliver: hands committed events to sinks, at least once, each with a constant id; in order, but for those that failed
//! and wait for another try.
//!
//! Events and their deliveries commit together, so nothing is lost when the process dies between commit and
//! delivery; what was delivered but not yet marked is delivered again with the same id.

use std::sync::Arc;

use async_trait::async_trait;
use stakeout_core::{Event, Span, Time};
use stakeout_store::{Delivery, LeaseRequest};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::shared::Shared;

/// Deliveries taken at once.
const BATCH: u32 = 100;
/// Deliveries handed to a sink at once; between two such parcels it may be told to stop.
const AT_ONCE: usize = 25;
/// How soon a sink that is not there is tried again.
const DOWN_WAIT: Span = Span::secs(1);
/// The first wait after a failed delivery; doubled up to [`LONGEST_WAIT`].
const FIRST_WAIT: Span = Span::secs(1);
/// The longest wait between two tries.
const LONGEST_WAIT: Span = Span::hours(1);
/// After so many tries a delivery is kept as dead, to be looked at by a person.
const MOST_TRIES: u32 = 80;
/// Deliveries wait at most this long for somebody to notice them.
const LOOK_EVERY: Span = Span::secs(5);
/// How long a sink stays the node's that delivers to it, if that is never heard of again.
const LEASE: Span = Span::secs(15);

/// Why a sink did not take an event.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// It did not want this one; the others are not its fault.
    #[error("{0}")]
    Refused(String),
    /// Nobody is there to take any: all of them wait, and none counts as tried.
    #[error("{0}")]
    Down(String),
}

/// A receiver of events outside this process.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// The name its deliveries are stored under.
    fn name(&self) -> &str;

    /// Delivers one event. It may have been delivered before: receivers tell by its id.
    async fn deliver(&self, event: &Event) -> Result<(), SinkError>;

    /// Delivers several, in their order. There may be fewer outcomes than events: those at the end were not tried.
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        let mut outcomes = Vec::with_capacity(events.len());
        for event in events {
            let outcome = self.deliver(event).await;
            let over = matches!(outcome, Err(SinkError::Down(_)));
            outcomes.push(outcome);
            if over {
                break;
            }
        }
        outcomes
    }
}

/// A sink that takes everything and tells nobody: it proves that the outbox drains.
pub struct NullSink;

#[async_trait]
impl Sink for NullSink {
    fn name(&self) -> &str {
        "null"
    }

    async fn deliver(&self, _event: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Delivers to one sink until told to stop. A dead sink slows nobody but itself.
pub(crate) async fn run(
    shared: Arc<Shared>,
    sink: Arc<dyn Sink>,
    mut newest: watch::Receiver<u64>,
    stop: CancellationToken,
) {
    let mut ours_until = Time(i64::MIN);
    loop {
        let drained = drain(&shared, &*sink, &mut ours_until, &stop).await;
        if stop.is_cancelled() {
            return;
        }
        let later = shared.clock.now() + if drained == Drained::Down { DOWN_WAIT } else { LOOK_EVERY };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = newest.changed(), if drained == Drained::Dry => if changed.is_err() { return },
            () = shared.clock.sleep_until(later), if drained != Drained::More => {}
            () = std::future::ready(()), if drained == Drained::More => {}
        }
    }
}

/// What is left when a batch was delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drained {
    /// Nothing, for now.
    Dry,
    /// Perhaps something.
    More,
    /// Everything: nobody is there to take it.
    Down,
}

/// Delivers what is due.
async fn drain(shared: &Shared, sink: &dyn Sink, ours_until: &mut Time, stop: &CancellationToken) -> Drained {
    let _busy = shared.clock.busy();
    if !is_ours(shared, sink, ours_until).await {
        return Drained::Dry;
    }
    let due = match shared.store.deliveries(sink.name(), shared.clock.now(), BATCH).await {
        Ok(due) => due,
        Err(error) => {
            shared.store_failed(&error);
            return Drained::Dry;
        }
    };
    let mut delivered = Vec::new();
    let mut left = if due.len() as u32 >= BATCH { Drained::More } else { Drained::Dry };
    for some in due.chunks(AT_ONCE) {
        if stop.is_cancelled() || left == Drained::Down {
            break;
        }
        let events: Vec<&Event> = some.iter().map(|delivery| &delivery.event).collect();
        for (delivery, outcome) in some.iter().zip(sink.deliver_all(&events).await) {
            match outcome {
                Ok(()) => delivered.push(delivery.event.seq),
                Err(error @ SinkError::Refused(_)) => put_off(shared, sink, delivery, &error).await,
                Err(SinkError::Down(error)) => {
                    debug!(sink = sink.name(), error, "nobody takes events, trying again");
                    left = Drained::Down;
                }
            }
        }
    }
    if let Err(error) = shared.store.delivered(sink.name(), &delivered).await {
        shared.store_failed(&error);
        return Drained::Dry;
    }
    left
}

/// Where several nodes share the outbox, one of them delivers to a sink: the order is kept, and nothing is sent by all.
async fn is_ours(shared: &Shared, sink: &dyn Sink, until: &mut Time) -> bool {
    if shared.clock.now() + LEASE.over(2) < *until {
        return true;
    }
    let request = LeaseRequest {
        name: format!("sink {}", sink.name()),
        node: shared.node.clone(),
        now: shared.clock.now(),
        holds: LEASE,
    };
    match shared.store.lease(&request).await {
        Ok(lease) => {
            *until = lease.map_or(Time(i64::MIN), |lease| lease.until);
            lease.is_some()
        }
        Err(error) => {
            shared.store_failed(&error);
            false
        }
    }
}

async fn put_off(shared: &Shared, sink: &dyn Sink, delivery: &Delivery, error: &SinkError) {
    let seq = delivery.event.seq;
    warn!(sink = sink.name(), seq, attempts = delivery.attempts + 1, %error, "delivery failed");
    let wait = FIRST_WAIT.times(1 << delivery.attempts.min(12)).min(LONGEST_WAIT);
    let retry = (delivery.attempts + 1 < MOST_TRIES).then(|| shared.clock.now() + wait);
    if let Err(error) = shared.store.delivery_failed(sink.name(), seq, retry, &error.to_string()).await {
        shared.store_failed(&error);
    }
}
