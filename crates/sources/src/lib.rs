//! The upstreams Stakeout knows, each as pure functions: what to ask, what the answers mean, how often to look, what
//! is worth telling.
//!
//! [`json`] is the declarative source for anything that answers JSON. [`written`] holds the values as people write
//! them in a configuration.
//!
//! **Invariant: no I/O here.** Bodies come in as bytes, secrets come in resolved, time comes in as an argument.

pub mod alert;
pub mod fpv;
pub mod json;
mod lenient;
mod odd;
pub mod racing;
pub mod tables;
pub mod written;

/// A configuration that reads well but cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigRefused {
    /// The key at fault, as a dotted path within the source's table.
    pub key: String,
    /// What was expected, what was found, what to do.
    pub message: String,
}

impl ConfigRefused {
    /// Refuses what stands at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> ConfigRefused {
        ConfigRefused { key: key.into(), message: message.into() }
    }
}
