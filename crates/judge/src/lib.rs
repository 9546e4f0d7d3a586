//! Programs and tests to a Verdict; expected values never enter the jail.
//!
//! The jail is given a program and the inputs of the tests, and gives back what the program
//! returned or printed. Comparison happens here, by exact type. Nothing that runs inside the jail
//! can therefore earn a pass without producing the right values.

mod cache;
mod comparator;
pub mod completion;
mod equality;
mod error;
mod evaluate;
mod execute;
mod feedback;
mod harness;
mod judge;
mod packed;
pub mod pytest;
pub mod rows;
mod scoring;
mod statements;
mod store;
mod submission;
mod tests;
mod value;
mod verdict;

pub use cache::CacheKey;
pub use comparator::Comparator;
pub use error::JudgeError;
pub use evaluate::Evaluation;
pub use execute::{only_built, runs_what_was_built, with_room_for};
pub use feedback::{FailedTest, Feedback};
pub use judge::{Judge, JudgeConfig, JudgeParts, JudgeStats};
pub use packed::{PackedError, unpacked};
pub use scoring::Scoring;
pub use store::{StoreError, StoreStats, VerdictStore};
pub use submission::Submission;
pub use tests::Tests;
pub use value::{Value, ValueError};
pub use verdict::{CaseResult, Verdict, VerdictStatus};
