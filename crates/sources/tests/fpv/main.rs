//! The FPV source, told as stories: an upstream that is a set of files, and everything that follows from reading them.

mod board;
mod capture;
mod config;
mod current;
mod damage;
mod discovery;
mod life;
mod overlay;
mod support;
