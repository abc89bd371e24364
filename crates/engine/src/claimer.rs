//! The claimer: takes targets that are due soon from the store and hands them to the dispatcher.
//!
//! It looks when the store says the next target can be claimed, when somebody says that something changed, and at
//! least as often as the sources say ([`stakeout_core::Looks`]): hints are hints, looking is the truth.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stakeout_core::{Looks, Span, Time};
use stakeout_store::ClaimRequest;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendError;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::agreed::Agreed;
use crate::dispatch::{Found, MAX_HELD, Message, release};
use crate::shared::Shared;
use crate::sharing::Sharing;

/// The shortest time between two looks: what comes within reach is still two seconds away, and a held row comes within
/// reach before it can be taken.
const SHORTEST_WAIT: Span = Span::ms(50);

/// How long overdue a target must be before a node takes it that does more than others.
const LEFT_TO_OTHERS: Span = Span::ms(300);

/// How due targets were looked for since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookCount {
    /// Looks.
    pub looks: u64,
    /// Targets taken.
    pub taken: u64,
    /// The most that one look took.
    pub most: u64,
}

/// Counts looks.
#[derive(Default)]
pub(crate) struct LooksMade {
    begun: AtomicU64,
    looks: AtomicU64,
    taken: AtomicU64,
    most: AtomicU64,
}

impl LooksMade {
    /// How many looks have begun: the number of the newest.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    fn add(&self, taken: usize) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.taken.fetch_add(taken as u64, Ordering::Relaxed);
        self.most.fetch_max(taken as u64, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> LookCount {
        LookCount {
            looks: self.looks.load(Ordering::Relaxed),
            taken: self.taken.load(Ordering::Relaxed),
            most: self.most.load(Ordering::Relaxed),
        }
    }
}

pub(crate) async fn run(
    shared: Arc<Shared>,
    mut agreed: Agreed,
    dispatcher: mpsc::Sender<Message>,
    stop: CancellationToken,
) {
    let mut sharing = Sharing::new(Arc::clone(&shared));
    while !stop.is_cancelled() {
        agreed.refresh(&shared, &dispatcher).await;
        sharing.refresh(&dispatcher).await;
        let mut full = false;
        let now = shared.clock.now();
        for ((most, ahead), sources) in by_most(&shared) {
            if stop.is_cancelled() {
                return;
            }
            let found = look(&shared, &sources, most, ahead).await;
            full |= found.len() as u32 >= most;
            if found.is_empty() {
                continue;
            }
            let found = Found { claims: found, look: shared.looks.begun(), complete: None };
            if let Err(SendError(Message::Found(found))) = dispatcher.send(Message::Found(found)).await {
                // It stopped meanwhile: nobody should wait for the lease of what nobody polls.
                let claims = found.claims.iter().map(|claim| (claim.target, claim.fence)).collect();
                return release(Arc::clone(&shared), claims).await;
            }
        }
        // A full look is followed by another at once. Only one that found nothing more proves that everything due is
        // in the dispatcher's hands.
        if full {
            continue;
        }
        let all = Found { claims: Vec::new(), look: shared.looks.begun(), complete: Some(now) };
        if dispatcher.send(Message::Found(all)).await.is_err() {
            return;
        }
        let next = next_look(&shared).await;
        shared.next_look_us.store(next.us(), Ordering::Relaxed);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.look.notified() => {}
            () = shared.clock.sleep_until(next) => {}
        }
    }
}

/// The sources that may be asked, by how many of their targets are taken at once and how far ahead; most of them are
/// looked at together.
fn by_most(shared: &Shared) -> BTreeMap<(u32, Span), Vec<String>> {
    let now = shared.clock.now();
    let mut groups: BTreeMap<(u32, Span), Vec<String>> = BTreeMap::new();
    for (name, lane) in shared.lanes.iter().filter(|(_, lane)| lane.tenure().holds(now)) {
        let most = lane.source().looks().most.clamp(1, MAX_HELD as u32);
        // Whoever has too much leaves what comes to the others, but not lying about.
        let ahead = if lane.is_shedding() { -LEFT_TO_OTHERS } else { shared.ahead };
        groups.entry((most, ahead)).or_default().push(name.clone());
    }
    groups
}

async fn look(shared: &Shared, sources: &[String], most: u32, ahead: Span) -> Vec<stakeout_store::Claim> {
    let _busy = shared.clock.busy();
    shared.looks.begin();
    let request = ClaimRequest {
        node: shared.node.clone(),
        sources: sources.to_vec(),
        now: shared.clock.now(),
        ahead,
        lease: shared.lease,
        limit: most,
    };
    match shared.store.claim(request).await {
        Ok(claims) => {
            shared.looks.add(claims.len());
            claims
        }
        Err(error) => {
            warn!(%error, "looking for due targets failed");
            shared.store_failed(&error);
            Vec::new()
        }
    }
}

/// When the next target comes within reach. In virtual time there is no need to look in between, unless a source says
/// so: every change announces itself, and an idle night should cost nothing. What belongs to a source that another node
/// asks is not within reach, however due it is.
async fn next_look(shared: &Shared) -> Time {
    let _busy = shared.clock.busy();
    let now = shared.clock.now();
    let ours = shared.lanes.iter().filter(|(_, lane)| lane.tenure().holds(now));
    let sources: Vec<String> = ours.map(|(name, _)| name.clone()).collect();
    let every = shared.lanes.values().map(|lane| lane.source().looks().every).min().unwrap_or_default();
    let quiet = shared.clock.is_virtual() && every >= Looks::default().every;
    let latest = now + if quiet { Span::hours(1) } else { every };
    match shared.store.next_wake(&sources).await {
        Ok(Some(wake)) => (wake - shared.ahead).max(now + SHORTEST_WAIT).min(latest),
        Ok(None) => latest,
        Err(error) => {
            shared.store_failed(&error);
            latest
        }
    }
}
