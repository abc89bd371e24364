//! The claimer: takes targets that are due soon from the store and hands them to the dispatcher.
//!
//! It looks when the store says the next target can be claimed, when somebody says that something changed, and at
//! least every [`LOOK_EVERY`]: hints are hints, looking is the truth.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stakeout_core::{Span, Time};
use stakeout_store::ClaimRequest;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::dispatch::{MAX_HELD, Message};
use crate::shared::Shared;

/// The longest time between two looks.
const LOOK_EVERY: Span = Span::secs(1);
/// The shortest: what comes within reach is still two seconds away, and a held row comes within reach before it can be
/// taken.
const SHORTEST_WAIT: Span = Span::ms(50);
/// The most targets taken at once.
const BATCH: u32 = 500;

pub(crate) async fn run(shared: Arc<Shared>, dispatcher: mpsc::Sender<Message>, stop: CancellationToken) {
    let sources = shared.source_names();
    while !stop.is_cancelled() {
        let (found, now) = look(&shared, &sources).await;
        let full = found.len() as u32 >= BATCH;
        // Only a look that found nothing more proves that everything due is in the dispatcher's hands.
        let looked = if full { Time(i64::MIN) } else { now };
        if dispatcher.send(Message::Claimed(found, looked)).await.is_err() {
            return;
        }
        if full {
            continue;
        }
        let next = next_look(&shared, &sources).await;
        shared.next_look_us.store(next.us(), Ordering::Relaxed);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.look.notified() => {}
            () = shared.clock.sleep_until(next) => {}
        }
    }
}

async fn look(shared: &Shared, sources: &[String]) -> (Vec<stakeout_store::Claim>, Time) {
    let _busy = shared.clock.busy();
    let now = shared.clock.now();
    let request = ClaimRequest {
        node: shared.node.clone(),
        sources: sources.to_vec(),
        now,
        ahead: shared.ahead,
        lease: shared.lease,
        limit: BATCH.min(MAX_HELD as u32),
    };
    match shared.store.claim(request).await {
        Ok(claims) => (claims, now),
        Err(error) => {
            warn!(%error, "looking for due targets failed");
            shared.store_failed(&error);
            (Vec::new(), now)
        }
    }
}

/// When the next target comes within reach. In virtual time there is no need to look in between: every change
/// announces itself, and an idle night should cost nothing.
async fn next_look(shared: &Shared, sources: &[String]) -> Time {
    let _busy = shared.clock.busy();
    let now = shared.clock.now();
    let latest = if shared.clock.is_virtual() { now + Span::hours(1) } else { now + LOOK_EVERY };
    match shared.store.next_wake(sources).await {
        Ok(Some(wake)) => (wake - shared.ahead).clamp(now + SHORTEST_WAIT, latest),
        Ok(None) => latest,
        Err(error) => {
            shared.store_failed(&error);
            latest
        }
    }
}
