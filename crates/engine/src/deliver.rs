//! Deliver: hands committed events to sinks, at least once, each with a constant id; in order, but for those that failed
//! and wait for another try.
//!
//! Events and their deliveries commit together, so nothing is lost when the process dies between commit and
//! delivery; what was delivered but not yet marked is delivered again with the same id.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use stakeout_core::{Event, Span, Time, spread};
use stakeout_store::{Delivery, LeaseRequest};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::shared::Shared;
use crate::{outlets, parcels};

/// Deliveries taken at once.
const BATCH: u32 = 100;
/// Deliveries handed to a sink at once unless it says otherwise.
const AT_ONCE: usize = 25;
/// How soon a sink that is not there is tried again.
const DOWN_WAIT: Span = Span::secs(1);
/// The waits after a failed delivery: three days in all. After the last it is kept as dead, to be looked at by a person.
const WAITS: [Span; 13] = [
    Span::secs(5),
    Span::secs(30),
    Span::mins(2),
    Span::mins(5),
    Span::mins(15),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(4),
    Span::hours(8),
    Span::hours(12),
    Span::hours(20),
    Span::hours(24),
];
/// Up to this part of a wait comes on top of it, so that what failed together does not come back together.
const JITTER_PERCENT: u64 = 10;
/// Deliveries wait at most this long for somebody to notice them.
const LOOK_EVERY: Span = Span::secs(5);
/// How long a sink stays the node's that delivers to it, if that is never heard of again.
const LEASE: Span = Span::secs(15);
/// Words about a failure kept in the row.
const MESSAGE_CHARS: usize = 500;

/// Why a sink did not take an event.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// It did not want this one; the others are not its fault.
    #[error("{0}")]
    Refused(String),
    /// Nobody is there to take any: all of them wait, and none counts as tried.
    #[error("{0}")]
    Down(String),
    /// The receiver says that it is gone for good: nothing more is sent until the sink is switched on again.
    #[error("{0}")]
    Gone(String),
}

/// A receiver of events outside this process.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// The name its deliveries are stored under.
    fn name(&self) -> &str;

    /// What sort of sink it is, as the configuration calls it.
    fn kind(&self) -> &'static str {
        "other"
    }

    /// Whether it takes events of this type unasked; events that name it come besides.
    fn takes(&self, _event_type: &str) -> bool {
        true
    }

    /// How long events wait for others, to be handed over together with them.
    fn gathers(&self) -> Option<Span> {
        None
    }

    /// How many events it is handed at once. What became of them is marked when all of them are through, so a sink that
    /// has to wait for its receiver takes no more than it can have on their way.
    fn at_once(&self) -> usize {
        AT_ONCE
    }

    /// Delivers one event. It may have been delivered before: receivers tell by its id.
    async fn deliver(&self, event: &Event) -> Result<(), SinkError>;

    /// Delivers several, in their order. There may be fewer outcomes than events: those at the end were not tried.
    async fn deliver_all(&self, events: &[&Event]) -> Vec<Result<(), SinkError>> {
        let mut outcomes = Vec::with_capacity(events.len());
        for event in events {
            let outcome = self.deliver(event).await;
            let over = matches!(outcome, Err(SinkError::Down(_) | SinkError::Gone(_)));
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

/// Up to which event each sink has done what it can for now. Whoever ends the process soon waits for that.
pub(crate) type Settled = watch::Sender<BTreeMap<String, u64>>;

/// Delivers to one sink until told to stop. A dead sink slows nobody but itself.
pub(crate) async fn run(
    shared: Arc<Shared>,
    sink: Arc<dyn Sink>,
    mut newest: watch::Receiver<u64>,
    stop: CancellationToken,
) {
    let mut ours_until = Time(i64::MIN);
    loop {
        let seen = *newest.borrow_and_update();
        let drained = drain(&shared, &*sink, &mut ours_until, &stop).await;
        if stop.is_cancelled() {
            return;
        }
        if drained != Drained::More {
            shared.settled.send_modify(|settled| {
                settled.insert(sink.name().to_owned(), seen);
            });
        }
        let now = shared.clock.now();
        let later = match drained {
            Drained::More => continue,
            Drained::Down => now + DOWN_WAIT,
            Drained::Gathering(until) => until.min(now + LOOK_EVERY),
            Drained::Dry => now + LOOK_EVERY,
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = newest.changed(), if drained == Drained::Dry => if changed.is_err() { return },
            () = shared.clock.sleep_until(later) => {}
        }
    }
}

/// What is left when a batch was delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Nothing, for now.
    Dry,
    /// Perhaps something.
    More,
    /// Everything: it waits for others until then.
    Gathering(Time),
    /// Everything: nobody is there to take it.
    Down,
}

/// Delivers what is due.
async fn drain(shared: &Shared, sink: &dyn Sink, ours_until: &mut Time, stop: &CancellationToken) -> Drained {
    let _busy = shared.clock.busy();
    if shared.outlets.is_gone(sink.name()) {
        store_gone(shared, sink).await;
    }
    if !shared.outlets.is_on(sink.name()) || !is_ours(shared, sink, ours_until).await {
        return Drained::Dry;
    }
    let now = shared.clock.now();
    let due = match shared.store.deliveries(sink.name(), now, BATCH).await {
        Ok(due) => due,
        Err(error) => {
            shared.store_failed(&error);
            return Drained::Dry;
        }
    };
    if let Some(gathers) = sink.gathers() {
        let full = due.len() as u32 >= BATCH;
        return match parcels::drain(shared, sink, &due, full, gathers, now).await {
            Ok(drained) => drained,
            Err(error) => {
                shared.store_failed(&error);
                Drained::Dry
            }
        };
    }
    let all: Vec<&Delivery> = due.iter().collect();
    for some in all.chunks(sink.at_once().max(1)) {
        if stop.is_cancelled() {
            return Drained::Dry;
        }
        match deliver_some(shared, sink, some).await {
            Drained::More => {}
            over => return over,
        }
    }
    if due.len() as u32 >= BATCH { Drained::More } else { Drained::Dry }
}

/// Hands some over and marks what became of them; [`Drained::More`] when the next may follow.
pub(crate) async fn deliver_some(shared: &Shared, sink: &dyn Sink, some: &[&Delivery]) -> Drained {
    let events: Vec<&Event> = some.iter().map(|delivery| &delivery.event).collect();
    let mut delivered = Vec::new();
    let mut left = Drained::More;
    let outcomes = hand_over(shared, sink, &events).await;
    // One moment for all: what is handed over together comes back together.
    let now = shared.clock.now();
    for (delivery, outcome) in some.iter().zip(outcomes) {
        match outcome {
            Ok(()) => delivered.push(delivery.event.seq),
            Err(error @ SinkError::Refused(_)) => put_off(shared, sink, delivery, &error, now).await,
            Err(SinkError::Down(error)) => {
                debug!(sink = sink.name(), error, "nobody takes events, trying again");
                left = Drained::Down;
            }
            Err(error @ SinkError::Gone(_)) => {
                put_off(shared, sink, delivery, &error, now).await;
                switch_off(shared, sink, &error).await;
                left = Drained::Dry;
            }
        }
    }
    if let Err(error) = shared.store.delivered(sink.name(), &delivered).await {
        shared.store_failed(&error);
        return Drained::Dry;
    }
    left
}

/// Waits for the receiver, who may take his time; where nodes share the outbox, the sink stays ours meanwhile.
async fn hand_over(shared: &Shared, sink: &dyn Sink, events: &[&Event]) -> Vec<Result<(), SinkError>> {
    let mut delivering = sink.deliver_all(events);
    if !shared.store.is_shared() {
        return delivering.await;
    }
    loop {
        tokio::select! {
            biased;
            outcomes = &mut delivering => return outcomes,
            () = shared.clock.sleep_until(shared.clock.now() + LEASE.over(3)) => {
                // If it is another's by now, the worst is that an event arrives twice.
                is_ours(shared, sink, &mut Time(i64::MIN)).await;
            }
        }
    }
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

async fn put_off(shared: &Shared, sink: &dyn Sink, delivery: &Delivery, error: &SinkError, now: Time) {
    let seq = delivery.event.seq;
    // What is handed over together comes back together.
    let draw = if sink.gathers().is_some() { 0 } else { seq };
    let wait = wait_after(delivery.attempts, &[sink.name(), &draw.to_string()]);
    let retry = wait.map(|wait| now + wait);
    match wait {
        Some(wait) => {
            warn!(sink = sink.name(), seq, tries = delivery.attempts + 1, %error, again_in = %wait, "delivery failed");
        }
        None => warn!(sink = sink.name(), seq, %error, "delivery given up: `stakeout deliveries` shows it"),
    }
    let words: String = error.to_string().chars().take(MESSAGE_CHARS).collect();
    if let Err(error) = shared.store.delivery_failed(sink.name(), seq, retry, &words).await {
        shared.store_failed(&error);
    }
}

/// How long to wait after so many earlier tries; `None` when it was tried long enough. Drawn from what is tried, so
/// that a simulated day stays the same.
fn wait_after(attempts: u32, what: &[&str]) -> Option<Span> {
    let wait = *WAITS.get(attempts as usize)?;
    let try_no = attempts.to_string();
    let draw = spread(&[what, &[&try_no]].concat()) % (JITTER_PERCENT * 10 + 1);
    Some(wait + wait.times(draw as i64).over(1_000))
}

/// The receiver is gone: this is remembered, so that no node and no later start sends it anything.
async fn switch_off(shared: &Shared, sink: &dyn Sink, error: &SinkError) {
    let key = outlets::switch(sink.name());
    warn!(
        sink = sink.name(),
        %error,
        "the receiver is gone for good: nothing more is sent there until {key} is true again"
    );
    shared.outlets.gone(sink.name());
    store_gone(shared, sink).await;
}

/// Stores that a sink's receiver is gone. Until that is done, no setting switches it on.
async fn store_gone(shared: &Shared, sink: &dyn Sink) {
    // Whoever puts settings into force has read them under the same lock: none from before comes after this.
    let _one_at_a_time = shared.settings.lock().await;
    let key = outlets::switch(sink.name());
    match shared.store.set_setting(&key, Some(false.into()), shared.clock.now()).await {
        Ok(()) => shared.outlets.gone_is_stored(sink.name()),
        Err(error) => {
            warn!(sink = sink.name(), %error, "that it is switched off could not be stored, trying again");
            shared.store_failed(&error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_for_three_days_and_never_in_step() {
        let waits = |seq: &str| -> Vec<Span> { (0..).map_while(|n| wait_after(n, &["hook", seq])).collect() };
        for seq in ["1", "2", "700"] {
            let total: Span = waits(seq).into_iter().fold(Span::ZERO, |sum, wait| sum + wait);
            assert!((Span::hours(71)..Span::hours(80)).contains(&total), "{total}");
            assert!(waits(seq).windows(2).all(|pair| pair[0] < pair[1]), "ever longer");
        }
        assert_ne!(waits("1"), waits("2"));
        assert_eq!(waits("1"), waits("1"), "the same again in a simulated day");
    }
}
