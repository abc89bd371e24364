//! The words between engine and store: claims, commits, rows. No SQL here.

mod claim;
mod commit;
mod derived;
mod rows;
mod sharing;

pub use claim::*;
pub use commit::*;
pub use derived::*;
pub use rows::*;
pub use sharing::*;
