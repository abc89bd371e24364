//! The racing upstream, simulated: the endpoints, envelope, quirks and sizes of the real one, over a day that is
//! decided by a seed before it begins.
//!
//! - [`Day`] is the day: a pure function of time. [`Day::truth`] tells everything that happens in it.
//! - [`Upstream`] answers requests at a given time, in this process, honestly or with [`Faults`].
//! - [`serve()`] puts it on loopback; [`demo()`] is the day that the demonstration shows.
//!
//! A change is served from the upstream's next renewal on, every 15 s by default and at each race's own phase:
//! [`RaceTruth::seen_from`] says when. Deliberately absent: a clock, and anything that knows how it is polled.

mod book;
mod day;
mod demo;
mod faults;
mod form;
mod ids;
mod money;
mod names;
mod nz;
mod odds;
mod race;
mod render_event;
mod render_meetings;
mod render_result;
mod render_runner;
mod request;
mod serve;
mod truth;
mod upstream;

pub use book::Scratching;
pub use day::{Body, Day, DayConfig};
pub use demo::{demo, demo_day};
pub use faults::{Fault, Faults};
pub use money::Share;
pub use names::Category;
pub use nz::{nz_date, nz_time};
pub use odds::Odds;
pub use race::Status;
pub use serve::serve;
pub use truth::{EntrantTruth, RaceTruth, held, held_since};
pub use upstream::Upstream;

pub use crate::reply::{Answer, Reply};
