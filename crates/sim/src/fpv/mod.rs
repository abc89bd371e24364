//! The drone racing upstream, simulated: the paths, files and habits of the real one, over an event that is decided
//! by a seed or by a capture before it begins.
//!
//! - [`Event`] is the event: a pure function of time, by plan or with [`Incident`]s. [`Replay`] makes one from a
//!   capture.
//! - [`Truth`] tells what is true in it at any time, and lists every [`Change`] with the moment it could be seen.
//! - [`Upstream`] answers requests at a given time, in this process, honestly or with [`Faults`].
//! - [`serve()`] puts it on loopback: one request after another, no error statuses, refused while it is off. The
//!   server counts requests at once and the gaps between requests of each path. [`demo()`] is what the demonstration
//!   shows.
//!
//! A race's file is saved when it starts, twice within 30 ms for each crossing of the line (the detection, then the
//! lap), when it ends and when it is edited. Deliberately absent: a clock, and anything that knows how it is polled.

mod blind;
mod changes;
mod channels;
mod config;
mod demo;
mod director;
mod draft;
mod event;
mod faults;
mod flight;
mod guid;
mod incident;
mod json;
mod line;
mod plan;
mod recorded;
mod render;
mod replay;
mod scenes;
mod serve;
mod stamp;
mod state;
mod truth;
mod upstream;

pub use changes::{Change, What};
pub use config::{EventConfig, Version};
pub use demo::demo;
pub use event::Event;
pub use faults::{Fault, Faults};
pub use guid::Guid;
pub use incident::{Incident, Played};
pub use replay::{BadCapture, Replay};
pub use serve::{Server, serve};
pub use truth::{Current, LapTruth, RaceTruth, Status, Truth};
pub use upstream::{Answer, Reply, Upstream};
