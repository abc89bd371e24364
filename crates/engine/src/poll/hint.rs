//! Hint: a poll may name another target that should be looked at now.

use stakeout_store::TargetId;
use tracing::debug;

use super::Job;
use super::compare::Compared;

/// Makes the named target due; answers it, so that whoever holds it lets go. Hints are not part of the poll's
/// transaction: one that is lost costs a little time, nothing else.
pub(super) async fn follow(job: &Job<'_>, compared: &Compared) -> Option<TargetId> {
    let key = job.source.due_now(&job.claim.spec, &job.claim.state.facts, &compared.facts)?;
    let shared = job.shared;
    let _busy = shared.clock.busy();
    let row = shared.store.target(job.source.name(), &key).await.ok().flatten()?;
    // What has the focus is looked at all the time.
    if !row.enabled || row.state.facts.focused {
        return None;
    }
    shared.store.poll_now(row.id, shared.clock.now()).await.ok()?;
    debug!(source = job.source.name(), target_key = key, by = job.claim.spec.key, "due at once");
    Some(row.id)
}
