//! The HTTP interface of a running engine: JSON under `/v1`, live streams, metrics, access, the dashboard's files.
//!
//! - [`Server::bind`] and [`Server::run`] are the whole lifecycle.
//! - `routes` lists everything that is answered; the router and the OpenAPI description are made of it, so no route
//!   exists without being described, or without saying who may use it.
//! - One file per resource: `targets`, `records`, `history`, `events`, `stream`, `kv`, `settings`, `adherence`,
//!   `alerts`, `notifications`, `sinks`, `polls`, `health`, `metrics`; one per family of sources: `racing`, `fpv`, `tables`.
//!
//! **Invariants kept here:** the engine never waits for a client; every read is bounded; nothing is answered to a name
//! that is not ours or to somebody who may not ask. Nothing here knows SQL, a configuration file or an upstream's API.

mod access;
mod adherence;
pub mod alerts;
mod app;
mod ask;
mod events;
mod feed;
mod fpv;
mod health;
mod history;
mod kv;
mod metrics;
mod notifications;
mod onlook;
mod openapi;
mod patience;
mod polls;
mod problem;
mod racing;
mod records;
mod reply;
mod route;
mod routes;
mod schema;
mod serve;
mod settings;
mod sinks;
mod sources;
mod stream;
mod tables;
mod targets;
mod web;
pub mod why;

pub use access::{NewToken, Scope, TokenPolicy, UnknownScope};
pub use serve::{Server, ServerConfig, ServerError};

/// The description of the interface, as it is served at `/v1/openapi.json`.
pub fn openapi() -> serde_json::Value {
    openapi::describe(&routes::all())
}
