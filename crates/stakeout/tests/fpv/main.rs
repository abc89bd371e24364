//! An FPV source through the real binary.

mod docs;
mod live;
mod support;
mod try_out;
