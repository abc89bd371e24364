//! One time for all nodes: whoever shares a database goes by its clock.
//!
//! Due times are moments. A node whose clock is two seconds behind would find a target that it takes over from another
//! not yet due, and a node that is ahead would ask too early. So the engine's clock is the system's, moved by what that
//! is off from the database's; each node measures it for itself, at its start and from time to time.

use std::time::Instant;

use stakeout_core::{Span, Time};
use stakeout_store::{Store, StoreError};
use tracing::{info, warn};

use crate::clock::Clock;

/// How often it is measured.
const EVERY: Span = Span::secs(10);
/// The quickest of so many answers says most.
const TRIES: usize = 4;
/// Less is no reason to move a clock: it is what answers take, and time servers bring it in by themselves.
const NOT_WORTH_IT: Span = Span::ms(20);

/// Keeps a clock with the store's.
pub(crate) struct Agreed {
    next: Time,
}

impl Agreed {
    /// Sets the clock for the first time.
    pub(crate) async fn begin(clock: &Clock, store: &dyn Store) -> Result<Agreed, StoreError> {
        set(clock, store).await?;
        Ok(Agreed { next: clock.now() + EVERY })
    }

    /// Sets it again, if it is time to.
    pub(crate) async fn refresh(&mut self, clock: &Clock, store: &dyn Store) {
        if clock.now() < self.next {
            return;
        }
        if let Err(error) = set(clock, store).await {
            warn!(%error, "the database's clock could not be read");
        }
        self.next = clock.now() + EVERY;
    }
}

async fn set(clock: &Clock, store: &dyn Store) -> Result<(), StoreError> {
    if !clock.can_follow() {
        return Ok(());
    }
    let mut best: Option<Sample> = None;
    for _ in 0..TRIES {
        let (asked, began) = (clock.now(), Instant::now());
        let Some(theirs) = store.clock().await? else { return Ok(()) };
        let sample = Sample::new(asked, theirs, Span::from_std(began.elapsed()));
        best = Some(best.map_or(sample, |best| if sample.took < best.took { sample } else { best }));
    }
    if let Some(by) = best.and_then(Sample::correction) {
        info!(by_ms = by.as_ms(), "the clock goes by the database's");
        clock.step(by);
    }
    Ok(())
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
