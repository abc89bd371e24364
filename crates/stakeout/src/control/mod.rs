//! The control socket: how a command reaches the process that holds the database.
//!
//! A Unix socket next to the database, for its owner only. One connection carries one request line and one answer
//! line, both JSON: `{"do":"enable","target":"prices/north"}` → `{"ok":true,"result":…}` or `{"error":"…"}`.

mod client;
mod server;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use client::{AskError, ask};
pub use server::{ControlHandler, Socket, serve};

/// The longest request or answer line.
const LINE_BYTES_MAX: usize = 64 << 10;

/// How long a line may take to arrive once a connection is open.
const LINE_WAIT: Duration = Duration::from_secs(5);

/// Connections at once; more wait in the socket's own queue.
const CONNECTIONS_MAX: usize = 16;

/// The longest path of a socket: the system allows 107 bytes.
const PATH_BYTES_MAX: usize = 100;

/// What a running process can be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Are you there?
    Ping {},
    /// Switch a target on.
    Enable {
        /// `source/key`
        target: String,
    },
    /// Switch a target off.
    Disable {
        /// `source/key`
        target: String,
    },
    /// Poll a target at once.
    PollNow {
        /// `source/key`
        target: String,
    },
    /// Take a target's next complete answer as it is.
    Rebaseline {
        /// `source/key`
        target: String,
    },
    /// Change a live setting, or remove it with null.
    Set {
        /// `source.NAME.SETTING`
        key: String,
        /// The value.
        value: Json,
    },
    /// Keep a token's hash.
    AddToken {
        /// The part that may be shown.
        id: String,
        /// What it is for.
        name: String,
        /// `read`, `operate` or `admin`
        scope: String,
        /// SHA-256 of the secret, in hex.
        hash: TokenHash,
    },
    /// Revoke a token.
    RevokeToken {
        /// The part that may be shown.
        id: String,
    },
    /// Have deliveries made again.
    RetryDeliveries {
        /// The sink.
        sink: String,
        /// The event's number; without it, all that were given up.
        event: Option<u64>,
        /// Also those that wait for their turn.
        waiting: bool,
    },
    /// Drop deliveries.
    DropDeliveries {
        /// The sink.
        sink: String,
        /// The event's number; without it, all that were given up.
        event: Option<u64>,
        /// Also those that wait for their turn.
        waiting: bool,
    },
    /// Poll everything that is due.
    Pass {
        /// The longest it may take.
        limit_ms: i64,
    },
}

/// A token's hash on its way to the store; no log shows it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenHash(pub String);

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Answer {
    Error { error: String },
    Done { ok: bool, result: Json },
}

/// Where the process that holds `database` listens: next to it, or in the temporary directory if that path is too long
/// for a socket. Absolute, because whoever asks may stand elsewhere.
pub fn socket_path(database: &Path) -> std::io::Result<PathBuf> {
    let mut path = std::path::absolute(database)?.into_os_string();
    path.push(".sock");
    if path.len() <= PATH_BYTES_MAX {
        return Ok(PathBuf::from(path));
    }
    let hash = stakeout_core::spread(&[&path.to_string_lossy()]);
    Ok(std::env::temp_dir().join(format!("stakeout-{hash:016x}.sock")))
}
