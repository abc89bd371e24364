//! An FPV source through the real binary.

mod support;
mod try_out;
