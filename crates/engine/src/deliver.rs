//! Deliver: hands committed events to sinks, at least once, each with a constant id; in order, but for those that failed
//! and wait for another try.
//!
//! Events and their deliveries commit together, so nothing is lost when the process dies between commit and
//! delivery; what was delivered but not yet marked is delivered again with the same id.

use std::sync::Arc;

use async_trait::async_trait;
use stakeout_core::{Event, Span};
use stakeout_store::{Delivery, LeaseRequest};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::shared::Shared;

/// Deliveries taken at once.
const BATCH: u32 = 100;
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
#[error("{0}")]
pub struct SinkError(pub String);

/// A receiver of events outside this process.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// The name its deliveries are stored under.
    fn name(&self) -> &str;

    /// Delivers one event. It may have been delivered before: receivers tell by its id.
    async fn deliver(&self, event: &Event) -> Result<(), SinkError>;
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
    loop {
        let more = drain(&shared, &*sink, &stop).await;
        if stop.is_cancelled() {
            return;
        }
        if more {
            continue;
        }
        let later = shared.clock.now() + LOOK_EVERY;
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = newest.changed() => if changed.is_err() { return },
            () = shared.clock.sleep_until(later) => {}
        }
    }
}

/// Delivers what is due; answers whether there may be more.
async fn drain(shared: &Shared, sink: &dyn Sink, stop: &CancellationToken) -> bool {
    let _busy = shared.clock.busy();
    if !is_ours(shared, sink).await {
        return false;
    }
    let due = match shared.store.deliveries(sink.name(), shared.clock.now(), BATCH).await {
        Ok(due) => due,
        Err(error) => {
            shared.store_failed(&error);
            return false;
        }
    };
    let mut delivered = Vec::new();
    for delivery in &due {
        if stop.is_cancelled() {
            break;
        }
        match sink.deliver(&delivery.event).await {
            Ok(()) => delivered.push(delivery.event.seq),
            Err(error) => put_off(shared, sink, delivery, &error).await,
        }
    }
    if let Err(error) = shared.store.delivered(sink.name(), &delivered).await {
        shared.store_failed(&error);
        return false;
    }
    due.len() as u32 >= BATCH
}

/// Where several nodes share the outbox, one of them delivers to a sink: the order is kept, and nothing is sent by all.
async fn is_ours(shared: &Shared, sink: &dyn Sink) -> bool {
    let request = LeaseRequest {
        name: format!("sink {}", sink.name()),
        node: shared.node.clone(),
        now: shared.clock.now(),
        holds: LEASE,
    };
    match shared.store.lease(&request).await {
        Ok(lease) => lease.is_some(),
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
