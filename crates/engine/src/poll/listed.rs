//! Listed: what a listing changes about other targets, and when they are to be looked at next.

use std::collections::BTreeMap;

use stakeout_core::compare::{Comparison, Item};
use stakeout_core::{Facts, Last, Observation, TargetSpec, Time};
use stakeout_store::{Reconcile, Schedule, StoreError, TargetRow, Wanted};

use super::Job;
use super::recall::Recalled;
use crate::due::{Due, schedule_of};
use crate::lane::Lane;
use crate::shared::Shared;

/// The targets that a listing describes otherwise than before, as they stand now, by key.
pub(super) async fn rows(
    job: &Job<'_>,
    observation: &Observation,
    comparison: &Comparison,
) -> Result<BTreeMap<String, TargetRow>, StoreError> {
    let listed = observation.targets.as_deref().unwrap_or_default();
    let mut rows = BTreeMap::new();
    for item in &comparison.changed {
        let Item::Target(i) = item else { continue };
        let key = &listed[*i].key;
        rows.extend(job.shared.store.target(job.source.name(), key).await?.map(|row| (key.clone(), row)));
    }
    Ok(rows)
}

/// The changes to the set of targets that a listing calls for.
pub(super) fn reconcile(
    job: &Job<'_>,
    now: Time,
    observation: &Observation,
    comparison: &Comparison,
    recalled: &Recalled<'_>,
) -> Option<Reconcile> {
    let listed = observation.targets.as_ref()?;
    let wanted = |spec: &TargetSpec| match recalled.listed.get(&spec.key) {
        Some(row) => Wanted { spec: spec.clone(), schedule: moved(job, spec, row, now) },
        None => first_look(job.shared, job.lane, spec, now),
    };
    let items = comparison.added.iter().chain(&comparison.changed);
    let upserts: Vec<Wanted> = items
        .filter_map(|item| match item {
            Item::Target(i) => Some(wanted(&listed[*i])),
            Item::Record(_) => None,
        })
        .collect();
    let retire = recalled.retired.clone();
    (!upserts.is_empty() || !retire.is_empty()).then_some(Reconcile { upserts, retire })
}

/// A target with its first due time.
pub(crate) fn first_look(shared: &Shared, lane: &Lane, spec: &TargetSpec, now: Time) -> Wanted {
    let facts = Facts { start: spec.start, ..Facts::default() };
    let next = Due { shared, lane, spec, facts: &facts, state: None }.next(&Last::default(), now);
    Wanted { spec: spec.clone(), schedule: schedule_of(next) }
}

/// When a target is looked at that is listed with another start. What its own polls have seen counts: one that is over
/// stays so, one that backs off goes on doing so, and a start that they knew before the listing did moves nothing.
/// What is due already is not put off.
fn moved(job: &Job<'_>, spec: &TargetSpec, row: &TargetRow, now: Time) -> Schedule {
    let due = row.schedule.due.is_some_and(|due| due <= now);
    if due || (row.state.facts.start == spec.start && row.state.last.slot.is_some()) {
        return row.schedule.clone();
    }
    let facts = Facts { start: spec.start, ..row.state.facts.clone() };
    let due = Due { shared: job.shared, lane: job.lane, spec, facts: &facts, state: Some(&row.state) };
    schedule_of(due.replan(&row.state.last, now))
}
