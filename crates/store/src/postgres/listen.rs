//! Listening for hints on a connection of its own. Whoever misses one finds out by looking: nothing depends on it.

use std::future::poll_fn;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::broadcast;
use tokio_postgres::AsyncMessage;

use super::connect::Address;
use super::fault;
use crate::Hint;

/// How long to wait before listening again after the connection was lost.
const AGAIN: Duration = Duration::from_secs(1);

/// Listens as long as it lives.
#[derive(Debug)]
pub(super) struct Listener(tokio::task::JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    pub(super) fn start(address: Address, hints: broadcast::Sender<Hint>) -> Listener {
        Listener(tokio::spawn(async move {
            loop {
                if let Err(error) = listen(&address, &hints).await {
                    tracing::debug!(error = fault::say(&error), "not listening for hints, trying again");
                }
                tokio::time::sleep(AGAIN).await;
            }
        }))
    }
}

async fn listen(address: &Address, hints: &broadcast::Sender<Hint>) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
    let begun = client.batch_execute("LISTEN stakeout").fuse();
    tokio::pin!(begun);
    let mut heard = false;
    loop {
        tokio::select! {
            result = &mut begun, if !heard => {
                result?;
                heard = true;
                // Whatever was missed while nobody listened.
                for hint in [Hint::Events, Hint::Plans, Hint::Settings] {
                    let _ = hints.send(hint);
                }
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                None => return Ok(()),
                Some(message) => {
                    if let AsyncMessage::Notification(notice) = message?
                        && let Some(hint) = Hint::parse(notice.payload())
                    {
                        // Nobody may be listening right now.
                        let _ = hints.send(hint);
                    }
                }
            }
        }
    }
}
