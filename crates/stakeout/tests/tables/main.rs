//! A tables source through the real engine and store, in virtual time, against an upstream that plays scenes.

mod budget;
mod credentials;
mod docs;
mod gate;
mod market;
mod memory;
mod others;
mod outages;
mod process;
mod proof;
mod repeats;
mod support;
mod views;
