//! Simulated upstreams: servers on loopback that know the truth and misbehave on purpose.
//!
//! - [`Loopback`] serves whatever its handler says, by an [`Act`]: a plain answer, or one of the faults an upstream
//!   can have. It logs what it has [`Seen`] and lets a test wait for it without sleeping.
//! - [`Script`] is an upstream that changes by its own time, not by being polled, and can say afterwards what was
//!   true when.
//! - [`FastServer`] is the benchmark upstream: as little work per request as possible.
//! - [`nztab`] is the racing upstream: a whole day of meetings from a seed, with the real one's shapes and habits.
//! - [`fpv`] is the drone racing upstream: an event of rounds and races from a seed or a capture, incidents included.
//! - [`resy`] is the restaurant tables upstream: a market whose tables open and close from a seed, and its searches.
//! - [`Faults`] draws what goes wrong, by rates; each upstream has its own kinds.
//! - [`SplitMix64`] is the seeded randomness of all of them.
//!
//! HTTP/1.1 is written by hand here because no server library agrees to send a wrong length, tear a body or reset
//! a connection. Deliberately absent: anything that knows the engine, its store or its clock. Servers run on their
//! own thread and real time, and bind 127.0.0.1 only.

mod act;
mod fast;
mod faults;
pub mod fpv;
mod json;
mod loopback;
pub mod nztab;
mod perform;
mod reply;
pub mod resy;
mod rng;
mod script;
mod timeline;
mod traffic;
mod wire;

pub use act::Act;
pub use fast::{FAST_RECORDS, FastServer};
pub use faults::{FaultKind, Faults};
pub use loopback::Loopback;
pub use reply::{Answer, Reply};
pub use rng::{SplitMix64, mix};
pub use script::{Answered, Script, ScriptServer, Segment, body_hash, serve, serve_at};
pub use traffic::{Gaps, Seen, Stats};
