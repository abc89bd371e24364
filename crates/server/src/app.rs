//! What every handler can reach.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_engine::Control;
use stakeout_store::{Store, StoreError, StoreStats};
use tokio::sync::Mutex;

use crate::access::Access;
use crate::feed::Feed;

/// The server's common ground; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Parts>);

/// What it is made of.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) control: Control,
    pub(crate) access: Access,
    pub(crate) feed: Feed,
    /// The interface described.
    pub(crate) description: Arc<Json>,
    /// What is stored, counted now and then.
    pub(crate) counts: Counts,
    /// How long the body of a request may take.
    pub(crate) body_wait: Duration,
    /// Lists of venues are read, changed and set by one at a time.
    pub(crate) wishes: Mutex<()>,
}

/// How often what is stored is counted: in a large database it takes a while.
const COUNT_EVERY: Duration = Duration::from_secs(30);

/// What is stored, and when that was counted.
#[derive(Default)]
pub(crate) struct Counts(Mutex<Option<(Instant, StoreStats)>>);

impl Counts {
    /// The numbers, half a minute old at most. One counts, the others wait for it.
    pub(crate) async fn read(&self, store: &dyn Store) -> Result<StoreStats, StoreError> {
        let mut counted = self.0.lock().await;
        if let Some((at, stats)) = *counted
            && at.elapsed() < COUNT_EVERY
        {
            return Ok(stats);
        }
        let stats = store.stats().await?;
        *counted = Some((Instant::now(), stats));
        Ok(stats)
    }
}

impl App {
    pub(crate) fn new(parts: Parts) -> App {
        App(Arc::new(parts))
    }

    /// Engine time.
    pub(crate) fn now(&self) -> Time {
        self.control.clock().now()
    }
}

impl std::ops::Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
