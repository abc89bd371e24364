//! The interface over loopback: a real server, a real engine, a simulated upstream.

mod access;
mod alerts;
mod answers;
mod crowd;
mod described;
mod docs;
mod families;
mod listener;
mod many_races;
mod many_tables;
mod patience;
mod polls;
mod scopes;
mod streams;
mod support;
