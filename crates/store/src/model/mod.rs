//! The words between engine and store: claims, commits, rows. No SQL here.

mod claim;
mod commit;
mod derived;
mod notifications;
mod rows;
mod sharing;
mod texts;

pub use claim::*;
pub use commit::*;
pub use derived::*;
pub use notifications::*;
pub use rows::*;
pub use sharing::*;
