//! When alerts ring, and when they keep silent.

mod again;
mod health;
mod look;
mod moves;
mod rules;
mod starts;
mod told;
