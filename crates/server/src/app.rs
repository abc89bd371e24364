//! What every handler can reach.

use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_engine::Control;
use stakeout_store::Store;

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
