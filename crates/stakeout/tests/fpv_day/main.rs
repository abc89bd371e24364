//! Simulated drone racing events through the real engine and parser, compared with the simulator's truth.

mod day;
mod settings;
mod writes;
