//! Programs that mean harm: what they see, what they reach, and what is left of them. One test for
//! each row of the table of hostile inputs, at every tier where it holds; the rows about verdicts
//! are among the judge's tests. What the weakest tier lets through is asserted too.
//!
//! Where a tier cannot be built, these tests say so and prove nothing about it.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

#[path = "../common/mod.rs"]
mod common;

mod between_runs;
mod files;
mod memory;
mod network;
mod ordinary;
mod output;
mod privileges;
mod processes;
mod time;
mod weakest;
