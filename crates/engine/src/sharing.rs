//! Sharing: agrees with other nodes on who asks which source how fast. Only where the store is shared.
//!
//! Every second a node says for each source how much it wants and hears what it may use ([`Tenure`]). Nothing is handed
//! out twice, so the limits hold for all nodes together. A node that is not heard of loses its part when it has run out;
//! it knows, too, and stops asking.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use stakeout_core::{Span, Time};
use stakeout_store::{Allowance, Grant, GrantRequest, LaneRequest, StoreError};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::dispatch::Message;
use crate::lane::Lane;
use crate::shared::Shared;
use crate::tenure::{Tenure, is_alone, lasts};

/// How often a node says that it is there.
const EVERY: Span = Span::secs(1);
/// A node gives targets away when it does more than this many times what nodes do on average.
const TOO_MUCH: f64 = 1.2;
/// What part of its surplus a node gives away at once: the others have to take it first.
const AT_ONCE: f64 = 0.3;
/// What counts of the last second's demand, next to that of the seconds before.
const FRESH: f64 = 0.5;

/// This node's side of the agreement.
pub(crate) struct Sharing {
    shared: Arc<Shared>,
    /// Not by the clock that others go by: one that was set back must not put it off.
    next: Instant,
    wanted: HashMap<String, Wanted>,
}

/// How much a node has wanted of a source.
#[derive(Clone, Copy, Default)]
struct Wanted {
    at: Option<Time>,
    admitted: u64,
    per_second: f64,
}

impl Wanted {
    /// Takes a measurement: what went through, and what would have.
    fn measure(&mut self, lane: &Lane, now: Time) -> f64 {
        let admitted = lane.admitted_count();
        if let Some(at) = self.at.filter(|at| *at < now) {
            let seconds = (now - at).as_secs_f64();
            let went = admitted.saturating_sub(self.admitted) as f64 / seconds;
            let fresh = went + lane.state().ready as f64;
            self.per_second += (fresh - self.per_second) * FRESH;
        }
        (self.at, self.admitted) = (Some(now), admitted);
        self.per_second
    }
}

impl Sharing {
    pub(crate) fn new(shared: Arc<Shared>) -> Sharing {
        Sharing { shared, next: Instant::now(), wanted: HashMap::new() }
    }

    /// Agrees anew if it is time to; has the dispatcher let go of sources that are lost.
    pub(crate) async fn refresh(&mut self, dispatcher: &mpsc::Sender<Message>) {
        let shared = Arc::clone(&self.shared);
        if !shared.store.is_shared() || Instant::now() < self.next {
            return;
        }
        for (name, lane) in &shared.lanes {
            let now = shared.clock.now();
            let demand = self.wanted.entry(name.clone()).or_default().measure(lane, now);
            match renew(&shared, name, lane, demand).await {
                Ok(may_ask) if may_ask || lane.held() == 0 => {}
                Ok(_) => {
                    // Whoever has it now takes its targets, too.
                    if dispatcher.send(Message::Left(name.clone())).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    // What was agreed on holds until it runs out.
                    warn!(source = name, %error, "limits could not be shared with other nodes");
                    shared.store_failed(&error);
                }
            }
        }
        self.next = Instant::now() + shared.clock.real(EVERY);
    }
}

/// Keeps or takes a source, or a part of it; answers whether this node may ask it.
async fn renew(shared: &Shared, name: &str, lane: &Lane, demand: f64) -> Result<bool, StoreError> {
    let tenure = if is_alone(lane.source().limits()) {
        whole(shared, name, lane).await?
    } else {
        part(shared, name, lane, demand).await?
    };
    let now = shared.clock.now();
    Ok(tenure.holds(now))
}

/// The source's limits may be others. A part is none of a source that only one node can ask: from this moment on nothing
/// is asked under it, so what is not under way now never will be.
pub(crate) fn limits_changed(lane: &Lane, now: Time) {
    if matches!(lane.tenure(), Tenure::Part { .. }) && is_alone(lane.source().limits()) {
        lane.set_tenure(Tenure::None, now, None);
    }
}

/// The lease on a whole source.
async fn whole(shared: &Shared, name: &str, lane: &Lane) -> Result<Tenure, StoreError> {
    let limits = lane.source().limits().clone();
    let now = shared.clock.now();
    let before = lane.tenure();
    limits_changed(lane, now);
    let had = matches!(before, Tenure::Whole { .. }) && before.holds(now);
    let state = lane.state();
    let request = LaneRequest {
        source: name.to_owned(),
        node: shared.node.clone(),
        now,
        holds: lasts(&limits),
        under_way: !had && state.in_flight > 0,
        slow_until: state.slow_until.filter(|until| *until > now),
    };
    let lane_lease = shared.store.lane(&request).await?;
    let lease = lane_lease.map(|whole| whole.lease);
    let tenure = lease.map_or(Tenure::None, |lease| Tenure::Whole { until: lease.until });
    let now = shared.clock.now();
    // Whoever had it before may have sent its last request just before it ran out.
    let wait = lease.filter(|_| !had).map(|lease| if lease.taken_over { now + limits.timeout } else { now });
    lane.set_tenure(tenure, now, wait);
    if let Some(until) = lane_lease.and_then(|whole| whole.slow_until).filter(|until| *until > now) {
        lane.left_alone(until);
    }
    match (had, lease) {
        (false, Some(lease)) => {
            info!(source = name, taken_over = lease.taken_over, "this node asks the source")
        }
        (true, None) => info!(source = name, "another node asks the source"),
        _ => {}
    }
    Ok(tenure)
}

/// A part of a source's limits.
async fn part(shared: &Shared, name: &str, lane: &Lane, demand: f64) -> Result<Tenure, StoreError> {
    let source = lane.source();
    let limits = source.limits();
    let now = shared.clock.now();
    let before = lane.tenure();
    let request = GrantRequest {
        source: name.to_owned(),
        node: shared.node.clone(),
        now,
        holds: lasts(limits),
        limits: Allowance {
            requests_per_second: limits.requests_per_second,
            burst: limits.burst,
            concurrency: limits.concurrency,
        },
        demand,
        using: using(lane, before, now),
        slow_until: lane.state().slow_until.filter(|until| *until > now),
    };
    let grant = shared.store.grant(&request).await?;
    let tenure =
        grant.map_or(Tenure::None, |grant| Tenure::Part { until: grant.until, allowance: grant.allowance });
    let now = shared.clock.now();
    let newcomer = !before.holds(request.now) && grant.is_some_and(|grant| !grant.first);
    lane.set_tenure(tenure, now, newcomer.then_some(now));
    if let Some(grant) = grant {
        if let Some(until) = grant.slow_until.filter(|until| *until > now) {
            lane.left_alone(until);
        }
        lane.set_shed(surplus(&grant, demand, lane.held()));
    }
    Ok(tenure)
}

/// What this node may be using at this moment: what it was given last, and what is still under way.
fn using(lane: &Lane, tenure: Tenure, now: Time) -> Allowance {
    let under_way = lane.state().in_flight;
    match tenure {
        Tenure::Part { allowance, .. } if tenure.holds(now) => {
            Allowance { concurrency: allowance.concurrency.max(under_way), ..allowance }
        }
        _ => Allowance { concurrency: under_way, ..Allowance::default() },
    }
}

/// How many of its targets a node gives away, because the others do less.
fn surplus(grant: &Grant, demand: f64, held: usize) -> i64 {
    if demand <= grant.mean_demand * TOO_MUCH || held < 2 {
        return 0;
    }
    let part = 1.0 - grant.mean_demand / demand;
    (held as f64 * part * AT_ONCE).floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_does_too_much_gives_some_of_it_away() {
        let of = |mean_demand, demand, held| {
            let allowance = Allowance::default();
            let grant = Grant { until: Time(0), allowance, first: false, slow_until: None, mean_demand };
            surplus(&grant, demand, held)
        };
        assert_eq!(of(50.0, 100.0, 1_000), 150, "half is too much, and a third of that goes at once");
        assert_eq!(of(90.0, 100.0, 1_000), 0, "not worth the trouble");
        assert_eq!(of(50.0, 100.0, 1), 0, "one target is not divided");
        assert_eq!(of(50.0, 0.0, 10), 0);
    }
}
