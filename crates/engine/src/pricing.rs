//! Pricing: divides a source's request budget among its adaptive targets.
//!
//! The solution is one number per source, the price of a poll; every target derives its interval from it. When the
//! price moved noticeably, the targets are planned anew.

use std::sync::Arc;

use stakeout_core::budget::{self, Item};
use stakeout_core::{Plan, Span};
use stakeout_store::{LeaseRequest, StoreError, TargetFilter, TargetId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::dispatch::Message;
use crate::lane::{Lane, budget_item};
use crate::replan;
use crate::shared::Shared;

/// How often the price is computed anew.
const EVERY: Span = Span::secs(30);
/// How often the price is read where another node computes it.
const READ_EVERY: Span = Span::secs(1);
/// Targets are read in pages of this size.
const PAGE: u32 = 1_000;

pub(crate) async fn run(shared: Arc<Shared>, dispatcher: mpsc::Sender<Message>, stop: CancellationToken) {
    // Sources without a budget are most of them: nothing to do then.
    let budgeted: Vec<String> =
        shared.lanes.iter().filter(|(_, lane)| has_budget(lane)).map(|(n, _)| n.clone()).collect();
    while !budgeted.is_empty() && !stop.is_cancelled() {
        let mut every = EVERY;
        for name in &budgeted {
            let busy = shared.clock.busy();
            match price(&shared, name, &mut every).await {
                Ok(moved) if moved.is_empty() => {}
                Ok(moved) => {
                    if dispatcher.send(Message::Changed(moved)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    warn!(source = name, %error, "the budget could not be divided");
                    shared.store_failed(&error);
                }
            }
            drop(busy);
        }
        let next = shared.clock.now() + every;
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.clock.sleep_until(next) => {}
        }
    }
}

fn has_budget(lane: &Lane) -> bool {
    lane.source().budget().is_some()
}

/// Computes the price of a source, or reads it where another node has that task; answers the targets that were
/// re-planned because of it. Whoever computes it plans the targets of all nodes.
async fn price(shared: &Shared, name: &str, every: &mut Span) -> Result<Vec<TargetId>, StoreError> {
    let request = LeaseRequest {
        name: format!("price {name}"),
        node: shared.node.clone(),
        now: shared.clock.now(),
        holds: EVERY.times(2),
    };
    if shared.store.lease(&request).await?.is_some() {
        let repriced = reprice(shared, name).await?;
        if repriced.is_none() {
            *every = READ_EVERY;
        }
        return Ok(repriced.unwrap_or_default());
    }
    *every = READ_EVERY;
    if let (Some(lane), Some(price)) = (shared.lanes.get(name), shared.store.price(name).await?) {
        lane.set_price(price);
    }
    Ok(Vec::new())
}

/// Computes the price of a source; answers the targets that were re-planned because of it. Where there is nothing to
/// divide the budget among, there is no price: a price of nothing would send whoever comes first off at once.
async fn reprice(shared: &Shared, name: &str) -> Result<Option<Vec<TargetId>>, StoreError> {
    let Some(lane) = shared.lanes.get(name) else { return Ok(Some(Vec::new())) };
    let Some(requests_per_second) = lane.source().budget() else { return Ok(Some(Vec::new())) };
    let items = items(shared, name, lane).await?;
    if items.is_empty() {
        return Ok(None);
    }
    let price = budget::price(&items, requests_per_second);
    debug!(source = name, targets = items.len(), price, "price");
    shared.store.set_price(name, price, shared.clock.now()).await?;
    Ok(Some(if lane.set_price(price) { replan::source(shared, name, None).await? } else { Vec::new() }))
}

async fn items(shared: &Shared, name: &str, lane: &Lane) -> Result<Vec<Item>, StoreError> {
    let source = lane.source();
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let filter =
            TargetFilter { source: Some(name.to_owned()), after, limit: PAGE, ..TargetFilter::default() };
        let page = shared.store.targets(&filter).await?;
        let Some(last) = page.last() else { return Ok(items) };
        after = Some(last.id);
        let adaptive = page.iter().filter(|row| row.enabled).filter_map(|row| {
            match source.plan(&row.spec, &row.state.facts) {
                Plan::Adaptive(bounds) => Some(budget_item(&bounds, Some(&row.state))),
                _ => None,
            }
        });
        items.extend(adaptive);
    }
}
