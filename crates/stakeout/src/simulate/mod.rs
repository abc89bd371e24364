//! Whole days in virtual time, through the real engine and the real parsers, compared with the simulator's truth.

pub mod fpv;
pub mod nztab;
mod oracle;
pub mod racing;
mod tally;
