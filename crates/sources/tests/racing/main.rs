//! The racing source, told as stories: what is asked, what an answer means, how often to look, what is told.

mod answers;
mod catalogue;
mod config;
mod damage;
mod events;
mod payloads;
mod schedule;
mod statuses;
mod support;
