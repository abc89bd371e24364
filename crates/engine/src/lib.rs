//! The loops that poll every target when it is due and commit each poll as one transaction.
//!
//! - [`Engine::start`] runs the service: claimer → dispatcher → polls → committer, sinks and janitor beside them.
//! - `poll` (the function) is one poll from top to bottom; it is the only thing that changes state.
//! - [`Control`] is what people may tell a running engine.
//! - [`clock`] and [`virtual_time`] decide what time it is.
//!
//! **Invariants kept here:** a target is never in flight twice; due times come from the cadence and nowhere else;
//! lateness is measured, never guessed; what is not committed never happened. Nothing here knows an upstream, SQL or
//! a person's configuration.

mod agreed;
mod alerts;
mod claimer;
pub mod clock;
mod committer;
mod control;
mod deliver;
mod derive;
mod dispatch;
mod due;
mod durations;
mod engine;
mod fatal;
pub mod fetch;
mod hints;
pub mod http;
mod janitor;
mod lane;
mod live;
mod outlets;
mod parcels;
mod poll;
mod pricing;
mod ready;
mod redact;
mod repeats;
mod replan;
mod settings;
mod shared;
mod sharing;
mod stats;
mod tenure;
pub mod virtual_time;
mod vitals;

pub use claimer::LookCount;
pub use clock::Clock;
pub use control::Control;
pub use deliver::{NullSink, Sink, SinkError};
pub use engine::{Engine, EngineConfig, EngineError, EngineHandle};
pub use fetch::Fetch;
pub use lane::LaneState;
pub use live::{EarlierPoll, LivePoll, PollNews, PollWatch};
pub use outlets::SinkState;
pub use redact::redact;
pub use settings::with_settings;
pub use stats::{FailedPoll, PassReport, Totals};
pub use virtual_time::virtual_runtime;
pub use vitals::{SourceVitals, Vitals};
