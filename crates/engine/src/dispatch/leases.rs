//! Claims while they are here: extended, rested, given back.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use stakeout_core::{Span, Time};
use stakeout_store::{Claim, StoreError, TargetId};
use tracing::warn;

use super::{Dispatcher, InFlight};
use crate::shared::Shared;

/// How long a target rests whose poll came to nothing: one of its intervals, within these.
const SHORTEST_REST: Span = Span::secs(1);
const LONGEST_REST: Span = Span::secs(10);

/// How often a shared store is asked to take claims back, and how long is waited in between, more each time.
const RELEASE_TRIES: u32 = 5;
const RELEASE_WAIT: Duration = Duration::from_millis(100);

/// A claim between two of its polls: the target, the token, and how many polls there were.
pub(super) type Since = (TargetId, u64, u64);

/// Leases that were extended, or not.
pub(super) struct Renewal {
    claims: Vec<Since>,
    until: Time,
    /// How far the clock had been set back when they were.
    set_back: Span,
    lost: Result<Vec<TargetId>, StoreError>,
}

fn since(claim: &Claim) -> Since {
    (claim.target, claim.fence, claim.poll_no)
}

impl InFlight {
    fn since(&self) -> Since {
        (self.target, self.fence, self.poll_no)
    }
}

impl Dispatcher {
    /// A poll came to nothing, and its target is as due as before: nobody asks again at once.
    pub(super) fn rest(&mut self, claim: Claim, now: Time) {
        let rest = claim.schedule.interval.max(SHORTEST_REST).min(LONGEST_REST);
        self.resting.push((now + rest, claim));
    }

    /// Gives back what has rested long enough after a poll that came to nothing.
    pub(super) fn end_rests(&mut self, now: Time) {
        if self.resting.iter().any(|(until, _)| *until <= now) {
            let all = std::mem::take(&mut self.resting);
            let (over, resting): (Vec<_>, Vec<_>) = all.into_iter().partition(|(until, _)| *until <= now);
            self.resting = resting;
            self.give_back_later(over.into_iter().map(|(_, claim)| claim).collect());
        }
    }

    /// Gives claims back. Where others share the store, it may take its time to answer, and nobody here waits for it.
    pub(super) async fn give_back(&self, claims: Vec<Claim>) {
        let claims: Vec<(TargetId, u64)> = claims.iter().map(|claim| (claim.target, claim.fence)).collect();
        if self.shared.store.is_shared() {
            tokio::spawn(release(Arc::clone(&self.shared), claims));
        } else {
            release(Arc::clone(&self.shared), claims).await;
        }
    }

    /// Gives claims back beside everything else, and has somebody look for them.
    pub(super) fn give_back_later(&self, claims: Vec<Claim>) {
        let claims: Vec<(TargetId, u64)> = claims.iter().map(|claim| (claim.target, claim.fence)).collect();
        let shared = Arc::clone(&self.shared);
        let busy = shared.clock.busy();
        tokio::spawn(async move {
            release(Arc::clone(&shared), claims).await;
            shared.look.notify_one();
            drop(busy);
        });
    }

    /// Gives back claims of plans that have changed, so that somebody finds them by the new ones.
    pub(super) async fn give_back_and_look(&self, claims: Vec<Claim>) {
        if self.shared.store.is_shared() {
            // Looking helps only when they are back.
            self.give_back_later(claims);
        } else {
            self.give_back(claims).await;
        }
        self.shared.look.notify_one();
    }

    /// When a lease is to be extended: once half of it is used up, but leases are not looked at all the time.
    pub(super) fn renews_at(&self, lease_until: Time) -> Time {
        (lease_until - self.shared.lease.over(2)).max(self.last_renewal + self.renew_every)
    }

    /// Extends leases that would run out while their targets wait here.
    pub(super) async fn renew_leases(&mut self, now: Time) {
        if now < self.next_renewal || !self.renewals.is_empty() {
            return;
        }
        self.last_renewal = now;
        let held = self.held.values().map(|(claim, _)| (since(claim), claim.lease_until));
        // What waits for its turn, or for the upstream, is ours as much as what waits for its time.
        let until = |lease: &AtomicI64| Time(lease.load(Ordering::Acquire));
        let ready = self.lanes.values().flat_map(|lane| lane.ready.iter());
        let ready = ready.map(|departure| (since(&departure.claim), until(&departure.lease_us)));
        let in_flight = self.tasks.values().map(|poll| (poll.since(), until(&poll.lease_us)));
        let soon = now + self.shared.lease.over(2);
        let mut expiring: Vec<Since> = Vec::new();
        let mut next = Time(i64::MAX);
        for (claim, until) in held.chain(ready).chain(in_flight) {
            match until <= soon {
                true => expiring.push(claim),
                false => next = next.min(until),
            }
        }
        if expiring.is_empty() {
            self.next_renewal = if next == Time(i64::MAX) { next } else { self.renews_at(next) };
            return;
        }
        // They may not all be extended.
        self.next_renewal = now + self.renew_every;
        let (until, set_back) = (now + self.shared.lease, self.set_back);
        let shared = Arc::clone(&self.shared);
        let renewal = async move {
            let _busy = shared.clock.busy();
            let claims: Vec<(TargetId, u64)> =
                expiring.iter().map(|(target, fence, _)| (*target, *fence)).collect();
            let lost = shared.store.renew(&claims, until).await;
            Renewal { claims: expiring, until, set_back, lost }
        };
        // A store that others share may take its time to answer: the timer goes on.
        if self.shared.store.is_shared() {
            self.renewals.spawn(renewal);
        } else {
            let renewal = renewal.await;
            self.renewed(renewal);
        }
    }

    pub(super) fn renewed(&mut self, renewal: Renewal) {
        let Renewal { claims, until, set_back, lost } = renewal;
        let lost: HashSet<TargetId> = match lost {
            Ok(lost) => lost.into_iter().collect(),
            Err(error) => return self.shared.store_failed(&error),
        };
        // Its end was worked out before the clock was set back, if it was.
        let until = until + (set_back - self.set_back);
        // A claim that came meanwhile is another, and after a poll that was committed meanwhile it holds until then.
        let asked: HashSet<Since> = claims.into_iter().collect();
        let held = self.held.values().map(|(claim, _)| claim);
        let ready = self.lanes.values().flat_map(|lane| lane.ready.iter()).map(|d| &d.claim);
        let gone = held.chain(ready).filter(|c| lost.contains(&c.target) && asked.contains(&since(c)));
        let gone: Vec<TargetId> = gone.map(|claim| claim.target).collect();
        for target in gone {
            self.let_go(target);
        }
        let kept = |since: &Since| asked.contains(since) && !lost.contains(&since.0);
        for (claim, _) in self.held.values_mut().filter(|(claim, _)| kept(&since(claim))) {
            claim.lease_until = until;
        }
        let ready = self.lanes.values().flat_map(|lane| lane.ready.iter());
        let ready = ready.filter(|d| kept(&since(&d.claim))).map(|d| &d.lease_us);
        let in_flight = self.tasks.values().filter(|poll| kept(&poll.since())).map(|poll| &poll.lease_us);
        ready.chain(in_flight).for_each(|lease| lease.store(until.us(), Ordering::Release));
    }
}

/// Gives claims back to the store.
pub(crate) async fn release(shared: Arc<Shared>, claims: Vec<(TargetId, u64)>) {
    if claims.is_empty() {
        return;
    }
    let _busy = shared.clock.busy();
    let mut tries = 1;
    while let Err(error) = shared.store.release(&claims).await {
        // A connection that broke takes others of its time with it: the next ones are new. Where nobody shares the store,
        // nothing breaks that would be whole a moment later.
        if tries < RELEASE_TRIES && shared.store.is_shared() {
            tokio::time::sleep(RELEASE_WAIT * tries).await;
            tries += 1;
            continue;
        }
        // They run out with their lease.
        warn!(%error, claims = claims.len(), "claims could not be given back");
        return shared.store_failed(&error);
    }
}
