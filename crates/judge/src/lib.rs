//! Programs and tests to a Verdict; expected values never enter the jail.
//!
//! The jail is given a program and the inputs of the tests, and gives back what the program
//! returned or printed. Comparison happens here, by exact type. Nothing that runs inside the jail
//! can therefore earn a pass without producing the right values.

mod cache;
mod compare;
mod error;
mod evaluate;
mod harness;
mod judge;
mod store;
mod tests;
mod value;
mod verdict;

pub use cache::CacheKey;
pub use error::JudgeError;
pub use evaluate::Evaluation;
pub use judge::{Judge, JudgeConfig, JudgeStats};
pub use store::{StoreError, StoreStats, VerdictStore};
pub use tests::Tests;
pub use value::{Value, ValueError};
pub use verdict::{CaseResult, Verdict, VerdictStatus};
