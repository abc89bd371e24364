//! Listening for hints on a connection of its own. Whoever misses one finds out by looking: nothing depends on it.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot};
use tokio_postgres::AsyncMessage;

use super::connect::Address;
use super::fault;
use crate::{Hint, TargetId};

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
    /// Starts listening; comes back when it does, or when the first try has failed.
    pub(super) async fn start(address: Address, hints: broadcast::Sender<Hint>) -> Listener {
        let (ready, begun) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut ready = Some(ready);
            loop {
                if let Err(error) = listen(&address, &hints, &mut ready).await {
                    tracing::debug!(error = fault::say(&error), "not listening for hints, trying again");
                }
                // Whoever waits for the first try has waited long enough.
                drop(ready.take());
                tokio::time::sleep(AGAIN).await;
            }
        });
        let _ = begun.await;
        Listener(task)
    }
}

async fn listen(
    address: &Address,
    hints: &broadcast::Sender<Hint>,
    ready: &mut Option<oneshot::Sender<()>>,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
    let mut begun = std::pin::pin!(client.batch_execute("LISTEN stakeout"));
    let mut listening = false;
    loop {
        let hint = tokio::select! {
            result = &mut begun, if !listening => {
                result?;
                listening = true;
                match ready.take() {
                    Some(ready) => {
                        let _ = ready.send(());
                        None
                    }
                    None => Some(Hint::Missed),
                }
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                None => return Ok(()),
                Some(message) => match message? {
                    AsyncMessage::Notification(said) => parse(said.payload(), &address.sender),
                    _ => None,
                },
            }
        };
        if let Some(hint) = hint {
            // Nobody may want to know right now.
            let _ = hints.send(hint);
        }
    }
}

/// Reads `sender word which`. What we said ourselves is no news, and words of later versions mean nothing.
fn parse(said: &str, own: &str) -> Option<Hint> {
    let mut words = said.split(' ');
    let (sender, word, which) = (words.next()?, words.next()?, words.next().unwrap_or_default());
    let mut numbers = which.split(',').filter_map(|number| number.parse::<i64>().ok());
    match word {
        _ if sender == own => None,
        "events" => numbers.next().map(|seq| Hint::Events(seq as u64)),
        "plans" => Some(Hint::Plans(numbers.map(TargetId).collect())),
        "settings" => Some(Hint::Settings),
        "values" => Some(Hint::Values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_unless_they_are_our_own() {
        assert_eq!(parse("n1 events 17", "n2"), Some(Hint::Events(17)));
        assert_eq!(parse("n1 plans 3,4", "n2"), Some(Hint::Plans(vec![TargetId(3), TargetId(4)])));
        assert_eq!(parse("n1 plans ", "n2"), Some(Hint::Plans(vec![])));
        assert_eq!(parse("n1 settings", "n2"), Some(Hint::Settings));
        assert_eq!(parse("n1 values", "n2"), Some(Hint::Values));
        for nothing in ["n2 settings", "n1 tomorrow", "n1", "", "n1 events"] {
            assert_eq!(parse(nothing, "n2"), None, "{nothing}");
        }
    }
}
