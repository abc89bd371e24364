//! A lane: one source with its limits. Everything that asks the upstream goes through its lane.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use serde_json::Value as Json;
use stakeout_core::budget::Item;
use stakeout_core::cadence::{Adaptive, FOCUS_PRIORITY, Seat};
use stakeout_core::compare;
use stakeout_core::derive::Link;
use stakeout_core::limit::Limiter;
use stakeout_core::{Failure, FailureClass, Limits, Plan, Source, Span, TargetSpec, Time};
use stakeout_store::{PollCommit, TargetState};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::durations::Durations;
use crate::tenure::Tenure;

/// How soon a source that was refused is asked whether it still is. Some upstreams refuse by mistake now and then; each
/// probe that is refused, too, doubles the wait…
const PROBE_FIRST: Span = Span::mins(1);
/// …until it is this long.
const PROBE_EVERY: Span = Span::mins(15);
/// A probe that was not heard of for this long is given up.
const PROBE_PATIENCE: Span = Span::mins(1);

/// Whether the upstream takes our credentials.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    /// Set while it refuses everybody who asks with them.
    refused: Option<Refused>,
    /// Whether what is stored says that it does. A poll that learns something else may come to nothing: then the next
    /// one has to tell it.
    stored_as_refused: bool,
}

/// A source that nobody may ask but a rare probe.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// When the next probe may go.
    until: Time,
    /// How long that was to wait.
    wait: Span,
    /// When the probe under way was sent.
    probing: Option<Time>,
}

/// One source and what it may be asked.
pub(crate) struct Lane {
    /// As the configuration file has it: live settings are always applied to this one.
    filed: Arc<dyn Source>,
    source: RwLock<Arc<dyn Source>>,
    limiter: Mutex<Limiter>,
    /// Polls that have the upstream's ear at the moment.
    in_flight: Arc<AtomicU32>,
    /// Whoever waits for a place is told when one is free.
    freed: Arc<Notify>,
    /// What the kinds mean together; live settings do not change kinds.
    kinds_meaning: u64,
    /// Whether the upstream takes our credentials.
    standing: Mutex<Standing>,
    /// What a poll is worth at the moment: from it every adaptive target derives its interval.
    price: Mutex<Option<f64>>,
    /// The kinds from which something follows.
    derived_from: Vec<String>,
    /// Something changed from which something may follow.
    news: Notify,
    /// Whether the upstream answers at all.
    link: Mutex<Link>,
    /// The live settings in force.
    settings: Mutex<BTreeMap<String, Json>>,
    /// How long requests take.
    durations: Durations,
    /// Polls that are due and wait for their turn.
    ready: AtomicUsize,
    /// How often the upstream complained.
    complaints: AtomicU64,
    /// What this node may do with the source.
    tenure: Mutex<Tenure>,
    /// Requests admitted since the start.
    admitted: AtomicU64,
    /// Targets that wait for their time.
    held: AtomicUsize,
    /// Targets to give back, because other nodes have less to do.
    shed: AtomicI64,
}

/// How soon somebody who has no tenure asks again.
const TENURE_AGAIN: Span = Span::ms(200);

impl Lane {
    pub(crate) fn new(
        filed: Arc<dyn Source>,
        source: Arc<dyn Source>,
        settings: BTreeMap<String, Json>,
        freed: Arc<Notify>,
        tenure: Tenure,
    ) -> Lane {
        let derived_from = source.derives().map(|derives| derives.kinds).unwrap_or_default();
        let limiter = Mutex::new(Limiter::new(source.limits()));
        let kinds_meaning = compare::kinds_meaning(source.kinds());
        Lane {
            filed,
            source: RwLock::new(source),
            limiter,
            in_flight: Arc::default(),
            freed,
            kinds_meaning,
            standing: Mutex::default(),
            price: Mutex::default(),
            derived_from,
            news: Notify::new(),
            link: Mutex::default(),
            settings: Mutex::new(settings),
            durations: Durations::default(),
            ready: AtomicUsize::new(0),
            complaints: AtomicU64::new(0),
            tenure: Mutex::new(tenure),
            admitted: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            shed: AtomicI64::new(0),
        }
    }

    /// What this node may do with the source.
    pub(crate) fn tenure(&self) -> Tenure {
        *self.tenure.lock().expect("never poisoned, because nothing panics while it is held")
    }

    /// Takes over another tenure; answers the one before. `wait` is what a newcomer leaves to those before it: until
    /// then their last requests may still be on their way.
    pub(crate) fn set_tenure(&self, tenure: Tenure, now: Time, wait: Option<Time>) -> Tenure {
        let before = {
            let mut slot =
                self.tenure.lock().expect("never poisoned, because nothing panics while it is held");
            std::mem::replace(&mut *slot, tenure)
        };
        let own = tenure.of(self.source().limits());
        let mut limiter = self.limiter();
        limiter.share(&own, now);
        if let Some(until) = wait {
            limiter.begin_empty(now);
            limiter.wait_until(until);
        }
        drop(limiter);
        self.freed.notify_one();
        before
    }

    /// The clock is set back: what ends by it ends at the same moment as before.
    pub(crate) fn clock_was_set_back(&self, by: Span) {
        let mut tenure = self.tenure.lock().expect("never poisoned, because nothing panics while it is held");
        *tenure = tenure.moved(by);
    }

    /// The upstream told another node to leave it alone until then.
    pub(crate) fn left_alone(&self, until: Time) {
        self.limiter().wait_until(until);
    }

    /// The limits as far as they are this node's.
    pub(crate) fn own_limits(&self) -> Limits {
        self.tenure().of(self.source().limits())
    }

    /// Requests admitted since the start.
    pub(crate) fn admitted_count(&self) -> u64 {
        self.admitted.load(Ordering::Relaxed)
    }

    /// So many targets should go to nodes that have less to do.
    pub(crate) fn set_shed(&self, targets: i64) {
        self.shed.store(targets, Ordering::Relaxed);
    }

    /// Whether other nodes have less to do than this one.
    pub(crate) fn is_shedding(&self) -> bool {
        self.shed.load(Ordering::Relaxed) > 0
    }

    /// Whether one target should be given back now; counts it as given.
    pub(crate) fn sheds(&self) -> bool {
        self.is_shedding() && self.shed.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// The source as its settings are now.
    pub(crate) fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.source.read().expect("never poisoned, because nothing panics while it is held"))
    }

    /// The source as the configuration file has it.
    pub(crate) fn filed(&self) -> &Arc<dyn Source> {
        &self.filed
    }

    /// What an answer about this target means now.
    pub(crate) fn meaning(&self, spec: &TargetSpec) -> u64 {
        compare::meaning(self.kinds_meaning, spec)
    }

    /// Takes over a source with other settings; what was admitted so far stays remembered.
    pub(crate) fn reconfigure(&self, source: Arc<dyn Source>, settings: BTreeMap<String, Json>) {
        self.limiter().set(&self.tenure().of(source.limits()));
        *self.source.write().expect("never poisoned, because nothing panics while it is held") = source;
        *self.settings.lock().expect("never poisoned, because nothing panics while it is held") = settings;
        self.news.notify_one();
    }

    /// The live settings in force.
    pub(crate) fn settings(&self) -> BTreeMap<String, Json> {
        self.settings.lock().expect("never poisoned, because nothing panics while it is held").clone()
    }

    /// A poll of this source is in: something may follow from it.
    pub(crate) fn committed(&self, commit: &PollCommit) {
        let matters = || {
            let kinds = &self.derived_from;
            let written = commit.records.iter().any(|record| kinds.contains(&record.kind));
            written || !commit.releases.is_empty() || commit.reconcile.is_some()
        };
        if self.is_derived_from() && matters() {
            self.news.notify_one();
        }
    }

    /// Whether anything follows from this source's records.
    pub(crate) fn is_derived_from(&self) -> bool {
        !self.derived_from.is_empty()
    }

    /// Returns when something changed from which something may follow.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// Whether the upstream answers at all, as far as we have seen.
    pub(crate) fn link(&self) -> Link {
        *self.link.lock().expect("never poisoned, because nothing panics while it is held")
    }

    /// A request of a target with this role took so long. Only where one target has the focus anybody asks.
    pub(crate) fn took(&self, role: &str, took: Span) {
        if self.is_derived_from() {
            self.durations.note(role, took);
        }
    }

    /// How long a request of this role keeps the upstream busy, usually.
    pub(crate) fn usually_takes(&self, role: &str) -> Span {
        self.durations.usual(role) + self.source().limits().min_gap
    }

    /// A request ended at `now`, with or without an answer.
    pub(crate) fn heard(&self, failure: Option<&Failure>, now: Time) {
        use FailureClass::{Dns, Refused, Reset, Timeout, Tls};
        let silence = failure.is_some_and(|f| matches!(f.class, Refused | Dns | Tls | Reset | Timeout));
        let mut link = self.link.lock().expect("never poisoned, because nothing panics while it is held");
        *link = match silence {
            false => Link { answered: Some(now), silent: 0, silent_since: None },
            true => Link {
                silent: link.silent.saturating_add(1),
                silent_since: link.silent_since.or(Some(now)),
                ..*link
            },
        };
    }

    /// Forgets waits that were computed with a clock that has been stepped since.
    pub(crate) fn forget_waits(&self) {
        let own = self.own_limits();
        *self.limiter() = Limiter::new(&own);
    }

    /// Admits one request now, or says when to ask again.
    pub(crate) fn admit(&self, now: Time) -> Result<(), Time> {
        if !self.tenure().holds(now) {
            return Err(now + TENURE_AGAIN);
        }
        let mut standing = self.standing();
        if let Some(refused) = &standing.refused {
            let probe = refused.probing.map_or(refused.until, |sent| sent + PROBE_PATIENCE);
            if now < probe {
                return Err(probe);
            }
        }
        self.limiter().admit(now)?;
        self.admitted.fetch_add(1, Ordering::Relaxed);
        if let Some(refused) = &mut standing.refused {
            refused.probing = Some(now);
        }
        Ok(())
    }

    /// The upstream refused us as such: nothing is asked but a probe now and then. Answers whether that is still to be
    /// stored.
    pub(crate) fn refuse(&self, now: Time) -> bool {
        let mut standing = self.standing();
        let wait = standing.refused.map_or(PROBE_FIRST, |before| before.wait.times(2).min(PROBE_EVERY));
        standing.refused = Some(Refused { until: now + wait, wait, probing: None });
        !standing.stored_as_refused
    }

    /// What a poll learned about the credentials is committed.
    pub(crate) fn standing_is_stored(&self, refused: bool) {
        self.standing().stored_as_refused = refused;
    }

    /// It was refused when the process before this one ended: the first poll is a probe.
    pub(crate) fn was_refused(&self, now: Time) {
        let refused = Some(Refused { until: now, wait: PROBE_EVERY, probing: None });
        *self.standing() = Standing { refused, stored_as_refused: true };
    }

    /// A request failed for another reason, which says nothing about the credentials.
    pub(crate) fn failed(&self, now: Time) {
        if let Some(refused) = &mut self.standing().refused {
            *refused = Refused { until: now + refused.wait, probing: None, ..*refused };
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().expect("never poisoned, because nothing panics while it is held")
    }

    /// Whether one more poll may be in flight.
    pub(crate) fn has_place(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) < self.own_limits().concurrency
    }

    /// Whether one more poll in flight leaves no place for another.
    pub(crate) fn has_one_place(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) + 1 == self.own_limits().concurrency
    }

    /// Takes a place among the polls in flight: held while the upstream is asked, not while the answer is committed.
    /// Only the dispatcher takes places, so it is enough to have looked before.
    pub(crate) fn take_place(&self) -> Place {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        Place { in_flight: Arc::clone(&self.in_flight), freed: Arc::clone(&self.freed) }
    }

    /// Returns when the limits let one more request pass.
    pub(crate) async fn admitted(&self, clock: &Clock) {
        while let Err(later) = self.admit(clock.now()) {
            clock.sleep_until(later).await;
        }
    }

    /// The upstream complained.
    pub(crate) fn penalise(&self, now: Time, retry_after: Option<Span>) {
        self.complaints.fetch_add(1, Ordering::Relaxed);
        self.limiter().penalise(now, retry_after);
    }

    /// The upstream answered; answers whether what is stored says that it refuses us.
    pub(crate) fn reward(&self, now: Time) -> bool {
        self.limiter().reward(now);
        let mut standing = self.standing();
        standing.refused = None;
        standing.stored_as_refused
    }

    /// Sets the price of a poll; answers whether it moved enough to matter.
    pub(crate) fn set_price(&self, price: f64) -> bool {
        let mut slot = self.price.lock().expect("never poisoned, because nothing panics while it is held");
        let old = slot.replace(price);
        old.is_none_or(|old| (old - price).abs() > old.abs() * 0.01)
    }

    /// What the cadence needs to know about a target of this source, but for its bell: [`crate::due::Due`] knows that.
    pub(crate) fn seat(&self, spec: &TargetSpec, plan: &Plan, state: Option<&TargetState>) -> Seat {
        let price = *self.price.lock().expect("never poisoned, because nothing panics while it is held");
        let budgeted = match (plan, price) {
            (Plan::Adaptive(bounds), Some(price)) => Some(budget_item(bounds, state).interval(price)),
            _ => None,
        };
        let focused = state.is_some_and(|state| state.facts.focused);
        let priority = if focused { FOCUS_PRIORITY } else { spec.priority };
        Seat { spread: spec.spread(self.source().name()), priority, budgeted, bell: None }
    }

    /// Notes how many polls wait for their turn, and how many for their time.
    pub(crate) fn set_waiting(&self, ready: usize, held: usize) {
        self.ready.store(ready, Ordering::Relaxed);
        self.held.store(held, Ordering::Relaxed);
    }

    /// Targets that wait for their time or their turn.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed) + self.ready.load(Ordering::Relaxed)
    }

    /// How the lane is doing.
    pub(crate) fn state(&self) -> LaneState {
        let limiter = self.limiter();
        LaneState {
            ready: self.ready.load(Ordering::Relaxed) as u64,
            in_flight: self.in_flight.load(Ordering::Relaxed),
            complaints: self.complaints.load(Ordering::Relaxed),
            slowdown: limiter.slowdown(),
            slow_until: limiter.slow_until(),
        }
    }

    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().expect("never poisoned, because nothing panics while it is held")
    }
}

/// How a source's lane is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneState {
    /// Polls that are due and wait for their turn.
    pub ready: u64,
    /// Polls that have the upstream's ear.
    pub in_flight: u32,
    /// How often the upstream complained (429, 503) since the start.
    pub complaints: u64,
    /// How many times slower than configured it is asked; 1 when it is well.
    pub slowdown: f64,
    /// Until when it is not asked at all because it said so.
    pub slow_until: Option<Time>,
}

/// A place among a source's polls in flight; free again when dropped.
pub(crate) struct Place {
    in_flight: Arc<AtomicU32>,
    freed: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.freed.notify_one();
    }
}

/// An adaptive target as the budget sees it: what it costs, and how much is expected of it.
pub(crate) fn budget_item(bounds: &Adaptive, state: Option<&TargetState>) -> Item {
    let rate = state.and_then(|state| state.rate).unwrap_or_default().rate();
    let cost = f64::from(state.map_or(1, |state| state.cost).max(1));
    Item { weight: bounds.weight, rate, cost, min: bounds.min, max: bounds.max }
}
