//! A racing source through the real binary, against the simulated NZTAB on loopback.

mod commands;
mod docs;
mod environment;
mod support;
