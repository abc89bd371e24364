//! The side that asks.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Answer, LINE_BYTES_MAX, Request};

/// The longest answer: a report with its failures, and nothing like a database.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers there.
    #[error("no answer from the control socket: {0}")]
    NoAnswer(#[from] io::Error),
    /// The process said no.
    #[error("{0}")]
    Refused(String),
}

/// Asks the process that listens at `path`, waiting at most `limit`.
pub async fn ask(path: &Path, request: &Request, limit: Duration) -> Result<Json, AskError> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("none within {} s", limit.as_secs()));
    let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
    if line.len() >= LINE_BYTES_MAX {
        return Err(AskError::Refused(format!("the request is longer than {LINE_BYTES_MAX} bytes")));
    }
    line.push(b'\n');
    let answer = timeout(limit, exchange(path, &line)).await.map_err(late)??;
    match serde_json::from_slice(&answer) {
        Ok(Answer::Done { result, .. }) => Ok(result),
        Ok(Answer::Error { error }) => Err(AskError::Refused(error)),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error).into()),
    }
}

async fn exchange(path: &Path, line: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(line).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
}
