//! What only several nodes on one PostgreSQL can get wrong: starting, upgrading, locking, clocks, hints, weeks.

mod claims;
mod commits;
mod moving;
mod reading;
mod refusals;
mod schema;
mod sharing;
mod support;
mod views;
mod weeks;
mod words;
