//! What is asked of a bucket, page by page, and how often.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::cadence::{Adaptive, Fixed};
use stakeout_core::{Exchange, Facts, Plan, Request, Span, TargetSpec, Value};

use super::clock::WINDOW_EVERY;
use super::market::{Area, Bucket, WINDOW};
use super::normalize::WAITED_FOR;
use super::provider::{Ask, Asked, PartySizes, Provider};

/// Pages asked for before looking at the answers again: a broken upstream is not asked for all of them.
const BATCH: usize = 4;

/// How a bucket is asked for.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) party_sizes: PartySizes,
    pub(super) per_page: u32,
    pub(super) max_pages: u32,
}

impl Asking {
    /// The next pages: the first of every party size, then the others in order. None after a failure: what was seen
    /// so far is what this poll saw.
    pub(super) fn pages(
        &self,
        provider: &dyn Provider,
        area: Area,
        bucket: &Bucket<'_>,
        so_far: &[Exchange],
    ) -> Vec<Request> {
        let mut seen: BTreeSet<Asked> = BTreeSet::new();
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for exchange in so_far {
            let Some(asked) = provider.asked(&exchange.request) else { return Vec::new() };
            let Ok(response) = &exchange.result else { return Vec::new() };
            if asked.page == 1 {
                let Ok(pages) = provider.pages(&response.body) else { return Vec::new() };
                last.insert(asked.party_size, pages.unwrap_or(1).clamp(1, self.max_pages));
            }
            seen.insert(asked);
        }
        let wanted = self.party_sizes.iter().flat_map(|&party_size| {
            let last = last.get(&party_size).copied().unwrap_or(1);
            (1..=last).map(move |page| Asked { party_size, page })
        });
        let next = wanted.filter(|asked| !seen.contains(asked)).take(BATCH);
        let ask = |Asked { party_size, page }| Ask {
            area,
            day: bucket.date,
            time: bucket.time_slot,
            party_size,
            page,
            per_page: self.per_page,
        };
        next.map(|asked| provider.request(&ask(asked))).collect()
    }
}

/// How often to look.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rhythm {
    pub(super) min: Span,
    pub(super) max: Span,
    pub(super) prime: Vec<String>,
    pub(super) prime_weight: f64,
    pub(super) follow_weight: f64,
}

impl Rhythm {
    pub(super) fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan {
        if target.role == WINDOW {
            // Asks nobody, and one of its times is local midnight wherever the market is.
            return Plan::Fixed(Fixed { every: WINDOW_EVERY, eager: true, place: Some(Span::ZERO) });
        }
        Plan::Adaptive(Adaptive { min: self.min, max: self.max, weight: self.weight(target, facts) })
    }

    fn weight(&self, target: &TargetSpec, facts: &Facts) -> f64 {
        let slot = Bucket::of(target).map(|bucket| bucket.time_slot.to_owned());
        let prime = slot.is_some_and(|slot| self.prime.contains(&slot));
        let waited_for = facts.notes.get(WAITED_FOR).and_then(Value::as_f64).is_some_and(|n| n > 0.0);
        let mut weight = 1.0;
        if prime {
            weight *= self.prime_weight;
        }
        if waited_for {
            weight *= self.follow_weight;
        }
        weight
    }
}
