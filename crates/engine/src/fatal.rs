//! The one error that ends the engine: a store that cannot go on.

use std::sync::{Arc, Mutex};

use stakeout_store::StoreError;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Raised once; everybody who waits for it is told.
#[derive(Clone, Default)]
pub(crate) struct Fatal {
    cause: Arc<Mutex<Option<StoreError>>>,
    raised: CancellationToken,
}

impl Fatal {
    /// Ends the engine with this error. Later ones change nothing.
    pub(crate) fn raise(&self, cause: StoreError) {
        error!(error = %cause, "the store cannot go on");
        let mut slot = self.cause.lock().expect("never poisoned, because nothing panics while it is held");
        slot.get_or_insert(cause);
        self.raised.cancel();
    }

    /// Returns when an error was raised.
    pub(crate) async fn raised(&self) {
        self.raised.cancelled().await;
    }

    /// Takes the error, if one was raised.
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.cause.lock().expect("never poisoned, because nothing panics while it is held").take()
    }
}
