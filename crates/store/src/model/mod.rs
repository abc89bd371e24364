//! The words between engine and store: claims, commits, rows. No SQL here.

mod claim;
mod commit;
mod rows;

pub use claim::*;
pub use commit::*;
pub use rows::*;
