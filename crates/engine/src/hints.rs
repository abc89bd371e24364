//! Hints from other processes that share the store: look now, not later. Whatever is not heard is found by looking,
//! every second: nothing depends on a hint.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value as Json;
use stakeout_core::Span;
use stakeout_store::{Hint, KvRow, StoreError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::dispatch::Message;
use crate::settings;
use crate::shared::Shared;

/// How often to look for what was not heard.
const LOOK_EVERY: Span = Span::secs(1);
/// Published values that are compared; more than any source publishes.
const MAX_VALUES: u32 = 10_000;

/// The published values that this process has told of.
#[derive(Default)]
pub(crate) struct Told(Mutex<Values>);

#[derive(Default)]
struct Values {
    known: HashMap<(String, String), Json>,
    /// Rises with every value told: what was read before may be older than it.
    told: u64,
}

impl Told {
    fn values(&self) -> MutexGuard<'_, Values> {
        self.0.lock().expect("never poisoned, because nothing panics while it is held")
    }

    /// Whether a value is another than the one told of last; it counts as told.
    pub(crate) fn is_news(&self, row: &KvRow) -> bool {
        let mut values = self.values();
        let place = (row.namespace.clone(), row.key.clone());
        let news = values.known.get(&place) != Some(&row.value);
        if news {
            values.known.insert(place, row.value.clone());
            values.told += 1;
        }
        news
    }
}

/// Follows hints until told to stop; ends at once where nobody else can write.
pub(crate) async fn follow(shared: Arc<Shared>, dispatcher: mpsc::Sender<Message>, stop: CancellationToken) {
    let Some(mut hints) = shared.store.hints() else { return };
    let mut next = shared.clock.now();
    loop {
        let hint = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            hint = hints.recv() => hint,
            // A clock that was set back must not put it off.
            () = shared.clock.sleep_until(next.min(shared.clock.now() + LOOK_EVERY)) => {
                next = shared.clock.now() + LOOK_EVERY;
                if let Err(error) = look(&shared, &dispatcher).await {
                    warn!(%error, "what other nodes changed could not be read");
                    shared.store_failed(&error);
                }
                continue;
            }
        };
        match hint {
            Ok(Hint::Events(seq)) => shared.heard(seq),
            Ok(Hint::Plans(targets)) => {
                // Whoever holds them lets go; whoever looks first takes them.
                if dispatcher.send(Message::Changed(targets)).await.is_err() {
                    return;
                }
                shared.look.notify_one();
            }
            Ok(Hint::Settings) => {
                if settings::follow_once(&shared, &dispatcher).await.is_err() {
                    return;
                }
            }
            Ok(Hint::Values) => {
                if let Err(error) = values(&shared).await {
                    shared.store_failed(&error);
                }
            }
            Ok(Hint::Missed) | Err(RecvError::Lagged(_)) => {
                shared.look.notify_one();
                if let Err(error) = plans(&shared, &dispatcher).await {
                    shared.store_failed(&error);
                }
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Finds what was not heard: events, values, plans, and a schema that has become too new.
async fn look(shared: &Shared, dispatcher: &mpsc::Sender<Message>) -> Result<(), StoreError> {
    shared.store.check_schema().await?;
    let ends = shared.store.log_ends().await?;
    shared.heard(ends.newest);
    values(shared).await?;
    if shared.store.hears_hints().await? { Ok(()) } else { plans(shared, dispatcher).await }
}

/// Has the dispatcher let go of targets that were re-planned, switched or removed without a word that was heard.
async fn plans(shared: &Shared, dispatcher: &mpsc::Sender<Message>) -> Result<(), StoreError> {
    let (answer, waiting) = oneshot::channel();
    // Whoever is stopping has nothing to let go of.
    if dispatcher.send(Message::Waiting(answer)).await.is_err() {
        return Ok(());
    }
    let Ok(waiting) = waiting.await else { return Ok(()) };
    if waiting.is_empty() {
        return Ok(());
    }
    let moved = shared.store.moved_on(&waiting).await?;
    if !moved.is_empty() {
        // As above.
        let _ = dispatcher.send(Message::Changed(moved)).await;
    }
    Ok(())
}

/// Tells of the values that other nodes published. What this node publishes meanwhile makes the reading too old.
async fn values(shared: &Shared) -> Result<(), StoreError> {
    let before = shared.told_values.values().told;
    let rows = shared.store.list_kv(None, None, MAX_VALUES).await?;
    if shared.told_values.values().told == before {
        shared.published(rows);
    }
    Ok(())
}
