//! The restaurant tables upstream, simulated: the venue search of the real one with its paging, sizes and quirks, over
//! a market whose tables open and close by a seed.
//!
//! - [`Market`] is the market: venues and their tables, a pure function of time. [`Market::with_table`] adds what a
//!   story needs.
//! - [`Truth`] tells what is open and shown at any time, which openings are drops, and what a watcher that looked at
//!   given moments should have told.
//! - [`Upstream`] answers searches at a given time, in this process, honestly or with [`Faults`] by rates and
//!   [`Incident`]s by script.
//! - [`serve()`] puts it on loopback; [`demo()`] is what the demonstration shows.
//!
//! A few sought-after venues, evenings and weekends bring most drops; roomy venues change all the time and bring none.
//! Bookable venues are listed first, so that every opening moves the pages behind it. Deliberately absent: a clock, and
//! anything that knows how it is polled.

mod bucket;
mod calendar;
mod config;
mod demo;
mod faults;
mod habit;
mod incident;
mod market;
mod names;
mod page;
mod render;
mod replay;
mod request;
mod seating;
mod serve;
mod truth;
mod upstream;
mod venue;
mod view;

pub use bucket::{Bucket, Slot};
pub use config::{Body, MarketConfig};
pub use demo::demo;
pub use faults::{Fault, Faults};
pub use incident::{Incident, outages};
pub use market::{Market, Table};
pub use replay::{Drop, Look, Watch};
pub use request::Asked;
pub use serve::serve;
pub use truth::{Listed, Opening, Report, Truth, Verdict};
pub use upstream::Upstream;
pub use venue::Venue;

pub use crate::reply::{Answer, Reply};
