//! One time for all nodes: whoever shares a database goes by its clock.
//!
//! Due times are moments. A node whose clock is two seconds behind would find a target that it takes over from another
//! not yet due, and a node that is ahead would ask too early. So the engine's clock is the system's, moved by what that
//! is off from the database's; each node measures it for itself, at its start, from time to time, and when it notices
//! that somebody set this machine's clock. Leases and tenures are moments, too: when a clock is set back, those that this
//! node holds are moved with it, or it would believe in them for longer than the others do.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stakeout_core::{Span, Time};
use stakeout_store::{Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::clock::Clock;
use crate::dispatch::Message;
use crate::shared::Shared;

/// How often it is measured. Not by the clock that is measured: one that was set back must not put it off.
const EVERY: Duration = Duration::from_secs(10);
/// The quickest of so many answers says most.
const TRIES: usize = 4;
/// Less is no reason to move a clock: it is what answers take, and time servers bring it in by themselves.
const NOT_WORTH_IT: Span = Span::ms(20);

/// Keeps a clock with the store's.
pub(crate) struct Agreed {
    follows: bool,
    next: Instant,
}

impl Agreed {
    /// Sets the clock for the first time.
    pub(crate) async fn begin(clock: &Clock, store: &dyn Store) -> Result<Agreed, StoreError> {
        let measured = measure(clock, store).await?;
        if let Some(by) = measured.and_then(Sample::correction) {
            info!(by_ms = by.as_ms(), "the clock goes by the database's");
            store.clock_was_set(by);
            clock.step(by);
        }
        Ok(Agreed { follows: measured.is_some(), next: Instant::now() + EVERY })
    }

    /// Whether there is a clock to go by.
    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    /// Measures again if it is time to, or if somebody set this machine's clock. The dispatcher then moves the clock,
    /// together with the ends of everything it holds.
    pub(crate) async fn refresh(&mut self, shared: &Shared, dispatcher: &mpsc::Sender<Message>) {
        let doubted = shared.clock_in_doubt.swap(false, Ordering::AcqRel);
        if !self.follows || (!doubted && Instant::now() < self.next) {
            return;
        }
        match measure(&shared.clock, &*shared.store).await {
            Ok(measured) => {
                if let Some(by) = measured.and_then(Sample::correction) {
                    let (moved, done) = oneshot::channel();
                    if dispatcher.send(Message::ClockIsOff(by, moved)).await.is_ok() {
                        // What is claimed before would be counted by the old clock. An error is the end of the engine.
                        let _ = done.await;
                    }
                }
            }
            Err(error) => {
                warn!(%error, "the database's clock could not be read");
                shared.store_failed(&error);
            }
        }
        self.next = Instant::now() + EVERY;
    }
}

/// Looks at the store's clock; `None` where there is none to go by.
async fn measure(clock: &Clock, store: &dyn Store) -> Result<Option<Sample>, StoreError> {
    if !clock.can_follow() {
        return Ok(None);
    }
    let mut best: Option<Sample> = None;
    for _ in 0..TRIES {
        let (asked, began) = (clock.now(), Instant::now());
        let Some(theirs) = store.clock(asked).await? else { return Ok(None) };
        let sample = Sample::new(asked, theirs, Span::from_std(began.elapsed()));
        best = Some(best.map_or(sample, |best| if sample.took < best.took { sample } else { best }));
    }
    Ok(best)
}

/// One look at the other clock.
#[derive(Clone, Copy)]
struct Sample {
    /// How far it is ahead, if the answer was given half-way.
    ahead: Span,
    took: Span,
}

impl Sample {
    fn new(asked: Time, theirs: Time, took: Span) -> Sample {
        Sample { ahead: theirs - asked - Span(took.as_us() / 2), took }
    }

    /// By how much to move: nothing that the way there and back may explain.
    fn correction(self) -> Option<Span> {
        let certain = NOT_WORTH_IT.max(Span(self.took.as_us() / 2));
        (self.ahead.as_us().abs() > certain.as_us()).then_some(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_way_does_not_explain_is_corrected() {
        let by = |theirs_ms, took_ms| {
            Sample::new(Time(0), Time(Span::ms(theirs_ms).as_us()), Span::ms(took_ms)).correction()
        };
        assert_eq!(by(2_001, 2), Some(Span::ms(2_000)), "two seconds behind");
        assert_eq!(by(-1_999, 2), Some(Span::ms(-2_000)), "two seconds ahead");
        assert_eq!(by(15, 2), None, "not worth it");
        assert_eq!(by(90, 120), None, "a slow answer proves little");
        assert_eq!(by(190, 120), Some(Span::ms(130)));
    }
}
