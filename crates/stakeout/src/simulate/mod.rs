//! Whole days in virtual time, through the real engine and the real parsers, compared with the simulator's truth.

pub mod fpv;
mod in_process;
pub mod nztab;
mod oracle;
pub mod racing;
mod resy;
pub mod tables;
mod tally;
mod told;
