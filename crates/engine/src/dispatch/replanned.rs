//! Targets whose plans changed: whoever holds them by the old plan lets go, so that they are claimed by the new one.
//!
//! The news of a change may overtake a claim of the target in three places: while it waits here, while it is polled, and
//! while the store's answer to a look is still on its way.

use std::collections::{HashMap, HashSet};

use stakeout_store::{Claim, TargetId};

use super::{Dispatcher, Found, Mode};

/// The targets whose plans changed while a look was under way, each with the newest look that had begun by then: what
/// that look or an earlier one finds of them may be of the plan before.
#[derive(Default)]
pub(super) struct Overtaken {
    looks: HashMap<TargetId, u64>,
    /// The newest look whose findings arrived here.
    arrived: u64,
    /// The looks up to this one prove nothing: something that they found went back.
    unproven: u64,
}

impl Overtaken {
    fn changed(&mut self, targets: &[TargetId], begun: u64) {
        if begun > self.arrived {
            self.looks.extend(targets.iter().map(|target| (*target, begun)));
        }
    }

    /// Whether the plan that this look found may have been changed since.
    fn is_stale(&self, target: TargetId, look: u64) -> bool {
        self.looks.get(&target).is_some_and(|begun| look <= *begun)
    }

    /// Everything that this look and those before it found is here.
    fn arrived(&mut self, look: u64) {
        self.arrived = look;
        self.looks.retain(|_, begun| *begun > look);
    }
}

impl Dispatcher {
    /// Takes those of these targets that wait here out of the timer and the ready queues. A poll in flight learns of its
    /// target's new plan when it commits; if it already has, its claim is of the old plan and goes back when it lands.
    pub(super) fn let_go_of_replanned(&mut self, targets: &[TargetId]) -> Vec<Claim> {
        if targets.is_empty() {
            return Vec::new();
        }
        self.overtaken.changed(targets, self.shared.looks.begun());
        let replanned: HashSet<TargetId> = targets.iter().copied().collect();
        let in_flight = self.tasks.values_mut().filter(|poll| replanned.contains(&poll.target));
        in_flight.for_each(|poll| poll.replanned = true);
        targets.iter().filter_map(|target| self.let_go(*target)).collect()
    }

    /// Those of a source's targets with these keys that wait here. What a listing describes otherwise, or no longer, is not
    /// to be asked by what it was when it was claimed, which may be minutes ago.
    pub(super) fn waiting_here(&self, source: &str, keys: &[String]) -> Vec<TargetId> {
        if keys.is_empty() {
            return Vec::new();
        }
        let keys: HashSet<&str> = keys.iter().map(String::as_str).collect();
        let held = self.held.values().map(|(claim, _)| claim);
        let ready = self.lanes.get(source).into_iter().flat_map(|lane| lane.ready.iter()).map(|d| &d.claim);
        let named = |claim: &&Claim| claim.source == source && keys.contains(claim.spec.key.as_str());
        held.chain(ready).filter(named).map(|claim| claim.target).collect()
    }

    /// Takes in that a look was made; gives back what it found by plans that changed while it was under way, and answers
    /// the rest. A pass polls whatever was due when it looked.
    pub(super) async fn arrived(&mut self, Found { claims, look, complete }: Found) -> Vec<Claim> {
        let is_stale =
            |claim: &Claim| self.mode == Mode::Service && self.overtaken.is_stale(claim.target, look);
        let (stale, fresh): (Vec<_>, Vec<_>) = claims.into_iter().partition(is_stale);
        self.overtaken.arrived(look);
        if !stale.is_empty() {
            // Everything that is due is here only after a look that begins when these are back.
            self.overtaken.unproven = self.shared.looks.begun();
            self.give_back_and_look(stale).await;
        }
        if look > self.overtaken.unproven {
            self.looked = complete.map_or(self.looked, |looked| self.looked.max(looked));
        }
        fresh
    }
}
