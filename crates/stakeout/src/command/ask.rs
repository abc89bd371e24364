//! Asking the process that holds the database.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::Value as Json;

use crate::control::{self, AskError, Request};

/// Beyond what the request itself may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The running process's answer; the error names the process when it does not answer.
pub(super) async fn running(socket: &Path, pid: &str, request: &Request) -> Result<Json> {
    let limit = match request {
        Request::Pass { limit_ms } => {
            Duration::from_millis(u64::try_from(*limit_ms).unwrap_or_default()) + PATIENCE
        }
        _ => PATIENCE,
    };
    control::ask(socket, request, limit).await.map_err(|error| match error {
        AskError::Refused(message) => anyhow!(message),
        AskError::NoAnswer(error) => anyhow!(
            "process {pid} holds the database but does not answer at {}: {error}. If it hangs, stop it and try again",
            socket.display()
        ),
    })
}
