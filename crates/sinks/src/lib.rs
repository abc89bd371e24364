//! Receivers of events outside this process.
//!
//! - [`nats`]: NATS JetStream, for many consumers.
//! - [`cloud_event`]: how an event looks outside: CloudEvents 1.0.
//!
//! **Invariants kept here:** an event keeps its id wherever it goes and however often; an event counts as delivered only
//! when the receiver said so. Nothing here knows the store or reads a configuration file.

pub mod cloud_event;
pub mod nats;
