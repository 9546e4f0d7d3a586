//! Repair tasks out of any Python repository with tests: bugs are planted, and the tests say which of them matter.

mod bugs;

pub use bugs::{Bug, Family, bugs};
