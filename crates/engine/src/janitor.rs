//! The janitor: removes what is older than the retention allows, a little at a time, and writes the minute's summary.

use std::sync::Arc;

use stakeout_core::Span;
use stakeout_store::Retention;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::shared::Shared;
use crate::stats::Minute;

/// How often there is a summary and a little pruning.
const EVERY: Span = Span::mins(1);
/// Rows removed in one transaction: few enough that no poll waits noticeably for it.
const BATCH: u32 = 500;
/// Transactions per turn: enough to keep up with any realistic inflow.
const BATCHES_PER_TURN: u32 = 200;

pub(crate) async fn run(shared: Arc<Shared>, retention: Retention, stop: CancellationToken) {
    // Simulated days prune once an hour: nobody reads their summaries.
    let every = if shared.clock.is_virtual() { Span::hours(1) } else { EVERY };
    loop {
        let next = shared.clock.now() + every;
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.clock.sleep_until(next) => {}
        }
        summarise(&shared);
        prune(&shared, &retention, &stop).await;
    }
}

/// One line that says what was polled and why, and whether anything was missed.
pub(crate) fn summarise(shared: &Shared) {
    let Minute { report, lateness_ms_p99_above, chosen } = shared.stats.take_minute();
    if report.polled == 0 && report.dropped == 0 {
        return;
    }
    info!(
        polled = report.polled,
        changed = report.changed,
        failed = report.failed,
        late = report.late,
        missed = report.missed,
        events = report.events,
        history_rows = report.history_rows,
        requests = report.requests,
        bytes = report.bytes,
        // One of the two is there: what is not known is not written.
        lateness_ms_p99 = report.lateness_ms_p99,
        lateness_ms_p99_above,
        chosen,
        "summary"
    );
}

async fn prune(shared: &Shared, retention: &Retention, stop: &CancellationToken) {
    for _ in 0..BATCHES_PER_TURN {
        let _busy = shared.clock.busy();
        match shared.store.prune(retention, shared.clock.now(), BATCH).await {
            Ok(pruned) if pruned.more && !stop.is_cancelled() => tokio::task::yield_now().await,
            Ok(_) => return,
            Err(error) => {
                warn!(%error, "pruning failed");
                shared.store_failed(&error);
                return;
            }
        }
    }
}
