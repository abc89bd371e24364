//! Listening for hints on a connection of its own. Whoever misses one finds out by looking: nothing depends on it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, oneshot};
use tokio_postgres::AsyncMessage;

use super::connect::Address;
use super::fault;
use crate::{Hint, TargetId};

/// How long to wait before listening again after the connection was lost.
const AGAIN: Duration = Duration::from_secs(1);

/// A word that a node says only to find out whether it hears itself: behind some poolers listening succeeds, and nothing
/// is ever heard.
pub(super) const HELLO: &str = "hello";

/// When a word of our own was last heard.
#[derive(Debug, Default)]
pub(super) struct Ear(Mutex<Option<Instant>>);

impl Ear {
    fn heard(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub(super) fn heard_within(&self, time: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|heard| heard.elapsed() < time)
    }
}

/// Listens as long as it lives.
#[derive(Debug)]
pub(super) struct Listener {
    task: tokio::task::JoinHandle<()>,
    /// What is heard of ourselves.
    pub(super) ear: Arc<Ear>,
    /// Under which name we speak.
    pub(super) sender: String,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Starts listening; comes back when it does, or when the first try has failed.
    pub(super) async fn start(address: Address, hints: broadcast::Sender<Hint>) -> Listener {
        let (ready, begun) = oneshot::channel();
        let (ear, sender) = (Arc::new(Ear::default()), address.sender.clone());
        let hearing = Arc::clone(&ear);
        let task = tokio::spawn(async move {
            let mut ready = Some(ready);
            loop {
                if let Err(error) = listen(&address, &hints, &hearing, &mut ready).await {
                    tracing::debug!(error = fault::say(&error), "not listening for hints, trying again");
                }
                // Whoever waits for the first try has waited long enough.
                drop(ready.take());
                tokio::time::sleep(AGAIN).await;
            }
        });
        let _ = begun.await;
        Listener { task, ear, sender }
    }
}

async fn listen(
    address: &Address,
    hints: &broadcast::Sender<Hint>,
    ear: &Ear,
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
                    AsyncMessage::Notification(said) if is_own(said.payload(), &address.sender) => {
                        ear.heard();
                        None
                    }
                    AsyncMessage::Notification(said) => parse(said.payload()),
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

/// Whether we said that ourselves: then it is no news.
fn is_own(said: &str, own: &str) -> bool {
    said.split(' ').next() == Some(own)
}

/// Reads `sender word which`. Words of later versions mean nothing.
fn parse(said: &str) -> Option<Hint> {
    let mut words = said.split(' ').skip(1);
    let (word, which) = (words.next()?, words.next().unwrap_or_default());
    let mut numbers = which.split(',').filter_map(|number| number.parse::<i64>().ok());
    match word {
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
    fn words_are_read() {
        assert_eq!(parse("n1 events 17"), Some(Hint::Events(17)));
        assert_eq!(parse("n1 plans 3,4"), Some(Hint::Plans(vec![TargetId(3), TargetId(4)])));
        assert_eq!(parse("n1 plans "), Some(Hint::Plans(vec![])));
        assert_eq!(parse("n1 settings"), Some(Hint::Settings));
        assert_eq!(parse("n1 values"), Some(Hint::Values));
        for nothing in ["n2 hello", "n1 tomorrow", "n1", "", "n1 events"] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn whoever_hears_himself_listens() {
        assert!(is_own("n1 hello", "n1") && is_own("n1 plans 3", "n1"));
        assert!(!is_own("n12 plans 3", "n1") && !is_own("", "n1"));
        let ear = Ear::default();
        assert!(!ear.heard_within(Duration::from_secs(60)), "nothing was heard yet");
        ear.heard();
        assert!(ear.heard_within(Duration::from_secs(60)));
    }
}
