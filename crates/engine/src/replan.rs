//! Replanning: new due times for targets whose plan changed without a poll (a setting, a step of the clock).

use stakeout_core::{Last, LastOutcome, Time, cadence};
use stakeout_store::{Schedule, StoreError, TargetFilter, TargetId, TargetRow};

use crate::lane::Lane;
use crate::poll::schedule_of;
use crate::shared::Shared;

/// Targets are read in pages of this size.
const PAGE: u32 = 1_000;

/// Replans every target of every source whose due time is another now; answers which.
pub(crate) async fn everything(shared: &Shared) -> Result<Vec<TargetId>, StoreError> {
    let mut moved = Vec::new();
    for name in shared.source_names() {
        moved.extend(source(shared, &name).await?);
    }
    Ok(moved)
}

/// Replans every target of a source whose due time is another now; answers which.
pub(crate) async fn source(shared: &Shared, name: &str) -> Result<Vec<TargetId>, StoreError> {
    let Some(lane) = shared.lanes.get(name) else { return Ok(Vec::new()) };
    let now = shared.clock.now();
    let mut moved = Vec::new();
    let mut after = None;
    loop {
        let filter =
            TargetFilter { source: Some(name.to_owned()), after, limit: PAGE, ..TargetFilter::default() };
        let page = shared.store.targets(&filter).await?;
        let Some(last) = page.last() else { return Ok(moved) };
        after = Some(last.id);
        let plans: Vec<(TargetId, Schedule)> = page
            .iter()
            .filter(|row| may_move(row, now))
            .map(|row| (row.id, new_schedule(lane, row, now), &row.schedule))
            .filter(|(_, new, old)| (new.due, new.interval) != (old.due, old.interval))
            .map(|(id, new, _)| (id, new))
            .collect();
        if !plans.is_empty() {
            shared.store.replan(&plans).await?;
            moved.extend(plans.iter().map(|(id, _)| *id));
        }
    }
}

/// What is due already keeps its due time, so that its lateness is not hidden; what backs off goes on doing so.
fn may_move(row: &TargetRow, now: Time) -> bool {
    row.schedule.due.is_some_and(|due| due > now) && row.state.last.outcome == LastOutcome::Good
}

fn new_schedule(lane: &Lane, row: &TargetRow, now: Time) -> Schedule {
    let facts = &row.state.facts;
    let plan = lane.source().plan(&row.spec, facts);
    let seat = lane.seat(&row.spec, &plan, Some(&row.state));
    // A slot in the future is from before the clock was set back: as far as anyone knows, it is now.
    let last = Last { slot: row.state.last.slot.map(|slot| slot.min(now)), outcome: row.state.last.outcome };
    schedule_of(cadence::replan(&plan, facts, &last, now, &seat))
}
