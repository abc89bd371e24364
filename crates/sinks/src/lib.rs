//! Receivers of events outside this process.
//!
//! - [`nats`]: NATS JetStream, for many consumers.
//! - [`webhook`]: signed webhooks, for programs.
//! - [`http`]: any HTTP interface by a template, for chats and the like.
//! - [`mail`]: e-mail, for people.
//! - [`cloud_event`]: how an event looks outside: CloudEvents 1.0.
//! - [`address`]: where a sink may connect to. [`takes`]: which events it takes.
//!
//! **Invariants kept here:** an event keeps its id wherever it goes and however often; an event counts as delivered only
//! when the receiver said so; a connection goes to an address that was checked; what a receiver says, and how long it takes,
//! has a limit; no secret is in a message. Nothing here knows the store or reads a configuration file.

use std::borrow::Cow;
use std::collections::BTreeMap;

pub mod address;
pub mod cloud_event;
pub mod http;
mod letter;
pub mod mail;
pub mod nats;
mod outgoing;
pub mod takes;
mod template;
mod trust;
mod unsaid;
pub mod webhook;
mod words;

/// A configuration that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Refused {
    /// What is wrong.
    pub key: Cow<'static, str>,
    /// Why.
    pub message: String,
}

impl Refused {
    pub(crate) fn new(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Refused {
        Refused { key: key.into(), message: message.into() }
    }
}

/// The secrets of a sink by their keys, as they were found in the environment and in files.
#[derive(Clone, Default)]
pub struct Found(BTreeMap<String, String>);

impl Found {
    /// What was found under a key; nothing where there was none.
    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }
}

impl FromIterator<(String, String)> for Found {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(found: I) -> Found {
        Found(found.into_iter().collect())
    }
}
