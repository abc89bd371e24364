//! Whether the schedule was kept, and how long anything could have gone unseen.
//!
//! Every due poll is accounted for: on time, late with a [`Cause`], or missed with a cause ([`judge_timing`]).
//! Regular polling is kept as [`Run`]s, run-length encoded per target and phase, from which
//! [`unseen_bound`] answers the promised number for any window.

mod histogram;
mod run;
mod timing;

pub use histogram::{LatenessHistogram, Quantile};
pub use run::{Look, Run, Sight, unseen_bound};
pub use timing::{Account, Cause, Punctuality, Timing, judge_timing, tolerance};
