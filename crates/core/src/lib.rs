//! The pure heart of Stakeout.
//!
//! Everything that decides lives here: when to look ([`cadence`], [`budget`]), who a thing is
//! ([`fingerprint`]), what changed ([`compare`]), what is worth telling ([`judge`]), and whether the
//! schedule was kept ([`adherence`]). The [`source::Source`] trait is how the engine knows an upstream.
//!
//! **Invariant: this crate has no I/O, no clock, no randomness and no async.** Time and seeds come in as
//! arguments, so every decision can be replayed and tested by value.

pub mod adherence;
pub mod alert;
pub mod budget;
pub mod cadence;
pub mod compare;
pub mod derive;
pub mod event;
pub mod failure;
pub mod fingerprint;
pub mod history;
pub mod judge;
pub mod limit;
mod named;
pub mod observation;
mod past;
pub mod record;
mod setting;
pub mod snapshot;
pub mod source;
pub mod target;
pub mod time;
pub mod value;

pub use cadence::{Last, LastOutcome, Next, Plan};
pub use event::{Event, FieldChange};
pub use failure::{Failure, FailureClass};
pub use fingerprint::{ContentHash, ContentHasher, EventId, Fingerprint, spread};
pub use judge::Rule;
pub use named::Named;
pub use observation::{Coverage, Facts, Observation, Scope, Stage, Warning};
pub use past::Past;
pub use record::{Field, FieldType, Kind, KindView, Layout, Point, Record, Shows, Stream};
pub use setting::KnownSetting;
pub use snapshot::{Entry, Snapshot};
pub use source::{
    Exchange, Limits, Looks, Method, PollContext, Request, Response, SettingRefused, Source, credentials_type,
};
pub use target::TargetSpec;
pub use time::{Span, Time};
pub use value::Value;
