//! Replanning: new due times for targets whose plan changed without a poll (a setting, a step of the clock).

use std::sync::atomic::Ordering;

use stakeout_core::{Last, LastOutcome, Span, Time};
use stakeout_store::{NewPlan, StoreError, TargetFilter, TargetId, TargetRow};

use crate::due::{Due, schedule_of};
use crate::lane::Lane;
use crate::shared::Shared;

/// Targets are read in pages of this size.
const PAGE: u32 = 1_000;

/// Replans every target of every source whose due time is another now; answers which. `step` is by how much the clock
/// was stepped, if that is why.
pub(crate) async fn everything(shared: &Shared, step: Option<Span>) -> Result<Vec<TargetId>, StoreError> {
    let mut moved = Vec::new();
    for name in shared.source_names() {
        moved.extend(source(shared, &name, step).await?);
    }
    Ok(moved)
}

/// Replans every target of a source whose due time is another now; answers which.
pub(crate) async fn source(
    shared: &Shared,
    name: &str,
    step: Option<Span>,
) -> Result<Vec<TargetId>, StoreError> {
    let Some(lane) = shared.lanes.get(name) else { return Ok(Vec::new()) };
    // Before a row is read: whoever is committed later than that finds another number than it planned with.
    shared.replans.fetch_add(1, Ordering::SeqCst);
    let now = shared.clock.now();
    let mut moved = Vec::new();
    let mut after = None;
    loop {
        let filter =
            TargetFilter { source: Some(name.to_owned()), after, limit: PAGE, ..TargetFilter::default() };
        let page = shared.store.targets(&filter).await?;
        let Some(last) = page.last() else { return Ok(moved) };
        after = Some(last.id);
        let plans: Vec<NewPlan> =
            page.iter().filter_map(|row| new_plan(shared, lane, row, now, step)).collect();
        if !plans.is_empty() {
            shared.store.replan(&plans).await?;
            moved.extend(plans.iter().map(|plan| plan.target));
        }
    }
}

/// Replans one target; answers it if its due time is another now.
pub(crate) async fn one(shared: &Shared, row: &TargetRow) -> Result<Vec<TargetId>, StoreError> {
    let Some(lane) = shared.lanes.get(&row.source) else { return Ok(Vec::new()) };
    let Some(plan) = new_plan(shared, lane, row, shared.clock.now(), None) else { return Ok(Vec::new()) };
    shared.store.replan(&[plan]).await?;
    Ok(vec![row.id])
}

/// The target's new due time, if it is another. What is due already keeps its due time, so that its lateness is not
/// hidden; what backs off goes on doing so, unless the clock itself moved.
fn new_plan(shared: &Shared, lane: &Lane, row: &TargetRow, now: Time, step: Option<Span>) -> Option<NewPlan> {
    let future = row.schedule.due.is_some_and(|due| due > now);
    if !future || (row.state.last.outcome != LastOutcome::Good && step.is_none()) {
        return None;
    }
    // A slot in the future is from before the clock was set back: as far as anyone knows, it is now.
    let slot = row.state.last.slot.map(|slot| slot.min(now));
    let outcome = match row.state.last.outcome {
        LastOutcome::Good => LastOutcome::Good,
        LastOutcome::Failed { failures, not_before } => LastOutcome::Failed {
            failures,
            not_before: not_before.map(|time| time + step.unwrap_or(Span::ZERO)),
        },
    };
    let last = Last { slot, outcome };
    let due = Due { shared, lane, spec: &row.spec, facts: &row.state.facts, state: Some(&row.state) };
    let schedule = schedule_of(due.replan(&last, now));
    let moved = (schedule.due, schedule.interval) != (row.schedule.due, row.schedule.interval);
    moved.then_some(NewPlan {
        target: row.id,
        plan_version: row.plan_version,
        poll_no: row.poll_no,
        schedule,
    })
}
