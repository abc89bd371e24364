//! Several processes of the real binary on one PostgreSQL: what they share, what they tell each other, and what happens
//! when one of them, the database or the network is gone.

#![allow(clippy::print_stdout, reason = "a failed round is understood by what came before it")]
#![cfg(unix)]

#[path = "../../../sinks/tests/support/broker.rs"]
mod broker;
mod budget;
mod clocks;
mod commands;
#[path = "../support/faketime.rs"]
mod faketime;
mod faults;
mod focus;
mod life;
mod limits;
mod migrate;
mod nats;
mod network;
mod proxy;
mod repeats;
mod standing;
mod support;
mod truth;
mod words;
