//! Hints from other processes that share the store: look now, not later. Whatever is not heard is found by looking.

use std::sync::Arc;

use stakeout_store::Hint;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::dispatch::Message;
use crate::settings;
use crate::shared::Shared;

/// Follows hints until told to stop; ends at once where nobody else can write.
pub(crate) async fn follow(shared: Arc<Shared>, dispatcher: mpsc::Sender<Message>, stop: CancellationToken) {
    let Some(mut hints) = shared.store.hints() else { return };
    loop {
        let hint = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            hint = hints.recv() => hint,
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
            Ok(Hint::Missed) | Err(RecvError::Lagged(_)) => shared.look.notify_one(),
            Err(RecvError::Closed) => return,
        }
    }
}
