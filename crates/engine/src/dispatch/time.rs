//! Clocks that are set while claims are held.

use std::sync::atomic::Ordering;

use stakeout_core::{Span, Time};
use stakeout_store::Claim;
use tracing::info;

use super::Dispatcher;
use crate::clock::STEP;

impl Dispatcher {
    /// Somebody set this machine's clock, or it slept. Where all nodes go by the store's clock, that one is asked.
    pub(super) fn doubt_the_clock(&mut self, step: Span) {
        info!(%step, "this machine's clock was set: the database's is asked");
        if step < Span::ZERO {
            // Leases would seem to last longer than they do: until it is known better, the clock goes on as it did.
            self.shared.clock.step(-step);
            self.steps.was_moved(-step);
        }
        self.shared.clock_in_doubt.store(true, Ordering::Release);
        self.shared.look.notify_one();
    }

    /// Moves the clock to the one that all nodes go by. A small correction leaves due times as they are, for they are
    /// moments of that clock; after a large one, what was computed by the wrong time is computed anew.
    pub(super) async fn set_clock(&mut self, by: Span) {
        info!(by_ms = by.as_ms(), "the clock goes by the database's");
        self.shared.store.clock_was_set(by);
        self.shared.clock.step(by);
        self.steps.was_moved(by);
        if by < Span::ZERO {
            self.set_back = self.set_back - by;
            for (claim, _) in self.held.values_mut() {
                claim.lease_until += by;
            }
            let ready = self.lanes.values().flat_map(|lane| lane.ready.iter()).map(|d| &d.lease_us);
            for lease in ready.chain(self.tasks.values().map(|poll| &poll.lease_us)) {
                lease.fetch_add(by.as_us(), Ordering::AcqRel);
            }
            self.shared.lanes.values().for_each(|lane| lane.clock_was_set_back(by));
            self.next_renewal = self.shared.clock.now();
        }
        if by.as_us().abs() > STEP.as_us() {
            self.clock_was_stepped(by).await;
        }
    }

    /// After a step of the wall clock, what was computed with the old time is computed anew.
    pub(super) async fn clock_was_stepped(&mut self, step: Span) {
        info!(%step, "the clock was stepped: due times are computed anew");
        for lane in self.shared.lanes.values() {
            lane.forget_waits();
        }
        let ready = self.lanes.values_mut().flat_map(|lane| lane.ready.drain().map(|d| d.claim));
        let mut claims: Vec<Claim> = ready.collect();
        claims.extend(self.held.drain().map(|(_, (claim, _))| claim));
        self.lanes.values_mut().for_each(|lane| lane.held = 0);
        self.fires.clear();
        self.timer.clear();
        self.give_back(claims).await;
        self.looked = Time(i64::MIN);
        self.next_renewal = self.shared.clock.now();
        if let Err(error) = crate::replan::everything(&self.shared, Some(step)).await {
            self.shared.store_failed(&error);
        }
        self.shared.look.notify_one();
    }
}
